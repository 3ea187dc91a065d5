//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Finalizer, Names, Queue};

pub const QUEUE: Queue = Queue::of("PersistentVolume", "pvprotection");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "persistentvolume-protection-operator",
        controller: "persistentvolume-protection-controller",
        event_source: "persistentvolume-protection-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::on("", "PersistentVolume")],
    finalizers: &[Finalizer { name: "kubernetes.io/pv-protection", once: "once the volume is not bound to a claim" }],
    ..Facts::NONE
};
