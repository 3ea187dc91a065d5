//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue};

pub const QUEUE: Queue = Queue::of("StorageVersion", "storage_version_garbage_collector_storageversions");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "storageversion-garbage-collector-operator",
        controller: "storageversion-garbage-collector-controller",
        event_source: "storageversion-garbage-collector-controller",
    },
    queues: &[QUEUE],
    // A Lease that is gone leads to the keys of the StorageVersions that name its apiserver.
    queues_without: &["storage_version_garbage_collector_leases"],
    acts_on: &[Acts::keeps("internal.apiserver.k8s.io", "StorageVersion")],
    ..Facts::NONE
};
