//! The reasons of decisions about slices.

use std::fmt;

use serde::Serialize;
use shared::working::decisions;

use super::Mirrored;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    NotMirrored(NotMirrored),
    Mirrored(Counts),
}

/// Why nothing is mirrored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NotMirrored {
    /// The Service does not exist.
    NoService,
    /// The Service has a selector; another controller writes its slices.
    HasSelector,
    /// The Endpoints do not exist, or their label excludes them.
    NoEndpoints,
    Skipped,
    Lock,
}

/// The slices of Endpoints after the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub endpoints: usize,
    pub slices: usize,
    /// The number of addresses that are left out because they are not IPs.
    pub invalid: usize,
    /// The number of addresses above the limit, which are left out.
    pub too_many: usize,
    /// The number of slices that are not created because the Endpoints are being deleted.
    pub withheld: usize,
}

/// Why a slice is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Gone {
    NotMirrored,
    /// No address of its type is left on its ports.
    Emptied,
    /// Another slice has the same address type and ports.
    Duplicate,
    PortsUnwanted,
}

impl Counts {
    pub(super) fn of(mirrored: &Mirrored) -> Self {
        Self {
            endpoints: mirrored.sizes.iter().map(|size| size.endpoints).sum(),
            slices: mirrored.sizes.iter().map(|size| size.slices).sum(),
            invalid: mirrored.invalid,
            too_many: mirrored.skipped - mirrored.invalid,
            withheld: mirrored.writes.withheld,
        }
    }
}

impl decisions::Reason for Reason {}
impl decisions::Reason for Gone {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMirrored(why) => write!(f, "{why}"),
            Self::Mirrored(counts) => write!(f, "{counts}"),
        }
    }
}

impl fmt::Display for NotMirrored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoService => "the service does not exist",
            Self::HasSelector => "has a selector",
            Self::NoEndpoints => "the endpoints do not exist, or their label excludes them",
            Self::Skipped => "the label of the endpoints excludes them",
            Self::Lock => "the lock of an election",
        })
    }
}

/// `3 endpoints in 2 slices, 1 left out`.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { endpoints, slices, invalid, too_many, withheld: _ } = self;
        write!(f, "{} in {}", plural(*endpoints, "endpoint"), plural(*slices, "slice"))?;
        if invalid + too_many > 0 { write!(f, ", {} left out", invalid + too_many) } else { Ok(()) }
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotMirrored => "not mirrored",
            Self::Emptied => "emptied",
            Self::Duplicate => "duplicate",
            Self::PortsUnwanted => "ports unwanted",
        })
    }
}

/// A number with its noun: `1 slice`, `2 slices`.
fn plural(count: usize, word: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {word}{ending}")
}
