//! A set of steps: whose work it is, and the words of its page.
//! Left out: the steps themselves, each set's in a file of its own.

use std::time::Duration;

use crate::audit::Request;
use crate::figures::{Figures, totals, whole};

/// More nodes write so many heartbeats that a cluster which waits for its turn slows the other's down.
const QUIET_NODES_MAX: u32 = 100;

/// A set of steps: whose work it is, and what its page says.
pub(crate) struct About {
    pub(crate) operators: Vec<String>,
    /// The operators that do for every contestant what is not measured.
    pub(crate) helpers: &'static [&'static str],
    /// The program of upstream's beside which they run.
    pub(crate) upstream: &'static str,
    /// Its controllers that do the work.
    pub(crate) controllers: &'static str,
    pub(crate) reaction: Option<Reaction>,
    pub(crate) steps: String,
    /// How many nodes there are; see [`nodes_for`].
    pub(crate) nodes: u32,
    /// In how many zones they are.
    pub(crate) zones: u32,
    /// Whether the steps need kinds that are off by default.
    pub(crate) gated: bool,
    /// Flags of operators, by name, which kube-controller-manager gets, too.
    pub(crate) flags: Flags,
    pub(crate) page: &'static str,
    /// The targets, where the page shows them and the costs of each operator.
    pub(crate) targets: Option<Targets>,
}

impl About {
    /// Whether the contestants take turns, step by step, or come one after the other with all their steps.
    pub(crate) fn takes_turns(&self) -> bool {
        self.nodes <= QUIET_NODES_MAX
    }
}

pub(crate) type Flags = &'static [(&'static str, &'static str)];

/// As many nodes as so many pods need: each has a place, and a node of kwok takes what it is given.
pub(crate) fn nodes_for(pods: u32) -> u32 {
    pods / 500 + 10
}

/// The targets beside kube-controller-manager at 2,000 qps.
pub(crate) struct Targets {
    pub(crate) ratios: &'static [Target],
    /// The target for one operator, where it has one of its own, in the words of the page.
    pub(crate) each: Option<&'static str>,
}

pub(crate) struct Target {
    pub(crate) what: &'static str,
    pub(crate) wanted: &'static str,
    pub(crate) figure: fn(&Figures) -> f64,
    pub(crate) of_all: OfAll,
}

impl Target {
    pub(crate) const TIME: Self =
        Self { what: "time", wanted: "at most 1.0", figure: |figures| figures.took.as_secs_f64(), of_all: OfAll::Sum };
    pub(crate) const CPU: Self =
        Self { what: "CPU", wanted: "at most 0.5", figure: |figures| figures.cpu.as_secs_f64(), of_all: OfAll::Sum };
    pub(crate) const WRITES: Self = Self {
        what: "writes",
        wanted: "at most 1.0",
        figure: |figures| whole(totals(&figures.requests).0),
        of_all: OfAll::Sum,
    };

    pub(crate) const fn apiserver_cpu(wanted: &'static str) -> Self {
        let figure = |figures: &Figures| figures.apiserver_cpu.as_secs_f64();
        Self { what: "apiserver's CPU", wanted, figure, of_all: OfAll::Sum }
    }

    pub(crate) const fn anonymous(wanted: &'static str) -> Self {
        let figure = |figures: &Figures| whole(figures.anonymous_bytes);
        Self { what: "anonymous", wanted, figure, of_all: OfAll::Most }
    }
}

/// How one figure of all steps is made of each step's.
#[derive(Clone, Copy)]
pub(crate) enum OfAll {
    Sum,
    Most,
}

impl OfAll {
    pub(crate) fn of(self, figures: impl Iterator<Item = f64>) -> f64 {
        match self {
            Self::Sum => figures.sum(),
            Self::Most => figures.fold(0.0, f64::max),
        }
    }
}

/// How soon a contestant does something about what happens.
pub(crate) struct Reaction {
    /// From when to when, in the words of the page.
    pub(crate) is: &'static str,
    /// The reactions of these users, sorted.
    pub(crate) find: fn(&[Request], &[String]) -> Vec<Duration>,
}
