//! When a change of an autoscaler leads to a sync: never at once, but a period after the last one, as upstream.
//!
//! Left out: what is scaled, its pods and its metrics. They are looked at once in a period.

use std::time::Duration;

use shared::runtime::cache::Change;
use shared::runtime::effect::Effect;

use crate::metrics::AutoscalerMetrics;
use crate::objects::HorizontalPodAutoscaler;

/// What the time between two syncs is for.
pub(super) const NEXT_LOOK: &str = "the next look at the metrics";

/// An autoscaler that is new, or was changed, is synced a period later, unless that is due earlier.
///
/// Upstream: `enqueueHPA`, `updateHPA` and `deleteHPA`, `pkg/controller/podautoscaler/horizontal.go`.
pub(super) fn autoscaler_changed(change: Change<'_, HorizontalPodAutoscaler>, period: Duration) -> Vec<Effect> {
    let meta = &change.latest().metadata;
    let key = meta.key.clone();
    match change {
        Change::Added(_) | Change::Updated { .. } => vec![Effect::EnqueueAfter(key, period, NEXT_LOOK)],
        Change::Deleted(_) => vec![Effect::Forget(key, meta.uid)],
    }
}

/// Autoscalers are counted as they come and go.
///
/// Upstream: `ObserveHPAAddition` and `ObserveHPADeletion`, `pkg/controller/podautoscaler/monitor/monitor.go`.
pub(super) fn count_change(metrics: &AutoscalerMetrics, change: &Change<'_, HorizontalPodAutoscaler>) {
    match change {
        Change::Added(_) => metrics.count_added(),
        Change::Updated { .. } => {}
        Change::Deleted(autoscaler) => metrics.count_deleted(&autoscaler.metadata.key),
    }
}
