//! A process's memory of a Job between two syncs. Upstream: `TestUIDTrackingExpectations`,
//! `pkg/controller/job/tracking_utils_test.go`, and `TestImmediateJobRecreation`, `test/integration/job/job_test.go`.

use std::collections::BTreeSet;

use job_operator::memory::Memory;
use job_operator::memory::backoff::BackoffRecord;
use shared::api::object::{Key, Uid};
use shared::api::time::Time;
use shared::testing::{NOW, uid};

fn pods<const N: usize>(names: [&str; N]) -> BTreeSet<Uid> {
    names.map(uid).into()
}

#[test]
fn a_finalizer_is_awaited_until_it_is_seen_to_be_gone() {
    let (memory, pi, other) = (Memory::default(), Key::new("default", "pi"), Key::new("default", "other"));
    memory.expect_released(&pi, uid("pi"), pods(["a", "b"]));
    memory.expect_released(&other, uid("other"), pods(["a"]));
    memory.expect_released(&pi, uid("pi"), pods(["c"]));
    memory.release_observed(&pi, uid("a"));
    memory.release_observed(&pi, uid("nobody's"));
    assert_eq!(memory.released(&pi, uid("pi")), pods(["b", "c"]));
    assert_eq!(memory.released(&other, uid("other")), pods(["a"]), "each Job for itself");
    memory.forget(&pi);
    memory.release_observed(&pi, uid("b"));
    assert_eq!(memory.released(&pi, uid("pi")), pods([]));
    memory.start_over();
    assert_eq!(memory.released(&other, uid("other")), pods([]));
}

#[test]
fn a_job_does_not_wait_for_the_failures_of_one_that_had_its_name() {
    let (memory, pi) = (Memory::default(), Key::new("default", "pi"));
    let failures = BackoffRecord { failures: 3, last_failure: Some(Time::of(NOW)) };
    memory.set_backoff(&pi, uid("pi"), failures);
    memory.expect_released(&pi, uid("pi"), pods(["a"]));
    assert_eq!(memory.backoff(&pi, uid("pi")), failures);
    assert_eq!(memory.backoff(&pi, uid("its successor")), BackoffRecord::default());
    memory.expect_released(&pi, uid("its successor"), pods(["b"]));
    assert_eq!(memory.released(&pi, uid("its successor")), pods(["b"]));
    assert_eq!(memory.backoff(&pi, uid("pi")), BackoffRecord::default(), "nobody asks for what is gone");
}
