//! Why slices are what they are: as a value for programs, and in words.
//!
//! Left out: each single write, which the plan's text has.

use std::fmt;

use serde::Serialize;
use shared::runtime::decisions;

use super::Mirrored;
use super::text::plural;

/// Why slices are written, or none is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// Nothing is to be mirrored.
    NotMirrored(NotMirrored),
    /// The addresses of the Endpoints are to be in slices.
    Mirrored(Counts),
}

/// Why nothing is mirrored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NotMirrored {
    /// There is no such Service.
    NoService,
    /// Somebody else writes the slices of such a Service.
    HasSelector,
    /// There are no Endpoints, or they have the label that spares them.
    NoEndpoints,
    /// They have the label that spares them.
    Skipped,
    /// They are the lock of an election.
    Lock,
}

/// The slices of Endpoints, once all is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// How many endpoints there will be.
    pub endpoints: usize,
    /// In how many slices.
    pub slices: usize,
    /// How many addresses are left out because they are none.
    pub invalid: usize,
    /// How many addresses are left out because they are too many.
    pub too_many: usize,
    /// How many slices are not created because the Endpoints are being deleted.
    pub withheld: usize,
}

/// Why a slice goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Gone {
    /// Nothing is mirrored any more.
    NotMirrored,
    /// There is no such address on its ports any more.
    Emptied,
    /// Another one has all addresses of its type on its ports.
    Doubled,
    /// No address is on its ports any more.
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
            Self::NoService => "there is no such service",
            Self::HasSelector => "has a selector",
            Self::NoEndpoints => "there are no endpoints, or they are to be skipped",
            Self::Skipped => "they are to be skipped",
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
            Self::Doubled => "doubled",
            Self::PortsUnwanted => "ports unwanted",
        })
    }
}
