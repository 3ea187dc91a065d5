//! Upstream's metrics of this controller, under upstream's names.

use prometheus_client::metrics::counter::Counter;
use shared::process::metrics::Metrics;

const ATTEMPTS: &str = "ephemeral_volume_controller_create";
const FAILURES: &str = "ephemeral_volume_controller_create_failures";
// Upstream's text for both.
const HELP: &str = "Number of PersistentVolumeClaim creation requests";

/// Upstream: `EphemeralVolumeCreateAttempts` and `EphemeralVolumeCreateFailures`,
/// `pkg/controller/volume/ephemeral/metrics/metrics.go`.
#[derive(Clone)]
pub(crate) struct ClaimMetrics {
    attempts: Counter,
    failures: Counter,
}

impl ClaimMetrics {
    pub(crate) fn register(metrics: &Metrics) -> Self {
        let (attempts, failures) = (Counter::default(), Counter::default());
        metrics.register(ATTEMPTS, HELP, attempts.clone());
        metrics.register(FAILURES, HELP, failures.clone());
        Self { attempts, failures }
    }

    pub(crate) fn observe(&self, succeeded: bool) {
        self.attempts.inc();
        if !succeeded {
            self.failures.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_upstreams() {
        let registry = Metrics::new("ephemeral-volume-operator");
        let metrics = ClaimMetrics::register(&registry);
        metrics.observe(true);
        metrics.observe(false);
        let text = registry.to_text();
        for line in
            ["ephemeral_volume_controller_create_total 2\n", "ephemeral_volume_controller_create_failures_total 1\n"]
        {
            assert!(text.contains(line), "{line}{text}");
        }
    }
}
