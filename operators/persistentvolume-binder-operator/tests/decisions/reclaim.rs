//! Volumes that are deleted, or left to others. Upstream: `delete_test.go`.

use serde_json::{Value, json};
use shared::api::object::Key;

use super::fixtures::{
    BOUND_BY_CONTROLLER, IN_TREE_FINALIZER, MIGRATED_TO, NOT_CACHED, PROVISIONED_BY, SyncOf, World, annotated, claim,
    csi_volume, finalized, on_host, row, saying, terminating, volume, volume_in,
};

/// Upstream: `TestDeleteSync`.
#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn deletions_are_upstreams() {
    let classes = [];
    let pods = [];
    let rows = [
        row(
            "8-1 - successful delete",
            SyncOf::Volume,
            (
                on_host(volume(
                    "volume8-1",
                    "1Gi",
                    "uid8-1",
                    "claim8-1",
                    "Bound",
                    "Delete",
                    "",
                    &[BOUND_BY_CONTROLLER],
                )),
                Vec::new(),
            ),
            (Vec::new(), Vec::new()),
            &[],
        ),
        row(
            "8-2 - successful delete with prebound volume",
            SyncOf::Volume,
            (on_host(volume("volume8-2", "1Gi", "uid8-2", "claim8-2", "Bound", "Delete", "", &[])), Vec::new()),
            (Vec::new(), Vec::new()),
            &[],
        ),
        row(
            "8-3 - plugin not found",
            SyncOf::Volume,
            (
                volume("volume8-3", "1Gi", "uid8-3", "claim8-3", "Bound", "Delete", "", &[]),
                saying(
                    "error getting deleter volume plugin for volume \"volume8-3\": no volume plugin matched",
                    volume("volume8-3", "1Gi", "uid8-3", "claim8-3", "Failed", "Delete", "", &[]),
                ),
            ),
            (Vec::new(), Vec::new()),
            &["Warning VolumeFailedDelete"],
        ),
        row(
            "8-9 - prebound volume is deleted while the claim exists",
            SyncOf::Volume,
            (on_host(volume("volume8-9", "1Gi", "uid8-9", "claim8-9", "Bound", "Delete", "", &[])), Vec::new()),
            (
                claim("claim8-9", "uid8-9-x", "10Gi", "", "Pending", None, &[]),
                claim("claim8-9", "uid8-9-x", "10Gi", "", "Pending", None, &[]),
            ),
            &[],
        ),
        row(
            "8-10-2 - external deleter when volume is static provisioning",
            SyncOf::Volume,
            (
                csi_volume(
                    "volume8-10-2",
                    "1Gi",
                    "uid10-1-2",
                    "claim10-1-2",
                    "Bound",
                    "Delete",
                    "",
                    "pd.csi.storage.gke.io",
                    &[BOUND_BY_CONTROLLER],
                ),
                csi_volume(
                    "volume8-10-2",
                    "1Gi",
                    "uid10-1-2",
                    "claim10-1-2",
                    "Released",
                    "Delete",
                    "",
                    "pd.csi.storage.gke.io",
                    &[BOUND_BY_CONTROLLER],
                ),
            ),
            (Vec::new(), Vec::new()),
            &[],
        ),
        row(
            "8-10-3 - external deleter when volume is migrated",
            SyncOf::Volume,
            (
                annotated(
                    MIGRATED_TO,
                    "pd.csi.storage.gke.io",
                    annotated(
                        PROVISIONED_BY,
                        "kubernetes.io/gce-pd",
                        volume(
                            "volume8-10-3",
                            "1Gi",
                            "uid10-1-3",
                            "claim10-1-3",
                            "Bound",
                            "Delete",
                            "",
                            &[PROVISIONED_BY],
                        ),
                    ),
                ),
                annotated(
                    MIGRATED_TO,
                    "pd.csi.storage.gke.io",
                    annotated(
                        PROVISIONED_BY,
                        "kubernetes.io/gce-pd",
                        volume(
                            "volume8-10-3",
                            "1Gi",
                            "uid10-1-3",
                            "claim10-1-3",
                            "Released",
                            "Delete",
                            "",
                            &[PROVISIONED_BY],
                        ),
                    ),
                ),
            ),
            (Vec::new(), Vec::new()),
            &[],
        ),
        row(
            "8-11 - two PVs provisioned for a single claim",
            SyncOf::Volume,
            (
                on_host(
                    [
                        volume("volume8-11-1", "1Gi", "uid8-11", "claim8-11", "Bound", "Delete", "", &[PROVISIONED_BY]),
                        volume("volume8-11-2", "1Gi", "uid8-11", "claim8-11", "Bound", "Delete", "", &[PROVISIONED_BY]),
                    ]
                    .concat(),
                ),
                on_host(volume(
                    "volume8-11-2",
                    "1Gi",
                    "uid8-11",
                    "claim8-11",
                    "Bound",
                    "Delete",
                    "",
                    &[PROVISIONED_BY],
                )),
            ),
            (
                claim("claim8-11", "uid8-11", "10Gi", "volume8-11-2", "Bound", None, &[]),
                claim("claim8-11", "uid8-11", "10Gi", "volume8-11-2", "Bound", None, &[]),
            ),
            &[],
        ),
        row(
            "8-13 - volume has deletion timestamp and processed",
            SyncOf::Volume,
            (
                on_host(finalized(
                    &[IN_TREE_FINALIZER],
                    terminating(volume(
                        "volume8-13",
                        "1Gi",
                        "uid8-13",
                        "claim8-13",
                        "Bound",
                        "Delete",
                        "",
                        &[BOUND_BY_CONTROLLER],
                    )),
                )),
                Vec::new(),
            ),
            (Vec::new(), Vec::new()),
            &[],
        ),
    ];
    for row in rows {
        row.check(&classes, &pods);
    }
}

/// Upstream: 8-10-1 and 8-12 of `TestDeleteSync`.
#[test]
fn volumes_of_external_provisioners_are_only_released() {
    let external = |name: &str, uid: &str, phase: &str| {
        let volume =
            csi_volume(name, "1Gi", uid, uid, phase, "Delete", "", "pd.csi.storage.gke.io", &[BOUND_BY_CONTROLLER]);
        annotated(PROVISIONED_BY, "external.io/test", volume)
    };
    let none = || (Vec::new(), Vec::new());
    let volumes = (external("volume8-10-1", "10-1-1", "Bound"), external("volume8-10-1", "10-1-1", "Released"));
    row("8-10-1 - external deleter", SyncOf::Volume, volumes, none(), &[]).check(&[], &[]);
    let other = external("volume8-12-2", "claim8-12", "Bound");
    let volumes = (
        [external("volume8-12-1", "claim8-12", "Bound"), other.clone()].concat(),
        [external("volume8-12-1", "claim8-12", "Released"), other].concat(),
    );
    let claim = claim("claim8-12", "claim8-12", "10Gi", "volume8-12-2", "Bound", None, &[]);
    let name = "8-12 - two PVs externally provisioned for a single claim";
    row(name, SyncOf::Volume, volumes, (claim.clone(), claim), &[]).check(&[], &[]);
}

/// Upstream: 8-7 of `TestDeleteSync`, and 6-7 and 6-8 of `TestRecycleSync`: what the apiserver has counts.
#[test]
fn a_volume_whose_claim_the_cache_lacks_is_not_reclaimed() {
    for policy in ["Delete", "Recycle"] {
        let volume = |phase: &str| {
            let volume = volume("volume8-7", "1Gi", "uid8-7", "claim8-7", phase, policy, "", &[BOUND_BY_CONTROLLER]);
            on_host(volume)
        };
        let claim = || claim("claim8-7", "uid8-7", "10Gi", "volume8-7", "Bound", None, &[NOT_CACHED]);
        let volumes = (volume("Released"), volume("Bound"));
        row("8-7 - bound before deleting", SyncOf::Volume, volumes, (claim(), claim()), &[]).check(&[], &[]);
    }
}

/// Upstream: `deleteVolumeOperation`, and `Delete`, `pkg/volume/hostpath/host_path.go`.
#[test]
fn a_plugin_that_refuses_to_delete_a_volume_counts_as_failed_and_a_missing_one_does_not() {
    let volume = || volume("a", "1Gi", "b", "b", "Released", "Delete", "", &[]);
    let elsewhere = volume()[0].clone().set(&["spec", "gcePersistentDisk"], Value::Null);
    let elsewhere = elsewhere.set(&["spec", "hostPath"], json!({ "path": "/data" }));
    let named = annotated(PROVISIONED_BY, "kubernetes.io/host-path", volume());
    for (volume, expected) in
        [(elsewhere, &["delete"][..]), (named[0].clone(), &["delete"]), (volume()[0].clone(), &[])]
    {
        let mut world = World::of(&[volume], &[], &[]);
        let plan = world.plan_volume(&Key::new("", "a"));
        world.apply(&plan);
        // The finalizers of the second one are written first.
        let plan = world.plan_volume(&Key::new("", "a"));
        world.apply(&plan);
        world.failures.dedup();
        assert_eq!(world.failures, expected, "{plan}");
        assert_eq!(*volume_in(&world, "a").unwrap().phase(), "Failed");
    }
}
