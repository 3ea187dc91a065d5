//! Upstream's metrics of this controller, under upstream's names.
//!
//! Upstream: `pkg/controller/volume/persistentvolume/metrics/metrics.go`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use shared::api::intern::Text;
use shared::process::metrics::{BareCounter, Metrics};

use crate::objects::volume::{HOST_PATH, PersistentVolume};
use crate::observe::Caches;
use crate::plan::edits::Operation;
use crate::plan::reclaim;
use crate::status::Phase;

const CLASSES_GIVEN: &str = "retroactive_storageclass";
const CLASSES_NOT_GIVEN: &str = "retroactive_storageclass_errors";
const VOLUMES: &str = "pv_collector_total_pv_count";
const BOUND_VOLUMES: &str = "pv_collector_bound_pv_count";
const UNBOUND_VOLUMES: &str = "pv_collector_unbound_pv_count";
const BOUND_CLAIMS: &str = "pv_collector_bound_pvc_count";
const UNBOUND_CLAIMS: &str = "pv_collector_unbound_pvc_count";

const FAILURES: &str = "volume_operation_errors";
/// Deprecated since 1.36.
const FORMER_FAILURES: &str = "volume_operation_total_errors";
const DURATIONS: &str = "volume_operation_total_seconds";
const FOLDER_DURATIONS: &str = "storage_operation_duration_seconds";

/// Upstream: `pkg/volume/util/metrics.go`.
const BUCKETS: [f64; 13] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 25.0, 50.0, 120.0, 300.0, 600.0];

type Labels = [(&'static str, String); 2];
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Clone)]
pub(crate) struct BinderMetrics {
    classes_given: Counter,
    classes_not_given: Counter,
    failures: Family<Labels, Counter>,
    former_failures: Family<Labels, BareCounter>,
    durations: Histograms<Labels>,
    folder_durations: Histograms<[(&'static str, &'static str); 4]>,
}

impl BinderMetrics {
    pub(crate) fn register(metrics: &Metrics) -> Self {
        let (classes_given, classes_not_given) = (Counter::default(), Counter::default());
        metrics.register(
            CLASSES_GIVEN,
            "Total number of retroactive StorageClass assignments to persistent volume claim",
            classes_given.clone(),
        );
        metrics.register(
            CLASSES_NOT_GIVEN,
            "Total number of failed retroactive StorageClass assignments to persistent volume claim",
            classes_not_given.clone(),
        );
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS);
        let (failures, former_failures) = (Family::default(), Family::default());
        let durations = Histograms::<Labels>::new_with_constructor(histogram);
        let folder_durations = Histograms::<[_; 4]>::new_with_constructor(histogram);
        let help = "Total volume operation errors";
        metrics.register(FAILURES, help, failures.clone());
        metrics.register(FORMER_FAILURES, help, former_failures.clone());
        metrics.register(DURATIONS, "Storage operation end to end duration in seconds", durations.clone());
        metrics.register(FOLDER_DURATIONS, "Storage operation duration", folder_durations.clone());
        Self { classes_given, classes_not_given, failures, former_failures, durations, folder_durations }
    }

    /// Upstream: `RecordVolumeOperationErrorMetric`.
    pub(crate) fn failed(&self, plugin: &str, operation: Operation) {
        let labels = labels(plugin, operation);
        self.failures.get_or_create(&labels).inc();
        self.former_failures.get_or_create(&labels).inc();
    }

    /// A volume is gone that was to be deleted.
    ///
    /// Upstream: `deleteVolume`.
    pub(crate) fn deleted(&self, volume: &PersistentVolume, now: Timestamp) {
        if !volume.is_given_back() || volume.spec.reclaim_policy != "Delete" || volume.migrated_to().is_some() {
            return;
        }
        let Some(since) = volume.phase_since() else { return };
        let labels = labels(reclaim::plugin_of_deletion(volume).unwrap_or("N/A"), Operation::Delete);
        self.durations.get_or_create(&labels).observe(now.duration_since(since.timestamp()).as_secs_f64().max(0.0));
    }

    /// Upstream: `OperationCompleteHook`, `pkg/volume/util/metrics.go`.
    pub(crate) fn removed_folder(&self, is_removed: bool, took: Duration) {
        let labels = [
            ("volume_plugin", HOST_PATH),
            ("operation_name", "volume_delete"),
            ("status", if is_removed { "success" } else { "fail-unknown" }),
            ("migrated", "false"),
        ];
        self.folder_durations.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Upstream: `RecordRetroactiveStorageClassMetric`.
    pub(crate) fn gave_class(&self, is_stored: bool) {
        self.classes_given.inc();
        if !is_stored {
            self.classes_not_given.inc();
        }
    }
}

fn labels(plugin: &str, operation: Operation) -> Labels {
    [("plugin_name", plugin.to_owned()), ("operation_name", operation.as_str().to_owned())]
}

/// The claims and volumes of the caches, counted at each scrape.
///
/// Upstream: `pvAndPVCCountCollector`.
pub(crate) struct Counts(Weak<Caches>);

impl Counts {
    /// The registry may outlive the controller whose caches these are.
    pub(crate) fn new(caches: &Arc<Caches>) -> Self {
        Self(Arc::downgrade(caches))
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counts")
    }
}

type Counted<const N: usize> = BTreeMap<[Text; N], i64>;

impl Collector for Counts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(caches) = self.0.upgrade() else { return Ok(()) };
        let (mut all, mut of_classes) = (Counted::<2>::new(), [Counted::<1>::new(), Counted::<1>::new()]);
        for volume in caches.persistent_volumes.all() {
            let mode = Text::new(&volume.volume_mode().to_string());
            *all.entry([Text::new(volume.plugin().unwrap_or("N/A")), mode]).or_default() += 1;
            let [bound, unbound] = &mut of_classes;
            let counted = if *volume.phase() == Phase::Bound.as_str() { bound } else { unbound };
            *counted.entry([volume.spec_class().clone()]).or_default() += 1;
        }
        let mut of_claims = [Counted::<3>::new(), Counted::<3>::new()];
        for claim in caches.persistent_volume_claims.all() {
            let labels =
                [Text::new(claim.metadata.namespace()), claim.class().clone(), Text::new(claim.attributes_class())];
            let [bound, unbound] = &mut of_claims;
            let counted = if claim.status.phase == Phase::Bound.as_str() { bound } else { unbound };
            *counted.entry(labels).or_default() += 1;
        }
        let help = "Gauge measuring total number of persistent volumes";
        write(&mut encoder, (VOLUMES, help), ["plugin_name", "volume_mode"], &all)?;
        let [bound, unbound] = &of_classes;
        let help = "Gauge measuring number of persistent volume currently bound";
        write(&mut encoder, (BOUND_VOLUMES, help), ["storage_class"], bound)?;
        let help = "Gauge measuring number of persistent volume currently unbound";
        write(&mut encoder, (UNBOUND_VOLUMES, help), ["storage_class"], unbound)?;
        let ([bound, unbound], labels) = (&of_claims, ["namespace", "storage_class", "volume_attributes_class"]);
        let help = "Gauge measuring number of persistent volume claim currently bound";
        write(&mut encoder, (BOUND_CLAIMS, help), labels, bound)?;
        let help = "Gauge measuring number of persistent volume claim currently unbound";
        write(&mut encoder, (UNBOUND_CLAIMS, help), labels, unbound)
    }
}

fn write<const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    labels: [&'static str; N],
    counted: &Counted<N>,
) -> fmt::Result {
    if counted.is_empty() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (values, number) in counted {
        let labels: Vec<_> = labels.into_iter().zip(values.iter().map(Text::as_str)).collect();
        ConstGauge::new(*number).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::json;
    use shared::testing::{NOW, object, store};

    use super::*;
    use crate::flags::tests::read;
    use crate::objects::MIGRATED_TO;
    use crate::objects::recycler::Recyclers;

    /// Upstream: `TestMetricVolumeCount`, and `pvAndPVCCountCollector`.
    #[test]
    fn claims_and_volumes_are_counted_under_upstreams_names() {
        let caches = Arc::new(Caches::new(Recyclers::from(&read(&[]).unwrap())).0);
        let registry = Metrics::new("persistentvolume-binder-operator");
        registry.register_collector(Counts::new(&caches));
        assert!(!registry.to_text().contains("pv_collector"), "there is nothing");
        for (name, source, phase) in [("a", "hostPath", "Bound"), ("b", "hostPath", "Available"), ("c", "csi", "Bound")]
        {
            let spec = json!({ source: {}, "storageClassName": "fast" });
            let volume = object("v1", "PersistentVolume", name).namespace("").set(&["spec"], spec);
            store(&caches.persistent_volumes, &volume.phase(phase).build());
        }
        for (name, phase) in [("a", "Bound"), ("b", "Pending"), ("c", "Lost")] {
            let spec = json!({ "storageClassName": "fast", "volumeAttributesClassName": "gold" });
            let claim = object("v1", "PersistentVolumeClaim", name).set(&["spec"], spec);
            store(&caches.persistent_volume_claims, &claim.phase(phase).build());
        }
        let text = registry.to_text();
        let labels = "{namespace=\"default\",storage_class=\"fast\",volume_attributes_class=\"gold\"}";
        for line in [
            format!("{VOLUMES}{{plugin_name=\"kubernetes.io/host-path\",volume_mode=\"Filesystem\"}} 2\n"),
            format!("{VOLUMES}{{plugin_name=\"N/A\",volume_mode=\"Filesystem\"}} 1\n"),
            format!("{BOUND_VOLUMES}{{storage_class=\"fast\"}} 2\n"),
            format!("{UNBOUND_VOLUMES}{{storage_class=\"fast\"}} 1\n"),
            format!("{BOUND_CLAIMS}{labels} 1\n"),
            format!("{UNBOUND_CLAIMS}{labels} 2\n"),
        ] {
            assert!(text.contains(&line), "{line}{text}");
        }
    }

    #[test]
    fn operations_of_plugins_are_counted_under_upstreams_names() {
        let registry = Metrics::new("persistentvolume-binder-operator");
        let metrics = BinderMetrics::register(&registry);
        metrics.failed("csi.example.com", Operation::Provision);
        metrics.failed(HOST_PATH, Operation::Delete);
        metrics.removed_folder(true, Duration::from_millis(200));
        metrics.removed_folder(false, Duration::from_secs(2));
        let volume = |policy: &str, phase: &str, source: &str| {
            let spec = json!({ source: { "driver": "csi.example.com" }, "persistentVolumeReclaimPolicy": policy });
            let volume = object("v1", "PersistentVolume", "a").namespace("").set(&["spec"], spec).phase(phase);
            let since = NOW - SignedDuration::from_secs(4);
            volume.set(&["status", "lastPhaseTransitionTime"], since.to_string())
        };
        for (policy, phase, source) in [
            ("Delete", "Released", "csi"),
            ("Delete", "Failed", "hostPath"),
            ("Delete", "Released", "fc"),
            ("Delete", "Bound", "csi"),
            ("Retain", "Released", "csi"),
        ] {
            metrics.deleted(&volume(policy, phase, source).build(), NOW);
        }
        let migrated = volume("Delete", "Released", "csi").annotation(MIGRATED_TO, "csi.example.com");
        metrics.deleted(&migrated.build(), NOW);
        let text = registry.to_text();
        let of = |plugin: &str, operation: &str| format!("plugin_name=\"{plugin}\",operation_name=\"{operation}\"");
        let mut expected: Vec<String> = [of("csi.example.com", "provision"), of(HOST_PATH, "delete")]
            .into_iter()
            .flat_map(|labels| {
                [format!("{FAILURES}_total{{{labels}}} 1\n"), format!("{FORMER_FAILURES}{{{labels}}} 1\n")]
            })
            .collect();
        for plugin in ["csi.example.com", HOST_PATH, "N/A"] {
            let labels = of(plugin, "delete");
            expected.push(format!("{DURATIONS}_sum{{{labels}}} 4.0\n"));
            expected.push(format!("{DURATIONS}_count{{{labels}}} 1\n"));
            expected.push(format!("{DURATIONS}_bucket{{le=\"2.5\",{labels}}} 0\n"));
            expected.push(format!("{DURATIONS}_bucket{{le=\"5.0\",{labels}}} 1\n"));
        }
        for (status, sum) in [("success", "0.2"), ("fail-unknown", "2.0")] {
            expected.push(format!(
                "{FOLDER_DURATIONS}_sum{{volume_plugin=\"{HOST_PATH}\",operation_name=\"volume_delete\",status=\"{status}\",migrated=\"false\"}} {sum}\n"
            ));
        }
        for line in expected {
            assert!(text.contains(&line), "{line}{text}");
        }
    }

    #[test]
    fn a_class_that_was_not_stored_counts_as_an_error_too() {
        let registry = Metrics::new("persistentvolume-binder-operator");
        let metrics = BinderMetrics::register(&registry);
        metrics.gave_class(true);
        metrics.gave_class(false);
        let text = registry.to_text();
        for line in [format!("{CLASSES_GIVEN}_total 2\n"), format!("{CLASSES_NOT_GIVEN}_total 1\n")] {
            assert!(text.contains(&line), "{line}{text}");
        }
    }
}
