//! The status of a quota: its limits, and the usage under each of them.
//!
//! Upstream: `syncResourceQuota`, `pkg/controller/resourcequota/resource_quota_controller.go`.

use crate::apply::Outcome;
use crate::objects::{QuotaStatus, ResourceQuota};

/// The new status, if it differs. Usage that was not counted stays as long as its limit does.
pub fn next_status(quota: &ResourceQuota, outcome: &Outcome) -> Option<QuotaStatus> {
    let mut used = quota.status.used.clone();
    used.extend(outcome.counted.iter().map(|(name, amount)| (name.clone(), *amount)));
    used.retain(|name, _| quota.hard.contains_key(name));
    let status = QuotaStatus { hard: quota.hard.clone(), used };
    (status != quota.status).then_some(status)
}
