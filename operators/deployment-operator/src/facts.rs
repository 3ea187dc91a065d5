//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, KnownDifference, Memory, Names, Queue};

pub const QUEUE: Queue = Queue::of("Deployment", "deployment");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "deployment-operator",
        controller: "deployment-controller",
        event_source: "deployment-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps_with_status("apps", "Deployment"), Acts::on("apps", "ReplicaSet")],
    differences: &[KnownDifference {
        resource: "replicasets.apps",
        paths: &[
            "metadata.annotations[deployment.kubernetes.io/desired-replicas]",
            "metadata.annotations[deployment.kubernetes.io/max-replicas]",
        ],
        decided: "scaling",
        sentence: "A Deployment whose only active ReplicaSet has the new size by chance notes that size on it.",
    }],
    memory: Some(Memory {
        keeps: "Deployments and their ReplicaSets",
        bytes: "3,500",
        request: "32Mi",
        limit: "256Mi",
    }),
    ..Facts::NONE
};
