//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue};

pub const QUEUE: Queue = Queue::of("Node", "ttlcontroller");

pub const FACTS: Facts = Facts {
    names: Names { operator: "ttl-operator", controller: "ttl-controller", event_source: "ttl-controller" },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps("", "Node")],
    ..Facts::NONE
};
