//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Finalizer, Names, Queue};

pub const QUEUE: Queue = Queue::of("ServiceCIDR", "ipaddresses");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "service-cidr-operator",
        controller: "service-cidr-controller",
        event_source: "service-cidr-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps_with_status("networking.k8s.io", "ServiceCIDR")],
    finalizers: &[Finalizer {
        name: "networking.k8s.io/service-cidr-finalizer",
        once: "once each address in it is in another ServiceCIDR too",
    }],
    ..Facts::NONE
};
