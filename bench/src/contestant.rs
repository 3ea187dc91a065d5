//! The contestants.

use std::fmt;

/// One of the sides that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Contestant {
    /// The operators, as they come.
    Operators,
    /// kube-controller-manager without a limit that this machine reaches.
    Unthrottled,
    /// kube-controller-manager with its default limit, 20 requests a second for each controller.
    Throttled,
}

impl Contestant {
    pub(crate) const ALL: [Self; 3] = [Self::Operators, Self::Unthrottled, Self::Throttled];
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operators => "operators",
            Self::Unthrottled => "kube-controller-manager at 2000 qps",
            Self::Throttled => "kube-controller-manager at its default",
        })
    }
}
