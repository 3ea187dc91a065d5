//! Why a plan is what it is, and why each of its steps is made: values that programs read as JSON, and people as text.
//!
//! Left out: what follows from a reason, which is the other rooms'.

use std::fmt;

use serde::Serialize;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::working::decisions;

use super::limits::{max_replicas, max_unavailable, replica_count};
use super::replica_sets::ReplicaSets;
use crate::objects::{DeploymentSpec, ReplicaSet};

/// Which way a sync goes.
///
/// Upstream: the branches of `syncDeployment`, `pkg/controller/deployment/deployment_controller.go`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    SelectsEverything,
    InvalidSelector {
        error: Text,
    },
    /// It is being deleted: its status is kept right until it is gone.
    BeingDeleted,
    /// It is paused: it is scaled, but not rolled out.
    Paused(Rollout),
    Rollback {
        /// Which; 0 is the one before the present one.
        revision: i64,
    },
    /// Its size was changed: all ReplicaSets keep their proportions.
    Scaling {
        wanted: i32,
    },
    /// All pods are updated and available, and no old one is left.
    Complete {
        /// How many there are.
        replicas: i32,
    },
    /// From the old template to the new one, bit by bit.
    RollingUpdate(Rollout),
    /// From the old template to the new one, all pods at once.
    Recreate(Rollout),
    /// No new pod comes before the last old one has ended.
    WaitingForOldPods {
        /// The old ReplicaSets that may still have some.
        replica_sets: Vec<Text>,
    },
    /// This build does not know the strategy.
    UnknownStrategy {
        strategy: Text,
    },
}

/// How far a rollout is, by what ReplicaSets say of their pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    pub wanted: i32,
    pub updated: i32,
    pub updated_available: i32,
    pub old: i64,
    pub available: i64,
    /// How many have to be available.
    pub min_available: i64,
    /// How many there may be.
    pub max_replicas: i32,
}

impl Rollout {
    pub(super) fn of(spec: &DeploymentSpec, sets: &ReplicaSets<'_>) -> Self {
        let sum = |sets: &mut dyn Iterator<Item = &ReplicaSet>, count: fn(&ReplicaSet) -> i32| -> i64 {
            sets.map(|set| i64::from(count(set))).sum()
        };
        let new = sets.new.map(|new| &new.status);
        Self {
            wanted: spec.replicas,
            updated: new.map_or(0, |new| new.replicas),
            updated_available: new.map_or(0, |new| new.available_replicas),
            old: sum(&mut sets.old.iter().map(|old| &***old), |old| old.status.replicas),
            available: sum(&mut sets.all(), |set| set.status.available_replicas),
            min_available: i64::from(spec.replicas) - i64::from(max_unavailable(spec)),
            max_replicas: max_replicas(spec),
        }
    }

    /// Whether the ReplicaSets have the sizes that they are to have in the end, and the pods for it.
    pub(super) fn is_complete(&self, sets: &ReplicaSets<'_>) -> bool {
        let Self { wanted, updated, updated_available, old, .. } = *self;
        let sizes = (sets.new.map(|new| new.spec.replicas), replica_count(sets.old.iter().map(|old| &***old)));
        (updated, updated_available, old, sizes) == (wanted, wanted, 0, (Some(wanted), 0))
    }
}

impl Reason {
    pub(super) fn rolling_update(spec: &DeploymentSpec, sets: &ReplicaSets<'_>) -> Self {
        Self::complete_or(spec, sets, Self::RollingUpdate)
    }

    pub(super) fn recreate(spec: &DeploymentSpec, sets: &ReplicaSets<'_>) -> Self {
        Self::complete_or(spec, sets, Self::Recreate)
    }

    fn complete_or(spec: &DeploymentSpec, sets: &ReplicaSets<'_>, goes_on: fn(Rollout) -> Self) -> Self {
        let rollout = Rollout::of(spec, sets);
        if rollout.is_complete(sets) { Self::Complete { replicas: rollout.wanted } } else { goes_on(rollout) }
    }

    /// In as few words as do beside steps, which have reasons of their own.
    pub(super) fn in_short(&self) -> &'static str {
        match self {
            Self::SelectsEverything => "selects everything",
            Self::InvalidSelector { error: _ } => "invalid selector",
            Self::BeingDeleted => "being deleted",
            Self::Paused(_) => "paused",
            Self::Rollback { revision: _ } => "rollback",
            Self::Scaling { wanted: _ } => "scaling",
            Self::Complete { replicas: _ } => "complete",
            Self::RollingUpdate(_) => "rolling update",
            Self::Recreate(_) | Self::WaitingForOldPods { replica_sets: _ } => "recreate",
            Self::UnknownStrategy { strategy: _ } => "unknown strategy",
        }
    }
}

impl decisions::Reason for Reason {}

/// `rolling update (2 of 5 updated, 1 of these available, 3 old)`.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.in_short())?;
        match self {
            Self::InvalidSelector { error } => write!(f, ": {error}"),
            Self::RollingUpdate(rollout) | Self::Recreate(rollout) => write!(f, " ({rollout})"),
            Self::WaitingForOldPods { replica_sets } => {
                write!(f, " (waiting for the pods of {})", list(replica_sets, ToString::to_string))
            }
            Self::UnknownStrategy { strategy } => write!(f, " {strategy}"),
            Self::SelectsEverything
            | Self::BeingDeleted
            | Self::Paused(_)
            | Self::Rollback { revision: _ }
            | Self::Scaling { wanted: _ }
            | Self::Complete { replicas: _ } => Ok(()),
        }
    }
}

impl fmt::Display for Rollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wanted, updated, updated_available, old, available: _, min_available: _, max_replicas: _ } = self;
        write!(f, "{updated} of {wanted} updated, {updated_available} of these available, {old} old")
    }
}

/// Why one ReplicaSet is changed or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Why {
    /// The new one notes something else than the Deployment says.
    AsDeployment,
    /// It is the only one that has pods.
    OnlyOne { wanted: i32 },
    /// The new one has all pods that are wanted, so the others need none.
    NewHasAll { available: i32 },
    /// Several share what the size was changed by.
    InProportion {
        /// By how many pods all of them grow, or shrink where it is negative.
        change: i64,
    },
    /// The new one is larger than the Deployment.
    TooLarge { wanted: i32 },
    /// The new one grows as far as all together may.
    RoomForSurge {
        total: i64,
        /// How large they may be.
        max_replicas: i32,
    },
    /// No pod of an old one may run any more, so the new one gets its size.
    NoOldPod { wanted: i32 },
    /// Pods of an old one are not available.
    Unavailable {
        unavailable: i64,
        /// The number of pods that may go, including unavailable ones.
        room: i64,
    },
    /// More pods are available than have to be.
    EnoughAvailable {
        available: i64,
        /// How many have to be.
        min_available: i64,
    },
    /// All old pods go before a new one comes.
    Recreated,
    /// It is empty, and there are more such than the history may have.
    BeyondHistoryLimit {
        limit: i32,
        /// How many old ones there are.
        old: usize,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AsDeployment => "as the deployment says",
            Self::OnlyOne { wanted: _ } => "the only one",
            Self::NewHasAll { available: _ } => "the new one has all pods",
            Self::InProportion { change: _ } => "in proportion",
            Self::TooLarge { wanted: _ } => "new: larger than the deployment",
            Self::RoomForSurge { total: _, max_replicas: _ } => "new: room for surge",
            Self::NoOldPod { wanted: _ } => "new: no old pod runs",
            Self::Unavailable { unavailable: _, room: _ } => "old: unavailable pods",
            Self::EnoughAvailable { available: _, min_available: _ } => "old: enough are available",
            Self::Recreated => "old: all pods are recreated",
            Self::BeyondHistoryLimit { limit: _, old: _ } => "beyond the history limit",
        })
    }
}
