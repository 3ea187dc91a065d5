//! The bodies of all patches, in both forms.
//!
//! Pure. A strategic merge patch names single references and carries the uid, which the server compares; where a kind
//! does not take one (custom resources), a merge patch carries the whole list and the version it was read at.
//!
//! Upstream: `pkg/controller/garbagecollector/patch.go`.

use serde_json::{Value, json};

use crate::objects::LiveMeta;

/// One change in both forms.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    /// For kinds that are built in.
    pub strategic: Value,
    /// For all others.
    pub merge: Value,
}

/// Drops the references to these owners, named as they are written.
pub fn drop_owners(live: &LiveMeta, owners: &[String]) -> Patch {
    Patch { strategic: drop_owners_of(&live.uid, owners), merge: keep_other_owners(live, owners) }
}

/// The strategic form of [`drop_owners`], for a dependent that is not read before.
///
/// Upstream: `GenerateDeleteOwnerRefStrategicMergeBytes`, `pkg/controller/controller_ref_manager.go`.
pub fn drop_owners_of(dependent: &str, owners: &[String]) -> Value {
    let dropped: Vec<Value> = owners.iter().map(|uid| json!({ "$patch": "delete", "uid": uid })).collect();
    json!({ "metadata": { "uid": dependent, "ownerReferences": dropped } })
}

/// The merge form of [`drop_owners`].
///
/// Upstream: `deleteOwnerRefJSONMergePatch`, `pkg/controller/garbagecollector/patch.go`.
pub fn keep_other_owners(live: &LiveMeta, owners: &[String]) -> Value {
    let named = |reference: &&Value| {
        reference.get("uid").and_then(Value::as_str).is_some_and(|uid| owners.iter().any(|owner| owner == uid))
    };
    let kept: Vec<&Value> = live.owner_references.iter().filter(|reference| !named(reference)).collect();
    let kept = if kept.is_empty() { Value::Null } else { json!(kept) };
    json!({ "metadata": { "resourceVersion": live.resource_version, "ownerReferences": kept } })
}

/// Makes no reference hold its owner back any more.
///
/// Upstream: `unblockOwnerReferencesStrategicMergePatch`, `pkg/controller/garbagecollector/patch.go`.
pub fn unblock_owners(live: &LiveMeta) -> Patch {
    let unblocked = |reference: &Value| {
        let mut reference = reference.clone();
        reference["blockOwnerDeletion"] = Value::Bool(false);
        reference
    };
    let blocks = |reference: &&Value| reference.get("blockOwnerDeletion") == Some(&Value::Bool(true));
    let blocking: Vec<Value> = live.owner_references.iter().filter(blocks).map(unblocked).collect();
    let all: Vec<Value> = live.owner_references.iter().map(unblocked).collect();
    Patch {
        strategic: json!({ "metadata": { "uid": live.uid, "ownerReferences": blocking } }),
        merge: json!({ "metadata": { "resourceVersion": live.resource_version, "ownerReferences": all } }),
    }
}

/// Takes one finalizer away and leaves all others; none if it is not there.
///
/// Upstream: `removeFinalizer`, `pkg/controller/garbagecollector/operations.go`.
pub fn remove_finalizer(live: &LiveMeta, finalizer: &str) -> Option<Value> {
    if !live.finalizers.iter().any(|known| known == finalizer) {
        return None;
    }
    let kept: Vec<&String> = live.finalizers.iter().filter(|known| *known != finalizer).collect();
    let kept = if kept.is_empty() { Value::Null } else { json!(kept) };
    Some(json!({ "metadata": { "resourceVersion": live.resource_version, "finalizers": kept } }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::LiveObject;

    fn live(metadata: &Value) -> LiveMeta {
        let object: LiveObject = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
        object.metadata
    }

    #[test]
    fn dropping_owners_names_them_or_keeps_the_others_word_for_word() {
        let (a, b) = (json!({ "uid": "a", "newField": 1 }), json!({ "uid": "B odd" }));
        let meta = live(&json!({ "uid": "u", "resourceVersion": "7", "ownerReferences": [a, b] }));
        let patch = drop_owners(&meta, &["B odd".to_owned()]);
        let dropped = json!([{ "$patch": "delete", "uid": "B odd" }]);
        assert_eq!(patch.strategic, json!({ "metadata": { "uid": "u", "ownerReferences": dropped } }));
        assert_eq!(patch.merge, json!({ "metadata": { "resourceVersion": "7", "ownerReferences": [a] } }));
        let patch = drop_owners(&meta, &["a".to_owned(), "B odd".to_owned()]);
        assert_eq!(patch.merge, json!({ "metadata": { "resourceVersion": "7", "ownerReferences": null } }));
    }

    #[test]
    fn unblocking_changes_nothing_else() {
        let meta = live(&json!({ "uid": "u", "resourceVersion": "7", "ownerReferences": [
            { "uid": "a", "blockOwnerDeletion": true, "controller": true }, { "uid": "b" }] }));
        let patch = unblock_owners(&meta);
        let a = json!({ "uid": "a", "blockOwnerDeletion": false, "controller": true });
        assert_eq!(patch.strategic, json!({ "metadata": { "uid": "u", "ownerReferences": [a] } }));
        let all = json!([a, { "uid": "b", "blockOwnerDeletion": false }]);
        assert_eq!(patch.merge, json!({ "metadata": { "resourceVersion": "7", "ownerReferences": all } }));
    }

    #[test]
    fn removing_a_finalizer_leaves_those_of_others() {
        let meta = live(&json!({ "resourceVersion": "7", "finalizers": ["x", "orphan", "y"] }));
        let patch = remove_finalizer(&meta, "orphan").unwrap();
        assert_eq!(patch, json!({ "metadata": { "resourceVersion": "7", "finalizers": ["x", "y"] } }));
        assert_eq!(remove_finalizer(&meta, "foregroundDeletion"), None);
        let last = remove_finalizer(&live(&json!({ "resourceVersion": "7", "finalizers": ["orphan"] })), "orphan");
        assert_eq!(last.unwrap(), json!({ "metadata": { "resourceVersion": "7", "finalizers": null } }));
    }
}
