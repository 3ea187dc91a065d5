//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Exception, Facts, Lack, Memory, Names, Queue};

pub const QUEUE: Queue = Queue::of("Service", "endpoint");
pub const LEFTOVERS: Queue = Queue::other("endpoint_leftovers");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "endpoints-operator",
        controller: "endpoints-controller",
        event_source: "endpoint-controller",
    },
    queues: &[QUEUE, LEFTOVERS],
    acts_on: &[Acts::keeps("", "Endpoints"), Acts::on("", "Service")],
    // The admission of a distribution may ask for it, to keep addresses of pods out of Endpoints.
    rights_without_request: &["create endpoints/restricted"],
    exceptions: &[Exception {
        file: "controller/leftovers.rs",
        lacks: &[Lack::Record, Lack::Key, Lack::Preview],
        why: "it looks at all Endpoints together, and the sync of each key that it finds records its own decision",
    }],
    memory: Some(Memory {
        keeps: "pods with an IP, and the Endpoints, while a Service selects pods",
        bytes: "710 a pod",
        request: "32Mi",
        limit: "256Mi",
    }),
    ..Facts::NONE
};
