//! What the plugin, the suite and `tidy` read about this operator.

use shared::api::facts::{Acts, Facts, Names, Queue};

/// The keys are migrations, whose objects are rewritten.
pub const MIGRATIONS: Queue = Queue::of("StorageVersionMigration", "storage-version-migrator-controller");
/// The keys are resources, of which each has one running migration.
pub const RESOURCES: Queue = Queue::other("resource-version-controller");

pub const FACTS: Facts = Facts {
    names: Names {
        operator: "storage-version-migrator-operator",
        controller: "storage-version-migrator-controller",
        event_source: "storage-version-migrator-controller",
    },
    queues: &[MIGRATIONS, RESOURCES],
    acts_on: &[Acts::keeps("storagemigration.k8s.io", "StorageVersionMigration")],
    ..Facts::NONE
};
