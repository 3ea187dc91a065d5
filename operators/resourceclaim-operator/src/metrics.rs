//! Upstream's metrics of this controller, under upstream's names.
//!
//! Upstream: `pkg/controller/resourceclaim/metrics/metrics.go`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use shared::following::cache::Cache;
use shared::process::metrics::Metrics;

use crate::objects::claim::ResourceClaim;

const CREATES: &str = "resourceclaim_controller_creates";
const CLAIMS: &str = "resourceclaim_controller_resource_claims";

type CreateLabels = [(&'static str, &'static str); 2];

/// Upstream: `ResourceClaimCreate`.
#[derive(Clone)]
pub(crate) struct ClaimMetrics {
    creates: Family<CreateLabels, Counter>,
}

impl ClaimMetrics {
    pub(crate) fn register(metrics: &Metrics) -> Self {
        let creates = Family::default();
        let help = "Number of ResourceClaims creation requests, categorized by creation status and admin access";
        metrics.register(CREATES, help, creates.clone());
        Self { creates }
    }

    pub(crate) fn observe_create(&self, succeeded: bool, has_admin_access: bool) {
        let status = if succeeded { "success" } else { "failure" };
        self.creates.get_or_create_owned(&[("status", status), ("admin_access", flag(has_admin_access))]).inc();
    }
}

const fn flag(is_so: bool) -> &'static str {
    if is_so { "true" } else { "false" }
}

/// The number of claims, counted at each scrape: by their allocation, their admin access and their source.
///
/// Upstream: `customCollector`, `pkg/controller/resourceclaim/controller.go`.
pub struct ClaimCounts {
    pub resource_claims: Arc<Cache<ResourceClaim>>,
}

impl fmt::Debug for ClaimCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClaimCounts")
    }
}

/// Where a claim comes from; `""` if a user made it.
fn source(claim: &ResourceClaim) -> &'static str {
    let annotations = &claim.metadata.annotations;
    if annotations.is_for_extended_resources {
        "extended_resource"
    } else if annotations.pod_claim.is_empty() {
        ""
    } else {
        "resource_claim_template"
    }
}

impl Collector for ClaimCounts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut counts: BTreeMap<_, i64> = BTreeMap::new();
        for claim in self.resource_claims.all() {
            let labels = (flag(claim.is_allocated), flag(claim.has_admin_access), source(&claim));
            *counts.entry(labels).or_default() += 1;
        }
        if counts.is_empty() {
            return Ok(());
        }
        let help = "Number of ResourceClaims, categorized by allocation status, admin access, and source. Source can \
                    be 'resource_claim_template' (created from a template), 'extended_resource' (extended resources), \
                    or empty (manually created by a user).";
        let mut family = encoder.encode_descriptor(CLAIMS, help, None, MetricType::Gauge)?;
        for ((allocated, admin_access, source), count) in counts {
            let labels = [("allocated", allocated), ("admin_access", admin_access), ("source", source)];
            ConstGauge::new(count).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creations_are_counted_under_upstreams_name() {
        let registry = Metrics::new("resourceclaim-operator");
        let metrics = ClaimMetrics::register(&registry);
        metrics.observe_create(true, false);
        metrics.observe_create(true, false);
        metrics.observe_create(false, true);
        let text = registry.to_text();
        for line in [
            "resourceclaim_controller_creates_total{status=\"success\",admin_access=\"false\"} 2\n",
            "resourceclaim_controller_creates_total{status=\"failure\",admin_access=\"true\"} 1\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }
}
