//! The fields that are read of StatefulSets, pods and claims, and the API's defaults.

use serde_json::json;
use serde_json::value::RawValue;
use shared::testing::{ObjectBuilder, object, uid};
use statefulset_operator::objects::claim::PersistentVolumeClaim;
use statefulset_operator::objects::pod::Pod;
use statefulset_operator::objects::{
    ClaimRetention, PodManagementPolicy, Retention, RollingUpdate, StatefulSet, StatefulSetSpec, UpdateStrategy,
    UpdateType,
};

use crate::fixtures::{NEW, claim, of_set, owned, pod, rejected, set, unready};

fn spec_of(set: &ObjectBuilder) -> StatefulSetSpec {
    set.build::<StatefulSet>().spec.clone()
}

#[test]
fn a_set_that_says_little_has_the_defaults_of_the_api() {
    for bare in [
        json!({}),
        json!({ "replicas": null, "selector": null, "volumeClaimTemplates": null, "ordinals": null,
            "revisionHistoryLimit": null, "persistentVolumeClaimRetentionPolicy": null }),
    ] {
        let spec = spec_of(&object("apps/v1", "StatefulSet", "web").set(&["spec"], bare));
        assert_eq!((spec.replicas, spec.start, spec.ordinals()), (1, 0, 0..1));
        assert_eq!((spec.revision_history_limit, spec.min_ready_seconds, &*spec.service_name), (10, 0, ""));
        assert_eq!(spec.pod_management_policy, PodManagementPolicy::OrderedReady);
        assert_eq!(spec.update_strategy, UpdateStrategy { type_: UpdateType::RollingUpdate, rolling_update: None });
        assert!(spec.claim_retention.retains_all() && spec.volume_claim_templates.is_empty());
        assert!(!spec.selector.unwrap().matches(&shared::api::labels::Labels::new([("app", "web")])));
    }
}

#[test]
fn a_set_is_read_whole() {
    let claims = json!([{ "metadata": { "name": "data", "labels": { "a": "b" } }, "spec": {} }]);
    let rolling = json!({ "partition": 2, "maxUnavailable": "10%" });
    let spec = spec_of(
        &set(3)
            .set(&["spec", "ordinals", "start"], 5)
            .set(&["spec", "podManagementPolicy"], "Parallel")
            .set(&["spec", "updateStrategy"], json!({ "type": "RollingUpdate", "rollingUpdate": rolling }))
            .set(&["spec", "minReadySeconds"], 7)
            .set(&["spec", "volumeClaimTemplates"], claims.clone())
            .set(&["spec", "persistentVolumeClaimRetentionPolicy"], json!({ "whenScaled": "Delete" })),
    );
    assert_eq!((spec.ordinals(), spec.partition_start(), spec.min_ready_seconds), (5..8, 7, 7));
    assert_eq!(spec.pod_management_policy, PodManagementPolicy::Parallel);
    let RollingUpdate { partition, max_unavailable } = spec.update_strategy.rolling_update.clone().unwrap();
    assert!(partition == 2 && max_unavailable.is_some());
    let retention = ClaimRetention { when_scaled: Retention::Delete, when_deleted: Retention::Retain };
    assert_eq!(spec.claim_retention, retention);
    assert_eq!(spec.volume_claim_templates[0].json().map(RawValue::get), Some(&*claims[0].to_string()));
    assert!(spec.has_claim_template("data") && !spec.has_claim_template("dat"));
    assert_eq!(spec.match_labels.get("app"), Some("web"));
}

/// Upstream: each place that compares a policy compares it with one of its names.
#[test]
fn an_unknown_policy_counts_as_upstream_counts_it() {
    let odd = set(1)
        .set(&["spec", "podManagementPolicy"], "Odd")
        .set(&["spec", "updateStrategy", "type"], "Odd")
        .set(&["spec", "persistentVolumeClaimRetentionPolicy"], json!({ "whenScaled": "Odd", "whenDeleted": "Odd" }));
    let spec = spec_of(&odd);
    assert_eq!(spec.pod_management_policy, PodManagementPolicy::OrderedReady);
    assert_eq!(spec.update_strategy.type_, UpdateType::RollingUpdate);
    assert!(spec.claim_retention.retains_all());
}

#[test]
fn the_last_ordinals_there_are_do_not_overflow() {
    let spec = spec_of(
        &set(i32::MAX)
            .set(&["spec", "ordinals", "start"], i32::MAX)
            .set(&["spec", "updateStrategy", "rollingUpdate", "partition"], i32::MAX),
    );
    assert_eq!((spec.ordinals().end, spec.partition_start()), (2 * i64::from(i32::MAX), 2 * i64::from(i32::MAX)));
    assert!(spec_of(&set(-1)).ordinals().is_empty());
}

#[test]
fn a_pod_says_which_claims_it_uses() {
    let volumes = json!([
        { "name": "tmp", "emptyDir": {} },
        { "name": "data", "persistentVolumeClaim": { "claimName": "data-web-0", "readOnly": true } },
        { "name": "logs", "persistentVolumeClaim": { "claimName": "logs-web-0" } },
    ]);
    let read = pod(0, NEW).set(&["spec", "volumes"], volumes).build::<Pod>();
    assert_eq!((read.claim("data"), read.claim("logs")), (Some("data-web-0"), Some("logs-web-0")));
    assert_eq!((read.claim("tmp"), read.claim("none"), read.revision()), (None, None, NEW));
    assert_eq!(shared::testing::pod("bare").build::<Pod>().revision(), "");
}

#[test]
fn a_pod_says_whether_its_node_has_rejected_it() {
    let read = |pod: ObjectBuilder| pod.build::<Pod>().rejection.as_deref().map(str::to_owned);
    assert_eq!(read(rejected(0, NEW)).as_deref(), Some("OutOfcpu"));
    assert_eq!(read(rejected(0, NEW).restarts(0)), None, "a container was there");
    assert_eq!(read(rejected(0, NEW).phase("Pending")), None);
    assert_eq!(read(pod(0, NEW).phase("Failed")), None);
}

#[test]
fn states_of_a_pod_that_differ_in_nothing_that_counts_are_alike() {
    let first = pod(0, NEW).build::<Pod>();
    let alike = |other: ObjectBuilder| first.is_alike(&other.build::<Pod>());
    assert!(alike(pod(0, NEW).set(&["metadata", "resourceVersion"], "9").annotation("a", "b")));
    assert!(!alike(pod(0, NEW).label("a", "b")));
    assert!(!alike(pod(0, NEW).phase("Failed")));
    let pending = unready(0, NEW).node("").phase("Pending");
    assert!(!pending.build::<Pod>().is_alike(&pending.unschedulable().build::<Pod>()));
    assert!(!rejected(0, NEW).build::<Pod>().is_alike(&rejected(0, NEW).restarts(1).build::<Pod>()));
    assert!(!alike(pod(0, NEW).terminating()));
    assert!(!alike(pod(0, NEW).set(&["spec", "volumes"], json!([]))));
    assert!(!alike(pod(0, NEW).set(&["metadata", "ownerReferences"], json!([]))));
}

#[test]
fn a_claim_says_who_owns_it() {
    let odd = json!({ "apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": uid("web-0") });
    let read = owned(claim(0), &[of_set(), odd]).terminating().build::<PersistentVolumeClaim>();
    let owners: Vec<(&str, &str, bool)> =
        read.owners.iter().map(|owner| (&*owner.api_version, &*owner.kind, owner.is_controller)).collect();
    assert_eq!(owners, [("apps/v1", "StatefulSet", true), ("v1", "Pod", false)]);
    assert_eq!((&*read.owners[1].name, read.owners[1].uid), ("web-0", uid("web-0")));
    assert!(read.metadata.is_being_deleted() && claim(0).build::<PersistentVolumeClaim>().owners.is_empty());
}
