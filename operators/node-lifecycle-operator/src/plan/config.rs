//! The values of the flags, as decisions use them.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    pub period: Duration,
    pub grace: Duration,
    /// The grace period of a node without the condition `Ready`.
    pub startup_grace: Duration,
    /// How many nodes of a zone are tainted a second.
    pub rate: f64,
    /// The same of a large zone that is partially disrupted.
    pub secondary_rate: f64,
    pub large_zone: i32,
    /// The share of nodes that are not ready from which a zone is partially disrupted.
    pub unhealthy_threshold: f64,
}
