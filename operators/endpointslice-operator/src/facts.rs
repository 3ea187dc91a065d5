//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Exception, Facts, Lack, Memory, Names, Queue};

pub const SERVICES: Queue = Queue::of("Service", "endpoint_slice");
pub const ZONES: Queue = Queue::other("endpoint_slice_topology");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "endpointslice-operator",
        controller: "endpointslice-controller",
        event_source: "endpoint-slice-controller",
    },
    queues: &[SERVICES, ZONES],
    acts_on: &[Acts::keeps("", "Service"), Acts::keeps("discovery.k8s.io", "EndpointSlice")],
    exceptions: &[Exception {
        file: "controller/zones.rs",
        lacks: &[Lack::Record, Lack::Key, Lack::Preview],
        why: "it looks at all nodes together, and the Services that it wakes record their own decisions",
    }],
    memory: Some(Memory {
        keeps: "pods with an IP, and the slices, while a Service selects pods",
        bytes: "750 a pod",
        request: "32Mi",
        limit: "256Mi",
    }),
    ..Facts::NONE
};
