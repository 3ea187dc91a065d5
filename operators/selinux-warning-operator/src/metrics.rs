//! Upstream's metric of this controller, under upstream's name.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::memory::{Conflict, Volumes};

const NAME: &str = "selinux_warning_controller_selinux_volume_conflict";

/// A scrape shows at most this many conflicts: a user can make a million with a thousand pods.
const CONFLICTS_MAX: usize = 10_000;

/// The conflicts that there are at each scrape.
///
/// Upstream: `collector`, `pkg/controller/volume/selinuxwarning/metrics.go`.
#[derive(Debug)]
pub(crate) struct Conflicts(pub(crate) Arc<Volumes>);

impl Collector for Conflicts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let conflicts = self.0.conflicts(CONFLICTS_MAX);
        if conflicts.is_empty() {
            return Ok(());
        }
        let help = "Conflict between two Pods using the same volume";
        let mut family = encoder.encode_descriptor(NAME, help, None, MetricType::Gauge)?;
        for Conflict { property, pod, value, other, other_value } in &conflicts {
            let labels = [
                ("property", property.name()),
                ("pod1_namespace", pod.namespace()),
                ("pod1_name", pod.name()),
                ("pod1_value", value),
                ("pod2_namespace", other.namespace()),
                ("pod2_name", other.name()),
                ("pod2_value", other_value),
            ];
            ConstGauge::new(1).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use shared::api::object::Key;
    use shared::process::metrics::Metrics;
    use shared::testing::uid;

    use super::*;
    use crate::objects::label::{ChangePolicy, Label, Usage};
    use crate::objects::volume::Disk;

    #[test]
    fn a_conflict_is_shown_from_both_sides_under_upstreams_name() {
        let (registry, volumes) = (Metrics::new("selinux-warning-operator"), Arc::new(Volumes::default()));
        registry.register_collector(Conflicts(Arc::clone(&volumes)));
        assert!(!registry.to_text().contains(NAME));
        let disk = Disk { name: "kubernetes.io/csi/d^1".into(), driver: Some("d".into()) };
        for (pod, level) in [("a", "s0:c1"), ("b", "s0:c2")] {
            let usage = Usage::new(&Label::new(&format!(":::{level}")), ChangePolicy::MountOption, true);
            volumes.add(&Key::new("default", pod), uid(pod), &disk, usage);
        }
        let text = registry.to_text();
        for (pod, value, other, other_value) in [("a", ":::s0:c1", "b", ":::s0:c2"), ("b", ":::s0:c2", "a", ":::s0:c1")]
        {
            let of_pod = |n: u8, pod: &str, value: &str| {
                format!("pod{n}_namespace=\"default\",pod{n}_name=\"{pod}\",pod{n}_value=\"{value}\"")
            };
            let (one, two) = (of_pod(1, pod, value), of_pod(2, other, other_value));
            let line = format!("{NAME}{{property=\"SELinuxLabel\",{one},{two}}} 1\n");
            assert!(text.contains(&line), "{line}{text}");
        }
    }
}
