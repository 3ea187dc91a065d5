//! Executes the plan of a Service of the pools: events, and one apply of its status.

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Context;
use serde::Serialize;
use serde_json::json;
use shared::api::object::Kind;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::Patch;
use shared::working::events::PlannedEvent;

use crate::objects::SERVICES;
use crate::objects::pooled_service::{ADDRESS_ASSIGNED, PooledService};
use crate::observe::pools::Caches;
use crate::plan::pools::{AddressPlan, AddressReason, PoolsPlan};
use crate::status::pools::{PoolsStatus, next_status};

/// The owner of the addresses and of the condition.
const FIELD_MANAGER: &str = "address-pools";

const ASSIGNED_EVENT: &str = "AddressAssigned";
const RELEASED_EVENT: &str = "AddressReleased";
const UNMET_EVENT: &str = "AddressNotAssigned";

pub(crate) struct PoolsWriter {
    pub(crate) ctx: ControllerContext,
    pub(crate) caches: Arc<Caches>,
}

impl PoolsWriter {
    pub(crate) async fn apply(&self, service: &PooledService, plan: PoolsPlan) -> anyhow::Result<()> {
        match plan {
            PoolsPlan::Leave => Ok(()),
            PoolsPlan::Release => {
                self.caches.memory.give(&service.user, &[], false);
                let gone = json!({ "type": ADDRESS_ASSIGNED, "$patch": "delete" });
                let status = json!({ "loadBalancer": { "ingress": null }, "conditions": [gone] });
                self.write(service, Patch::strategic(&json!({ "status": status }))).await?;
                if !service.addresses.is_empty() {
                    let lost: Vec<String> = service.addresses.iter().map(ToString::to_string).collect();
                    let message = format!("Released {}: no address pool serves its type and class", lost.join(", "));
                    self.ctx.event(PlannedEvent::warning(service.reference(), RELEASED_EVENT, message));
                }
                Ok(())
            }
            PoolsPlan::Give(plan) => {
                self.caches.memory.give(&service.user, &plan.addresses, plan.is_waiting());
                let Some(status) = next_status(service, &plan, self.ctx.now()) else { return Ok(()) };
                self.write(service, Patch::apply(FIELD_MANAGER, &Configuration::new(service, status))).await?;
                self.tell(service, plan);
                Ok(())
            }
        }
    }

    /// Says what has changed, after it has.
    fn tell(&self, service: &PooledService, plan: AddressPlan) {
        let AddressPlan { addresses, reason } = plan;
        let is_new = |address: &&IpAddr| !service.addresses.contains(address);
        let list = |addresses: Vec<String>| addresses.join(", ");
        let lost = service.addresses.iter().filter(|address| !addresses.contains(address));
        let lost: Vec<String> = lost.map(ToString::to_string).collect();
        let new: Vec<String> = addresses.iter().filter(is_new).map(ToString::to_string).collect();
        let (about, from) = (service.reference(), from(&reason));
        if !lost.is_empty() {
            // Other reasons are those of what it has now.
            let why = if let AddressReason::Unmet(problem) = &reason { format!(": {problem}") } else { String::new() };
            let message = format!("Released {}{why}", list(lost));
            self.ctx.event(PlannedEvent::warning(about.clone(), RELEASED_EVENT, message));
        }
        if !new.is_empty() {
            let message = format!("Assigned {}{from}", list(new));
            self.ctx.event(PlannedEvent::normal(about.clone(), ASSIGNED_EVENT, message));
        }
        if let AddressReason::Unmet(problem) = reason {
            self.ctx.event(PlannedEvent::warning(about, UNMET_EVENT, format!("Cannot assign an address: {problem}")));
        }
    }

    async fn write(&self, service: &PooledService, patch: Patch) -> anyhow::Result<()> {
        let metadata = &service.metadata;
        let (key, uid) = (&metadata.key, metadata.uid);
        let patched = self.ctx.for_key(key, uid).patch(&SERVICES, key, uid, patch.on_status()).await;
        if patched.unless_gone().context("cannot write the status")?.is_some() {
            tracing::info!(service = %key, "wrote status");
        }
        Ok(())
    }
}

/// Where new addresses come from, as the end of a sentence.
fn from(reason: &AddressReason) -> String {
    match reason {
        AddressReason::Kept { pool } | AddressReason::Assigned { pool } => format!(" from the pool {pool}"),
        AddressReason::OneFamily { pool: _, missing: _ } => format!(" {reason}"),
        AddressReason::Unknown | AddressReason::Unmet(_) => String::new(),
    }
}

/// The applied fields.
#[derive(Debug, Serialize)]
struct Configuration<'a> {
    metadata: Name<'a>,
    status: PoolsStatus,
}

#[derive(Debug, Serialize)]
struct Name<'a> {
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Configuration<'a> {
    fn new(service: &'a PooledService, status: PoolsStatus) -> Self {
        let metadata = Name { namespace: service.metadata.namespace(), name: service.metadata.name() };
        Self { metadata, status }
    }
}
