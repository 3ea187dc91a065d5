//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Finalizer, Memory, Names, Queue, Which};

pub const QUEUE: Queue = Queue::of("Service", "service");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "service-lb-operator",
        controller: "service-lb-controller",
        event_source: "service-controller",
    },
    queues: &[QUEUE],
    // Nodes lead to syncs of Services here.
    queues_without: &["node"],
    acts_on: &[Acts::on("", "Service").only(Which::WithText("/spec/type", "LoadBalancer"))],
    finalizers: &[Finalizer {
        name: "service.kubernetes.io/load-balancer-cleanup",
        once: "once its load balancer is deleted",
    }],
    // Each call carries all nodes. During a call, memory holds them three times.
    memory: Some(Memory {
        keeps: "nodes with what a provider reads, while a Service wants a load balancer; such Services",
        bytes: "taken as 4,000 a node, and at most 128 KiB a Service",
        request: "32Mi",
        limit: "192Mi",
    }),
    needed_flags: &["--cloud-provider-endpoint={cloud}"],
    // For address pools, which its life does not have.
    rights_without_request: &["list configmaps", "watch configmaps", "list namespaces", "watch namespaces"],
    ..Facts::NONE
};
