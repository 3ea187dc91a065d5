//! Executes a plan: posts events, settles charges, waits for kinds that lag, and writes the status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use shared::api::quantity::Quantity;
use shared::transport::api_error::{ApiError, ResultExt};
use shared::working::context::ControllerContext;
use shared::working::control::Preconditions;

use crate::objects::{Amounts, QuotaStatus, RESOURCE_QUOTAS};
use crate::observe::{Caches, Observed};
use crate::plan::Plan;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
    pub(crate) caches: Arc<Caches>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    pub counted: Amounts,
    /// Whether a kind was left out that cannot be counted.
    pub is_partial: bool,
    /// Whether a kind was left out that lags behind a charge.
    pub is_behind: bool,
    /// When to count again; none if only a change can make a difference.
    pub recount: Option<Duration>,
}

impl Writer {
    pub(crate) fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Plan { notices, counted, unreadable, behind, unstored: _, is_settled, recount, kinds: _, untracked: _ } =
            plan;
        for event in notices {
            self.ctx.event(event);
        }
        let (key, is_partial, is_behind) = (&observed.quota.metadata.key, !unreadable.is_empty(), !behind.is_empty());
        self.caches.reported.set(key, unreadable.into_keys().collect());
        if is_settled {
            self.caches.charges.settle(key, observed.quota.metadata.resource_version);
        }
        for (evaluator, version) in behind {
            self.caches.feeds.wait_for(&evaluator, key, version);
        }
        Outcome { counted, is_partial, is_behind, recount }
    }

    /// Writes the status with the observed resourceVersion. The server refuses (409) if the quota changed since, such as by
    /// the charge of a creation.
    pub(crate) async fn write_status(&self, observed: &Observed, status: &QuotaStatus) -> Result<(), ApiError> {
        let meta = &observed.quota.metadata;
        let preconditions = Preconditions::of(meta);
        let patch = StatusPatch::new(&observed.quota.status, status);
        let control = self.ctx.for_key(&meta.key, meta.uid);
        self.caches.charges.writes(&meta.key, &status.used);
        control.patch_status(&RESOURCE_QUOTAS, &meta.key, preconditions, &patch).await.unless_gone().map(drop)
    }
}

/// The status as a strategic merge patch, in which `null` drops an entry.
#[derive(Serialize)]
struct StatusPatch<'a> {
    hard: BTreeMap<&'a str, Option<Quantity>>,
    used: BTreeMap<&'a str, Option<Quantity>>,
}

impl<'a> StatusPatch<'a> {
    fn new(before: &'a QuotaStatus, status: &'a QuotaStatus) -> Self {
        Self { hard: changed(&before.hard, &status.hard), used: changed(&before.used, &status.used) }
    }
}

fn changed<'a>(before: &'a Amounts, after: &'a Amounts) -> BTreeMap<&'a str, Option<Quantity>> {
    let mut changed: BTreeMap<&str, Option<Quantity>> = BTreeMap::new();
    changed.extend(before.keys().map(|name| (name.as_str(), None)));
    changed.extend(after.iter().map(|(name, amount)| (name.as_str(), Some(*amount))));
    changed
}

#[cfg(test)]
mod tests {
    use shared::api::intern::Text;

    use super::*;

    #[test]
    fn a_patch_has_what_is_there_and_drops_the_rest() {
        let amounts = |pairs: &[(&str, &str)]| -> Amounts {
            pairs.iter().map(|(name, amount)| (Text::new(name), amount.parse().unwrap())).collect()
        };
        let before = QuotaStatus { hard: amounts(&[("cpu", "1"), ("pods", "5")]), used: amounts(&[("cpu", "500m")]) };
        let after = QuotaStatus { hard: amounts(&[("pods", "6")]), used: amounts(&[("pods", "0")]) };
        let patch = serde_json::to_string(&StatusPatch::new(&before, &after)).unwrap();
        assert_eq!(patch, r#"{"hard":{"cpu":null,"pods":"6"},"used":{"cpu":null,"pods":"0"}}"#);
    }
}
