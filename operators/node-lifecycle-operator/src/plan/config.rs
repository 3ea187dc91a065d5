//! The values of the flags, as decisions use them.

use std::time::Duration;

/// The values of the flags.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The time between two looks at all nodes.
    pub period: Duration,
    /// The grace period of a node.
    pub grace: Duration,
    /// The grace period of a node without the condition `Ready`.
    pub startup_grace: Duration,
    /// How many nodes of a zone are tainted a second.
    pub rate: f64,
    /// The same of a large zone that is partially disrupted.
    pub secondary_rate: f64,
    /// A zone with more nodes is large.
    pub large_zone: i32,
    /// The share of nodes that are not ready from which a zone is partially disrupted.
    pub unhealthy_threshold: f64,
}
