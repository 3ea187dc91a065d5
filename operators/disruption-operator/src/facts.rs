//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Exception, Facts, Lack, Memory, Names, Queue, Which};

pub const BUDGETS: Queue = Queue::of("PodDisruptionBudget", "disruption");
pub const STALE_PODS: Queue = Queue::of("Pod", "stale_pod_disruption");
pub const SEARCHES: Queue = Queue::other("stale_pod_disruption_search");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "disruption-operator",
        controller: "disruption-controller",
        event_source: "controllermanager",
    },
    queues: &[BUDGETS, STALE_PODS, SEARCHES],
    // Its rechecks are timers of the first queue.
    queues_without: &["disruption_recheck"],
    acts_on: &[
        Acts::keeps_with_status("policy", "PodDisruptionBudget"),
        Acts::on("", "Pod").only(Which::WithCondition("DisruptionTarget")),
    ],
    exceptions: &[Exception {
        file: "controller/search.rs",
        lacks: &[Lack::Key, Lack::Preview],
        why: "it looks at all pods together, live, and the pods that it finds have keys of their own",
    }],
    memory: Some(Memory {
        keeps: "pods of namespaces with a budget",
        bytes: "420 a pod",
        request: "32Mi",
        limit: "192Mi",
    }),
    ..Facts::NONE
};
