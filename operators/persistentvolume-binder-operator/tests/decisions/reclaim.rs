//! Reclaims. Upstream: `delete_test.go` and `recycle_test.go`.

use serde_json::json;
use shared::testing::ObjectBuilder;

use super::fixtures::{
    BOUND_BY_CONTROLLER, IN_TREE_FINALIZER, MIGRATED_TO, PROVISIONED_BY, SyncOf, annotated, claim, csi_volume,
    finalized, on_host, row, saying, terminating, volume,
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
/// Upstream: `TestRecycleSync`.
#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn what_keeps_a_volume_from_being_recycled_is_upstreams() {
    let classes = [];
    let pods = [using("runningPod", "runningClaim"), using("pendingPod", "pendingClaim")];
    let rows = [
        row(
            "6-3 - plugin not found",
            SyncOf::Volume,
            (
                volume("volume6-3", "1Gi", "uid6-3", "claim6-3", "Bound", "Recycle", "", &[]),
                saying(
                    "No recycler plugin found for the volume!",
                    volume("volume6-3", "1Gi", "uid6-3", "claim6-3", "Failed", "Recycle", "", &[]),
                ),
            ),
            (Vec::new(), Vec::new()),
            &["Warning VolumeFailedRecycle"],
        ),
        row(
            "6-10 - unknown reclaim policy",
            SyncOf::Volume,
            (
                volume("volume6-10", "1Gi", "uid6-10", "claim6-10", "Bound", "Unknown", "", &[]),
                saying(
                    "Volume has unrecognized PersistentVolumeReclaimPolicy",
                    volume("volume6-10", "1Gi", "uid6-10", "claim6-10", "Failed", "Unknown", "", &[]),
                ),
            ),
            (Vec::new(), Vec::new()),
            &["Warning VolumeUnknownReclaimPolicy"],
        ),
        row(
            "6-11 - used by running pod",
            SyncOf::Volume,
            (
                volume("volume6-11", "1Gi", "uid6-11", "runningClaim", "Bound", "Recycle", "", &[BOUND_BY_CONTROLLER]),
                volume(
                    "volume6-11",
                    "1Gi",
                    "uid6-11",
                    "runningClaim",
                    "Released",
                    "Recycle",
                    "",
                    &[BOUND_BY_CONTROLLER],
                ),
            ),
            (Vec::new(), Vec::new()),
            &["Normal VolumeFailedRecycle"],
        ),
        row(
            "6-12 - used by pending pod",
            SyncOf::Volume,
            (
                volume("volume6-12", "1Gi", "uid6-12", "pendingClaim", "Bound", "Recycle", "", &[BOUND_BY_CONTROLLER]),
                volume(
                    "volume6-12",
                    "1Gi",
                    "uid6-12",
                    "pendingClaim",
                    "Released",
                    "Recycle",
                    "",
                    &[BOUND_BY_CONTROLLER],
                ),
            ),
            (Vec::new(), Vec::new()),
            &["Normal VolumeFailedRecycle"],
        ),
    ];
    for row in rows {
        row.check(&classes, &pods);
    }
}

fn using(pod: &str, claim: &str) -> ObjectBuilder {
    let volumes = json!([{ "name": "vol1", "persistentVolumeClaim": { "claimName": claim } }]);
    shared::testing::pod(pod).set(&["spec", "volumes"], volumes)
}
