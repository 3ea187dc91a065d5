//! When what a sync answers to happened: upstream's `trigger_time_tracker_test.go`.

use std::sync::Arc;

use endpointslice_operator::objects::{Pod, Service};
use jiff::Timestamp;
use shared::api::time::Time;
use shared::controllers::endpoints::trigger_time_tracker::ServiceState;
use shared::testing::object;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// The trigger time of a sync of a Service that was created at this second, whose pods are ready since these seconds.
fn next(state: &mut ServiceState, service: i64, pods: &[(&str, i64)]) -> Option<i64> {
    let service: Arc<Service> = object("v1", "Service", "my-service").created(at(service)).build();
    let pods: Vec<Arc<Pod>> =
        pods.iter().map(|(name, since)| object("v1", "Pod", name).ready_since(at(*since)).build()).collect();
    let before = std::mem::replace(state, ServiceState::of(&service, &pods));
    state.trigger(&before).map(Time::second)
}

/// Upstream: `TestNewServiceNoPods`, `TestNewServiceExistingPods`.
#[test]
fn a_service_that_is_new_is_synced_for_its_creation() {
    assert_eq!(next(&mut ServiceState::default(), 2, &[]), Some(2));
    assert_eq!(next(&mut ServiceState::default(), 3, &[("pod1", 0), ("pod2", 1), ("pod3", 5)]), Some(3));
}

/// Upstream: `TestPodsAdded`, `TestPodsUpdated`, `TestPodsUpdatedNoOp`, `TestPodDeletedThenAdded`,
/// `TestServiceUpdatedNoPodChange`.
#[test]
fn after_that_it_is_synced_for_the_first_change_of_a_pod() {
    let mut state = ServiceState::default();
    assert_eq!(next(&mut state, 0, &[]), Some(0));
    assert_eq!(next(&mut state, 0, &[("pod1", 2), ("pod2", 1)]), Some(1));
    assert_eq!(next(&mut state, 0, &[("pod1", 2), ("pod2", 1), ("pod3", 3)]), Some(3));
    assert_eq!(next(&mut state, 0, &[("pod1", 5), ("pod2", 4), ("pod3", 3)]), Some(4));
    assert_eq!(next(&mut state, 0, &[("pod1", 5), ("pod2", 4), ("pod3", 3)]), None);
    assert_eq!(next(&mut state, 0, &[("pod1", 5)]), None);
    assert_eq!(next(&mut state, 0, &[("pod1", 5), ("pod2", 6)]), Some(6));
}

/// Upstream: `TestServiceDeletedThenAdded`, and a Service of the same name that comes before anybody has noticed.
#[test]
fn a_service_that_is_created_again_is_new() {
    let mut state = ServiceState::default();
    assert_eq!(next(&mut state, 0, &[("pod1", 1)]), Some(0));
    assert_eq!(next(&mut state, 3, &[("pod1", 1)]), Some(3));
    assert_eq!(next(&mut state, 4, &[("pod1", 9)]), Some(4));
}
