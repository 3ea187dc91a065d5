//! Everything that was read about an object, before it is judged.

use jiff::Timestamp;
use serde_json::Value;
use shared::api::explain::Explanation;

use crate::lease::Lease;
use crate::lookup::Lookup;
use crate::object::Object;
use crate::runner::Manager;

#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub now: Timestamp,
    pub target: Target,
    /// Includes the target, if it exists.
    pub objects: Vec<Value>,
    pub unread: Vec<Unread>,
    /// Uids of owners that do not exist.
    pub absent_owners: Vec<String>,
    /// Similar names, if the target does not exist.
    pub similar: Vec<String>,
    pub operators: Vec<Asked>,
    pub manager: Manager,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub resource: String,
    pub namespace: String,
    pub name: String,
}

/// Something that could not be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    pub what: String,
    pub why: String,
}

#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub operator: String,
    pub lease: Lookup<Lease>,
    pub answers: Vec<Explanation>,
    /// Why it gave no answer.
    pub silence: Option<String>,
}

impl Evidence {
    pub fn object(&self) -> Option<Object<'_>> {
        let target = &self.target;
        self.all().find(|object| {
            (object.kind(), object.group()) == (&target.kind, &target.group)
                && (object.namespace(), object.name()) == (&target.namespace, &target.name)
        })
    }

    pub fn all(&self) -> impl Iterator<Item = Object<'_>> {
        self.objects.iter().map(Object)
    }

    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = Object<'_>> {
        self.all().filter(move |object| object.kind() == kind)
    }

    pub fn owned_by(&self, uid: &str) -> impl Iterator<Item = Object<'_>> {
        self.all().filter(move |object| !uid.is_empty() && object.is_owned_by(uid))
    }

    pub fn with_uid(&self, uid: &str) -> Option<Object<'_>> {
        self.all().find(|object| !uid.is_empty() && object.uid() == uid && object.kind() != "Event")
    }

    /// The events about an object, oldest first.
    pub fn events_of(&self, object: Object<'_>) -> Vec<Object<'_>> {
        let (uid, name, kind) = (object.uid(), object.name(), object.kind());
        let mut events: Vec<Object<'_>> = self
            .of_kind("Event")
            .filter(|event| {
                let about = event.text("/involvedObject/uid");
                if about.is_empty() || uid.is_empty() {
                    (event.text("/involvedObject/name"), event.text("/involvedObject/kind")) == (name, kind)
                } else {
                    about == uid
                }
            })
            .collect();
        events.sort_by_key(|event| event_time(*event));
        events
    }

    pub fn event(&self, object: Object<'_>, reasons: &[&str]) -> Option<Object<'_>> {
        self.events_of(object).into_iter().rfind(|event| reasons.contains(&event.text("/reason")))
    }
}

pub fn event_time(event: Object<'_>) -> Option<Timestamp> {
    let fields = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    fields.iter().find_map(|field| event.time(field))
}
