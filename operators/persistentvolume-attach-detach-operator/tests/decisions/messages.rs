//! The events about a volume that another node has.

use crate::fixtures::{CONFIG, attached, attachment, node, observed, on, planned, volume, wanted, with};

/// The events for `ns1/pod1` on `node1`, where the other nodes have the volume for these pods.
#[track_caller]
fn check(others: &[(&str, &str)], expected: &str) {
    let mut places = vec![wanted(on(&node("node1", &[], &[])), "ns1/pod1")];
    places.extend(others.iter().map(|(name, pod)| {
        let place = with(on(&node(name, &[&volume()], &[&volume()])), &attached(attachment(name)));
        if pod.is_empty() { place } else { wanted(place, pod) }
    }));
    let plan = planned(&observed(&places), CONFIG);
    let events: Vec<String> =
        plan.steps[0].events.iter().map(|event| format!("{} {}", event.reason, event.message)).collect();
    assert_eq!(events, [format!("FailedAttachVolume Multi-Attach error for volume \"pv\" {expected}")]);
}

/// Upstream: `Test_ReportMultiAttachError`.
#[test]
fn a_pod_is_told_who_has_its_volume() {
    // "no pods use the volume"
    let exclusive = "Volume is already exclusively attached to one node and can't be attached to another";
    check(&[("node2", "")], exclusive);
    // "pods in the same namespace use the volume"
    check(&[("node2", "ns1/pod2")], "Volume is already used by pod(s) pod2");
    // "pods in another namespace use the volume"
    check(&[("node2", "ns2/pod2")], "Volume is already used by 1 pod(s) in different namespaces");
    // "pods both in the same and another namespace use the volume"
    let both = "Volume is already used by pod(s) pod3 and 1 pod(s) in different namespaces";
    check(&[("node2", "ns2/pod2"), ("node3", "ns1/pod3")], both);
}
