//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Finalizer, Memory, Names, Queue};

pub const CLAIMS: Queue = Queue::of("ResourceClaim", "resource_claim");
/// Upstream has one queue for all three kinds.
pub const PODS: Queue = Queue::of("Pod", "resource_claim_pods");
pub const POD_GROUPS: Queue = Queue::of("PodGroup", "resource_claim_podgroups");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "resourceclaim-operator",
        controller: "resourceclaim-controller",
        event_source: "resource_claim",
    },
    queues: &[CLAIMS, PODS, POD_GROUPS],
    acts_on: &[
        Acts::keeps("resource.k8s.io", "ResourceClaim"),
        Acts::on("", "Pod"),
        Acts::on("scheduling.k8s.io", "PodGroup"),
    ],
    finalizers: &[Finalizer { name: "resource.kubernetes.io/delete-protection", once: "once no pod uses the claim" }],
    rights_without_request: &[
        "get podgroups",
        "get resourceclaimtemplates",
        "list podgroups",
        "patch podgroups/status",
        "patch resourceclaims/binding",
        "watch podgroups",
    ],
    memory: Some(Memory {
        keeps: "claims and their templates; pods of their namespaces",
        bytes: "at most 64 KiB a template",
        request: "32Mi",
        limit: "256Mi",
    }),
    ..Facts::NONE
};
