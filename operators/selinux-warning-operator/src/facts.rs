//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Memory, Names, Queue};

pub const QUEUE: Queue = Queue::of("Pod", "selinux_warning");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "selinux-warning-operator",
        controller: "selinux-warning-controller",
        event_source: "selinux_warning",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::on("", "Pod")],
    memory: Some(Memory {
        keeps: "pods that have not ended",
        bytes: "taken as 450 a pod",
        request: "32Mi",
        limit: "192Mi",
    }),
    ..Facts::NONE
};
