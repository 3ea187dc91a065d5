//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Finalizer, Names, Queue};

pub const CLAIMS: Queue = Queue::of("PersistentVolumeClaim", "claims");
pub const VOLUMES: Queue = Queue::of("PersistentVolume", "volumes");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "persistentvolume-binder-operator",
        controller: "persistentvolume-binder-controller",
        event_source: "persistentvolume-controller",
    },
    queues: &[CLAIMS, VOLUMES],
    finalizers: &[Finalizer { name: "kubernetes.io/pv-controller", once: "once the folder of the volume is deleted" }],
    acts_on: &[Acts::keeps("", "PersistentVolumeClaim"), Acts::keeps("", "PersistentVolume")],
    ..Facts::NONE
};
