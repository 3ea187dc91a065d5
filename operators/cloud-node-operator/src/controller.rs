//! The operator as a process, and one sync of a node on one screen.

mod addresses;
mod changes;

use std::sync::Arc;
use std::time::Duration;

use cloud::Client;
use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::api::resource::NODES;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::queue::Backoff;
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{self, FACTS};
use crate::flags::Flags;
use crate::metrics::NodeMetrics;
use crate::observe::{Caches, Informers, Reader};
use crate::plan::{Config, next};
use addresses::AddressController;
use changes::AGAIN;

/// Upstream asks about addresses again at its next look at all nodes. After a failure the first retry comes sooner.
const ADDRESS_RETRY: Duration = Duration::from_secs(10);

pub struct CloudNodeOperator;

impl Operator for CloudNodeOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let config = Config::from(flags);
        let of_nodes = setup.queue(facts::NODES.name, Backoff::default());
        let backoff = Backoff { first: ADDRESS_RETRY, max: config.period.max(ADDRESS_RETRY) };
        let of_addresses = setup.queue(facts::ADDRESSES.name, backoff);
        let (caches, Informers { mut nodes }) = Caches::new();
        let caches = Arc::new(caches);
        nodes.on_change(setup.effects(&of_nodes).of(&caches, Caches::node_changed));
        nodes.on_change(
            setup
                .effects(&of_addresses)
                .of(&caches, move |caches: &Caches, change| caches.addresses_concerned(change, &config)),
        );
        setup.watch(nodes);
        let metrics = NodeMetrics::register(setup.metrics());
        let ctx = setup.context(&of_addresses);
        let reader = Reader::new(ctx.control().clone(), Client::new(flags.provider.endpoint()));
        let addresses = AddressController {
            config,
            caches: Arc::clone(&caches),
            reader: reader.clone(),
            writer: Writer { ctx: ctx.clone(), metrics: metrics.clone() },
            ctx,
        };
        let ctx = setup.context(&of_nodes);
        let nodes = NodeController { config, caches, reader, writer: Writer { ctx: ctx.clone(), metrics }, ctx };
        setup.work(Arc::new(nodes), &of_nodes, flags.concurrent_node_syncs);
        setup.work(Arc::new(addresses), &of_addresses, flags.address_workers());
    }
}

struct NodeController {
    config: Config,
    caches: Arc<Caches>,
    reader: Reader,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for NodeController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(observed) = self.caches.observe(key) else { return Ok(Requeue::Done) };
        let plan = |observed: &_| next(observed, &self.config);
        let (observed, plan) =
            self.ctx.decide_in_stages(key, observed, plan, |observed| self.reader.ask(observed)).await?;
        let again = plan.again;
        self.writer.apply(&observed.node, plan).await?;
        Ok(Requeue::earliest([again.map(|again| (again, AGAIN))]))
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&NODES)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        self.caches.observe(key).iter().map(|observed| next(observed, &self.config).stage()).collect()
    }
}
