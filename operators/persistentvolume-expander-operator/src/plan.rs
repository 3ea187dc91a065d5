//! To whom the expansion of a claim's volume is handed.
//!
//! Upstream: `syncHandler`, `pkg/controller/volume/expand/expand_controller.go`.

use std::fmt;

use serde::Serialize;
use shared::api::csi_translation::InTreePlugin;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::PersistentVolumeClaim;
use crate::observe::{Live, Observed};

pub type Next = decisions::Next<Reason, Plan>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    Nothing(Reason),
    /// Write nothing, and check again.
    Retry(Reason),
    /// Report that an external controller expands it.
    Wait(Reason),
    /// Report that the CSI driver of an in-tree plugin expands it, and name that driver in the claim.
    HandOver {
        plugin: InTreePlugin,
        /// Whether the claim names another resizer, or none.
        annotate: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    NotBound,
    /// It is as large as it is to be.
    LargeEnough,
    ToGrow {
        from: String,
        to: String,
    },
    VolumeGone {
        volume: String,
    },
    /// The volume is bound to another claim, or to none.
    VolumeOfAnother {
        volume: String,
    },
    Migrated {
        plugin: &'static str,
        driver: &'static str,
    },
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Nothing(reason) | Self::Retry(reason) | Self::Wait(reason) => reason.clone(),
            Self::HandOver { plugin, annotate: _ } => Reason::Migrated { plugin: plugin.name, driver: plugin.driver },
        }
    }
}

pub fn plan(Observed { claim, volume }: &Observed) -> Next {
    Next::Execute(match volume {
        _ if !claim.is_bound() || claim.spec.volume_name.is_empty() => Plan::Nothing(Reason::NotBound),
        _ if !claim.is_to_grow() => Plan::Nothing(Reason::LargeEnough),
        Live::Unread => return Next::Ask(LiveRead { step: "read the volume", reason: to_grow(claim) }),
        Live::Gone => Plan::Retry(Reason::VolumeGone { volume: claim.spec.volume_name.clone() }),
        Live::Read(volume) if !volume.is_bound_to(claim) => {
            Plan::Retry(Reason::VolumeOfAnother { volume: claim.spec.volume_name.clone() })
        }
        Live::Read(volume) => match volume.in_tree_plugin() {
            None => Plan::Wait(to_grow(claim)),
            Some(plugin) => {
                let resizer = claim.metadata.annotations.resizer.as_deref();
                Plan::HandOver { plugin, annotate: resizer != Some(plugin.driver) }
            }
        },
    })
}

fn to_grow(claim: &PersistentVolumeClaim) -> Reason {
    Reason::ToGrow { from: claim.provided().to_string(), to: claim.requested().to_string() }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Nothing(_) => write!(f, "nothing ({reason})"),
            Self::Retry(_) => write!(f, "check again ({reason})"),
            Self::Wait(_) => write!(f, "wait for an external controller ({reason})"),
            Self::HandOver { plugin: _, annotate: true } => write!(f, "name the external resizer ({reason})"),
            Self::HandOver { plugin: _, annotate: false } => write!(f, "wait for the external resizer ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBound => f.write_str("not bound to a volume"),
            Self::LargeEnough => f.write_str("its volume is large enough"),
            Self::ToGrow { from, to } => write!(f, "to grow from {from} to {to}"),
            Self::VolumeGone { volume } => write!(f, "its volume {volume} does not exist"),
            Self::VolumeOfAnother { volume } => write!(f, "its volume {volume} is not bound to it"),
            Self::Migrated { plugin, driver } => write!(f, "volumes of {plugin} are expanded by {driver}"),
        }
    }
}
