//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue};

pub const QUEUE: Queue = Queue::of("Node", "cidrallocator_node");

pub const FACTS: Facts = Facts {
    names: Names { operator: "node-ipam-operator", controller: "node-ipam-controller", event_source: "cidrAllocator" },
    queues: &[QUEUE],
    acts_on: &[Acts::on("", "Node")],
    // A block has an address for every pod of a node, because kwok counts past its end, and none that kwok gives to
    // pods of nodes without a CIDR (`e2e/kwok/config.yaml`).
    needed_flags: &[
        "--allocate-node-cidrs=true",
        "--cluster-cidr=10.64.0.0/10",
        "--node-cidr-mask-size=20",
        "--service-cluster-ip-range=10.0.0.0/16",
    ],
    ..Facts::NONE
};
