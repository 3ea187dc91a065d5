//! The bodies of all patches, in two forms.
//!
//! A strategic merge patch names single references, and needs only the uid as precondition. Kinds that do not accept it
//! (custom resources) get a merge patch with the whole list, which also needs the version that was read.
//!
//! Upstream: `pkg/controller/garbagecollector/patch.go`.

use serde_json::{Value, json};

use crate::objects::LiveMeta;

/// One change in both forms.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    pub uid: String,
    /// The version that was read, for the merge patch.
    pub resource_version: String,
    pub strategic: Value,
    pub merge: Value,
}

fn of(live: &LiveMeta, strategic: Value, merge: Value) -> Patch {
    let (uid, resource_version) = (live.uid.clone(), live.resource_version.clone());
    Patch { uid, resource_version, strategic, merge }
}

/// Drops the references to these owners, named as they are written.
pub fn drop_owners(live: &LiveMeta, owners: &[String]) -> Patch {
    of(live, drop_owners_of(owners), keep_other_owners(live, owners))
}

/// The strategic form of [`drop_owners`], for a dependent that is not read before.
///
/// Upstream: `GenerateDeleteOwnerRefStrategicMergeBytes`, `pkg/controller/controller_ref_manager.go`.
pub fn drop_owners_of(owners: &[String]) -> Value {
    let dropped: Vec<Value> = owners.iter().map(|uid| json!({ "$patch": "delete", "uid": uid })).collect();
    json!({ "metadata": { "ownerReferences": dropped } })
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
    json!({ "metadata": { "ownerReferences": kept } })
}

/// Makes no reference block its owner's deletion.
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
    let owners = |references| json!({ "metadata": { "ownerReferences": references } });
    of(live, owners(blocking), owners(all))
}

/// Removes one finalizer and keeps all others; none if the object does not have it.
///
/// Upstream: `removeFinalizer`, `pkg/controller/garbagecollector/operations.go`.
pub fn remove_finalizer(live: &LiveMeta, finalizer: &str) -> Option<Value> {
    if !live.finalizers.iter().any(|known| known == finalizer) {
        return None;
    }
    let kept: Vec<&String> = live.finalizers.iter().filter(|known| *known != finalizer).collect();
    let kept = if kept.is_empty() { Value::Null } else { json!(kept) };
    Some(json!({ "metadata": { "finalizers": kept } }))
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
        assert_eq!((patch.uid.as_str(), patch.resource_version.as_str()), ("u", "7"));
        let dropped = json!([{ "$patch": "delete", "uid": "B odd" }]);
        assert_eq!(patch.strategic, json!({ "metadata": { "ownerReferences": dropped } }));
        assert_eq!(patch.merge, json!({ "metadata": { "ownerReferences": [a] } }));
        let patch = drop_owners(&meta, &["a".to_owned(), "B odd".to_owned()]);
        assert_eq!(patch.merge, json!({ "metadata": { "ownerReferences": null } }));
    }

    #[test]
    fn unblocking_changes_nothing_else() {
        let meta = live(&json!({ "uid": "u", "resourceVersion": "7", "ownerReferences": [
            { "uid": "a", "blockOwnerDeletion": true, "controller": true }, { "uid": "b" }] }));
        let patch = unblock_owners(&meta);
        let a = json!({ "uid": "a", "blockOwnerDeletion": false, "controller": true });
        assert_eq!(patch.strategic, json!({ "metadata": { "ownerReferences": [a] } }));
        let all = json!([a, { "uid": "b", "blockOwnerDeletion": false }]);
        assert_eq!(patch.merge, json!({ "metadata": { "ownerReferences": all } }));
    }

    #[test]
    fn removing_a_finalizer_leaves_those_of_others() {
        let meta = live(&json!({ "resourceVersion": "7", "finalizers": ["x", "orphan", "y"] }));
        let patch = remove_finalizer(&meta, "orphan").unwrap();
        assert_eq!(patch, json!({ "metadata": { "finalizers": ["x", "y"] } }));
        assert_eq!(remove_finalizer(&meta, "foregroundDeletion"), None);
        let last = remove_finalizer(&live(&json!({ "resourceVersion": "7", "finalizers": ["orphan"] })), "orphan");
        assert_eq!(last.unwrap(), json!({ "metadata": { "finalizers": null } }));
    }
}
