//! Bindings. Upstream: `binder_test.go`.

use super::fixtures::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, NOT_CACHED, PRE_RESIZE_CAPACITY, SELECTED_NODE, SyncOf, annotated, claim,
    class, labelled, providing, providing_attributes, row, saying, selecting, volume, with_attributes, with_mode,
    with_modes,
};

/// Upstream: `TestSync`.
#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn bindings_are_upstreams() {
    let classes = [class("wait", "kubernetes.io/no-provisioner", "WaitForFirstConsumer")];
    let pods = [];
    let rows = [
        row(
            "1-1 - successful bind",
            SyncOf::Claim,
            (
                volume("volume1-1", "1Gi", "", "", "Available", "Retain", "", &[]),
                volume("volume1-1", "1Gi", "uid1-1", "claim1-1", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
            ),
            (
                claim("claim1-1", "uid1-1", "1Gi", "", "Pending", None, &[]),
                claim("claim1-1", "uid1-1", "1Gi", "volume1-1", "Bound", None, &[BOUND_BY_CONTROLLER, BIND_COMPLETED]),
            ),
            &[],
        ),
        row(
            "1-2 - noop",
            SyncOf::Claim,
            (
                volume("volume1-2", "1Gi", "", "", "Available", "Retain", "", &[]),
                volume("volume1-2", "1Gi", "", "", "Available", "Retain", "", &[]),
            ),
            (
                claim("claim1-2", "uid1-2", "10Gi", "", "Pending", None, &[]),
                claim("claim1-2", "uid1-2", "10Gi", "", "Pending", None, &[]),
            ),
            &["Normal FailedBinding"],
        ),
        row(
            "1-3 - reset to Pending",
            SyncOf::Claim,
            (
                volume("volume1-3", "1Gi", "", "", "Available", "Retain", "", &[]),
                volume("volume1-3", "1Gi", "", "", "Available", "Retain", "", &[]),
            ),
            (
                claim("claim1-3", "uid1-3", "10Gi", "", "Bound", None, &[]),
                claim("claim1-3", "uid1-3", "10Gi", "", "Pending", None, &[]),
            ),
            &["Normal FailedBinding"],
        ),
        row(
            "1-4 - smallest volume",
            SyncOf::Claim,
            (
                [
                    volume("volume1-4_1", "10Gi", "", "", "Available", "Retain", "", &[]),
                    volume("volume1-4_2", "1Gi", "", "", "Available", "Retain", "", &[]),
                ]
                .concat(),
                [
                    volume("volume1-4_1", "10Gi", "", "", "Available", "Retain", "", &[]),
                    volume("volume1-4_2", "1Gi", "uid1-4", "claim1-4", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
                ]
                .concat(),
            ),
            (
                claim("claim1-4", "uid1-4", "1Gi", "", "Pending", None, &[]),
                claim(
                    "claim1-4",
                    "uid1-4",
                    "1Gi",
                    "volume1-4_2",
                    "Bound",
                    None,
                    &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                ),
            ),
            &[],
        ),
        row(
            "1-5 - prebound volume by name - success",
            SyncOf::Claim,
            (
                [
                    volume("volume1-5_1", "10Gi", "", "claim1-5", "Available", "Retain", "", &[]),
                    volume("volume1-5_2", "1Gi", "", "", "Available", "Retain", "", &[]),
                ]
                .concat(),
                [
                    volume("volume1-5_1", "10Gi", "uid1-5", "claim1-5", "Bound", "Retain", "", &[]),
                    volume("volume1-5_2", "1Gi", "", "", "Available", "Retain", "", &[]),
                ]
                .concat(),
            ),
            (
                claim("claim1-5", "uid1-5", "1Gi", "", "Pending", None, &[]),
                providing(
                    "10Gi",
                    claim(
                        "claim1-5",
                        "uid1-5",
                        "1Gi",
                        "volume1-5_1",
                        "Bound",
                        None,
                        &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                    ),
                ),
            ),
            &[],
        ),
        row(
            "1-6 - prebound volume by UID - success",
            SyncOf::Claim,
            (
                [
                    volume("volume1-6_1", "10Gi", "uid1-6", "claim1-6", "Available", "Retain", "", &[]),
                    volume("volume1-6_2", "1Gi", "", "", "Available", "Retain", "", &[]),
                ]
                .concat(),
                [
                    volume("volume1-6_1", "10Gi", "uid1-6", "claim1-6", "Bound", "Retain", "", &[]),
                    volume("volume1-6_2", "1Gi", "", "", "Available", "Retain", "", &[]),
                ]
                .concat(),
            ),
            (
                claim("claim1-6", "uid1-6", "1Gi", "", "Pending", None, &[]),
                providing(
                    "10Gi",
                    claim(
                        "claim1-6",
                        "uid1-6",
                        "1Gi",
                        "volume1-6_1",
                        "Bound",
                        None,
                        &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                    ),
                ),
            ),
            &[],
        ),
        row(
            "1-7 - prebound volume to different claim",
            SyncOf::Claim,
            (
                volume("volume1-7", "10Gi", "uid1-777", "claim1-7", "Available", "Retain", "", &[]),
                volume("volume1-7", "10Gi", "uid1-777", "claim1-7", "Available", "Retain", "", &[]),
            ),
            (
                claim("claim1-7", "uid1-7", "1Gi", "", "Pending", None, &[]),
                claim("claim1-7", "uid1-7", "1Gi", "", "Pending", None, &[]),
            ),
            &["Normal FailedBinding"],
        ),
        row(
            "1-8 - complete bind after crash - PV bound",
            SyncOf::Claim,
            (
                volume("volume1-8", "1Gi", "uid1-8", "claim1-8", "Available", "Retain", "", &[BOUND_BY_CONTROLLER]),
                volume("volume1-8", "1Gi", "uid1-8", "claim1-8", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
            ),
            (
                claim("claim1-8", "uid1-8", "1Gi", "", "Pending", None, &[]),
                claim("claim1-8", "uid1-8", "1Gi", "volume1-8", "Bound", None, &[BOUND_BY_CONTROLLER, BIND_COMPLETED]),
            ),
            &[],
        ),
        row(
            "1-9 - complete bind after crash - PV status saved",
            SyncOf::Claim,
            (
                volume("volume1-9", "1Gi", "uid1-9", "claim1-9", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
                volume("volume1-9", "1Gi", "uid1-9", "claim1-9", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
            ),
            (
                claim("claim1-9", "uid1-9", "1Gi", "", "Pending", None, &[]),
                claim("claim1-9", "uid1-9", "1Gi", "volume1-9", "Bound", None, &[BOUND_BY_CONTROLLER, BIND_COMPLETED]),
            ),
            &[],
        ),
        row(
            "1-10 - complete bind after crash - PVC bound",
            SyncOf::Claim,
            (
                volume("volume1-10", "1Gi", "uid1-10", "claim1-10", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
                volume("volume1-10", "1Gi", "uid1-10", "claim1-10", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
            ),
            (
                claim(
                    "claim1-10",
                    "uid1-10",
                    "1Gi",
                    "volume1-10",
                    "Pending",
                    None,
                    &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                ),
                claim(
                    "claim1-10",
                    "uid1-10",
                    "1Gi",
                    "volume1-10",
                    "Bound",
                    None,
                    &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                ),
            ),
            &[],
        ),
        row(
            "1-11 - bind when selector matches",
            SyncOf::Claim,
            (
                labelled(volume("volume1-1", "1Gi", "", "", "Available", "Retain", "", &[])),
                labelled(volume(
                    "volume1-1",
                    "1Gi",
                    "uid1-1",
                    "claim1-1",
                    "Bound",
                    "Retain",
                    "",
                    &[BOUND_BY_CONTROLLER],
                )),
            ),
            (
                selecting(claim("claim1-1", "uid1-1", "1Gi", "", "Pending", None, &[])),
                selecting(claim(
                    "claim1-1",
                    "uid1-1",
                    "1Gi",
                    "volume1-1",
                    "Bound",
                    None,
                    &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                )),
            ),
            &[],
        ),
        row(
            "1-12 - do not bind when selector does not match",
            SyncOf::Claim,
            (
                volume("volume1-1", "1Gi", "", "", "Available", "Retain", "", &[]),
                volume("volume1-1", "1Gi", "", "", "Available", "Retain", "", &[]),
            ),
            (
                selecting(claim("claim1-1", "uid1-1", "1Gi", "", "Pending", None, &[])),
                selecting(claim("claim1-1", "uid1-1", "1Gi", "", "Pending", None, &[])),
            ),
            &["Normal FailedBinding"],
        ),
        row(
            "1-13 - delayed binding",
            SyncOf::Claim,
            (
                volume("volume1-1", "1Gi", "", "", "Available", "Retain", "wait", &[]),
                volume("volume1-1", "1Gi", "", "", "Available", "Retain", "wait", &[]),
            ),
            (
                claim("claim1-1", "uid1-1", "1Gi", "", "Pending", Some("wait"), &[]),
                claim("claim1-1", "uid1-1", "1Gi", "", "Pending", Some("wait"), &[]),
            ),
            &["Normal WaitForFirstConsumer"],
        ),
        row(
            "1-14 - successful prebound PV",
            SyncOf::Claim,
            (
                volume("volume1-1", "1Gi", "", "claim1-1", "Available", "Retain", "wait", &[]),
                volume("volume1-1", "1Gi", "uid1-1", "claim1-1", "Bound", "Retain", "wait", &[]),
            ),
            (
                claim("claim1-1", "uid1-1", "1Gi", "", "Pending", Some("wait"), &[]),
                claim(
                    "claim1-1",
                    "uid1-1",
                    "1Gi",
                    "volume1-1",
                    "Bound",
                    Some("wait"),
                    &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                ),
            ),
            &[],
        ),
        row(
            "1-15 - successful prebound PVC",
            SyncOf::Claim,
            (
                [
                    volume("volume1-15_1", "10Gi", "", "", "Available", "Retain", "", &[]),
                    volume("volume1-15_2", "1Gi", "", "", "Available", "Retain", "", &[]),
                ]
                .concat(),
                [
                    volume(
                        "volume1-15_1",
                        "10Gi",
                        "uid1-15",
                        "claim1-15",
                        "Bound",
                        "Retain",
                        "",
                        &[BOUND_BY_CONTROLLER],
                    ),
                    volume("volume1-15_2", "1Gi", "", "", "Available", "Retain", "", &[]),
                ]
                .concat(),
            ),
            (
                claim("claim1-15", "uid1-15", "1Gi", "volume1-15_1", "Pending", None, &[]),
                providing(
                    "10Gi",
                    claim("claim1-15", "uid1-15", "1Gi", "volume1-15_1", "Bound", None, &[BIND_COMPLETED]),
                ),
            ),
            &[],
        ),
        row(
            "1-16 - successful prebound PVC",
            SyncOf::Claim,
            (
                volume("volume1-16", "1Gi", "", "", "Available", "Retain", "", &[]),
                volume("volume1-16", "1Gi", "", "", "Available", "Retain", "", &[]),
            ),
            (
                with_modes(
                    &["ReadWriteMany"],
                    claim("claim1-16", "uid1-16", "1Gi", "volume1-16", "Pending", None, &[]),
                ),
                with_modes(
                    &["ReadWriteMany"],
                    claim("claim1-16", "uid1-16", "1Gi", "volume1-16", "Pending", None, &[]),
                ),
            ),
            &[],
        ),
        row(
            "1-17 - skip non-available PV if it's not pre-bind",
            SyncOf::Claim,
            (
                [
                    volume("volume1-17-pending", "1Gi", "", "", "Pending", "Retain", "", &[]),
                    volume("volume1-17-failed", "1Gi", "", "", "Failed", "Retain", "", &[]),
                    volume("volume1-17-released", "1Gi", "", "", "Released", "Retain", "", &[]),
                    volume("volume1-17-empty", "1Gi", "", "", "", "Retain", "", &[]),
                ]
                .concat(),
                [
                    volume("volume1-17-pending", "1Gi", "", "", "Pending", "Retain", "", &[]),
                    volume("volume1-17-failed", "1Gi", "", "", "Failed", "Retain", "", &[]),
                    volume("volume1-17-released", "1Gi", "", "", "Released", "Retain", "", &[]),
                    volume("volume1-17-empty", "1Gi", "", "", "", "Retain", "", &[]),
                ]
                .concat(),
            ),
            (
                claim("claim1-17", "uid1-17", "1Gi", "", "Pending", None, &[]),
                claim("claim1-17", "uid1-17", "1Gi", "", "Pending", None, &[]),
            ),
            &[],
        ),
        row(
            "1-18 - successful pre-bound PV to PVC provisioning",
            SyncOf::Claim,
            (
                volume("volume1-18", "1Gi", "uid1-18", "claim1-18", "Available", "Retain", "wait", &[]),
                volume("volume1-18", "1Gi", "uid1-18", "claim1-18", "Bound", "Retain", "wait", &[]),
            ),
            (
                annotated(
                    SELECTED_NODE,
                    "node1",
                    claim("claim1-18", "uid1-18", "1Gi", "", "Pending", Some("wait"), &[]),
                ),
                annotated(
                    SELECTED_NODE,
                    "node1",
                    claim(
                        "claim1-18",
                        "uid1-18",
                        "1Gi",
                        "volume1-18",
                        "Bound",
                        Some("wait"),
                        &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                    ),
                ),
            ),
            &[],
        ),
        row(
            "2-1 - claim prebound to non-existing volume - noop",
            SyncOf::Claim,
            (Vec::new(), Vec::new()),
            (
                claim("claim2-1", "uid2-1", "10Gi", "volume2-1", "Pending", None, &[]),
                claim("claim2-1", "uid2-1", "10Gi", "volume2-1", "Pending", None, &[]),
            ),
            &[],
        ),
        row(
            "2-2 - claim prebound to non-existing volume - reset status",
            SyncOf::Claim,
            (Vec::new(), Vec::new()),
            (
                claim("claim2-2", "uid2-2", "10Gi", "volume2-2", "Bound", None, &[]),
                claim("claim2-2", "uid2-2", "10Gi", "volume2-2", "Pending", None, &[]),
            ),
            &[],
        ),
        row(
            "2-3 - claim prebound to unbound volume",
            SyncOf::Claim,
            (
                volume("volume2-3", "1Gi", "", "", "Available", "Retain", "", &[]),
                volume("volume2-3", "1Gi", "uid2-3", "claim2-3", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
            ),
            (
                claim("claim2-3", "uid2-3", "1Gi", "volume2-3", "Pending", None, &[]),
                claim("claim2-3", "uid2-3", "1Gi", "volume2-3", "Bound", None, &[BIND_COMPLETED]),
            ),
            &[],
        ),
        row(
            "2-4 - claim prebound to prebound volume by name",
            SyncOf::Claim,
            (
                volume("volume2-4", "1Gi", "", "claim2-4", "Available", "Retain", "", &[]),
                volume("volume2-4", "1Gi", "uid2-4", "claim2-4", "Bound", "Retain", "", &[]),
            ),
            (
                claim("claim2-4", "uid2-4", "1Gi", "volume2-4", "Pending", None, &[]),
                claim("claim2-4", "uid2-4", "1Gi", "volume2-4", "Bound", None, &[BIND_COMPLETED]),
            ),
            &[],
        ),
        row(
            "2-5 - claim prebound to prebound volume by UID",
            SyncOf::Claim,
            (
                volume("volume2-5", "1Gi", "uid2-5", "claim2-5", "Available", "Retain", "", &[]),
                volume("volume2-5", "1Gi", "uid2-5", "claim2-5", "Bound", "Retain", "", &[]),
            ),
            (
                claim("claim2-5", "uid2-5", "1Gi", "volume2-5", "Pending", None, &[]),
                claim("claim2-5", "uid2-5", "1Gi", "volume2-5", "Bound", None, &[BIND_COMPLETED]),
            ),
            &[],
        ),
        row(
            "2-6 - claim prebound to already bound volume",
            SyncOf::Claim,
            (
                volume("volume2-6", "1Gi", "uid2-6_1", "claim2-6_1", "Bound", "Retain", "", &[]),
                volume("volume2-6", "1Gi", "uid2-6_1", "claim2-6_1", "Bound", "Retain", "", &[]),
            ),
            (
                claim("claim2-6", "uid2-6", "1Gi", "volume2-6", "Bound", None, &[]),
                claim("claim2-6", "uid2-6", "1Gi", "volume2-6", "Pending", None, &[]),
            ),
            &[],
        ),
        row(
            "2-7 - claim bound by controller to already bound volume",
            SyncOf::FailingClaim,
            (
                volume("volume2-7", "1Gi", "uid2-7_1", "claim2-7_1", "Bound", "Retain", "", &[]),
                volume("volume2-7", "1Gi", "uid2-7_1", "claim2-7_1", "Bound", "Retain", "", &[]),
            ),
            (
                claim("claim2-7", "uid2-7", "1Gi", "volume2-7", "Bound", None, &[BOUND_BY_CONTROLLER]),
                claim("claim2-7", "uid2-7", "1Gi", "volume2-7", "Bound", None, &[BOUND_BY_CONTROLLER]),
            ),
            &[],
        ),
        row(
            "2-8 - claim prebound to unbound volume that does not match the selector",
            SyncOf::Claim,
            (
                volume("volume2-8", "1Gi", "", "", "Available", "Retain", "", &[]),
                volume("volume2-8", "1Gi", "uid2-8", "claim2-8", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
            ),
            (
                selecting(claim("claim2-8", "uid2-8", "1Gi", "volume2-8", "Pending", None, &[])),
                selecting(claim("claim2-8", "uid2-8", "1Gi", "volume2-8", "Bound", None, &[BIND_COMPLETED])),
            ),
            &[],
        ),
        row(
            "2-9 - claim prebound to unbound volume that size is smaller than requested",
            SyncOf::Claim,
            (
                volume("volume2-9", "1Gi", "", "", "Available", "Retain", "", &[]),
                volume("volume2-9", "1Gi", "", "", "Available", "Retain", "", &[]),
            ),
            (
                claim("claim2-9", "uid2-9", "2Gi", "volume2-9", "Bound", None, &[]),
                claim("claim2-9", "uid2-9", "2Gi", "volume2-9", "Pending", None, &[]),
            ),
            &["Warning VolumeMismatch"],
        ),
        row(
            "2-10 - claim prebound to unbound volume that class is different",
            SyncOf::Claim,
            (
                volume("volume2-10", "1Gi", "1", "", "Available", "Retain", "gold", &[]),
                volume("volume2-10", "1Gi", "", "", "Available", "Retain", "gold", &[]),
            ),
            (
                claim("claim2-10", "uid2-10", "1Gi", "volume2-10", "Bound", None, &[]),
                claim("claim2-10", "uid2-10", "1Gi", "volume2-10", "Pending", None, &[]),
            ),
            &["Warning VolumeMismatch"],
        ),
        row(
            "3-1 - bound claim with missing VolumeName",
            SyncOf::Claim,
            (Vec::new(), Vec::new()),
            (
                claim("claim3-1", "uid3-1", "10Gi", "", "Bound", None, &[BOUND_BY_CONTROLLER, BIND_COMPLETED]),
                claim("claim3-1", "uid3-1", "10Gi", "", "Lost", None, &[BOUND_BY_CONTROLLER, BIND_COMPLETED]),
            ),
            &["Warning ClaimLost"],
        ),
        row(
            "3-2 - bound claim with missing volume",
            SyncOf::Claim,
            (Vec::new(), Vec::new()),
            (
                claim("claim3-2", "uid3-2", "10Gi", "volume3-2", "Bound", None, &[BOUND_BY_CONTROLLER, BIND_COMPLETED]),
                claim("claim3-2", "uid3-2", "10Gi", "volume3-2", "Lost", None, &[BOUND_BY_CONTROLLER, BIND_COMPLETED]),
            ),
            &["Warning ClaimLost"],
        ),
        row(
            "3-3 - bound claim with unbound volume",
            SyncOf::Claim,
            (
                volume("volume3-3", "10Gi", "", "", "Available", "Retain", "", &[]),
                volume("volume3-3", "10Gi", "uid3-3", "claim3-3", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
            ),
            (
                claim(
                    "claim3-3",
                    "uid3-3",
                    "10Gi",
                    "volume3-3",
                    "Pending",
                    None,
                    &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                ),
                claim("claim3-3", "uid3-3", "10Gi", "volume3-3", "Bound", None, &[BOUND_BY_CONTROLLER, BIND_COMPLETED]),
            ),
            &[],
        ),
        row(
            "3-4 - bound claim with prebound volume",
            SyncOf::Claim,
            (
                volume("volume3-4", "10Gi", "claim3-4-x", "claim3-4", "Available", "Retain", "", &[]),
                volume("volume3-4", "10Gi", "claim3-4-x", "claim3-4", "Available", "Retain", "", &[]),
            ),
            (
                claim(
                    "claim3-4",
                    "uid3-4",
                    "10Gi",
                    "volume3-4",
                    "Pending",
                    None,
                    &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                ),
                claim("claim3-4", "uid3-4", "10Gi", "volume3-4", "Lost", None, &[BOUND_BY_CONTROLLER, BIND_COMPLETED]),
            ),
            &["Warning ClaimMisbound"],
        ),
        row(
            "3-5 - bound claim with bound volume",
            SyncOf::Claim,
            (
                volume("volume3-5", "10Gi", "uid3-5", "claim3-5", "Available", "Retain", "", &[]),
                volume("volume3-5", "10Gi", "uid3-5", "claim3-5", "Bound", "Retain", "", &[]),
            ),
            (
                claim("claim3-5", "uid3-5", "10Gi", "volume3-5", "Pending", None, &[BIND_COMPLETED]),
                claim("claim3-5", "uid3-5", "10Gi", "volume3-5", "Bound", None, &[BIND_COMPLETED]),
            ),
            &[],
        ),
        row(
            "3-6 - bound claim with bound volume",
            SyncOf::Claim,
            (
                volume("volume3-6", "10Gi", "uid3-6-x", "claim3-6-x", "Available", "Retain", "", &[]),
                volume("volume3-6", "10Gi", "uid3-6-x", "claim3-6-x", "Available", "Retain", "", &[]),
            ),
            (
                claim("claim3-6", "uid3-6", "10Gi", "volume3-6", "Pending", None, &[BIND_COMPLETED]),
                claim("claim3-6", "uid3-6", "10Gi", "volume3-6", "Lost", None, &[BIND_COMPLETED]),
            ),
            &["Warning ClaimMisbound"],
        ),
        row(
            "3-7 - bound claim with unbound volume where selector doesn't match",
            SyncOf::Claim,
            (
                volume("volume3-3", "10Gi", "", "", "Available", "Retain", "", &[]),
                volume("volume3-3", "10Gi", "uid3-3", "claim3-3", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
            ),
            (
                selecting(claim(
                    "claim3-3",
                    "uid3-3",
                    "10Gi",
                    "volume3-3",
                    "Pending",
                    None,
                    &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                )),
                selecting(claim(
                    "claim3-3",
                    "uid3-3",
                    "10Gi",
                    "volume3-3",
                    "Bound",
                    None,
                    &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                )),
            ),
            &[],
        ),
        row(
            "4-1 - pending volume",
            SyncOf::Volume,
            (
                volume("volume4-1", "10Gi", "", "", "Available", "Retain", "", &[]),
                volume("volume4-1", "10Gi", "", "", "Available", "Retain", "", &[]),
            ),
            (Vec::new(), Vec::new()),
            &[],
        ),
        row(
            "4-2 - pending prebound volume",
            SyncOf::Volume,
            (
                volume("volume4-2", "10Gi", "", "claim4-2", "Available", "Retain", "", &[]),
                volume("volume4-2", "10Gi", "", "claim4-2", "Available", "Retain", "", &[]),
            ),
            (Vec::new(), Vec::new()),
            &[],
        ),
        row(
            "4-3 - bound volume with missing claim",
            SyncOf::Volume,
            (
                volume("volume4-3", "10Gi", "uid4-3", "claim4-3", "Bound", "Retain", "", &[]),
                volume("volume4-3", "10Gi", "uid4-3", "claim4-3", "Released", "Retain", "", &[]),
            ),
            (Vec::new(), Vec::new()),
            &[],
        ),
        row(
            "4-4 - volume bound to claim with different UID",
            SyncOf::Volume,
            (
                volume("volume4-4", "10Gi", "uid4-4", "claim4-4", "Bound", "Retain", "", &[]),
                volume("volume4-4", "10Gi", "uid4-4", "claim4-4", "Released", "Retain", "", &[]),
            ),
            (
                claim("claim4-4", "uid4-4-x", "10Gi", "volume4-4", "Bound", None, &[BIND_COMPLETED]),
                claim("claim4-4", "uid4-4-x", "10Gi", "volume4-4", "Bound", None, &[BIND_COMPLETED]),
            ),
            &[],
        ),
        row(
            "4-5 - volume bound by controller to unbound claim",
            SyncOf::Volume,
            (
                volume("volume4-5", "10Gi", "uid4-5", "claim4-5", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
                volume("volume4-5", "10Gi", "uid4-5", "claim4-5", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
            ),
            (
                claim("claim4-5", "uid4-5", "10Gi", "", "Pending", None, &[]),
                claim("claim4-5", "uid4-5", "10Gi", "", "Pending", None, &[]),
            ),
            &[],
        ),
        row(
            "4-5 - volume bound by user to bound claim",
            SyncOf::Volume,
            (
                volume("volume4-5", "10Gi", "uid4-5", "claim4-5", "Bound", "Retain", "", &[]),
                volume("volume4-5", "10Gi", "uid4-5", "claim4-5", "Bound", "Retain", "", &[]),
            ),
            (
                claim("claim4-5", "uid4-5", "10Gi", "", "Pending", None, &[]),
                claim("claim4-5", "uid4-5", "10Gi", "", "Pending", None, &[]),
            ),
            &[],
        ),
        row(
            "4-6 - volume bound by to bound claim",
            SyncOf::Volume,
            (
                volume("volume4-6", "10Gi", "uid4-6", "claim4-6", "Available", "Retain", "", &[]),
                volume("volume4-6", "10Gi", "uid4-6", "claim4-6", "Bound", "Retain", "", &[]),
            ),
            (
                claim("claim4-6", "uid4-6", "10Gi", "volume4-6", "Bound", None, &[]),
                claim("claim4-6", "uid4-6", "10Gi", "volume4-6", "Bound", None, &[]),
            ),
            &[],
        ),
        row(
            "4-7 - volume bound by controller to claim bound somewhere else",
            SyncOf::Volume,
            (
                volume("volume4-7", "10Gi", "uid4-7", "claim4-7", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
                volume("volume4-7", "10Gi", "", "", "Available", "Retain", "", &[]),
            ),
            (
                claim("claim4-7", "uid4-7", "10Gi", "volume4-7-x", "Bound", None, &[]),
                claim("claim4-7", "uid4-7", "10Gi", "volume4-7-x", "Bound", None, &[]),
            ),
            &[],
        ),
        row(
            "4-8 - volume bound by user to claim bound somewhere else",
            SyncOf::Volume,
            (
                volume("volume4-8", "10Gi", "uid4-8", "claim4-8", "Bound", "Retain", "", &[]),
                volume("volume4-8", "10Gi", "", "claim4-8", "Available", "Retain", "", &[]),
            ),
            (
                claim("claim4-8", "uid4-8", "10Gi", "volume4-8-x", "Bound", None, &[]),
                claim("claim4-8", "uid4-8", "10Gi", "volume4-8-x", "Bound", None, &[]),
            ),
            &[],
        ),
        row(
            "4-9 - volume bound to bound claim, with PersistentVolumeReclaimDelete",
            SyncOf::Volume,
            (
                volume("volume4-9", "10Gi", "uid4-9", "claim4-9", "Available", "Delete", "", &[]),
                volume("volume4-9", "10Gi", "uid4-9", "claim4-9", "Bound", "Delete", "", &[]),
            ),
            (
                claim("claim4-9", "uid4-9", "10Gi", "volume4-9", "Bound", None, &[]),
                claim("claim4-9", "uid4-9", "10Gi", "volume4-9", "Bound", None, &[]),
            ),
            &[],
        ),
        row(
            "4-11 - volume bound to unknown claim",
            SyncOf::Volume,
            (
                volume("volume4-11", "10Gi", "uid4-11", "claim4-11", "Available", "Delete", "", &[]),
                volume("volume4-11", "10Gi", "uid4-11", "claim4-11", "Bound", "Delete", "", &[]),
            ),
            (
                claim("claim4-11", "uid4-11", "10Gi", "volume4-11", "Bound", None, &[NOT_CACHED]),
                claim("claim4-11", "uid4-11", "10Gi", "volume4-11", "Bound", None, &[NOT_CACHED]),
            ),
            &[],
        ),
        row(
            "13-1 - binding to class",
            SyncOf::Claim,
            (
                [
                    volume("volume13-1-1", "1Gi", "", "", "Available", "Retain", "", &[]),
                    volume("volume13-1-2", "10Gi", "", "", "Available", "Retain", "gold", &[]),
                ]
                .concat(),
                [
                    volume("volume13-1-1", "1Gi", "", "", "Available", "Retain", "", &[]),
                    volume(
                        "volume13-1-2",
                        "10Gi",
                        "uid13-1",
                        "claim13-1",
                        "Bound",
                        "Retain",
                        "gold",
                        &[BOUND_BY_CONTROLLER],
                    ),
                ]
                .concat(),
            ),
            (
                claim("claim13-1", "uid13-1", "1Gi", "", "Pending", Some("gold"), &[]),
                providing(
                    "10Gi",
                    claim(
                        "claim13-1",
                        "uid13-1",
                        "1Gi",
                        "volume13-1-2",
                        "Bound",
                        Some("gold"),
                        &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                    ),
                ),
            ),
            &[],
        ),
        row(
            "13-2 - binding without a class",
            SyncOf::Claim,
            (
                [
                    volume("volume13-2-1", "1Gi", "", "", "Available", "Retain", "gold", &[]),
                    volume("volume13-2-2", "10Gi", "", "", "Available", "Retain", "", &[]),
                ]
                .concat(),
                [
                    volume("volume13-2-1", "1Gi", "", "", "Available", "Retain", "gold", &[]),
                    volume(
                        "volume13-2-2",
                        "10Gi",
                        "uid13-2",
                        "claim13-2",
                        "Bound",
                        "Retain",
                        "",
                        &[BOUND_BY_CONTROLLER],
                    ),
                ]
                .concat(),
            ),
            (
                claim("claim13-2", "uid13-2", "1Gi", "", "Pending", None, &[]),
                providing(
                    "10Gi",
                    claim(
                        "claim13-2",
                        "uid13-2",
                        "1Gi",
                        "volume13-2-2",
                        "Bound",
                        None,
                        &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                    ),
                ),
            ),
            &[],
        ),
        row(
            "13-3 - binding to specific a class",
            SyncOf::Claim,
            (
                [
                    volume("volume13-3-1", "1Gi", "", "", "Available", "Retain", "silver", &[]),
                    volume("volume13-3-2", "10Gi", "", "", "Available", "Retain", "gold", &[]),
                ]
                .concat(),
                [
                    volume("volume13-3-1", "1Gi", "", "", "Available", "Retain", "silver", &[]),
                    volume(
                        "volume13-3-2",
                        "10Gi",
                        "uid13-3",
                        "claim13-3",
                        "Bound",
                        "Retain",
                        "gold",
                        &[BOUND_BY_CONTROLLER],
                    ),
                ]
                .concat(),
            ),
            (
                claim("claim13-3", "uid13-3", "1Gi", "", "Pending", Some("gold"), &[]),
                providing(
                    "10Gi",
                    claim(
                        "claim13-3",
                        "uid13-3",
                        "1Gi",
                        "volume13-3-2",
                        "Bound",
                        Some("gold"),
                        &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                    ),
                ),
            ),
            &[],
        ),
        row(
            "13-4 - empty class",
            SyncOf::Claim,
            (
                volume("volume13-4", "1Gi", "", "", "Available", "Retain", "", &[]),
                volume("volume13-4", "1Gi", "uid13-4", "claim13-4", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
            ),
            (
                claim("claim13-4", "uid13-4", "1Gi", "", "Pending", Some(""), &[]),
                claim(
                    "claim13-4",
                    "uid13-4",
                    "1Gi",
                    "volume13-4",
                    "Bound",
                    Some(""),
                    &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                ),
            ),
            &[],
        ),
        row(
            "13-5 - nil class",
            SyncOf::Claim,
            (
                volume("volume13-5", "1Gi", "", "", "Available", "Retain", "", &[]),
                volume("volume13-5", "1Gi", "uid13-5", "claim13-5", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
            ),
            (
                claim("claim13-5", "uid13-5", "1Gi", "", "Pending", None, &[]),
                claim(
                    "claim13-5",
                    "uid13-5",
                    "1Gi",
                    "volume13-5",
                    "Bound",
                    None,
                    &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                ),
            ),
            &[],
        ),
        row(
            "2-11 - claim prebound to unbound volume that volume attributes class is different",
            SyncOf::Claim,
            (
                with_attributes("gold", volume("volume2-11", "1Gi", "", "", "Available", "Retain", "", &[])),
                with_attributes("gold", volume("volume2-11", "1Gi", "", "", "Available", "Retain", "", &[])),
            ),
            (
                claim("claim2-11", "uid2-11", "1Gi", "volume2-11", "Bound", None, &[]),
                claim("claim2-11", "uid2-11", "1Gi", "volume2-11", "Pending", None, &[]),
            ),
            &["Warning VolumeMismatch"],
        ),
        row(
            "2-12 - claim prebound to unbound volume that volume attributes class is same",
            SyncOf::Claim,
            (
                with_attributes("gold", volume("volume2-12", "1Gi", "", "", "Available", "Retain", "", &[])),
                with_attributes(
                    "gold",
                    volume("volume2-12", "1Gi", "uid2-12", "claim2-12", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
                ),
            ),
            (
                with_attributes("gold", claim("claim2-12", "uid2-12", "1Gi", "volume2-12", "Pending", None, &[])),
                providing_attributes(
                    "gold",
                    with_attributes(
                        "gold",
                        claim("claim2-12", "uid2-12", "1Gi", "volume2-12", "Bound", None, &[BIND_COMPLETED]),
                    ),
                ),
            ),
            &[],
        ),
        row(
            "4-10 - volume bound to missing claim",
            SyncOf::Volume,
            (
                volume("volume4-10", "10Gi", "uid4-10", "claim4-10", "Available", "Delete", "", &[]),
                saying(
                    "error getting deleter volume plugin for volume \"volume4-10\": no volume plugin matched",
                    volume("volume4-10", "10Gi", "uid4-10", "claim4-10", "Failed", "Delete", "", &[]),
                ),
            ),
            (Vec::new(), Vec::new()),
            &[],
        ),
    ];
    for row in rows {
        row.check(&classes, &pods);
    }
}
/// Upstream: `TestSyncBlockVolume`.
#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn volume_modes_are_upstreams() {
    let classes = [];
    let pods = [];
    let rows = [
        row(
            "14-1 - binding to volumeMode block",
            SyncOf::Claim,
            (
                with_mode("Block", volume("volume14-1", "10Gi", "", "", "Available", "Retain", "", &[])),
                with_mode(
                    "Block",
                    volume("volume14-1", "10Gi", "uid14-1", "claim14-1", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
                ),
            ),
            (
                with_mode("Block", claim("claim14-1", "uid14-1", "10Gi", "", "Pending", None, &[])),
                with_mode(
                    "Block",
                    claim(
                        "claim14-1",
                        "uid14-1",
                        "10Gi",
                        "volume14-1",
                        "Bound",
                        None,
                        &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                    ),
                ),
            ),
            &[],
        ),
        row(
            "14-2 - binding to volumeMode filesystem",
            SyncOf::Claim,
            (
                with_mode("Filesystem", volume("volume14-2", "10Gi", "", "", "Available", "Retain", "", &[])),
                with_mode(
                    "Filesystem",
                    volume("volume14-2", "10Gi", "uid14-2", "claim14-2", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
                ),
            ),
            (
                with_mode("Filesystem", claim("claim14-2", "uid14-2", "10Gi", "", "Pending", None, &[])),
                with_mode(
                    "Filesystem",
                    claim(
                        "claim14-2",
                        "uid14-2",
                        "10Gi",
                        "volume14-2",
                        "Bound",
                        None,
                        &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                    ),
                ),
            ),
            &[],
        ),
        row(
            "14-3 - do not bind pv volumeMode filesystem and pvc volumeMode block",
            SyncOf::Claim,
            (
                with_mode("Filesystem", volume("volume14-3", "10Gi", "", "", "Available", "Retain", "", &[])),
                with_mode("Filesystem", volume("volume14-3", "10Gi", "", "", "Available", "Retain", "", &[])),
            ),
            (
                with_mode("Block", claim("claim14-3", "uid14-3", "10Gi", "", "Pending", None, &[])),
                with_mode("Block", claim("claim14-3", "uid14-3", "10Gi", "", "Pending", None, &[])),
            ),
            &["Normal FailedBinding"],
        ),
        row(
            "14-4 - do not bind pv volumeMode block and pvc volumeMode filesystem",
            SyncOf::Claim,
            (
                with_mode("Block", volume("volume14-4", "10Gi", "", "", "Available", "Retain", "", &[])),
                with_mode("Block", volume("volume14-4", "10Gi", "", "", "Available", "Retain", "", &[])),
            ),
            (
                with_mode("Filesystem", claim("claim14-4", "uid14-4", "10Gi", "", "Pending", None, &[])),
                with_mode("Filesystem", claim("claim14-4", "uid14-4", "10Gi", "", "Pending", None, &[])),
            ),
            &["Normal FailedBinding"],
        ),
        row(
            "14-5 - do not bind when matching class but not volumeMode",
            SyncOf::Claim,
            (
                with_mode("Filesystem", volume("volume14-5", "10Gi", "", "", "Available", "Retain", "gold", &[])),
                with_mode("Filesystem", volume("volume14-5", "10Gi", "", "", "Available", "Retain", "gold", &[])),
            ),
            (
                with_mode("Block", claim("claim14-5", "uid14-5", "10Gi", "", "Pending", Some("gold"), &[])),
                with_mode("Block", claim("claim14-5", "uid14-5", "10Gi", "", "Pending", Some("gold"), &[])),
            ),
            &["Warning ProvisioningFailed"],
        ),
        row(
            "14-5-1 - do not bind when matching volumeModes but class does not match",
            SyncOf::Claim,
            (
                with_mode("Filesystem", volume("volume14-5-1", "10Gi", "", "", "Available", "Retain", "gold", &[])),
                with_mode("Filesystem", volume("volume14-5-1", "10Gi", "", "", "Available", "Retain", "gold", &[])),
            ),
            (
                with_mode("Filesystem", claim("claim14-5-1", "uid14-5-1", "10Gi", "", "Pending", Some("silver"), &[])),
                with_mode("Filesystem", claim("claim14-5-1", "uid14-5-1", "10Gi", "", "Pending", Some("silver"), &[])),
            ),
            &["Warning ProvisioningFailed"],
        ),
        row(
            "14-5-2 - do not bind when pvc is prebound to pv with matching volumeModes but class does not match",
            SyncOf::Claim,
            (
                with_mode("Filesystem", volume("volume14-5-2", "10Gi", "", "", "Available", "Retain", "gold", &[])),
                with_mode("Filesystem", volume("volume14-5-2", "10Gi", "", "", "Available", "Retain", "gold", &[])),
            ),
            (
                with_mode(
                    "Filesystem",
                    claim("claim14-5-2", "uid14-5-2", "10Gi", "volume14-5-2", "Pending", Some("silver"), &[]),
                ),
                with_mode(
                    "Filesystem",
                    claim("claim14-5-2", "uid14-5-2", "10Gi", "volume14-5-2", "Pending", Some("silver"), &[]),
                ),
            ),
            &["Warning VolumeMismatch"],
        ),
        row(
            "14-7 - bind when pv volume is prebound and volumeModes match",
            SyncOf::Claim,
            (
                with_mode("Block", volume("volume14-7", "10Gi", "", "claim14-7", "Available", "Retain", "", &[])),
                with_mode("Block", volume("volume14-7", "10Gi", "uid14-7", "claim14-7", "Bound", "Retain", "", &[])),
            ),
            (
                with_mode("Block", claim("claim14-7", "uid14-7", "10Gi", "", "Pending", None, &[])),
                with_mode(
                    "Block",
                    claim(
                        "claim14-7",
                        "uid14-7",
                        "10Gi",
                        "volume14-7",
                        "Bound",
                        None,
                        &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                    ),
                ),
            ),
            &[],
        ),
        row(
            "14-8 - do not bind when pvc is prebound to pv with mismatching volumeModes",
            SyncOf::Claim,
            (
                with_mode("Block", volume("volume14-8", "10Gi", "", "", "Available", "Retain", "", &[])),
                with_mode("Block", volume("volume14-8", "10Gi", "", "", "Available", "Retain", "", &[])),
            ),
            (
                with_mode("Filesystem", claim("claim14-8", "uid14-8", "10Gi", "volume14-8", "Pending", None, &[])),
                with_mode("Filesystem", claim("claim14-8", "uid14-8", "10Gi", "volume14-8", "Pending", None, &[])),
            ),
            &["Warning VolumeMismatch"],
        ),
        row(
            "14-8-1 - do not bind when pvc is prebound to pv with mismatching volumeModes",
            SyncOf::Claim,
            (
                with_mode("Block", volume("volume14-8-1", "10Gi", "", "claim14-8-1", "Available", "Retain", "", &[])),
                with_mode("Block", volume("volume14-8-1", "10Gi", "", "claim14-8-1", "Available", "Retain", "", &[])),
            ),
            (
                with_mode("Filesystem", claim("claim14-8-1", "uid14-8-1", "10Gi", "", "Pending", None, &[])),
                with_mode("Filesystem", claim("claim14-8-1", "uid14-8-1", "10Gi", "", "Pending", None, &[])),
            ),
            &["Normal FailedBinding"],
        ),
        row(
            "14-9 - bind when pvc is prebound to pv with matching volumeModes block",
            SyncOf::Claim,
            (
                with_mode("Block", volume("volume14-9", "10Gi", "", "", "Available", "Retain", "", &[])),
                with_mode(
                    "Block",
                    volume("volume14-9", "10Gi", "uid14-9", "claim14-9", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
                ),
            ),
            (
                with_mode("Block", claim("claim14-9", "uid14-9", "10Gi", "volume14-9", "Pending", None, &[])),
                with_mode(
                    "Block",
                    claim("claim14-9", "uid14-9", "10Gi", "volume14-9", "Bound", None, &[BIND_COMPLETED]),
                ),
            ),
            &[],
        ),
        row(
            "14-10 - bind when pv is prebound to pvc with matching volumeModes block",
            SyncOf::Claim,
            (
                with_mode("Block", volume("volume14-10", "10Gi", "", "claim14-10", "Available", "Retain", "", &[])),
                with_mode("Block", volume("volume14-10", "10Gi", "uid14-10", "claim14-10", "Bound", "Retain", "", &[])),
            ),
            (
                with_mode("Block", claim("claim14-10", "uid14-10", "10Gi", "", "Pending", None, &[])),
                with_mode(
                    "Block",
                    claim(
                        "claim14-10",
                        "uid14-10",
                        "10Gi",
                        "volume14-10",
                        "Bound",
                        None,
                        &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                    ),
                ),
            ),
            &[],
        ),
        row(
            "14-11 - bind when pvc is prebound to pv with matching volumeModes filesystem",
            SyncOf::Claim,
            (
                with_mode("Filesystem", volume("volume14-11", "10Gi", "", "", "Available", "Retain", "", &[])),
                with_mode(
                    "Filesystem",
                    volume(
                        "volume14-11",
                        "10Gi",
                        "uid14-11",
                        "claim14-11",
                        "Bound",
                        "Retain",
                        "",
                        &[BOUND_BY_CONTROLLER],
                    ),
                ),
            ),
            (
                with_mode("Filesystem", claim("claim14-11", "uid14-11", "10Gi", "volume14-11", "Pending", None, &[])),
                with_mode(
                    "Filesystem",
                    claim("claim14-11", "uid14-11", "10Gi", "volume14-11", "Bound", None, &[BIND_COMPLETED]),
                ),
            ),
            &[],
        ),
        row(
            "14-12 - bind when pv is prebound to pvc with matching volumeModes filesystem",
            SyncOf::Claim,
            (
                with_mode(
                    "Filesystem",
                    volume("volume14-12", "10Gi", "", "claim14-12", "Available", "Retain", "", &[]),
                ),
                with_mode(
                    "Filesystem",
                    volume("volume14-12", "10Gi", "uid14-12", "claim14-12", "Bound", "Retain", "", &[]),
                ),
            ),
            (
                with_mode("Filesystem", claim("claim14-12", "uid14-12", "10Gi", "", "Pending", None, &[])),
                with_mode(
                    "Filesystem",
                    claim(
                        "claim14-12",
                        "uid14-12",
                        "10Gi",
                        "volume14-12",
                        "Bound",
                        None,
                        &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                    ),
                ),
            ),
            &[],
        ),
        row(
            "14-13 - output warning when pv is prebound to pvc with different volumeModes",
            SyncOf::Volume,
            (
                with_mode(
                    "Filesystem",
                    volume(
                        "volume14-13",
                        "10Gi",
                        "uid14-13",
                        "claim14-13",
                        "Available",
                        "Retain",
                        "",
                        &[BOUND_BY_CONTROLLER],
                    ),
                ),
                with_mode(
                    "Filesystem",
                    volume(
                        "volume14-13",
                        "10Gi",
                        "uid14-13",
                        "claim14-13",
                        "Available",
                        "Retain",
                        "",
                        &[BOUND_BY_CONTROLLER],
                    ),
                ),
            ),
            (
                with_mode("Block", claim("claim14-13", "uid14-13", "10Gi", "", "Pending", None, &[])),
                with_mode("Block", claim("claim14-13", "uid14-13", "10Gi", "", "Pending", None, &[])),
            ),
            &["Warning VolumeMismatch"],
        ),
        row(
            "14-13-1 - output warning when pv is prebound to pvc with different volumeModes",
            SyncOf::Volume,
            (
                with_mode(
                    "Block",
                    volume(
                        "volume14-13-1",
                        "10Gi",
                        "uid14-13-1",
                        "claim14-13-1",
                        "Available",
                        "Retain",
                        "",
                        &[BOUND_BY_CONTROLLER],
                    ),
                ),
                with_mode(
                    "Block",
                    volume(
                        "volume14-13-1",
                        "10Gi",
                        "uid14-13-1",
                        "claim14-13-1",
                        "Available",
                        "Retain",
                        "",
                        &[BOUND_BY_CONTROLLER],
                    ),
                ),
            ),
            (
                with_mode("Filesystem", claim("claim14-13-1", "uid14-13-1", "10Gi", "", "Pending", None, &[])),
                with_mode("Filesystem", claim("claim14-13-1", "uid14-13-1", "10Gi", "", "Pending", None, &[])),
            ),
            &["Warning VolumeMismatch"],
        ),
        row(
            "14-14 - wait for synClaim without warning when pv is prebound to pvc with matching volumeModes block",
            SyncOf::Volume,
            (
                with_mode(
                    "Block",
                    volume(
                        "volume14-14",
                        "10Gi",
                        "uid14-14",
                        "claim14-14",
                        "Available",
                        "Retain",
                        "",
                        &[BOUND_BY_CONTROLLER],
                    ),
                ),
                with_mode(
                    "Block",
                    volume(
                        "volume14-14",
                        "10Gi",
                        "uid14-14",
                        "claim14-14",
                        "Available",
                        "Retain",
                        "",
                        &[BOUND_BY_CONTROLLER],
                    ),
                ),
            ),
            (
                with_mode("Block", claim("claim14-14", "uid14-14", "10Gi", "", "Pending", None, &[])),
                with_mode("Block", claim("claim14-14", "uid14-14", "10Gi", "", "Pending", None, &[])),
            ),
            &[],
        ),
        row(
            "14-14-1 - wait for synClaim without warning when pv is prebound to pvc with matching volumeModes file",
            SyncOf::Volume,
            (
                with_mode(
                    "Filesystem",
                    volume(
                        "volume14-14-1",
                        "10Gi",
                        "uid14-14-1",
                        "claim14-14-1",
                        "Available",
                        "Retain",
                        "",
                        &[BOUND_BY_CONTROLLER],
                    ),
                ),
                with_mode(
                    "Filesystem",
                    volume(
                        "volume14-14-1",
                        "10Gi",
                        "uid14-14-1",
                        "claim14-14-1",
                        "Available",
                        "Retain",
                        "",
                        &[BOUND_BY_CONTROLLER],
                    ),
                ),
            ),
            (
                with_mode("Filesystem", claim("claim14-14-1", "uid14-14-1", "10Gi", "", "Pending", None, &[])),
                with_mode("Filesystem", claim("claim14-14-1", "uid14-14-1", "10Gi", "", "Pending", None, &[])),
            ),
            &[],
        ),
    ];
    for row in rows {
        row.check(&classes, &pods);
    }
}
/// Upstream: `TestMultiSync`.
#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn many_syncs_end_as_upstreams() {
    let classes = [];
    let pods = [];
    let rows = [
        row(
            "10-1 - successful bind",
            SyncOf::All,
            (
                volume("volume10-1", "1Gi", "", "", "Pending", "Retain", "", &[]),
                volume("volume10-1", "1Gi", "uid10-1", "claim10-1", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]),
            ),
            (
                claim("claim10-1", "uid10-1", "1Gi", "", "Pending", None, &[]),
                claim(
                    "claim10-1",
                    "uid10-1",
                    "1Gi",
                    "volume10-1",
                    "Bound",
                    None,
                    &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                ),
            ),
            &[],
        ),
        row(
            "10-2 - bind PV race",
            SyncOf::All,
            (
                [
                    volume(
                        "volume10-2-1",
                        "1Gi",
                        "uid10-2",
                        "claim10-2",
                        "Bound",
                        "Retain",
                        "",
                        &[BOUND_BY_CONTROLLER],
                    ),
                    volume(
                        "volume10-2-2",
                        "1Gi",
                        "uid10-2",
                        "claim10-2",
                        "Bound",
                        "Retain",
                        "",
                        &[BOUND_BY_CONTROLLER],
                    ),
                ]
                .concat(),
                [
                    volume(
                        "volume10-2-1",
                        "1Gi",
                        "uid10-2",
                        "claim10-2",
                        "Bound",
                        "Retain",
                        "",
                        &[BOUND_BY_CONTROLLER],
                    ),
                    volume("volume10-2-2", "1Gi", "", "", "Available", "Retain", "", &[]),
                ]
                .concat(),
            ),
            (
                claim(
                    "claim10-2",
                    "uid10-2",
                    "1Gi",
                    "volume10-2-1",
                    "Bound",
                    None,
                    &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                ),
                claim(
                    "claim10-2",
                    "uid10-2",
                    "1Gi",
                    "volume10-2-1",
                    "Bound",
                    None,
                    &[BOUND_BY_CONTROLLER, BIND_COMPLETED],
                ),
            ),
            &[],
        ),
    ];
    for row in rows {
        row.check(&classes, &pods);
    }
}

/// Upstream: `TestControllerSync`; the cases about metrics are left out.
#[test]
fn events_of_claims_and_volumes_end_as_upstreams() {
    let free = |size: &str| volume("volume5-2", size, "", "", "Available", "Retain", "", &[]);
    let bound =
        |size: &str| volume("volume5-2", size, "uid5-2", "claim5-2", "Bound", "Retain", "", &[BOUND_BY_CONTROLLER]);
    let pending = |size: &str| claim("claim5-2", "uid5-2", size, "", "Pending", None, &[]);
    let complete = &[BOUND_BY_CONTROLLER, BIND_COMPLETED];
    let done = |size: &str| claim("claim5-2", "uid5-2", size, "volume5-2", "Bound", None, complete);
    let resized = |objects| annotated(PRE_RESIZE_CAPACITY, "1Gi", objects);
    let of_deleted =
        |phase: &str| volume("volume5-3", "10Gi", "uid5-3", "claim5-3", phase, "Retain", "", &[BOUND_BY_CONTROLLER]);
    let (had, lost) = ("Bound", "Lost");
    let of_lost = |phase: &str| claim("claim5-4", "uid5-4", "1Gi", "volume5-4", phase, None, complete);
    for row in [
        row("5-2 - complete bind", SyncOf::All, (free("1Gi"), bound("1Gi")), (pending("1Gi"), done("1Gi")), &[]),
        row(
            "5-2-3 - complete bind with AnnPreResizeCapacity",
            SyncOf::All,
            (resized(free("2Gi")), resized(bound("2Gi"))),
            (providing("2Gi", pending("2Gi")), providing("1Gi", done("2Gi"))),
            &[],
        ),
        row(
            "5-3 - delete claim",
            SyncOf::All,
            (of_deleted("Bound"), of_deleted("Released")),
            (Vec::new(), Vec::new()),
            &[],
        ),
        row(
            "5-4 - delete volume",
            SyncOf::All,
            (Vec::new(), Vec::new()),
            (of_lost(had), of_lost(lost)),
            &["Warning ClaimLost"],
        ),
    ] {
        row.check(&[], &[]);
    }
}

/// Upstream: 4-12 of `TestSync`.
#[test]
fn a_claim_that_the_cache_does_not_have_yet_keeps_its_volume() {
    let newest = claim("claim4-12", "uid4-12-new", "10Gi", "volume4-12", "Bound", None, &[NOT_CACHED]);
    let cached = claim("claim4-12", "uid4-12", "10Gi", "volume4-12", "Bound", None, &[]);
    let volume = |phase: &str| volume("volume4-12", "10Gi", "uid4-12-new", "claim4-12", phase, "Delete", "", &[]);
    let claims = [newest, cached].concat();
    let volumes = (volume("Available"), volume("Bound"));
    let name = "4-12 - volume bound to newest claim but not updated to local cache";
    row(name, SyncOf::Volume, volumes, (claims.clone(), claims), &[]).check(&[], &[]);
}
