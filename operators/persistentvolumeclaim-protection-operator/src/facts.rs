//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Finalizer, Names, Queue};

pub const QUEUE: Queue = Queue::of("PersistentVolumeClaim", "pvcprotection");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "persistentvolumeclaim-protection-operator",
        controller: "persistentvolumeclaim-protection-controller",
        event_source: "persistentvolumeclaim-protection-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::on("", "PersistentVolumeClaim")],
    finalizers: &[Finalizer { name: "kubernetes.io/pvc-protection", once: "once no pod uses the claim" }],
    ..Facts::NONE
};
