//! The progress of migrations. Upstream's controller has no metrics; these have the names of those of
//! `kube-storage-version-migrator`, which it replaces.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use shared::process::metrics::Metrics;

use crate::objects::GroupResource;

type Labels<const N: usize> = [(&'static str, String); N];

/// The metrics of this operator alone; cheap to clone.
#[derive(Clone, Default)]
pub struct MigratorMetrics {
    migrated_objects: Family<Labels<1>, Counter>,
    remaining_objects: Family<Labels<1>, Gauge>,
    migrations: Family<Labels<2>, Counter>,
}

impl MigratorMetrics {
    pub fn register(metrics: &Metrics) -> Self {
        let own = Self::default();
        metrics.register(
            "storage_migrator_core_migrator_migrated_objects",
            "The number of objects that have been migrated, labeled with the full resource name",
            own.migrated_objects.clone(),
        );
        metrics.register(
            "storage_migrator_core_migrator_remaining_objects",
            "The number of objects that still require migration, labeled with the full resource name",
            own.remaining_objects.clone(),
        );
        metrics.register(
            "storage_migrator_core_migrator_migrations",
            "The number of completed migration, labeled with the full resource name, and the status of the migration \
             (failed or succeeded)",
            own.migrations.clone(),
        );
        own
    }

    /// Notes a page whose objects were rewritten, and how many follow.
    pub fn page(&self, resource: &GroupResource, rewritten: usize, left: Option<u64>) {
        let labels = [("resource", resource.to_string())];
        self.migrated_objects.get_or_create(&labels).inc_by(u64::try_from(rewritten).unwrap_or(u64::MAX));
        let left = left.map_or(0, |left| i64::try_from(left).unwrap_or(i64::MAX));
        self.remaining_objects.get_or_create(&labels).set(left);
    }

    /// Notes that a migration has ended; `status` is the type of its condition.
    pub fn ended(&self, resource: &GroupResource, status: &str) {
        let labels = [("resource", resource.to_string()), ("Status", status.to_owned())];
        self.migrations.get_or_create(&labels).inc();
        self.remaining_objects.remove(&[("resource", resource.to_string())]);
    }
}
