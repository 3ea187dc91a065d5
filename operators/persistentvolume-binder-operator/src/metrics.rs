//! Upstream's metrics of this controller, under upstream's names.
//!
//! Upstream: `pkg/controller/volume/persistentvolume/metrics/metrics.go`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::ConstGauge;
use shared::api::intern::Text;
use shared::process::metrics::Metrics;

use crate::observe::Caches;
use crate::status::Phase;

const CLASSES_GIVEN: &str = "retroactive_storageclass";
const CLASSES_NOT_GIVEN: &str = "retroactive_storageclass_errors";
const VOLUMES: &str = "pv_collector_total_pv_count";
const BOUND_VOLUMES: &str = "pv_collector_bound_pv_count";
const UNBOUND_VOLUMES: &str = "pv_collector_unbound_pv_count";
const BOUND_CLAIMS: &str = "pv_collector_bound_pvc_count";
const UNBOUND_CLAIMS: &str = "pv_collector_unbound_pvc_count";

#[derive(Clone)]
pub(crate) struct BinderMetrics {
    classes_given: Counter,
    classes_not_given: Counter,
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
        Self { classes_given, classes_not_given }
    }

    /// Upstream: `RecordRetroactiveStorageClassMetric`.
    pub(crate) fn gave_class(&self, is_stored: bool) {
        self.classes_given.inc();
        if !is_stored {
            self.classes_not_given.inc();
        }
    }
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
    use serde_json::json;
    use shared::testing::{object, store};

    use super::*;
    use crate::flags::tests::read;
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
