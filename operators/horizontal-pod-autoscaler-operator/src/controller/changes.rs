//! When a changed autoscaler is synced: as upstream, a period after its last sync, and never at once.

use std::time::Duration;

use shared::following::cache::Change;
use shared::working::effect::Effect;

use crate::memory::Memory;
use crate::metrics::AutoscalerMetrics;
use crate::objects::HorizontalPodAutoscaler;

pub(super) const NEXT_PERIOD: &str = "the next sync period";

/// Upstream: `enqueueHPA`, `updateHPA` and `deleteHPA`, `pkg/controller/podautoscaler/horizontal.go`.
pub(super) fn autoscaler_changed(change: Change<'_, HorizontalPodAutoscaler>, period: Duration) -> Vec<Effect> {
    let meta = &change.latest().metadata;
    let key = meta.key.clone();
    match change {
        Change::Added(_) | Change::Updated { .. } => vec![Effect::EnqueueAfter(key, period, NEXT_PERIOD)],
        Change::Deleted(_) => vec![Effect::Forget(key, meta.uid)],
    }
}

/// Counts autoscalers, and forgets deleted ones.
///
/// Upstream: `ObserveHPAAddition` and `ObserveHPADeletion`, `pkg/controller/podautoscaler/monitor/monitor.go`.
pub(super) fn note_change(memory: &Memory, metrics: &AutoscalerMetrics, change: Change<'_, HorizontalPodAutoscaler>) {
    match change {
        Change::Added(_) => metrics.count_added(),
        Change::Updated { .. } => {}
        Change::Deleted(autoscaler) => {
            memory.forget(&autoscaler.metadata.key);
            metrics.count_deleted(&autoscaler.metadata.key);
        }
    }
}
