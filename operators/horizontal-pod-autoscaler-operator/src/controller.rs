//! The operator as a process, and one sync on one screen.
//!
//! Left out: which change enqueues which autoscaler, which is in `changes`.

mod changes;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::queue::Backoff;
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::metrics::AutoscalerMetrics;
use crate::objects::HorizontalPodAutoscaler;
use crate::observe::metrics::live_measures;
use crate::observe::scales::live_scale;
use crate::observe::{Caches, Informers};
use crate::plan::{Config, ErrorLabel, Failure, plan, plan_metrics, plan_scale};
use crate::status::next_status;
use changes::{NEXT_LOOK, autoscaler_changed, count_change};

/// The operator as a process.
pub struct HorizontalPodAutoscalerOperator;

impl Operator for HorizontalPodAutoscalerOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let period = flags.horizontal_pod_autoscaler_sync_period.0;
        // One that failed waits for its next period, too, as upstream.
        let queue = setup.queue(QUEUE.name, Backoff { first: period, max: period });
        let (caches, Informers { mut horizontal_pod_autoscalers }) = Caches::new();
        let caches = Arc::new(caches);
        let metrics = AutoscalerMetrics::register(setup.metrics());
        let effects = setup.effects(&queue);
        horizontal_pod_autoscalers.on_change(effects.of(&caches, move |_, change| autoscaler_changed(change, period)));
        let (known, counted) = (Arc::clone(&caches), metrics.clone());
        horizontal_pod_autoscalers.on_change(move |change| {
            known.note(&change);
            count_change(&counted, &change);
        });
        let known = Arc::clone(&caches);
        setup.on_restore(move || known.start_over());
        setup.watch(horizontal_pod_autoscalers);
        let control = setup.control(&queue);
        let writer = Writer { control, recorder: setup.recorder(), caches: Arc::clone(&caches), clock: setup.clock() };
        let controller = AutoscalerController {
            caches,
            writer,
            config: Config::from(flags),
            period,
            metrics,
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.work(Arc::new(controller), &queue, flags.concurrent_horizontal_pod_autoscaler_syncs);
    }
}

/// Syncs autoscalers.
struct AutoscalerController {
    caches: Arc<Caches>,
    writer: Writer,
    config: Config,
    period: Duration,
    metrics: AutoscalerMetrics,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for AutoscalerController {
    /// Upstream: `reconcileAutoscaler`, `pkg/controller/podautoscaler/horizontal.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(known) = self.caches.observe(key) else {
            self.writer.control.forget(key, None);
            return Ok(Requeue::Done);
        };
        let began = self.clock.now();
        self.decisions.record(began, key, &plan_scale(&known));
        let mut observed = live_scale(&self.writer.control, &self.caches, known).await;
        let measuring = self.clock.now();
        if let Some(live_read) = plan_metrics(&observed, &self.config) {
            self.decisions.record(measuring, key, &live_read);
            observed = live_measures(&self.writer.control, &self.caches, observed).await;
        }
        let now = self.clock.now();
        let plan = plan(&observed, &self.config, now);
        self.decisions.record(now, key, &plan);

        let outcome = self.writer.apply(&observed, plan).await?;

        let written = match next_status(&observed.autoscaler, &outcome, self.clock.now()) {
            Some(status) => self.writer.write_status(&observed.autoscaler, &status).await,
            None => Ok(()),
        };
        let (measured, took) = (elapsed(measuring, now), elapsed(began, self.clock.now()));
        let failure = self.observe(key, outcome, written.is_ok(), (measured, took));
        written?;
        if let Some(Failure { message, is_spec: _ }) = failure {
            // People were told, and the sync itself has done all it could: its next one is due as after any other.
            tracing::warn!(%key, error = message, "not scaled by all metrics");
        }
        Ok(Requeue::After(self.period, NEXT_LOOK))
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&HorizontalPodAutoscaler::RESOURCE)
    }

    /// The scale is read before anything is decided.
    fn preview(&self, key: &Key) -> Vec<Stage> {
        let known = self.caches.observe(key);
        known.iter().map(|known| stage(&plan_scale(known))).collect()
    }
}

impl AutoscalerController {
    /// Shows what was done in upstream's metrics, and gives the error that people were told of.
    fn observe(
        &self,
        key: &Key,
        outcome: Outcome,
        is_written: bool,
        (measured, took): (Duration, Duration),
    ) -> Option<Failure> {
        if let Some(desired) = outcome.desired() {
            self.metrics.observe_desired(key, desired);
        }
        let action = outcome.action();
        let Outcome { conditions: _, drops_scaled_to_zero: _, result: _, tallies, failure } = outcome;
        for tally in tallies {
            self.metrics.observe_computation(tally, measured);
        }
        let error = match &failure {
            Some(Failure { message: _, is_spec: true }) => ErrorLabel::Spec,
            None if is_written => ErrorLabel::None,
            Some(_) | None => ErrorLabel::Internal,
        };
        self.metrics.observe_sync(action, error, took);
        failure
    }
}

fn elapsed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}
