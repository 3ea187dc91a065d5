//! The status of a quota: its limits, and the usage under each of them.
//!
//! Left out: the resourceVersion under which it is written, which is `apply`'s.
//!
//! Upstream: `syncResourceQuota`, `pkg/controller/resourcequota/resource_quota_controller.go`.

use crate::apply::Outcome;
use crate::objects::{QuotaStatus, ResourceQuota};

/// The status, if it is another one than before. Usage that was not counted stays, and goes with its limit.
pub fn next_status(quota: &ResourceQuota, outcome: &Outcome) -> Option<QuotaStatus> {
    let mut used = quota.status.used.clone();
    used.extend(outcome.counted.iter().map(|(name, amount)| (name.clone(), *amount)));
    used.retain(|name, _| quota.hard.contains_key(name));
    let status = QuotaStatus { hard: quota.hard.clone(), used };
    (status != quota.status).then_some(status)
}
