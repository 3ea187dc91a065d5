//! All that was read before anything is judged.
//!
//! Left out: the reading, which is [`crate::read`]'s, and the meaning, which is [`crate::diagnose`]'s.

use jiff::Timestamp;
use serde_json::Value;
use shared::api::explain::Explanation;

use crate::lease::Lease;
use crate::object::Object;

/// The objects and answers that were read about one object, and around it.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// When.
    pub now: Timestamp,
    /// The object that somebody asked about.
    pub target: Target,
    /// Every object that was read, the target too if it exists.
    pub objects: Vec<Value>,
    /// Resources that could not be read.
    pub hidden: Vec<Hidden>,
    /// The uids of owners that were looked for and are not there.
    pub absent_owners: Vec<String>,
    /// Names of objects that are nearly the one that was asked about, where that is not there.
    pub similar: Vec<String>,
    /// The operators that act on these objects.
    pub operators: Vec<Asked>,
    /// kube-controller-manager, which may do the same.
    pub manager: Manager,
}

/// Which object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// `apps`; `""` is the core group.
    pub group: String,
    /// `v1`.
    pub version: String,
    /// `Deployment`.
    pub kind: String,
    /// `deployments`.
    pub resource: String,
    /// `""` for an object that has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// `pods`, `limits of the namespace`.
    pub what: String,
    /// Why not.
    pub why: String,
}

/// Something that is there, is not there, or nobody told.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Seen<T> {
    /// It is there.
    Is(T),
    /// It is not there.
    Absent,
    /// It could not be read.
    #[default]
    Hidden,
}

impl<T> Seen<T> {
    /// The value, if it was read.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Is(value) => Some(value),
            Self::Absent | Self::Hidden => None,
        }
    }
}

/// One operator, and its answers.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// `deployment-operator`.
    pub operator: String,
    /// Its Lease.
    pub lease: Seen<Lease>,
    /// Its answers about each object that it was asked about.
    pub answers: Vec<Explanation>,
    /// Why it said nothing.
    pub silence: Option<String>,
}

/// kube-controller-manager.
#[derive(Clone, Debug, Default)]
pub struct Manager {
    /// Its Lease.
    pub lease: Seen<Lease>,
    /// Its `--controllers`, where its pod can be seen.
    pub controllers: Option<String>,
}

impl Evidence {
    /// The object that was asked about.
    pub fn object(&self) -> Option<Object<'_>> {
        let target = &self.target;
        self.all().find(|object| {
            (object.kind(), object.group()) == (&target.kind, &target.group)
                && (object.namespace(), object.name()) == (&target.namespace, &target.name)
        })
    }

    /// All objects.
    pub fn all(&self) -> impl Iterator<Item = Object<'_>> {
        self.objects.iter().map(Object)
    }

    /// All objects of a kind.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = Object<'_>> {
        self.all().filter(move |object| object.kind() == kind)
    }

    /// The objects that the object of this uid owns.
    pub fn owned_by(&self, uid: &str) -> impl Iterator<Item = Object<'_>> {
        self.all().filter(move |object| !uid.is_empty() && object.is_owned_by(uid))
    }

    /// The object of this uid.
    pub fn with_uid(&self, uid: &str) -> Option<Object<'_>> {
        self.all().find(|object| !uid.is_empty() && object.uid() == uid && object.kind() != "Event")
    }

    /// The events about an object, the newest last.
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

    /// The newest event about an object with one of these reasons.
    pub fn event(&self, object: Object<'_>, reasons: &[&str]) -> Option<Object<'_>> {
        self.events_of(object).into_iter().rfind(|event| reasons.contains(&event.text("/reason")))
    }
}

/// When an event last happened, by whichever field its writer filled.
pub fn event_time(event: Object<'_>) -> Option<Timestamp> {
    let fields = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    fields.iter().find_map(|field| event.time(field))
}
