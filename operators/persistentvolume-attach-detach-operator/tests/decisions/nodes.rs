//! Which volumes a node reports.
//!
//! Upstream: `pkg/controller/volume/attachdetach/statusupdater/node_status_updater_test.go`, and
//! `GetVolumesToReportAttachedForNode` in `cache/actual_state_of_world_test.go`.

use std::collections::BTreeMap;

use persistentvolume_attach_detach_operator::memory::{Remembered, Report};
use persistentvolume_attach_detach_operator::objects::volume::VolumeName;
use persistentvolume_attach_detach_operator::observe::{ObservedNode, Place};
use persistentvolume_attach_detach_operator::plan::{Config, NodePlan, plan_node};
use persistentvolume_attach_detach_operator::status::attached_status;
use serde_json::json;
use shared::api::intern::Text;

use crate::fixtures::{
    CONFIG, attached, attachment, node, observed_node, on, place, remembering, volume, wanted, with,
};

fn names(plan: &NodePlan) -> Option<Vec<&str>> {
    let write = plan.write.as_ref()?;
    Some(write.volumes.iter().map(|attached| attached.name.as_str()).collect())
}

fn withdrawn() -> Remembered {
    Remembered { report: Report::Withdrawn, ..Remembered::default() }
}

/// Upstream: `TestNodeStatusUpdater_UpdateNodeStatusForNode`, `Test_GetVolumesToReportAttachedForNode_Positive` and
/// `Test_updateNodeStatusUpdateNeeded`.
#[test]
fn a_node_reports_what_is_attached_for_its_pods() {
    let bare = node("a", &[], &[]);
    let web = wanted(with(on(&bare), &attached(attachment("a"))), "web");
    let plan = plan_node(&observed_node(&bare, &[(volume(), web.clone())]), CONFIG);
    assert_eq!(plan.to_string(), "write the list (attached: kubernetes.io/csi/csi.example.com^data)");
    assert_eq!(names(&plan), Some(vec![volume().as_str()]));
    let reporting = node("a", &[&volume()], &[]);
    let reported = Place { state: Some(reporting.build()), ..web };
    let plan = plan_node(&observed_node(&reporting, &[(volume(), reported)]), CONFIG);
    assert_eq!((plan.to_string().as_str(), plan.write), ("nothing (reports the volumes that it has: 1)", None));
}

#[test]
fn an_attachment_without_success_is_not_reported() {
    let bare = node("a", &[], &[]);
    for found in [attachment("a"), attached(attachment("a")).terminating()] {
        let web = wanted(with(on(&bare), &found), "web");
        assert_eq!(plan_node(&observed_node(&bare, &[(volume(), web)]), CONFIG).write, None);
    }
    let unneeded = with(on(&bare), &attached(attachment("a")));
    assert_eq!(plan_node(&observed_node(&bare, &[(volume(), unneeded)]), CONFIG).write, None);
}

/// Upstream: `Test_RemoveVolumeFromReportAsAttached` and `Test_RemoveVolumeFromReportAsAttached_Positive_Marked`.
#[test]
fn a_withdrawn_volume_is_removed_and_acknowledged() {
    let other = VolumeName::csi("csi.example.com", "other");
    let reporting = node("a", &[&volume(), &other], &[&other]);
    let unneeded = with(on(&reporting), &attached(attachment("a")));
    let plan = plan_node(&observed_node(&reporting, &[(volume(), unneeded.clone())]), CONFIG);
    assert_eq!((plan.write, plan.acknowledge), (None, vec![]), "only a detach withdraws it");
    let leaving = remembering(unneeded, withdrawn());
    let plan = plan_node(&observed_node(&reporting, &[(volume(), leaving)]), CONFIG);
    assert_eq!((names(&plan), plan.acknowledge.clone()), (Some(vec![other.as_str()]), vec![volume()]));
}

/// Upstream: `Test_RemoveVolumeFromReportAsAttached_Positive_UnsetWithInitialSetVolumesMountedByNodePreserved`.
#[test]
fn what_no_pod_needs_stays_reported_until_its_detach_begins() {
    let reporting = node("a", &[&volume()], &[&volume()]);
    for place in
        [on(&reporting), with(on(&reporting), &attached(attachment("a"))), with(on(&reporting), &attachment("a"))]
    {
        assert_eq!(plan_node(&observed_node(&reporting, &[(volume(), place)]), CONFIG).write, None);
    }
}

#[test]
fn a_lost_attachment_is_reported_no_more_unless_nobody_verifies() {
    let reporting = node("a", &[&volume()], &[]);
    let web = wanted(on(&reporting), "web");
    let observed = observed_node(&reporting, &[(volume(), web)]);
    assert_eq!(names(&plan_node(&observed, CONFIG)), Some(vec![]));
    assert_eq!(plan_node(&observed, Config { verifies: false, ..CONFIG }).write, None);
}

/// Upstream: `Test_OneVolumeTwoNodes_TwoDevicePaths`.
#[test]
fn entries_keep_their_order_and_their_device_paths() {
    let foreign = VolumeName::new("kubernetes.io/rbd/pool:image");
    let entries = json!([{ "name": foreign.as_str(), "devicePath": "/dev/sdb" }, { "name": volume().as_str(), "devicePath": "" }]);
    let reporting = node("a", &[], &[]).set(&["status", "volumesAttached"], entries);
    let other = VolumeName::csi("csi.example.com", "a-new-one");
    let found = shared::testing::object("storage.k8s.io/v1", "VolumeAttachment", "x").namespace("");
    let places = [
        (foreign.clone(), on(&reporting)),
        (volume(), wanted(with(on(&reporting), &attached(attachment("a"))), "web")),
        (other.clone(), wanted(with(on(&reporting), &attached(found)), "web")),
    ];
    let plan = plan_node(&observed_node(&reporting, &places), CONFIG);
    assert_eq!(names(&plan), Some(vec![foreign.as_str(), volume().as_str(), other.as_str()]));
    let written = plan.write.map(|write| attached_status(&write.volumes)["status"]["volumesAttached"][0].clone());
    assert_eq!(written, Some(json!({ "name": foreign.as_str(), "devicePath": "/dev/sdb" })));
    assert_eq!(attached_status(&[]), json!({ "status": { "volumesAttached": null } }));
}

/// Upstream: `Test_SetNodeStatusUpdateNeededError`, `Test_updateNodeStatusUpdateNeededError` and
/// `Test_GetVolumesToReportAttachedForNode_UnknownNode`.
#[test]
fn a_node_that_is_gone_gets_no_status_and_holds_no_detach_up() {
    let places = BTreeMap::from([(volume(), remembering(place("a"), withdrawn()))]);
    let plan = plan_node(&ObservedNode { name: Text::new("a"), node: None, places }, CONFIG);
    assert_eq!((plan.to_string().as_str(), plan.write), ("nothing (the node is gone)", None));
    assert_eq!(plan.acknowledge, [volume()]);
}

#[test]
fn what_a_node_may_attach_is_reported_once_it_is_granted() {
    let volume = VolumeName::new("kubernetes.io/fc/[a]:0");
    let bare = node("a", &[], &[]);
    let web = wanted(on(&bare), "web");
    assert_eq!(plan_node(&observed_node(&bare, &[(volume.clone(), web.clone())]), CONFIG).write, None);
    let granted = remembering(web, Remembered { is_granted: true, ..Remembered::default() });
    let plan = plan_node(&observed_node(&bare, &[(volume.clone(), granted)]), CONFIG);
    assert_eq!(names(&plan), Some(vec![volume.as_str()]));
}
