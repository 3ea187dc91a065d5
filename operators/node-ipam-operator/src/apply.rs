//! Executes a plan: at most one patch of a Node's CIDRs, and the events about it.
//!
//! Upstream tries a patch three times in a row. Here the queue retries, with the same CIDRs if they may be stored.

use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use shared::api::cidr::Cidr;
use shared::api::object::{Kind, Uid};
use shared::api::resource::NODES;
use shared::transport::api_error::{ApiError, ResultExt};
use shared::working::context::ControllerContext;
use shared::working::control::Patch;
use shared::working::events::PlannedEvent;

use crate::memory::Pool;
use crate::objects::{Node, joined, reasons};
use crate::observe::Observed;
use crate::plan::{Plan, Reason};

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) pool: Arc<Pool>,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<()> {
        let node = &*observed.node;
        match plan {
            Plan::Keep(reason @ (Reason::Shared { cidr: _ } | Reason::Outside { cidr: _ })) => {
                // The CIDRs of a Node never change, so a retry cannot help.
                tracing::warn!(node = %node.metadata.key, %reason, "node has a wrong CIDR");
                Ok(())
            }
            Plan::Keep(_) => Ok(()),
            Plan::Assign { cidrs, uid, reason: _ } => self.assign(node, uid, &cidrs).await,
            Plan::Wait { index, reason: _ } => {
                self.ctx.event(status_change(node, reasons::CIDR_NOT_AVAILABLE));
                // Upstream: `AllocateOrOccupyCIDR`, and `ErrCIDRRangeNoCIDRsRemaining`, `cidrset/cidr_set.go`.
                bail!(
                    "failed to allocate cidr from cluster cidr at idx:{index}: CIDR allocation failed; there are no \
                     remaining CIDRs left to allocate in the accepted range"
                )
            }
        }
    }

    async fn assign(&self, node: &Node, uid: Uid, cidrs: &[Cidr]) -> anyhow::Result<()> {
        let key = &node.metadata.key;
        // Nothing was awaited since the observation, so no other Node can get the same CIDRs.
        self.pool.assign(key, uid, cidrs);
        let patch = Patch::strategic(&cidrs_patch(cidrs));
        let patched = self.ctx.for_key(key, uid).patch(&NODES, key, uid, patch).await;
        let is_refused = |error: &ApiError| error.status().is_some() && !error.is_outcome_unknown();
        let patched = patched.unless_gone();
        if patched.as_ref().is_err_and(is_refused) {
            self.pool.refuse(key, uid);
        } else {
            self.pool.keep(key, uid);
        }
        match patched {
            Ok(Some(_)) => tracing::info!(node = %key, cidrs = joined(cidrs), "assigned CIDRs"),
            Ok(None) => {}
            Err(_) => self.ctx.event(status_change(node, reasons::CIDR_ASSIGNMENT_FAILED)),
        }
        patched.map(drop).context("failed to patch node CIDR")
    }
}

/// Upstream: `RecordNodeStatusChange`, `pkg/controller/util/node/controller_utils.go`. Its reference has no version.
fn status_change(node: &Node, status: &'static str) -> PlannedEvent {
    let about = node.reference().without_version();
    PlannedEvent::normal(about, status, format!("Node {} status is now: {status}", node.metadata.name()))
}

/// Upstream: `PatchNodeCIDRs`, `staging/src/k8s.io/component-helpers/node/util/cidr.go`.
pub fn cidrs_patch(cidrs: &[Cidr]) -> Value {
    json!({ "spec": { "podCIDR": cidrs.first(), "podCIDRs": cidrs } })
}
