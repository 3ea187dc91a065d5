//! The contestants.

/// One of the sides that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Contestant {
    /// The operators, as they come.
    Operators,
    /// Upstream's program without a limit that this machine reaches.
    Unthrottled,
    /// Upstream's program with its default limit, 20 requests a second for each controller.
    Throttled,
}

impl Contestant {
    pub(crate) const ALL: [Self; 3] = [Self::Operators, Self::Unthrottled, Self::Throttled];

    /// Its name, where `upstream` is upstream's program.
    pub(crate) fn name(self, upstream: &str) -> String {
        match self {
            Self::Operators => "operators".to_owned(),
            Self::Unthrottled => format!("{upstream} at 2000 qps"),
            Self::Throttled => format!("{upstream} at its default"),
        }
    }
}
