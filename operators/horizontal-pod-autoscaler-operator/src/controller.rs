//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::explain::{Stage, Subject};
use shared::api::object::{Key, Kind};
use shared::process::run::{Names, Operator, Setup};
use shared::transport::clock::instant;
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

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
use changes::{NEXT_PERIOD, autoscaler_changed, note_change};

pub struct HorizontalPodAutoscalerOperator;

impl Operator for HorizontalPodAutoscalerOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let period = flags.horizontal_pod_autoscaler_sync_period.0;
        // As upstream, a failed sync waits for the next period too.
        let queue = setup.queue(QUEUE.name, Backoff { first: period, max: period });
        let ctx = setup.context(&queue);
        let (caches, Informers { mut horizontal_pod_autoscalers }) = Caches::new();
        let caches = Arc::new(caches);
        let metrics = AutoscalerMetrics::register(setup.metrics());
        let effects = setup.effects(&queue);
        horizontal_pod_autoscalers.on_change(effects.with(move |change| autoscaler_changed(change, period)));
        let (memory, counted) = (Arc::clone(&caches.memory), metrics.clone());
        horizontal_pod_autoscalers.on_change(move |change| note_change(&memory, &counted, change));
        let restored = Arc::clone(&caches);
        setup.on_restore(move || restored.start_over());
        setup.watch(horizontal_pod_autoscalers);
        let writer = Writer { ctx: ctx.clone(), memory: Arc::clone(&caches.memory) };
        let controller = AutoscalerController { caches, writer, config: Config::from(flags), period, metrics, ctx };
        setup.work(Arc::new(controller), &queue, flags.concurrent_horizontal_pod_autoscaler_syncs);
    }
}

struct AutoscalerController {
    caches: Arc<Caches>,
    writer: Writer,
    config: Config,
    period: Duration,
    metrics: AutoscalerMetrics,
    ctx: ControllerContext,
}

impl Controller for AutoscalerController {
    /// Upstream: `reconcileAutoscaler`, `pkg/controller/podautoscaler/horizontal.go`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(known) = self.caches.observe(key) else {
            self.ctx.forget(key, None);
            return Ok(Requeue::Done);
        };
        let began = self.ctx.now();
        self.ctx.decide(key, &plan_scale(&known));
        let mut observed = live_scale(self.ctx.control(), &self.caches, known).await;
        let measuring = self.ctx.now();
        if let Some(live_read) = plan_metrics(&observed, &self.config) {
            self.ctx.decide(key, &live_read);
            observed = live_measures(self.ctx.control(), &self.caches, observed).await;
        }
        let now = self.ctx.now();
        let plan = plan(&observed, &self.config, (now, instant()));
        self.ctx.decide(key, &plan);

        let mut outcome = self.writer.apply(&observed, plan).await;
        if let Some(error) = outcome.error.take() {
            return Err(error);
        }
        let written = match next_status(&observed.autoscaler, &outcome, self.ctx.now()) {
            Some(status) => self.writer.write_status(&observed.autoscaler, &status).await,
            None => Ok(()),
        };
        let (measured, took) = (elapsed(measuring, now), elapsed(began, self.ctx.now()));
        let failure = self.count(&observed.autoscaler, outcome, written.is_ok(), (measured, took));
        written?;
        if let Some(Failure { message, is_spec: _ }) = failure {
            // Events tell users of it. A retry before the next period would not help.
            tracing::warn!(%key, error = message, "autoscaling incomplete");
        }
        Ok(Requeue::After(self.period, NEXT_PERIOD))
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&HorizontalPodAutoscaler::RESOURCE)
    }

    /// Every sync reads the scale before it decides.
    fn preview(&self, key: &Key) -> Vec<Stage> {
        let known = self.caches.observe(key);
        known.iter().map(|known| stage(&plan_scale(known))).collect()
    }
}

impl AutoscalerController {
    /// Counts a sync in upstream's metrics, and returns its failure.
    fn count(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
        outcome: Outcome,
        is_written: bool,
        (measured, took): (Duration, Duration),
    ) -> Option<Failure> {
        if let Some(desired) = outcome.desired().filter(|_| self.caches.memory.knows(autoscaler)) {
            self.metrics.observe_desired(&autoscaler.metadata.key, desired);
        }
        let action = outcome.action();
        let Outcome { conditions: _, drops_scaled_to_zero: _, result: _, tallies, failure, error: _ } = outcome;
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
