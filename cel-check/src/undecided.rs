//! Why an expression is left without an answer, and what a check may cost.

/// Why the checker cannot tell whether an expression is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecided {
    #[error("it cannot be parsed")]
    Syntax,
    #[error("it has more than {MAX_LENGTH} characters")]
    TooLong,
    #[error("it is nested too deeply")]
    TooDeep,
    #[error("it is too costly to check")]
    TooCostly,
    #[error("it names types of protocol buffers")]
    Protobuf,
}

/// The longest expression that is checked, in characters. cel-go's limit is twice that; parsing takes 500 bytes of memory
/// for each.
pub(crate) const MAX_LENGTH: usize = 50_000;
/// The nodes of an expression after its macros have been expanded.
pub(crate) const MAX_NODES: usize = 200_000;
/// The parts of one type.
pub(crate) const MAX_WEIGHT: usize = 1_000;
/// The parts of a type while it is put together from what its variables stand for.
pub(crate) const MAX_SUBSTITUTED: usize = 10 * MAX_WEIGHT;
/// How deeply types and their assignments may be nested.
const MAX_DEPTH: usize = 1_000;

/// The steps that are left for checks.
#[derive(Debug)]
pub struct Budget {
    steps: u64,
    depth: usize,
}

impl Budget {
    pub fn of(steps: u64) -> Self {
        Self { steps, depth: 0 }
    }

    /// Starts another check with what is left.
    pub(crate) fn surface(&mut self) {
        self.depth = 0;
    }

    /// Takes some steps off; an error if fewer are left.
    pub fn spend(&mut self, steps: u64) -> Result<(), Undecided> {
        let left = self.steps.checked_sub(steps);
        self.steps = left.unwrap_or(0);
        left.map(drop).ok_or(Undecided::TooCostly)
    }

    /// [`Self::spend`] for the size of something in memory.
    pub(crate) fn charge(&mut self, steps: usize) -> Result<(), Undecided> {
        self.spend(u64::try_from(steps).unwrap_or(u64::MAX))
    }

    /// Goes one level deeper; [`Self::leave`] goes up again.
    pub(crate) fn enter(&mut self) -> Result<(), Undecided> {
        self.charge(1)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(Undecided::TooDeep) } else { Ok(()) }
    }

    pub(crate) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}
