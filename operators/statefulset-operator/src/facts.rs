//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, KnownDifference, Memory, Names, Queue};

pub const QUEUE: Queue = Queue::of("StatefulSet", "statefulset");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "statefulset-operator",
        controller: "statefulset-controller",
        event_source: "statefulset-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps_with_status("apps", "StatefulSet")],
    differences: &[
        KnownDifference {
            resource: "pods/eviction",
            paths: &[],
            decided: "evict ",
            sentence: "A pod of an earlier revision that was never ready is evicted where its StatefulSet has the \
                       annotation `statefulset.operators.local/replace-stuck-pods: \"true\"`.",
        },
        KnownDifference {
            resource: "statefulsets.apps/status",
            paths: &["status.currentReplicas", "status.currentRevision"],
            decided: " available, ",
            sentence: "With `OnDelete`, `currentRevision` is the update revision once all pods are of it and ready.",
        },
    ],
    memory: Some(Memory {
        keeps: "pods of namespaces with a StatefulSet; StatefulSets and their revisions",
        bytes: "400 a pod, 8,600 a StatefulSet",
        request: "32Mi",
        limit: "256Mi",
    }),
    ..Facts::NONE
};
