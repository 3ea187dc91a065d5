//! Claims: which objects a controller owns, which orphans it adopts, and which it releases.
//!
//! Pure. The writes that follow from a [`Claim`] are [`crate::working::control`]'s. Left out: owners that are not
//! controllers.
//!
//! Upstream: `ControllerRefManager`, `pkg/controller/controller_ref_manager.go`.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::api::list::list;
use crate::api::object::{Object, Uid};

pub use crate::api::object::Owner;

impl Owner {
    /// The ownerReference that makes an object ours.
    ///
    /// Upstream: `NewControllerRef`, `staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/controller_ref.go`.
    pub fn controller_ref(&self) -> OwnerReference<'_> {
        OwnerReference {
            api_version: self.resource.api_version(),
            kind: &self.resource.kind,
            name: self.key.name(),
            uid: self.uid,
            controller: true,
            block_owner_deletion: true,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference<'a> {
    api_version: String,
    kind: &'a str,
    name: &'a str,
    uid: Uid,
    controller: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    block_owner_deletion: bool,
}

impl OwnerReference<'_> {
    /// The same reference, for which a foreground deletion of the owner does not wait.
    #[must_use]
    pub fn without_blocking(self) -> Self {
        Self { block_owner_deletion: false, ..self }
    }
}

/// The candidates of an owner, by what its controller does about them.
#[derive(Debug, PartialEq)]
pub struct Claim<T> {
    /// Owned and selected: nothing to do.
    pub owned: Vec<Arc<T>>,
    /// Selected orphans, to be adopted by a patch.
    pub adopt: Vec<Arc<T>>,
    /// Owned but not selected any more, to be released by a patch.
    pub release: Vec<Arc<T>>,
}

impl<T> Claim<T> {
    pub fn is_settled(&self) -> bool {
        let Self { owned: _, adopt, release } = self;
        adopt.is_empty() && release.is_empty()
    }
}

/// `adopt web-x; release web-a, web-b`; nothing if it is settled.
impl<T: Object> fmt::Display for Claim<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owned: _, adopt, release } = self;
        let step = |verb: &str, objects: &[Arc<T>], reason: &str| {
            let names = || list(objects, |object| object.meta().name().to_owned());
            (!objects.is_empty()).then(|| format!("{verb} {} ({reason})", names()))
        };
        let adoption = step("adopt", adopt, "selected, and nobody's");
        let steps: Vec<String> = adoption.into_iter().chain(step("release", release, "selected no more")).collect();
        f.write_str(&steps.join("; "))
    }
}

impl<T> Default for Claim<T> {
    fn default() -> Self {
        Self { owned: Vec::new(), adopt: Vec::new(), release: Vec::new() }
    }
}

/// Sorts candidates into owned ones, ones to adopt and ones to release; keeps their order.
///
/// `matches` is the owner's selector and any other filter of upstream's.
///
/// Upstream: `ClaimObject`, `pkg/controller/controller_ref_manager.go`.
pub fn claim<T: Object>(
    owner: &Owner,
    candidates: impl IntoIterator<Item = Arc<T>>,
    matches: impl Fn(&T) -> bool,
) -> Claim<T> {
    let mut claim = Claim::default();
    for candidate in candidates {
        let meta = candidate.meta();
        match meta.controller_uid() {
            Some(uid) if uid != owner.uid => {}
            Some(_) if matches(&candidate) => claim.owned.push(candidate),
            Some(_) if owner.being_deleted => {}
            Some(_) => claim.release.push(candidate),
            None if owner.being_deleted || meta.is_being_deleted() || !matches(&candidate) => {}
            // A cluster-scoped owner may own in any namespace.
            None if !owner.key.namespace().is_empty() && meta.namespace() != owner.key.namespace() => {}
            None => claim.adopt.push(candidate),
        }
    }
    claim
}

/// The strategic merge patch that adopts an object. With the object's uid as precondition the server refuses (409)
/// another one of the same name.
///
/// Upstream: `ownerRefControllerPatch`, `pkg/controller/controller_ref_manager.go`.
pub fn adopt_patch<'a>(owner: &'a Owner, finalizers: &'a [&'a str]) -> impl Serialize + use<'a> {
    #[derive(Serialize)]
    struct Patch<'a> {
        metadata: Metadata<'a>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        owner_references: [OwnerReference<'a>; 1],
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        finalizers: &'a [&'a str],
    }
    Patch { metadata: Metadata { owner_references: [owner.controller_ref()], finalizers } }
}

/// The strategic merge patch that releases an object from `owner`.
///
/// Upstream: `GenerateDeleteOwnerRefStrategicMergeBytes`, `pkg/controller/controller_ref_manager.go`.
pub fn release_patch<'a>(owner: Uid, finalizers: &'a [&'a str]) -> impl Serialize + use<'a> {
    #[derive(Serialize)]
    struct Patch<'a> {
        metadata: Metadata<'a>,
    }
    #[derive(Serialize)]
    struct Metadata<'a> {
        #[serde(rename = "ownerReferences")]
        owner_references: [Delete; 1],
        #[serde(rename = "$deleteFromPrimitiveList/finalizers", skip_serializing_if = "<[_]>::is_empty")]
        finalizers: &'a [&'a str],
    }
    #[derive(Serialize)]
    struct Delete {
        #[serde(rename = "$patch")]
        patch: &'static str,
        uid: Uid,
    }
    Patch { metadata: Metadata { owner_references: [Delete { patch: "delete", uid: owner }], finalizers } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::object::{ControllerRef, Key, Meta, NoAnnotations};
    use crate::api::time::Time;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Thing {
        metadata: Meta,
    }

    impl Object for Thing {
        type Annotations = NoAnnotations;
        fn meta(&self) -> &Meta {
            &self.metadata
        }
    }

    fn owner(namespace: &str, being_deleted: bool) -> Owner {
        let resource = crate::api::resource::REPLICA_SETS;
        Owner { resource, key: Key::new(namespace, "web"), uid: Uid::parse("owner"), being_deleted }
    }

    fn thing(namespace: &str, name: &str, controller: Option<&str>, deleted: bool) -> Arc<Thing> {
        let controller = controller.map(|uid| {
            ControllerRef { api_version: "v1".into(), kind: "K".into(), name: "n".into(), uid: Uid::parse(uid) }
                .shared()
        });
        let deletion = deleted.then_some(Time::from_second(1));
        Arc::new(Thing { metadata: Meta { key: Key::new(namespace, name), controller, deletion, ..Meta::default() } })
    }

    /// Objects whose name starts with `m` match.
    #[track_caller]
    fn check(owner: &Owner, candidates: &[Arc<Thing>], expected: &str) {
        let claim = claim(owner, candidates.iter().cloned(), |thing| thing.metadata.name().starts_with('m'));
        let names = |things: &[Arc<Thing>]| things.iter().map(|t| t.metadata.name()).collect::<Vec<_>>().join(",");
        let Claim { owned, adopt, release } = &claim;
        assert_eq!(format!("own {} adopt {} release {}", names(owned), names(adopt), names(release)), expected);
    }

    #[test]
    fn claims_as_upstreams_test_claim_pods() {
        let mine = Some("owner");
        check(
            &owner("ns", false),
            &[thing("ns", "m1", mine, false), thing("ns", "x1", None, false)],
            "own m1 adopt  release ",
        );
        check(
            &owner("ns", false),
            &[thing("ns", "m1", None, false), thing("ns", "m2", Some("other"), false)],
            "own  adopt m1 release ",
        );
        check(
            &owner("ns", false),
            &[thing("ns", "x1", mine, false), thing("ns", "m1", mine, false)],
            "own m1 adopt  release x1",
        );
        check(
            &owner("ns", true),
            &[thing("ns", "x1", mine, false), thing("ns", "m1", mine, false), thing("ns", "m2", None, false)],
            "own m1 adopt  release ",
        );
        check(
            &owner("ns", false),
            &[thing("ns", "m1", None, true), thing("ns", "m2", mine, true)],
            "own m2 adopt  release ",
        );
        check(&owner("ns", false), &[thing("elsewhere", "m1", None, false)], "own  adopt  release ");
        check(&owner("", false), &[thing("elsewhere", "m1", None, false)], "own  adopt m1 release ");
    }

    #[test]
    fn patches_are_upstreams_bytes() {
        let me = owner("ns", false);
        let uid = me.uid;
        assert_eq!(
            serde_json::to_string(&adopt_patch(&me, &[])).unwrap(),
            format!(
                r#"{{"metadata":{{"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"{uid}","controller":true,"blockOwnerDeletion":true}}]}}}}"#
            )
        );
        assert_eq!(
            serde_json::to_string(&release_patch(uid, &["f"])).unwrap(),
            format!(
                r#"{{"metadata":{{"ownerReferences":[{{"$patch":"delete","uid":"{uid}"}}],"$deleteFromPrimitiveList/finalizers":["f"]}}}}"#
            )
        );
    }
}
