//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Exception, Facts, Finalizer, Lack, Memory, Names, Queue, Which};

pub const JOBS: Queue = Queue::of("Job", "job");
pub const ORPHANS: Queue = Queue::of("Pod", "job_orphan_pod");
pub const UNSEEN: Queue = Queue::other("job_unseen_pod");

pub const FACTS: Facts = Facts {
    names: Names { operator: "job-operator", controller: "job-controller", event_source: "job-controller" },
    queues: &[JOBS, ORPHANS, UNSEEN],
    acts_on: &[
        Acts::keeps_with_status("batch", "Job"),
        Acts::on("", "Pod").only(Which::WithFinalizer("batch.kubernetes.io/job-tracking")),
    ],
    finalizers: &[Finalizer { name: "batch.kubernetes.io/job-tracking", once: "" }],
    exceptions: &[Exception {
        file: "controller/unseen_pods.rs",
        lacks: &[Lack::Record, Lack::Key, Lack::Preview],
        why: "it looks at all pods together, and the sync of each pod that it finds records its own decision",
    }],
    memory: Some(Memory {
        keeps: "pods of Jobs, while a Job has not ended; Jobs",
        bytes: "430 a pod, 6,700 a Job",
        request: "32Mi",
        limit: "448Mi",
    }),
    ..Facts::NONE
};
