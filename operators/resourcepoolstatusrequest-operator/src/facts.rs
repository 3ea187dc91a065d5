//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, KnownDifference, Names, Queue};

pub const QUEUE: Queue = Queue::of("ResourcePoolStatusRequest", "resourcepoolstatusrequest");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "resourcepoolstatusrequest-operator",
        controller: "resourcepoolstatusrequest-controller",
        event_source: "resourcepoolstatusrequest-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps_with_status("resource.k8s.io", "ResourcePoolStatusRequest")],
    differences: &[KnownDifference {
        resource: "resourcepoolstatusrequests.resource.k8s.io",
        paths: &[],
        decided: "delete (",
        sentence: "A request goes when its time is over; upstream looks every ten minutes, so that it stays for up to ten \
                   minutes longer.",
    }],
    // A request is deleted an hour after its answer, and no life takes that long.
    rights_without_request: &["delete resourcepoolstatusrequests"],
    ..Facts::NONE
};
