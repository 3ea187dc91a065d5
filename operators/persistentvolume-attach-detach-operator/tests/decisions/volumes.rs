//! What happens to a volume on each node.
//!
//! Upstream: `pkg/controller/volume/attachdetach/cache/actual_state_of_world_test.go` and
//! `desired_state_of_world_test.go`. Their state follows from objects here, so a row is the state after the calls of a test.

use std::slice::from_ref;
use std::time::Duration;

use persistentvolume_attach_detach_operator::memory::{Remembered, Report};
use persistentvolume_attach_detach_operator::objects::volume::VolumeName;
use persistentvolume_attach_detach_operator::observe::{Live, Place, Wants};
use persistentvolume_attach_detach_operator::plan::{Config, Totals};
use serde_json::json;
use shared::testing::{ObjectBuilder, uid};

use crate::fixtures::{
    CONFIG, attached, attachment, check, node, not_ready, observed, observed_as, on, out_of_service, place, planned,
    remembering, unneeded_for, used_by, volume, wanted, with,
};

const UNMOUNTED: &str = "no pod needs it, and it is not mounted";

fn withdrawn(report: Report) -> Remembered {
    Remembered { report, ..unneeded_for(0) }
}

fn live(place: Place, is_in_use: bool) -> Place {
    Place { live: Some(Live { is_in_use, is_reported: false }), ..place }
}

/// Upstream: `Test_GetVolumesToAttach_Positive_NoNodes`, `Test_GetAttachedVolumes_Positive_NoVolumesOrNodes` and
/// `Test_GetAttachedVolumesForNode_Positive_NoVolumesOrNodes`.
#[test]
fn a_volume_without_nodes_needs_nothing() {
    check(&[], "nothing (no node has it or needs it)");
}

/// Upstream: `Test_NodeExists_Positive_NodeExists`, `Test_AddNode_Positive_ExistingNode`,
/// `Test_AddPod_Positive_NewPodNodeExistsVolumeDoesntExist`, `Test_AddPod_Positive_NewPodNodeExistsVolumeExists`
/// and `Test_AddPod_Positive_PodExistsNodeExistsVolumeExists`.
#[test]
fn a_volume_is_attached_where_pods_want_it() {
    let empty = on(&node("a", &[], &[]));
    check(&[wanted(empty.clone(), "web")], "a: attach (wanted by default/web)");
    check(&[wanted(wanted(empty, "web"), "db")], "a: attach (wanted by default/web, default/db)");
}

/// Upstream: `Test_AddVolumeNode_Positive_NewVolumeNewNode`, `Test_VolumeNodeExists_Positive_VolumeExistsNodeExists`,
/// `Test_GetAttachedVolumes_Positive_OneVolumeOneNode`, `Test_GetAttachedVolumesForNode_Positive_OneVolumeOneNode` and
/// `Test_MarkVolumeAsAttached`.
#[test]
fn an_attached_volume_that_a_pod_wants_stays() {
    let reported = on(&node("a", &[&volume()], &[]));
    let web = wanted(with(reported, &attached(attachment("a"))), "web");
    check(from_ref(&web), "a: nothing (attached for default/web)");
    let plan = planned(&observed(&[web]), CONFIG);
    assert_eq!((plan.steps[0].syncs_node, plan.steps[0].events.len()), (false, 0));
}

/// Upstream: `Test_AddVolumeNode_Positive_NewVolumeNewNodeWithFalseAttached`, `Test_MarkVolumeAsUncertain` and
/// `Test_AddVolumeNode_Positive_NewVolumeTwoNodesWithFalseAttached`.
#[test]
fn an_attachment_without_an_answer_is_waited_for() {
    let waiting = wanted(with(on(&node("a", &[], &[])), &attachment("a")), "web");
    check(from_ref(&waiting), "a: nothing (waits for the attacher of csi.example.com)");
    let plan = planned(&observed(from_ref(&waiting)), CONFIG);
    assert_eq!((plan.steps[0].left, plan.steps[0].events.len()), (Some(Duration::from_mins(2)), 0));
    let unanswered = Remembered { unanswered: Some(Duration::from_mins(2)), ..Remembered::default() };
    let plan = planned(&observed(&[remembering(waiting, unanswered)]), CONFIG);
    assert_eq!((plan.steps[0].left, plan.steps[0].events.len()), (Some(Duration::from_mins(2)), 1));
}

/// Upstream: `Test_AddVolumeNode_Positive_ExistingVolumeExistingNode`.
#[test]
fn a_failure_is_told_once_and_a_success_after_it() {
    let error = json!({ "message": "no quota", "time": "2026-01-01T12:00:00Z" });
    let failed = attachment("a").set(&["status", "attachError"], error);
    let failed = wanted(with(on(&node("a", &[], &[])), &failed), "web");
    check(from_ref(&failed), "a: nothing (the driver cannot attach it: no quota)");
    let first = planned(&observed(from_ref(&failed)), CONFIG);
    assert_eq!((first.steps[0].events.len(), first.steps[0].left), (1, None));
    let told = remembering(failed, first.steps[0].remember.clone());
    assert_eq!(planned(&observed(from_ref(&told)), CONFIG).steps[0].events.len(), 0);
    let plan = planned(&observed(&[with(told, &attached(attachment("a")))]), CONFIG);
    assert_eq!((plan.steps[0].events.len(), plan.steps[0].syncs_node), (1, true));
}

/// Upstream: `Test_DeletePod_Positive_PodExistsNodeExistsVolumeExists`,
/// `Test_RemoveVolumeFromReportAsAttached_Positive_Set`, `Test_RemoveVolumeFromReportAsAttached` and
/// `Test_DeleteVolumeNode_Positive_VolumeExistsNodeExists`.
#[test]
fn a_detach_withdraws_verifies_and_deletes_in_this_order() {
    let unneeded = with(on(&node("a", &[&volume()], &[])), &attached(attachment("a")));
    check(from_ref(&unneeded), &format!("a: withdraw ({UNMOUNTED})"));
    let withdrawing = remembering(unneeded.clone(), withdrawn(Report::Withdrawn));
    check(&[withdrawing], "a: nothing (the node still reports it)");
    let free = remembering(unneeded, withdrawn(Report::Acknowledged));
    check(from_ref(&free), "read the nodes (the cache shows it unmounted on a)");
    check(&[live(free.clone(), false)], &format!("a: detach ({UNMOUNTED})"));
    check(&[live(free.clone(), true)], "a: nothing (no pod needs it, and the node has it mounted)");
    let plan = planned(&observed(&[live(free.clone(), false)]), CONFIG);
    let requested = remembering(free, plan.steps[0].remember.clone());
    // Until the cache shows that the request was stored it is made again.
    check(from_ref(&requested), "a: detach (waits for the driver to detach it)");
    let ending = with(requested.clone(), &attached(attachment("a")).terminating());
    check(&[ending], "a: nothing (waits for the driver to detach it)");
    let error = json!({ "message": "busy" });
    let failed = attached(attachment("a")).terminating().set(&["status", "detachError"], error);
    check(&[with(requested.clone(), &failed)], "a: nothing (the driver cannot detach it: busy)");
    let gone = Place { attachment: None, state: Some(node("a", &[], &[]).build()), ..requested };
    check(from_ref(&gone), "a: nothing (not needed)");
    assert_eq!(planned(&observed(&[gone]), CONFIG).steps[0].remember, Remembered::default());
}

#[test]
fn the_deletion_of_an_earlier_attachment_spares_the_next_one_no_live_read() {
    let place = with(on(&node("a", &[], &[])), &attached(attachment("a").uid_of("another")));
    let deleted = Some(uid("an earlier one"));
    let free = remembering(place, Remembered { deleted, ..withdrawn(Report::Acknowledged) });
    check(from_ref(&free), "read the nodes (the cache shows it unmounted on a)");
    check(&[live(free, false)], &format!("a: detach ({UNMOUNTED})"));
}

#[test]
fn a_volume_that_a_live_read_shows_as_reported_stays() {
    let place = with(on(&node("a", &[], &[])), &attached(attachment("a")));
    let free = remembering(place, withdrawn(Report::Acknowledged));
    let reported = Place { live: Some(Live { is_in_use: false, is_reported: true }), ..free };
    check(from_ref(&reported), "a: nothing (the node still reports it)");
    assert_eq!(planned(&observed(&[reported]), CONFIG).steps[0].left, Some(Duration::from_secs(2)));
}

#[test]
fn a_request_that_the_cache_does_not_show_is_looked_for() {
    let requested = Remembered { is_requested: true, ..Remembered::default() };
    let empty = remembering(on(&node("a", &[], &[])), requested);
    let unseen = "read the VolumeAttachments (requested for a, and not in the cache)";
    check(from_ref(&empty), unseen);
    check(&[empty.clone(), wanted(on(&node("b", &[], &[])), "web")], unseen);
    let found = with(empty, &attachment("a"));
    let plan = planned(&observed(&[found, wanted(on(&node("b", &[], &[])), "web")]), CONFIG);
    assert!(plan.steps[0].remember.is_requested, "{plan}");
    let expected = format!("a: withdraw ({UNMOUNTED}), b: nothing (waits until it is detached from a)");
    assert_eq!(plan.to_string(), expected);
}

/// Upstream: `Test_DeletePod_Positive_2PodsExistNodeExistsVolumesExist` and `Test_VolumeExists_Positive_VolumeExistsNodeExists`.
#[test]
fn a_volume_stays_for_the_second_of_two_pods() {
    let both = wanted(wanted(with(on(&node("a", &[&volume()], &[])), &attached(attachment("a"))), "web"), "db");
    let one = Place { uses: both.uses[1..].to_vec(), ..both.clone() };
    check(&[both], "a: nothing (attached for default/web, default/db)");
    check(&[one], "a: nothing (attached for default/db)");
}

/// Upstream: `Test_SetVolumesMountedByNode_Positive_Set`, `Test_SetVolumesMountedByNode_Positive_UnsetWithInitialSet`,
/// `Test_SetVolumesMountedByNode_Positive_UnsetWithoutInitialSet`, `Test_SetDetachRequestTime_Positive`,
/// `Test_RemoveVolumeFromReportAsAttached_Positive_Marked` and
/// `Test_SetVolumesMountedByNode_Positive_UnsetWithInitialSetVerifyDetachRequestedTimePerserved`.
#[test]
fn a_mounted_volume_waits_and_its_time_runs_on() {
    let mounted = node("a", &[&volume()], &[&volume()]);
    let at =
        |node: &ObjectBuilder, minutes| remembering(with(on(node), &attached(attachment("a"))), unneeded_for(minutes));
    let stays = "a: nothing (no pod needs it, and the node has it mounted)";
    check(&[at(&mounted, 0)], stays);
    check(&[at(&mounted, 600)], stays);
    let unwell = not_ready(mounted.clone());
    let waits = "a: nothing (no pod needs it, and the node has it mounted, for six minutes at most)";
    check(&[at(&unwell, 5)], waits);
    let plan = planned(&observed(&[at(&unwell, 5)]), CONFIG);
    assert_eq!(
        (plan.steps[0].left, plan.steps[0].remember.unneeded),
        (Some(Duration::from_mins(1)), Some(Duration::from_mins(5)),)
    );
    check(&[at(&unwell, 6)], "a: withdraw (no pod needs it, and the node is not ready after six minutes)");
    let lost = out_of_service(mounted.clone());
    check(&[at(&lost, 0)], "a: withdraw (no pod needs it, and the node is out of service)");
    let unmounted = node("a", &[&volume()], &[]);
    check(&[at(&unmounted, 0)], &format!("a: withdraw ({UNMOUNTED})"));
}

/// Upstream: `Test_MarkDesireToDetach_Positive_MarkedAddVolumeNodeReset` and
/// `Test_SetVolumesMountedByNode_Positive_UnsetWithInitialSetAddVolumeNodeNotReset`.
#[test]
fn a_pod_that_needs_the_volume_again_ends_its_time() {
    let place = with(on(&node("a", &[&volume()], &[&volume()])), &attached(attachment("a")));
    let again = wanted(remembering(place, unneeded_for(5)), "web");
    assert_eq!(planned(&observed(&[again]), CONFIG).steps[0].remember, Remembered::default());
}

/// Upstream: `Test_RemoveVolumeFromReportAsAttached_AddVolumeToReportAsAttached_Positive` and
/// `Test_RemoveVolumeFromReportAsAttached_Delete_AddVolumeNode`.
#[test]
fn a_volume_that_is_needed_again_before_its_detach_is_reported_again_and_after_it_attached_again() {
    let place = with(on(&node("a", &[], &[])), &attached(attachment("a")));
    for report in [Report::Withdrawn, Report::Acknowledged] {
        let again = wanted(remembering(place.clone(), withdrawn(report)), "web");
        let plan = planned(&observed(&[again]), CONFIG);
        assert_eq!((plan.steps[0].syncs_node, plan.steps[0].remember.report), (true, Report::Free));
    }
    let uid = place.attachment.as_ref().map(|attachment| attachment.metadata.uid);
    let requested = Remembered { deleted: uid, ..withdrawn(Report::Acknowledged) };
    let again = wanted(remembering(place, requested), "web");
    check(from_ref(&again), "a: detach (its VolumeAttachment is being deleted)");
    let ending = with(again.clone(), &attached(attachment("a")).terminating());
    check(&[ending], "a: nothing (its VolumeAttachment is being deleted)");
    let next = with(again.clone(), &attachment("a").uid_of("another"));
    check(&[next], "a: nothing (waits for the attacher of csi.example.com)");
    check(&[Place { attachment: None, ..again }], "a: attach (wanted by default/web)");
}

/// Upstream: `Test_DeleteNode_Positive_NodeExists`, `Test_DeletePod_Positive_NodeDoesNotExist`, `Test_DeleteNode_Positive_NodeDoesntExist` and
/// `Test_NodeExists_Positive_NodeDoesntExist`.
#[test]
fn a_node_that_is_gone_may_have_the_volume_mounted() {
    let gone = with(place("a"), &attached(attachment("a")));
    let waits = "a: nothing (no pod needs it, and the node is gone, for six minutes at most)";
    check(from_ref(&gone), waits);
    check(
        &[remembering(gone.clone(), unneeded_for(6))],
        "a: withdraw (no pod needs it, and the node is not ready after six minutes)",
    );
    check(&[Place { is_left_unused: true, ..gone.clone() }], "a: withdraw (no pod needs it, and it is not mounted)");
    let free = remembering(gone.clone(), Remembered { report: Report::Acknowledged, ..unneeded_for(6) });
    check(from_ref(&free), "a: detach by force (no pod needs it, and the node is not ready after six minutes)");
    let patient = Config { forces_on_timeout: false, ..CONFIG };
    let text = planned(&observed(&[free]), patient).to_string();
    assert_eq!(text, "a: nothing (no pod needs it, and the node is gone)");
}

/// Upstream: `Test_DeletePod_Positive_VolumeDoesNotExist`, `Test_DeletePod_Positive_PodDoesNotExist`,
/// `Test_DeleteVolumeNode_Positive_VolumeDoesntExistNodeDoesntExist`, `Test_VolumeExists_Positive_VolumeDoesntExistNodeExists`,
/// `Test_VolumeExists_Positive_VolumeDoesntExistNodeDoesntExists`,
/// `Test_VolumeNodeExists_Positive_VolumeExistsNodeDoesntExist` and `Test_VolumeNodeExists_Positive_VolumeAndNodeDontExist`.
#[test]
fn where_there_is_nothing_nothing_happens() {
    check(&[on(&node("a", &[], &[]))], "a: nothing (not needed)");
    check(&[place("a")], "a: nothing (not needed)");
}

/// Upstream: `Test_AddVolumeNode_Positive_ExistingVolumeNewNode`, `Test_GetAttachedVolumes_Positive_OneVolumeTwoNodes`,
/// `Test_GetAttachedVolumesForNode_Positive_OneVolumeTwoNodes` and `Test_DeleteVolumeNode_Positive_TwoNodesOneDeleted`.
#[test]
fn a_volume_for_many_nodes_is_decided_for_each() {
    let many = |name: &str| {
        let mut place = on(&node(name, &[&volume()], &[]));
        place.uses.push(used_by("web", Wants::Attached, true));
        place
    };
    let (a, b) = (with(many("a"), &attached(attachment("a"))), with(many("b"), &attached(attachment("b"))));
    check(&[a.clone(), b.clone()], "a: nothing (attached for default/web), b: nothing (attached for default/web)");
    let left = Place { uses: Vec::new(), ..a };
    check(&[left, b], &format!("a: withdraw ({UNMOUNTED}), b: nothing (attached for default/web)"));
    let fresh = |name: &str| Place { state: Some(node(name, &[], &[]).build()), ..many(name) };
    check(&[fresh("a"), fresh("b")], "a: attach (wanted by default/web), b: attach (wanted by default/web)");
}

#[test]
fn a_volume_for_one_node_goes_to_one_node() {
    let fresh = |name: &str, pod: &str| wanted(on(&node(name, &[], &[])), pod);
    check(
        &[fresh("a", "web"), fresh("b", "db")],
        "a: nothing (waits for the attach to b), b: attach (wanted by default/db)",
    );
    let attaching = with(fresh("a", "web"), &attachment("a"));
    check(
        &[attaching, fresh("b", "db")],
        "a: nothing (waits for the attacher of csi.example.com), b: nothing (waits for the attach to a)",
    );
    let there = with(wanted(on(&node("a", &[&volume()], &[])), "web"), &attached(attachment("a")));
    let refused = "a: nothing (attached for default/web), b: nothing (for one node only, and a has it for default/web)";
    check(&[there.clone(), fresh("b", "db")], refused);
    let leaving = Place { uses: Vec::new(), ..there };
    check(
        &[leaving.clone(), fresh("b", "db")],
        &format!("a: withdraw ({UNMOUNTED}), b: nothing (waits until it is detached from a)"),
    );
    let mounted = Place { state: Some(node("a", &[&volume()], &[&volume()]).build()), ..leaving };
    check(
        &[mounted, fresh("b", "db")],
        "a: nothing (no pod needs it, and the node has it mounted), b: nothing (for one node only, and a has it)",
    );
}

#[test]
fn the_refusal_is_told_once_while_the_pod_waits() {
    let there = with(wanted(on(&node("a", &[&volume()], &[])), "web"), &attached(attachment("a")));
    let waits = wanted(on(&node("b", &[], &[])), "db");
    let first = planned(&observed(&[there.clone(), waits.clone()]), CONFIG);
    assert_eq!(first.steps[1].events.len(), 1);
    let again = remembering(waits, first.steps[1].remember.clone());
    assert_eq!(planned(&observed(&[there, again]), CONFIG).steps[1].events.len(), 0);
}

/// Two nodes that both report the volume of a lost attachment: the other waits for the first, and not each for the other.
#[test]
fn of_two_nodes_that_report_a_volume_one_gets_it() {
    let reports = |name: &str, pod: &str| wanted(on(&node(name, &[&volume()], &[])), pod);
    check(
        &[reports("a", "web"), reports("b", "db")],
        "a: nothing (for one node only, and b has it for default/db), b: attach (wanted by default/db)",
    );
    check(
        &[reports("a", "web"), wanted(on(&node("b", &[], &[])), "db")],
        "a: attach (wanted by default/web), b: nothing (for one node only, and a has it for default/web)",
    );
}

#[test]
fn what_is_only_kept_is_neither_attached_nor_detached() {
    let mut kept = on(&node("a", &[&volume()], &[]));
    kept.uses.push(used_by("web", Wants::Kept, false));
    check(from_ref(&kept), "a: nothing (kept for default/web)");
    check(&[with(kept, &attached(attachment("a")))], "a: nothing (kept for default/web)");
}

#[test]
fn a_report_without_an_attachment_is_withdrawn_or_made_good() {
    let reported = on(&node("a", &[&volume()], &[]));
    check(from_ref(&reported), &format!("a: withdraw ({UNMOUNTED})"));
    let wanting = wanted(reported, "web");
    check(from_ref(&wanting), "a: attach (wanted by default/web)");
    assert!(planned(&observed(from_ref(&wanting)), CONFIG).steps[0].syncs_node);
    let trusting = Config { verifies: false, ..CONFIG };
    assert_eq!(planned(&observed(&[wanting]), trusting).to_string(), "a: nothing (attached for default/web)");
}

#[test]
fn volumes_of_other_plugins_are_left_alone() {
    let volume = VolumeName::new("kubernetes.io/rbd/pool:image");
    let plan = planned(&observed_as(&volume, &[on(&node("a", &[&volume], &[]))]), CONFIG);
    assert_eq!(plan.to_string(), "a: nothing (its plugin is unknown)");
}

#[test]
fn a_volume_that_its_node_attaches_is_granted_and_withdrawn() {
    let volume = VolumeName::new("kubernetes.io/fc/[a]:0");
    let text = |place: Place| planned(&observed_as(&volume, &[place]), CONFIG).to_string();
    let empty = on(&node("a", &[], &[]));
    assert_eq!(text(wanted(empty.clone(), "web")), "a: let the node attach (wanted by default/web)");
    let reported = on(&node("a", &[&volume], &[]));
    assert_eq!(text(wanted(reported.clone(), "web")), "a: nothing (attached for default/web)");
    assert_eq!(text(reported.clone()), format!("a: withdraw ({UNMOUNTED})"));
    let used = on(&node("a", &[&volume], &[&volume]));
    assert_eq!(text(used), "a: nothing (no pod needs it, and the node has it mounted)");
    let withdrawn = remembering(reported, withdrawn(Report::Acknowledged));
    assert_eq!(text(withdrawn), "a: nothing (waits for the driver to detach it)");
    assert_eq!(text(empty), "a: nothing (not needed)");
}

/// Upstream: `TestTotalVolumesMetricCollection`.
#[test]
fn the_metric_counts_where_a_volume_is_wanted_and_where_it_may_be() {
    let there = with(wanted(on(&node("a", &[&volume()], &[])), "web"), &attached(attachment("a")));
    let left = with(on(&node("b", &[], &[])), &attachment("b"));
    let places = [there, left, wanted(on(&node("c", &[], &[])), "db"), on(&node("d", &[], &[]))];
    assert_eq!(Totals::of(&observed(&places)), Totals { desired: 2, actual: 2 });
}
