//! A round: it lists the routes of the cloud, and enqueues the Nodes whose routes or conditions are wrong.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use cloud::CloudError;
use prometheus_client::metrics::counter::Counter;
use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::working::context::ControllerContext;
use shared::working::worker::{Controller, Requeue};

use crate::apply::{READY_PURPOSE, Writer};
use crate::observe::Caches;
use crate::plan::round::plan_round;

const UNSUPPORTED_PURPOSE: &str = "the next look at what the cloud supports";
const PURPOSE: &str = "the next round";

/// Upstream's key, `enqueueClusterReconcile`.
pub(super) fn round_key() -> Key {
    Key::new("", "routes")
}

pub(super) struct RoundController {
    pub(super) period: Duration,
    pub(super) caches: Arc<Caches>,
    pub(super) writer: Writer,
    pub(super) syncs: Counter,
    pub(super) ctx: ControllerContext,
}

impl Controller for RoundController {
    /// The next round is on time whatever fails: a Node that fails has a key of its own.
    ///
    /// Upstream: `reconcileNodeRoutes`.
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let (caches, Writer { cloud, cluster_name, .. }) = (&self.caches, &self.writer);
        let began = self.ctx.now();
        if !caches.routes.is_listed() {
            let info = match cloud.info().await {
                Err(CloudError::RetryAfter { after, message: _ }) => return Ok(Requeue::After(after, READY_PURPOSE)),
                info => info.context("error asking the cloud what it supports")?,
            };
            if !info.routes {
                if caches.routes.unsupported() {
                    tracing::warn!("cloud provider does not support routes; not keeping any");
                }
                return Ok(Requeue::After(cloud::REST, UNSUPPORTED_PURPOSE));
            }
            ensure!(!caches.cluster_cidrs().is_empty(), "RouteController: Must specify --cluster-cidr");
        }
        self.syncs.inc();
        caches.routes.begin();
        let routes = match cloud.list_routes(cluster_name).await {
            Err(CloudError::RetryAfter { after, message: _ }) => return Ok(Requeue::After(after, READY_PURPOSE)),
            routes => routes.context("error listing routes")?,
        };
        caches.routes.listed(routes);
        let plan = plan_round(&caches.observe_round(), caches.cluster_cidrs(), self.ctx.now());
        self.ctx.decide(key, &plan);
        let ready_after = self.writer.apply_round(plan).await.unwrap_or_default();
        let took = self.ctx.now().duration_since(began).unsigned_abs();
        Ok(Requeue::After(self.period.saturating_sub(took).max(ready_after), PURPOSE))
    }

    fn key_of(&self, _object: &Subject) -> Option<Key> {
        None
    }

    /// The previews of the Nodes show what is decided about each.
    fn preview(&self, _key: &Key) -> Vec<Stage> {
        Vec::new()
    }
}
