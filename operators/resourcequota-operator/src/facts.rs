//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Memory, Names, Queue};

pub const QUEUE: Queue = Queue::of("ResourceQuota", "resourcequota_primary");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "resourcequota-operator",
        controller: "resourcequota-controller",
        event_source: "resourcequota-controller",
    },
    queues: &[QUEUE],
    // Quotas without usage are edits in the first queue; changed resources have no queue.
    queues_without: &["resourcequota_priority", "resource_quota_controller_resource_changes"],
    acts_on: &[Acts::keeps_with_status("", "ResourceQuota")],
    // It records an event only while a kind cannot be read, which would hold up the other lives of the cluster.
    rights_without_request: &["create events", "patch events"],
    memory: Some(Memory {
        keeps: "pods and what else a quota limits, in its namespaces",
        bytes: "720 a pod",
        request: "32Mi",
        limit: "256Mi",
    }),
    ..Facts::NONE
};
