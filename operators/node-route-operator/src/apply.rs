//! Executes a plan: the routes of a Node, an event for each that could not be created, and its condition.
//!
//! Upstream tries a write of the condition five times in a row; here the queue retries.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use cloud::{Client, CloudError, Route};
use shared::api::cidr::PodCidr;
use shared::api::object::{Key, Kind};
use shared::api::resource::NODES;
use shared::process::flags::GoDuration;
use shared::transport::api_error::{ApiError, ResultExt};
use shared::working::context::ControllerContext;
use shared::working::control::{Elsewhere, Patch, aggregate, together};
use shared::working::events::PlannedEvent;
use shared::working::queue::{Cause, Queue};
use shared::working::worker::Requeue;

use crate::objects::{ListedRoute, Network, Node};
use crate::observe::{Caches, Observed};
use crate::plan::Plan;
use crate::plan::round::RoundPlan;
use crate::status::network_status;

/// The name of the resource in a shadow's report.
const ROUTES: &str = "routes";
const FAILED_TO_CREATE_ROUTE: &str = "FailedToCreateRoute";
pub(crate) const READY_PURPOSE: &str = "the time at which the cloud is ready";

#[derive(Clone)]
pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) cloud: Client,
    pub(crate) cluster_name: Arc<str>,
    pub(crate) caches: Arc<Caches>,
    pub(crate) nodes: Queue,
}

/// Why a route is not changed.
enum Failure {
    /// The cloud asks for time.
    NotYet(Duration),
    Failed(anyhow::Error),
}

impl Failure {
    fn of(error: CloudError, what: String) -> Self {
        if let CloudError::RetryAfter { after, message } = error {
            tracing::debug!(what, message, ?after, "cloud is not ready");
            return Self::NotYet(after);
        }
        Self::Failed(anyhow::Error::new(error).context(what))
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Failed(error.into())
    }
}

/// The failures of a sync, and when the cloud asks for the next one.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    errors: Vec<anyhow::Error>,
    retry_after: Option<Duration>,
}

impl Failures {
    fn add(&mut self, failure: Failure) {
        match failure {
            Failure::NotYet(after) => self.retry_after = self.retry_after.max(Some(after)),
            Failure::Failed(error) => self.errors.push(error),
        }
    }

    /// How long the cloud wants to wait, or what failed. A time to wait holds for all calls of a sync.
    fn end(self) -> anyhow::Result<Option<Duration>> {
        if self.retry_after.is_some() {
            self.warn();
            return Ok(self.retry_after);
        }
        aggregate(self.errors).map(|()| None)
    }

    fn warn(&self) {
        for error in self.errors.iter().filter(|error| !ApiError::is_shadows(error)) {
            tracing::warn!(error = format!("{error:#}"), "cannot change a route");
        }
    }
}

impl Writer {
    /// Changes the routes of a Node. Gives how many of its CIDRs have none then.
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> (usize, Failures) {
        let Plan { delete, create, wait, reason: _ } = plan;
        let (mut failures, mut kept) = (Failures::default(), Vec::new());
        for (route, _) in &delete {
            if let Err(failure) = self.delete(route).await {
                kept.push(&route.destination);
                failures.add(failure);
            }
        }
        let mut missing = wait.len();
        for cidr in &create {
            // A deletion may have taken minutes.
            let Some(node) = observed.node.as_ref().filter(|node| self.still_has(node, cidr)) else { continue };
            if kept.contains(&cidr) {
                missing += 1;
            } else if let Err(failure) = self.create(node, cidr).await {
                missing += 1;
                failures.add(failure);
            }
        }
        (missing, failures)
    }

    fn still_has(&self, node: &Node, cidr: &PodCidr) -> bool {
        let now = self.caches.nodes.get(&node.metadata.key);
        now.is_some_and(|now| now.metadata.uid == node.metadata.uid && now.pod_cidrs.contains(cidr))
    }

    /// Deletes a route, and wakes the Nodes that wait for that.
    async fn delete(&self, route: &Arc<ListedRoute>) -> Result<(), Failure> {
        let ListedRoute { route: listed, destination, is_listed: _ } = &**route;
        let name = if listed.target_node.is_empty() { &listed.destination_cidr } else { &listed.target_node };
        self.ctx.allow(Elsewhere::Delete, ROUTES, name)?;
        let deleted = self.cloud.delete_route(&self.cluster_name, listed).await;
        deleted.map_err(|error| Failure::of(error, format!("Could not delete route {} {destination}", listed.name)))?;
        tracing::info!(route = listed.name, %destination, node = listed.target_node, "deleted route");
        self.caches.routes.deleted(route);
        for node in self.caches.with_cidr(destination) {
            let key = &node.metadata.key;
            if key.name() != listed.target_node {
                self.nodes.add(key, Cause::Event);
            }
        }
        Ok(())
    }

    async fn create(&self, node: &Node, cidr: &PodCidr) -> Result<(), Failure> {
        let (name, uid, started) = (node.metadata.name(), node.metadata.uid, self.ctx.now());
        let route = Route {
            target_node: name.to_owned(),
            target_node_addresses: node.addresses.iter().map(Into::into).collect(),
            destination_cidr: cidr.to_string(),
            ..Route::default()
        };
        self.ctx.allow(Elsewhere::Create, ROUTES, name)?;
        let created = self.cloud.create_route(&self.cluster_name, &uid.to_string(), &route).await;
        let Err(error) = created else {
            tracing::info!(node = name, %cidr, "created route");
            self.caches.routes.created(route);
            return Ok(());
        };
        let took = GoDuration(self.ctx.now().duration_since(started).unsigned_abs());
        let message = format!("Could not create route {uid} {cidr} for node {name} after {took}: {error}");
        let about = node.reference().without_version();
        self.ctx.event(PlannedEvent::warning(about, FAILED_TO_CREATE_ROUTE, message));
        Err(Failure::of(error, format!("Could not create route {uid} {cidr} for node {name}")))
    }

    /// Writes the condition NetworkUnavailable of a Node.
    pub(crate) async fn set_condition(&self, node: &Node, network: Network) -> anyhow::Result<()> {
        let (key, uid) = (&node.metadata.key, node.metadata.uid);
        let patch = Patch::strategic(&network_status(network, self.ctx.now())).on_status();
        let patched = self.ctx.for_key(key, uid).patch(&NODES, key, uid, patch).await.unless_gone();
        if patched.context("cannot change the condition NetworkUnavailable")?.is_some() {
            tracing::info!(node = %key, %network, "changed condition NetworkUnavailable");
        }
        Ok(())
    }

    /// The end of a sync of a Node. Until the cloud is ready, no other sync calls it about this Node.
    pub(crate) fn end(&self, key: &Key, failures: Failures) -> anyhow::Result<Requeue> {
        let Some(after) = failures.end()? else { return Ok(Requeue::Done) };
        self.caches.routes.pause(key.name(), after, self.ctx.now());
        Ok(Requeue::After(after, READY_PURPOSE))
    }

    /// Executes the plan of a round. Gives how long the cloud wants to wait.
    pub(crate) async fn apply_round(&self, plan: RoundPlan) -> Option<Duration> {
        let RoundPlan { delete, sync, reason: _ } = plan;
        let mut failures = Failures::default();
        for key in &sync {
            self.nodes.add(key, Cause::Event);
        }
        for deleted in together(delete.iter().map(|route| self.delete(route))).await {
            deleted.unwrap_or_else(|failure| failures.add(failure));
        }
        // The next round tries again. It is on time, because it is about all Nodes.
        failures.warn();
        failures.retry_after
    }
}
