//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue};

pub const QUEUE: Queue = Queue::of("Service", "endpoint_slice_mirroring");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "endpointslice-mirroring-operator",
        controller: "endpointslice-mirroring-controller",
        event_source: "endpoint-slice-mirroring-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::on("", "Endpoints"), Acts::on("discovery.k8s.io", "EndpointSlice"), Acts::on("", "Service")],
    ..Facts::NONE
};
