//! Executes a plan: calls to the provider, patches of the Service, and the events about both.

pub mod pools;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use cloud::CloudError;
use serde_json::{Map, Value, json};
use shared::api::object::{Kind, Uid};
use shared::transport::api_error::{ApiError, ResultExt};
use shared::working::context::ControllerContext;
use shared::working::control::Patch;
use shared::working::events::PlannedEvent;
use shared::working::worker::Requeue;
use tokio::time::Instant;

use crate::balancers::Failure;
use crate::metrics::ServiceMetrics;
use crate::objects::{FINALIZER, Ingress, Nodes, SERVICES, Service};
use crate::observe::{Observed, Reader};
use crate::plan::Plan;
use crate::status::next_status;

/// An event names so many Nodes. Upstream: `maxNodeNamesToLog`.
const NAMES_MAX: usize = 20;

const NEXT_TRY: &str = "the cloud provider's next try";

const NO_NODES: &str = "There are no available nodes for LoadBalancer";

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) reader: Reader,
    pub(crate) metrics: ServiceMetrics,
}

/// Why an Ensure or a clean-up failed.
struct Failed {
    error: anyhow::Error,
    /// When the provider wants to be asked again, if it says so.
    after: Option<Duration>,
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        Self { error, after: None }
    }
}

impl Failed {
    fn context(self, context: &'static str) -> Self {
        Self { error: self.error.context(context), ..self }
    }
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Cloud(CloudError::RetryAfter { after, message }) => {
                Self { error: anyhow!(message), after: Some(after) }
            }
            Failure::Cloud(error) => anyhow::Error::new(error).into(),
            Failure::Refused(error) => anyhow::Error::new(error).into(),
        }
    }
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<Requeue> {
        let Observed { service, told, nodes, capability: _, balancer: _, object: _ } = observed;
        let told = told.as_ref().map(|told| &told.service);
        // A plan is about an object that was observed.
        let Some(service) = service.as_ref().or(told) else { return Ok(Requeue::Done) };
        match plan {
            Plan::Nothing(_) => Ok(Requeue::Done),
            Plan::Rest(_) => Ok(Requeue::After(cloud::REST, "a provider with load balancers")),
            Plan::Ensure { adds_finalizer, reason: _ } => {
                let ensured = self.ensure(service, nodes, adds_finalizer).await;
                self.told_of(service, ensured)
            }
            Plan::Update(_) => self.update(service, nodes).await,
            Plan::CleanUp { exists, reason: _ } => {
                let cleaned = self.clean_up(service, exists).await;
                self.told_of(service, cleaned)
            }
            Plan::Delete(_) => self.delete(told.unwrap_or(service)).await,
        }
    }

    /// Posts the event about a sync that failed.
    pub(crate) fn tell_failed(&self, service: &Service, error: &anyhow::Error) {
        if !ApiError::is_shadows(error) {
            self.warn(service, "SyncLoadBalancerFailed", format!("Error syncing load balancer: {error:#}"));
        }
    }

    fn told_of(&self, service: &Service, done: Result<(), Failed>) -> anyhow::Result<Requeue> {
        let Err(Failed { error, after }) = done else { return Ok(Requeue::Done) };
        self.tell_failed(service, &error);
        match after {
            Some(after) => {
                let key = &service.metadata.key;
                tracing::warn!(%key, ?after, error = format!("{error:#}"), "the cloud provider asks for another try");
                Ok(Requeue::After(after, NEXT_TRY))
            }
            None => Err(error),
        }
    }

    /// Upstream: `syncLoadBalancerIfNeeded`, `ensureLoadBalancer`.
    async fn ensure(&self, service: &Arc<Service>, nodes: &Nodes, adds_finalizer: bool) -> Result<(), Failed> {
        let (memory, key) = (&self.reader.caches.memory, &service.metadata.key);
        self.inform(service, "EnsuringLoadBalancer", "Ensuring load balancer");
        if adds_finalizer {
            let patch = json!({ "metadata": { "finalizers": [FINALIZER] } });
            let exists = self.patch(service, &patch).await.context("failed to add load balancer cleanup finalizer")?;
            if !exists {
                return Ok(());
            }
            tracing::info!(%key, "added finalizer");
        }
        if nodes.all.is_empty() {
            self.warn(service, "UnAvailableLoadBalancer", NO_NODES.to_owned());
        }
        let whole = self.reader.whole(service).await?;
        memory.begin(service);
        match self.reader.balancers.ensure(service, &whole, nodes).await {
            Ok(ingress) => {
                self.inform(service, "EnsuredLoadBalancer", "Ensured load balancer");
                self.write_status(service, &ingress).await.context("failed to update load balancer status")?;
            }
            // Somebody else writes the status too.
            Err(Failure::Cloud(CloudError::ImplementedElsewhere)) => {}
            Err(failure) => return Err(Failed::from(failure).context("failed to ensure load balancer")),
        }
        memory.succeeded(key, nodes.digest);
        Ok(())
    }

    async fn write_status(&self, service: &Service, ingress: &Ingress) -> Result<(), ApiError> {
        if let Some(status) = next_status(&service.ingress, ingress)
            && self.patch(service, &json!({ "status": status })).await?
        {
            tracing::info!(key = %service.metadata.key, "wrote the load balancer's addresses");
        }
        Ok(())
    }

    /// Lets a Service go. Finalizer and addresses go in one patch, so that none of them is left behind.
    ///
    /// Upstream: `syncLoadBalancerIfNeeded`, `removeFinalizer`.
    async fn clean_up(&self, service: &Service, exists: bool) -> Result<(), Failed> {
        let key = &service.metadata.key;
        if exists {
            self.inform(service, "DeletingLoadBalancer", "Deleting load balancer");
        }
        self.delete_balancer(service).await.map_err(|failed| failed.context("failed to delete load balancer"))?;
        let mut patch = Map::new();
        if service.has_finalizer() {
            patch.insert("metadata".to_owned(), json!({ "$deleteFromPrimitiveList/finalizers": [FINALIZER] }));
        }
        if let Some(status) = next_status(&service.ingress, &Ingress::default()) {
            patch.insert("status".to_owned(), json!(status));
        }
        if !patch.is_empty() {
            let patched = self.patch(service, &Value::Object(patch)).await;
            patched.context("failed to remove load balancer cleanup finalizer")?;
            tracing::info!(%key, "released");
        }
        self.reader.caches.memory.forget(key);
        self.inform(service, "DeletedLoadBalancer", "Deleted load balancer");
        Ok(())
    }

    /// Deletes the load balancer of an object that is gone.
    ///
    /// Upstream: `processLoadBalancerDelete`.
    async fn delete(&self, service: &Service) -> anyhow::Result<Requeue> {
        self.inform(service, "DeletingLoadBalancer", "Deleting load balancer");
        if let Err(Failed { error, after }) = self.delete_balancer(service).await {
            self.warn(service, "DeleteLoadBalancerFailed", format!("Error deleting load balancer: {error:#}"));
            let again = after.map(|after| Requeue::After(after, NEXT_TRY));
            return again.ok_or_else(|| error.context("cannot delete the load balancer"));
        }
        self.reader.caches.memory.forget(&service.metadata.key);
        self.inform(service, "DeletedLoadBalancer", "Deleted load balancer");
        // Its name may have another object by now.
        Ok(Requeue::After(Duration::ZERO, "the object that has its name"))
    }

    async fn delete_balancer(&self, service: &Service) -> Result<(), Failed> {
        let whole = self.reader.whole(service).await?;
        match self.reader.balancers.delete(service, &whole).await {
            Ok(()) | Err(Failure::Cloud(CloudError::ImplementedElsewhere)) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    /// A load balancer that could not be updated, or that is missing, is ensured next.
    ///
    /// Upstream: `lockedUpdateLoadBalancerHosts`.
    async fn update(&self, service: &Service, nodes: &Nodes) -> anyhow::Result<Requeue> {
        let (memory, key) = (&self.reader.caches.memory, &service.metadata.key);
        let whole = self.reader.whole(service).await?;
        memory.doubt(key);
        let started = Instant::now();
        let updated = self.reader.balancers.update(service, &whole, nodes).await;
        let took = started.elapsed();
        match updated {
            Ok(()) if nodes.all.is_empty() => self.warn(service, "UnAvailableLoadBalancer", NO_NODES.to_owned()),
            Ok(()) => self.inform(service, "UpdatedLoadBalancer", "Updated load balancer with new hosts"),
            Err(Failure::Cloud(CloudError::ImplementedElsewhere)) => {}
            Err(Failure::Cloud(_)) if matches!(self.reader.balancers.get(&whole).await, Ok(None)) => {
                self.metrics.updated(took, false);
                return Ok(Requeue::After(Duration::ZERO, "a load balancer instead of the missing one"));
            }
            Err(failure) => {
                self.metrics.updated(took, true);
                let Failed { error, after } = failure.into();
                let message = format!(
                    "Error updating load balancer with new hosts [{}] [node names limited, total number of nodes: {}], \
                     error: {error:#}",
                    loggable_names(nodes),
                    nodes.all.len(),
                );
                self.warn(service, "UpdateLoadBalancerFailed", message);
                let again = after.map(|after| Requeue::After(after, NEXT_TRY));
                return again.ok_or_else(|| error.context("failed to update load balancer hosts"));
            }
        }
        self.metrics.updated(took, false);
        memory.succeeded(key, nodes.digest);
        Ok(Requeue::Done)
    }

    /// Patches the status, which may change the finalizers too. Returns whether the Service still exists.
    ///
    /// Upstream: `PatchService`, `k8s.io/cloud-provider/service/helpers/helper.go`.
    async fn patch(&self, service: &Service, patch: &Value) -> Result<bool, ApiError> {
        let (key, uid): (_, Uid) = (&service.metadata.key, service.metadata.uid);
        let patch = Patch::strategic(patch).on_status();
        let patched = self.ctx.for_key(key, uid).patch(&SERVICES, key, uid, patch).await;
        Ok(patched.unless_absent()?.is_some())
    }

    fn inform(&self, service: &Service, reason: &'static str, message: &str) {
        self.ctx.event(PlannedEvent::normal(service.reference(), reason, message.to_owned()));
    }

    fn warn(&self, service: &Service, reason: &'static str, message: String) {
        self.ctx.event(PlannedEvent::warning(service.reference(), reason, message));
    }
}

/// Upstream: `loggableNodeNames`.
fn loggable_names(nodes: &Nodes) -> String {
    let mut names: Vec<&str> = nodes.all.iter().take(NAMES_MAX).map(|node| node.metadata.name()).collect();
    let more = nodes.all.len().checked_sub(NAMES_MAX).filter(|more| *more > 0).map(|more| format!("<{more} more>"));
    names.extend(more.as_deref());
    names.join(" ")
}
