//! Preconditions of writes, and options of deletions: dependents and grace period.
//!
//! Left out: dry runs, and `ignoreStoreReadErrorWithClusterBreakingPotential`.

use serde::Serialize;
use serde_json::Value;

use crate::api::object::{Meta, ResourceVersion, Uid};

/// What happens to the dependents of a deleted object. Upstream: `DeletionPropagation`,
/// staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Propagation {
    /// Dependents are deleted after the object.
    Background,
    /// Dependents are deleted before the object.
    Foreground,
    Orphan,
}

/// The uid and version that an object must have, or the server answers 409. A controller that knows a kind only by
/// discovery has both as the server wrote them: `Preconditions<&str, &str>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preconditions<U = Uid, V = ResourceVersion> {
    pub uid: U,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<V>,
}

impl Preconditions {
    /// The preconditions of a write that is decided on exactly this state of an object.
    pub const fn of<A>(metadata: &Meta<A>) -> Self {
        Self { uid: metadata.uid, resource_version: Some(metadata.resource_version) }
    }
}

impl From<Uid> for Preconditions {
    fn from(uid: Uid) -> Self {
        Self { uid, resource_version: None }
    }
}

impl<'a> From<&'a str> for Preconditions<&'a str, &'a str> {
    fn from(uid: &'a str) -> Self {
        Self { uid, resource_version: None }
    }
}

impl<'a> Preconditions<&'a str, &'a str> {
    /// The preconditions of an object that was read live as JSON.
    pub fn of_read(object: &'a Value) -> Self {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
        Self { uid: text("/metadata/uid").unwrap_or_default(), resource_version: text("/metadata/resourceVersion") }
    }
}

/// Options of a deletion. Upstream: `DeleteOptions`, staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteOptions<U = Uid, V = ResourceVersion> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_period_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preconditions: Option<Preconditions<U, V>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    propagation_policy: Option<Propagation>,
}

impl<U, V> DeleteOptions<U, V> {
    /// Delete whatever object has the name, with its resource's default for dependents.
    pub fn any() -> Self {
        Self {
            api_version: "v1",
            kind: "DeleteOptions",
            grace_period_seconds: None,
            preconditions: None,
            propagation_policy: None,
        }
    }

    /// Delete exactly this object, with its resource's default for dependents.
    pub fn of(preconditions: impl Into<Preconditions<U, V>>) -> Self {
        Self { preconditions: Some(preconditions.into()), ..Self::any() }
    }

    #[must_use]
    pub fn with_dependents(self, propagation: Propagation) -> Self {
        Self { propagation_policy: Some(propagation), ..self }
    }

    /// Set the grace period in seconds; 0 deletes at once.
    #[must_use]
    pub fn within(self, seconds: u32) -> Self {
        Self { grace_period_seconds: Some(seconds), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(options: &DeleteOptions<&str, &str>, expected: &str) {
        let all = format!(r#"{{"apiVersion":"v1","kind":"DeleteOptions"{expected}}}"#);
        assert_eq!(serde_json::to_string(options).unwrap(), all);
    }

    #[test]
    fn delete_options_say_only_what_is_asked_for() {
        check(&DeleteOptions::any(), "");
        check(&DeleteOptions::of("u"), r#","preconditions":{"uid":"u"}"#);
        check(
            &DeleteOptions::of(Preconditions { uid: "u", resource_version: Some("7") })
                .with_dependents(Propagation::Orphan)
                .within(0),
            r#","gracePeriodSeconds":0,"preconditions":{"uid":"u","resourceVersion":"7"},"propagationPolicy":"Orphan""#,
        );
    }
}
