//! The memory of rejections: a rejected pod goes before another one comes.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use shared::following::cache::Change;
use shared::testing::{NOW, uid};
use statefulset_operator::memory::Rejected;
use statefulset_operator::objects::StatefulSet;
use statefulset_operator::objects::pod::Pod;

use crate::fixtures::{NEW, OLD, pod, rejected, set};

fn later(seconds: i64) -> Timestamp {
    NOW + SignedDuration::from_secs(seconds)
}

/// The n-th pod of ordinal 0, which its node has rejected.
fn nth(n: usize, revision: &str) -> Arc<Pod> {
    rejected(0, revision).uid_of(&n.to_string()).build()
}

/// Sees the pods of a set one after the other; gives whether a back-off begins with the last one.
fn see(memory: &Rejected, pods: impl IntoIterator<Item = Arc<Pod>>) -> bool {
    let mut begins = false;
    for pod in pods {
        begins = memory.note(uid("web"), &[pod], NOW, true).1.is_some();
    }
    begins
}

fn waits(memory: &Rejected, pods: &[Arc<Pod>], now: Timestamp) -> bool {
    memory.look(uid("web"), pods, now).wait(now).is_some()
}

#[test]
fn each_rejected_pod_counts_once() {
    let memory = Rejected::default();
    assert!(!see(&memory, (0..9).map(|_| nth(0, NEW))));
    assert!(!see(&memory, (1..3).map(|n| nth(n, NEW))));
    assert!(!see(&memory, [nth(3, OLD)]), "a revision is a row of its own");
    assert!(see(&memory, [nth(4, NEW)]));
    assert!(waits(&memory, &[], NOW));
}

#[test]
fn a_look_counts_what_is_there_and_changes_nothing() {
    let memory = Rejected::default();
    let four: Vec<Arc<Pod>> = (0..4).map(|n| nth(n, NEW)).collect();
    assert!(waits(&memory, &four, NOW) && !waits(&memory, &[], NOW));
}

#[test]
fn a_pod_that_runs_time_and_the_end_of_the_set_end_it() {
    let memory = Rejected::default();
    let see_four = || see(&memory, (0..4).map(|n| nth(n, NEW)));
    let runs = |revision: &str, seconds: i64| [pod(1, revision).created(later(seconds)).build::<Pod>()];
    assert!(see_four());
    assert!(waits(&memory, &runs(NEW, 0), NOW) && waits(&memory, &runs(OLD, 1), NOW));
    assert!(!waits(&memory, &runs(NEW, 1), NOW) && !waits(&memory, &[], later(60)));
    memory.note(uid("web"), &runs(NEW, 1), NOW, true);
    assert!(!waits(&memory, &[], NOW));
    assert!(see_four());
    memory.set_changed(&Change::Deleted(&set(1).build::<StatefulSet>()));
    assert!(!waits(&memory, &[], NOW));
}

#[test]
fn nothing_is_remembered_of_a_set_that_is_gone() {
    let (memory, pods) = (Rejected::default(), (0..4).map(|n| nth(n, NEW)).collect::<Vec<_>>());
    let (rejections, begun) = memory.note(uid("web"), &pods, NOW, false);
    assert!(rejections.wait(NOW).is_some() && begun.is_none());
    assert!(!waits(&memory, &[], NOW));
}
