//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, KnownDifference, Memory, Names, Queue};

pub const QUEUE: Queue = Queue::of("CronJob", "cronjob");

pub const FACTS: Facts = Facts {
    names: Names { operator: "cronjob-operator", controller: "cronjob-controller", event_source: "cronjob-controller" },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps_with_status("batch", "CronJob")],
    differences: &[KnownDifference {
        resource: "cronjobs.batch/status",
        paths: &["status.active"],
        decided: " is missing; ",
        sentence: "An active Job whose name now belongs to another Job leaves the status.",
    }],
    memory: Some(Memory {
        keeps: "CronJobs with their job templates; Jobs of their namespaces",
        bytes: "at most 64 KiB a job template",
        request: "16Mi",
        limit: "320Mi",
    }),
    ..Facts::NONE
};
