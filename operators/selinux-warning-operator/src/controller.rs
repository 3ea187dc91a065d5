//! The operator as a process, and one sync on one screen.

pub mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::PODS;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::metrics::Conflicts;
use crate::objects::pod::Pod;
use crate::observe::{Caches, Informers};
use crate::plan::{Plan, plan};
use changes::pod_changed;

/// Upstream's.
const WORKERS: usize = 1;

pub struct SelinuxWarningOperator;

impl Operator for SelinuxWarningOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(_: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, informers) = Caches::new();
        let Informers { mut pods, mut persistent_volume_claims, mut persistent_volumes, mut csi_drivers } = informers;
        let caches = Arc::new(caches);
        let effects = setup.effects(&queue);
        pods.on_change(effects.with(pod_changed));
        persistent_volume_claims.on_change(effects.of(&caches, Caches::claim_changed));
        persistent_volumes.on_change(effects.of(&caches, Caches::volume_changed));
        csi_drivers.on_change(effects.of(&caches, Caches::driver_changed));
        let need = pods.need(Pod::may_mount_with_label);
        setup.watch(pods);
        setup.watch_while(persistent_volume_claims, &need);
        setup.watch_while(persistent_volumes, &need);
        setup.watch_while(csi_drivers, &need);
        let remembered = Arc::clone(&caches.remembered);
        setup.metrics().register_collector(Conflicts(Arc::clone(&remembered)));
        let writer = Writer { ctx: ctx.clone(), remembered };
        setup.work(Arc::new(SelinuxWarningController { caches, writer, ctx }), &queue, WORKERS);
    }
}

struct SelinuxWarningController {
    caches: Arc<Caches>,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for SelinuxWarningController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let plan = plan(&self.caches.observe(key));
        self.ctx.decide(key, &plan);
        Ok(self.writer.apply(key, plan))
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&PODS)
    }

    /// Nothing for a pod without a label and without a conflict: most pods are such.
    fn preview(&self, key: &Key) -> Vec<Stage> {
        let observed = self.caches.observe(key);
        let may_mount_with_label = observed.pod.as_ref().is_some_and(|pod| pod.may_mount_with_label());
        let plan = plan(&observed);
        let concerns_it = |plan: &&Plan| match plan {
            Plan::Forget => false,
            Plan::Check { found, .. } => may_mount_with_label || !found.is_empty(),
        };
        Some(&plan).filter(concerns_it).map(stage).into_iter().collect()
    }
}
