//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Finalizer, Names, Queue};

pub const QUEUE: Queue = Queue::of("PodGroup", "podgroupprotection");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "podgroup-protection-operator",
        controller: "podgroup-protection-controller",
        event_source: "podgroup-protection-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps("scheduling.k8s.io", "PodGroup")],
    finalizers: &[Finalizer {
        name: "scheduling.k8s.io/podgroup-protection",
        once: "once each pod of the group has ended or is gone",
    }],
    ..Facts::NONE
};
