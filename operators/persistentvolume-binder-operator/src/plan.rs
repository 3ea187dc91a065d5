//! What a sync of a claim or of a volume writes, and why.
//!
//! Upstream: `pkg/controller/volume/persistentvolume/pv_controller.go`.

pub mod claim;
pub mod edits;
pub mod fit;
mod migration;
mod provision;
pub mod reasons;
pub mod reclaim;
pub mod recycle;
mod released;
pub mod volume;

use std::fmt;
use std::time::Duration;

use shared::working::decisions::{self, Reasoned};

pub use self::edits::{Step, Target};
pub use self::reasons::Reason;
use crate::flags::Flags;
use crate::objects::claim::PersistentVolumeClaim;
use crate::objects::volume::PersistentVolume;

pub type Next = decisions::Next<Reason, Plan>;

#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub provisions: bool,
    /// How long what is not as it should be waits for its next sync.
    pub sync_period: Duration,
}

impl From<&Flags> for Config {
    fn from(flags: &Flags) -> Self {
        let Flags { enable_dynamic_provisioning, pvclaimbinder_sync_period, .. } = flags;
        Self { provisions: *enable_dynamic_provisioning, sync_period: pvclaimbinder_sync_period.0 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// In this order, up to the first that fails.
    pub steps: Vec<Step>,
    /// The state of the claim that its first edit was decided on.
    pub claim: Option<Target>,
    /// The same of the volume.
    pub volume: Option<Target>,
    pub again: Again,
    pub reason: Reason,
}

/// When the key is synced again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// At the next change.
    Never,
    /// Also after the sync period: something is missing, and nothing may show that it is there.
    Later,
    /// As after a failure.
    Retry,
}

impl Plan {
    /// Writes to the claim.
    fn of_claim(claim: &PersistentVolumeClaim, steps: Vec<Step>, reason: Reason) -> Self {
        Self { steps, claim: Some(Target::of(&claim.metadata)), ..Self::nothing(reason) }
    }

    /// Writes to the volume.
    fn of_volume(volume: &PersistentVolume, steps: Vec<Step>, reason: Reason) -> Self {
        Self { steps, volume: Some(Target::of(&volume.metadata)), ..Self::nothing(reason) }
    }

    pub(crate) const fn nothing(reason: Reason) -> Self {
        Self { steps: Vec::new(), claim: None, volume: None, again: Again::Never, reason }
    }

    pub(crate) fn retry(reason: Reason) -> Self {
        Self { again: Again::Retry, ..Self::nothing(reason) }
    }

    /// Whether it changes an object.
    pub fn writes(&self) -> bool {
        let only_tells =
            |step| matches!(step, &Step::Tell(_) | Step::Relay { .. } | Step::CountFailure(_) | Step::SyncClaim(_));
        !self.steps.iter().all(only_tells)
    }
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, claim: _, volume: _, again, reason } = self;
        match (&steps[..], again) {
            ([], Again::Never) => f.write_str("nothing")?,
            ([], Again::Later | Again::Retry) => f.write_str("check again")?,
            ([first, rest @ ..], _) => {
                write!(f, "{first}")?;
                rest.iter().try_for_each(|step| write!(f, ", {step}"))?;
            }
        }
        write!(f, " ({reason})")
    }
}
