//! One object as the apiserver sent it, read field by field: objects of any kind and of newer versions are looked at alike.
//!
//! Left out: types for each kind. A field that is not there, or is not what it should be, is absent.

use jiff::Timestamp;
use serde_json::Value;
use shared::api::labels::Labels;
use shared::api::selector::{LabelSelector, Selector};

/// An object, borrowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Object<'a>(pub &'a Value);

/// One of `status.conditions`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition<'a> {
    /// `Available`.
    pub name: &'a str,
    /// `True`, `False` or `Unknown`.
    pub status: &'a str,
    /// One word.
    pub reason: &'a str,
    /// For people.
    pub message: &'a str,
    /// Since when.
    pub since: Option<Timestamp>,
}

/// One of `metadata.ownerReferences`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    /// `apps/v1`.
    pub api_version: &'a str,
    /// `ReplicaSet`.
    pub kind: &'a str,
    /// The owner's name.
    pub name: &'a str,
    /// The owner's uid.
    pub uid: &'a str,
    /// Whether it manages the object.
    pub is_controller: bool,
    /// Whether its deletion in the foreground waits for the object.
    pub blocks: bool,
}

impl<'a> Object<'a> {
    /// The text at this pointer; `""` for none.
    pub fn text(self, pointer: &str) -> &'a str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The whole number at this pointer.
    pub fn number(self, pointer: &str) -> Option<i64> {
        self.0.pointer(pointer).and_then(Value::as_i64)
    }

    /// The number at this pointer; 0 for none, as status fields are left out when they are 0.
    pub fn count(self, pointer: &str) -> i64 {
        self.number(pointer).unwrap_or(0)
    }

    /// Whether this field is true.
    pub fn is(self, pointer: &str) -> bool {
        self.0.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Whether there is something at this pointer.
    pub fn has(self, pointer: &str) -> bool {
        self.0.pointer(pointer).is_some_and(|value| !value.is_null())
    }

    /// The items at this pointer.
    pub fn list(self, pointer: &str) -> impl Iterator<Item = Object<'a>> {
        self.0.pointer(pointer).and_then(Value::as_array).into_iter().flatten().map(Object)
    }

    /// The texts in the list at this pointer.
    pub fn texts(self, pointer: &str) -> Vec<&'a str> {
        self.list(pointer).filter_map(|item| item.0.as_str()).collect()
    }

    /// The time at this pointer.
    pub fn time(self, pointer: &str) -> Option<Timestamp> {
        self.text(pointer).parse().ok()
    }

    /// `Deployment`.
    pub fn kind(self) -> &'a str {
        self.text("/kind")
    }

    /// `apps`; `""` for the core group.
    pub fn group(self) -> &'a str {
        self.text("/apiVersion").rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// Its name.
    pub fn name(self) -> &'a str {
        self.text("/metadata/name")
    }

    /// Its namespace; `""` for none.
    pub fn namespace(self) -> &'a str {
        self.text("/metadata/namespace")
    }

    /// Its uid.
    pub fn uid(self) -> &'a str {
        self.text("/metadata/uid")
    }

    /// `deployment/web`, as kubectl takes it.
    pub fn called(self) -> String {
        format!("{}/{}", self.kind().to_lowercase(), self.name())
    }

    /// When it was created.
    pub fn created(self) -> Option<Timestamp> {
        self.time("/metadata/creationTimestamp")
    }

    /// When somebody deleted it: what stands in the object is when its grace ends.
    pub fn deleted(self) -> Option<Timestamp> {
        let ends = self.time("/metadata/deletionTimestamp")?;
        let grace = jiff::SignedDuration::from_secs(self.count("/metadata/deletionGracePeriodSeconds"));
        Some(ends.checked_sub(grace).unwrap_or(ends))
    }

    /// The condition of this type.
    pub fn condition(self, name: &str) -> Option<Condition<'a>> {
        self.conditions().find(|condition| condition.name == name)
    }

    /// All conditions.
    pub fn conditions(self) -> impl Iterator<Item = Condition<'a>> {
        self.list("/status/conditions").map(|item| Condition {
            name: item.text("/type"),
            status: item.text("/status"),
            reason: item.text("/reason"),
            message: item.text("/message"),
            since: item.time("/lastTransitionTime"),
        })
    }

    /// Whether the condition of this type is true.
    pub fn holds(self, name: &str) -> bool {
        self.condition(name).is_some_and(|condition| condition.status == "True")
    }

    /// Whom it belongs to.
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

    /// Whether an owner has this uid.
    pub fn is_owned_by(self, uid: &str) -> bool {
        self.owners().any(|owner| owner.uid == uid)
    }

    /// The labels at this pointer.
    pub fn labels(self, pointer: &str) -> Labels {
        let pairs = self.0.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
        Labels::new(pairs.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))))
    }

    /// `spec.selector`, in the form that workloads have; none where it is absent or cannot be read.
    pub fn selector(self) -> Option<Result<Selector, String>> {
        let value = self.0.pointer("/spec/selector")?;
        let read = |selector: LabelSelector| Selector::parse(&selector).map_err(|error| error.to_string());
        Some(serde_json::from_value(value.clone()).map_err(|error| error.to_string()).and_then(read))
    }
}
