//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::controllers::root_ca::RootCa;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::first_stage;
use shared::working::queue::{Backoff, Cause};
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::metrics::{SyncMetrics, register};
use crate::objects::{CLUSTER_TRUST_BUNDLES, is_of_signer, signer_key};
use crate::observe::{Caches, live_bundle};
use crate::plan::{plan, plan_live_read};

/// Upstream's.
const WORKERS: usize = 1;

pub struct ClusterTrustBundlePublisherOperator;

impl Operator for ClusterTrustBundlePublisherOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, mut cluster_trust_bundles) = Caches::new();
        let caches = Arc::new(caches);
        let effects = setup.effects(&queue);
        cluster_trust_bundles.on_change(effects.with(changes::bundle_changed));
        let (known, syncing) = (Arc::clone(&caches), queue.clone());
        setup.watch_as_served(cluster_trust_bundles, move |served| {
            known.note_served(served);
            syncing.add(&signer_key(), Cause::Event);
        });
        // Without a CA, or if bundles are not served, this first sync records a decision that says so.
        let first = queue.clone();
        setup.at_start(move || first.add(&signer_key(), Cause::Event));
        let root_ca = RootCa::of_flags(&flags.root_ca_file, setup.flags());
        let syncing = queue.clone();
        // The apiserver may have refused the previous CA: a new one ends the back-off.
        root_ca.follow_flags(&flags.root_ca_file, setup, move || syncing.add(&signer_key(), Cause::Edit));
        let controller = PublisherController {
            caches,
            root_ca,
            writer: Writer { ctx: ctx.clone() },
            metrics: register(setup.metrics()),
            ctx,
        };
        setup.work(Arc::new(controller), &queue, WORKERS);
    }
}

struct PublisherController {
    caches: Arc<Caches>,
    root_ca: Arc<RootCa>,
    writer: Writer,
    metrics: SyncMetrics,
    ctx: ControllerContext,
}

impl Controller for PublisherController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let started = self.ctx.now();
        let result = self.publish(key).await;
        let took = self.ctx.now().duration_since(started).unsigned_abs();
        self.metrics.observe(&result, took);
        result.map(|()| Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        let bundle = object.key_of(&CLUSTER_TRUST_BUNDLES).filter(|key| is_of_signer(key.name()));
        bundle.map(|_| signer_key())
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        if *key != signer_key() {
            return Vec::new();
        }
        let observed = self.caches.observe(self.root_ca.current());
        vec![first_stage(plan_live_read(&observed), || plan(&observed))]
    }
}

impl PublisherController {
    /// Upstream: `syncClusterTrustBundle`, `pkg/controller/certificates/clustertrustbundlepublisher/publisher.go`.
    async fn publish(&self, key: &Key) -> anyhow::Result<()> {
        let observed = self.caches.observe(self.root_ca.current());
        let observed = match plan_live_read(&observed) {
            None => observed,
            Some(live_read) => {
                self.ctx.decide(key, &live_read);
                live_bundle(self.ctx.control(), observed).await?
            }
        };
        let plan = plan(&observed);
        self.ctx.decide(key, &plan);
        self.writer.apply(key, plan).await
    }
}
