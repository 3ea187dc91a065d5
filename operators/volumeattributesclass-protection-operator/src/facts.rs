//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Finalizer, Names, Queue};

pub const QUEUE: Queue = Queue::of("VolumeAttributesClass", "vacprotection");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "volumeattributesclass-protection-operator",
        controller: "volumeattributesclass-protection-controller",
        event_source: "volumeattributesclass-protection-controller",
    },
    queues: &[QUEUE],
    acts_on: &[Acts::keeps("storage.k8s.io", "VolumeAttributesClass")],
    finalizers: &[Finalizer {
        name: "kubernetes.io/vac-protection",
        once: "once no volume and no claim names the class",
    }],
    ..Facts::NONE
};
