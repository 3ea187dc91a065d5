//! Upstream's metrics of this controller.
//!
//! Upstream: `pkg/controller/podautoscaler/monitor/metrics.go`.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use shared::api::object::Key;
use shared::process::metrics::Metrics;

use crate::plan::{ActionLabel, ErrorLabel, Tally};

type Labels<const N: usize> = [(&'static str, String); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;
type Histograms<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

/// The metrics of this operator alone; cheap to clone.
#[derive(Clone)]
pub struct AutoscalerMetrics {
    reconciliations: Counters<2>,
    reconciliation_duration: Histograms<2>,
    computations: Counters<3>,
    computation_duration: Histograms<3>,
    autoscalers: Gauge,
    desired_replicas: Family<Labels<2>, Gauge>,
}

impl AutoscalerMetrics {
    pub fn register(metrics: &Metrics) -> Self {
        let buckets: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, 15));
        let own = Self {
            reconciliations: Family::default(),
            reconciliation_duration: Family::new_with_constructor(buckets),
            computations: Family::default(),
            computation_duration: Family::new_with_constructor(buckets),
            autoscalers: Gauge::default(),
            desired_replicas: Family::default(),
        };
        metrics.register(
            "horizontal_pod_autoscaler_controller_reconciliations",
            "Number of reconciliations of HPA controller. The label 'action' should be either 'scale_down', \
             'scale_up', or 'none'. Also, the label 'error' should be either 'spec', 'internal', or 'none'. Note that \
             if both spec and internal errors happen during a reconciliation, the first one to occur is reported in \
             `error` label",
            own.reconciliations.clone(),
        );
        metrics.register(
            "horizontal_pod_autoscaler_controller_reconciliation_duration_seconds",
            "The time(seconds) that the HPA controller takes to reconcile once. The label 'action' should be either \
             'scale_down', 'scale_up', or 'none'. Also, the label 'error' should be either 'spec', 'internal', or \
             'none'. Note that if both spec and internal errors happen during a reconciliation, the first one to occur \
             is reported in `error` label",
            own.reconciliation_duration.clone(),
        );
        metrics.register(
            "horizontal_pod_autoscaler_controller_metric_computation",
            "Number of metric computations. The label 'action' should be either 'scale_down', 'scale_up', or 'none'. \
             Also, the label 'error' should be either 'spec', 'internal', or 'none'. The label 'metric_type' \
             corresponds to HPA.spec.metrics[*].type",
            own.computations.clone(),
        );
        metrics.register(
            "horizontal_pod_autoscaler_controller_metric_computation_duration_seconds",
            "The time(seconds) that the HPA controller takes to calculate one metric. The label 'action' should be \
             either 'scale_down', 'scale_up', or 'none'. The label 'error' should be either 'spec', 'internal', or \
             'none'. The label 'metric_type' corresponds to HPA.spec.metrics[*].type",
            own.computation_duration.clone(),
        );
        metrics.register(
            "horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers",
            "Current number of controlled HPA objects",
            own.autoscalers.clone(),
        );
        metrics.register(
            "horizontal_pod_autoscaler_controller_desired_replicas",
            "Current desired replica count for HPA objects",
            own.desired_replicas.clone(),
        );
        own
    }

    pub(crate) fn observe_sync(&self, action: ActionLabel, error: ErrorLabel, took: Duration) {
        let labels = [("action", of_action(action)), ("error", of_error(error))];
        self.reconciliations.get_or_create(&labels).inc();
        self.reconciliation_duration.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts the result of a metric; all metrics of one sync are read together and take the same time.
    pub(crate) fn observe_computation(&self, tally: Tally, took: Duration) {
        let Tally { type_, action, error } = tally;
        let labels = [("action", of_action(action)), ("error", of_error(error)), ("metric_type", type_)];
        self.computations.get_or_create(&labels).inc();
        self.computation_duration.get_or_create(&labels).observe(took.as_secs_f64());
    }

    pub(crate) fn observe_desired(&self, autoscaler: &Key, replicas: i32) {
        self.desired_replicas.get_or_create(&of_autoscaler(autoscaler)).set(replicas.into());
    }

    pub(crate) fn count_added(&self) {
        self.autoscalers.inc();
    }

    pub(crate) fn count_deleted(&self, autoscaler: &Key) {
        self.autoscalers.dec();
        self.desired_replicas.remove(&of_autoscaler(autoscaler));
    }
}

fn of_autoscaler(key: &Key) -> Labels<2> {
    [("namespace", key.namespace().to_owned()), ("hpa_name", key.name().to_owned())]
}

fn of_action(action: ActionLabel) -> String {
    let label = match action {
        ActionLabel::ScaleUp => "scale_up",
        ActionLabel::ScaleDown => "scale_down",
        ActionLabel::None => "none",
    };
    label.to_owned()
}

fn of_error(error: ErrorLabel) -> String {
    let label = match error {
        ErrorLabel::Spec => "spec",
        ErrorLabel::Internal => "internal",
        ErrorLabel::None => "none",
    };
    label.to_owned()
}
