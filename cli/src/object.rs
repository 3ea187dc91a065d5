//! An object as JSON, read field by field: works for kinds and versions unknown here. A field of the wrong type
//! counts as absent.

use jiff::Timestamp;
use serde_json::Value;
use shared::api::labels::Labels;
use shared::api::selector::{LabelSelector, Selector};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Object<'a>(pub &'a Value);

/// One of `status.conditions`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition<'a> {
    pub name: &'a str,
    pub status: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
    pub since: Option<Timestamp>,
}

/// One of `metadata.ownerReferences`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
    pub is_controller: bool,
    pub blocks: bool,
}

impl<'a> Object<'a> {
    /// The string at this pointer, or `""`.
    pub fn text(self, pointer: &str) -> &'a str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn number(self, pointer: &str) -> Option<i64> {
        self.0.pointer(pointer).and_then(Value::as_i64)
    }

    /// The number at this pointer, or 0: status omits zeros.
    pub fn count(self, pointer: &str) -> i64 {
        self.number(pointer).unwrap_or(0)
    }

    pub fn is(self, pointer: &str) -> bool {
        self.0.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
    }

    pub fn has(self, pointer: &str) -> bool {
        self.0.pointer(pointer).is_some_and(|value| !value.is_null())
    }

    pub fn list(self, pointer: &str) -> impl Iterator<Item = Object<'a>> {
        self.0.pointer(pointer).and_then(Value::as_array).into_iter().flatten().map(Object)
    }

    pub fn texts(self, pointer: &str) -> Vec<&'a str> {
        self.list(pointer).filter_map(|item| item.0.as_str()).collect()
    }

    pub fn time(self, pointer: &str) -> Option<Timestamp> {
        self.text(pointer).parse().ok()
    }

    pub fn kind(self) -> &'a str {
        self.text("/kind")
    }

    /// `""` for the core group.
    pub fn group(self) -> &'a str {
        self.text("/apiVersion").rsplit_once('/').map_or("", |(group, _)| group)
    }

    pub fn name(self) -> &'a str {
        self.text("/metadata/name")
    }

    pub fn namespace(self) -> &'a str {
        self.text("/metadata/namespace")
    }

    pub fn uid(self) -> &'a str {
        self.text("/metadata/uid")
    }

    /// `deployment/web`, as kubectl takes it.
    pub fn called(self) -> String {
        format!("{}/{}", self.kind().to_lowercase(), self.name())
    }

    pub fn created(self) -> Option<Timestamp> {
        self.time("/metadata/creationTimestamp")
    }

    /// Time of the deletion; the field in the object is the end of the grace period.
    pub fn deleted(self) -> Option<Timestamp> {
        let ends = self.time("/metadata/deletionTimestamp")?;
        let grace = jiff::SignedDuration::from_secs(self.count("/metadata/deletionGracePeriodSeconds"));
        Some(ends.checked_sub(grace).unwrap_or(ends))
    }

    pub fn condition(self, name: &str) -> Option<Condition<'a>> {
        self.conditions().find(|condition| condition.name == name)
    }

    pub fn conditions(self) -> impl Iterator<Item = Condition<'a>> {
        self.list("/status/conditions").map(|item| Condition {
            name: item.text("/type"),
            status: item.text("/status"),
            reason: item.text("/reason"),
            message: item.text("/message"),
            since: item.time("/lastTransitionTime"),
        })
    }

    pub fn holds(self, name: &str) -> bool {
        self.condition(name).is_some_and(|condition| condition.status == "True")
    }

    pub fn owners(self) -> impl Iterator<Item = Owner<'a>> {
        self.list("/metadata/ownerReferences").map(|item| Owner {
            api_version: item.text("/apiVersion"),
            kind: item.text("/kind"),
            name: item.text("/name"),
            uid: item.text("/uid"),
            is_controller: item.is("/controller"),
            blocks: item.is("/blockOwnerDeletion"),
        })
    }

    pub fn is_owned_by(self, uid: &str) -> bool {
        self.owners().any(|owner| owner.uid == uid)
    }

    pub fn labels(self, pointer: &str) -> Labels {
        let pairs = self.0.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
        Labels::new(pairs.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))))
    }

    pub fn selector(self) -> Option<Result<Selector, String>> {
        let value = self.0.pointer("/spec/selector")?;
        let read = |selector: LabelSelector| Selector::parse(&selector).map_err(|error| error.to_string());
        Some(serde_json::from_value(value.clone()).map_err(|error| error.to_string()).and_then(read))
    }
}
