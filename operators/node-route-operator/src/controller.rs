//! The operator as a process, and one sync of a Node on one screen.

mod changes;
mod rounds;

use std::sync::Arc;
use std::time::Duration;

use cloud::Client;
use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::{Backoff, Cause};
use shared::working::worker::{Controller, Requeue};

use crate::apply::{READY_PURPOSE, Writer};
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::metrics;
use crate::observe::{Caches, Observed};
use crate::plan::{Plan, Reason, plan};
use crate::status::{after, before};
use rounds::{RoundController, round_key};

/// Upstream: `maxConcurrentRouteOperations`, `k8s.io/cloud-provider/controllers/route/route_controller.go`.
const WORKERS: usize = 200;

pub struct NodeRouteOperator;

impl Operator for NodeRouteOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let Flags { provider, cluster, cluster_cidr, configure_cloud_routes, route_reconciliation_period } = flags;
        // A cloud counts its calls, and upstream repeats one in the next round.
        let backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(30) };
        let of_nodes = setup.queue(facts::NODES.name, backoff);
        let of_rounds = setup.queue(facts::ROUNDS.name, backoff);
        let (caches, mut nodes) = Caches::new(cluster_cidr.clone());
        let caches = Arc::new(caches);
        let ctx = setup.context(&of_nodes);
        let writer = Writer {
            ctx: ctx.clone(),
            cloud: Client::new(provider.endpoint()),
            cluster_name: cluster.cluster_name.as_str().into(),
            caches: Arc::clone(&caches),
            nodes: of_nodes.clone(),
        };
        let syncs = metrics::register(setup.metrics());
        if *configure_cloud_routes {
            nodes.on_change(setup.effects(&of_nodes).of(&caches, Caches::node_changed));
            setup.watch(nodes);
            let first = of_rounds.clone();
            setup.at_start(move || first.add(&round_key(), Cause::Event));
        }
        let rounds_ctx = setup.context(&of_rounds);
        let rounds = RoundController {
            period: route_reconciliation_period.0,
            caches: Arc::clone(&caches),
            writer: Writer { ctx: rounds_ctx.clone(), ..writer.clone() },
            syncs,
            ctx: rounds_ctx,
        };
        let nodes = NodeController { caches, is_on: *configure_cloud_routes, writer, ctx };
        setup.work(Arc::new(nodes), &of_nodes, WORKERS);
        setup.work(Arc::new(rounds), &of_rounds, 1);
    }
}

struct NodeController {
    caches: Arc<Caches>,
    /// Whether `--configure-cloud-routes` is true.
    is_on: bool,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for NodeController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        // Boxed, because most of the many workers have nothing to do.
        Box::pin(self.sync_node(key)).await
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&NODES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        if !self.is_on {
            return vec![stage(&Plan::nothing(Reason::Off))];
        }
        let plan = |observed: &Observed| plan(observed, self.caches.cluster_cidrs(), self.ctx.now());
        self.caches.observe(key).iter().map(|observed| stage(&plan(observed))).collect()
    }
}

impl NodeController {
    async fn sync_node(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let now = self.ctx.now();
        let plan = plan(&observed, self.caches.cluster_cidrs(), now);
        self.ctx.decide(key, &plan);
        if let Reason::NotReady { until: _ } = plan.reason {
            let rest = observed.pause.and_then(|pause| pause.left(now)).unwrap_or_default();
            return Ok(Requeue::After(rest, READY_PURPOSE));
        }
        if let (Some(node), Some(network)) = (&observed.node, before(&observed)) {
            self.writer.set_condition(node, network).await?;
        }
        let (missing, failures) = self.writer.apply(&observed, plan).await;
        if let (Some(node), Some(network)) = (&observed.node, after(&observed, missing)) {
            self.writer.set_condition(node, network).await?;
        }
        self.writer.end(key, failures)
    }
}
