//! The graph's answer to events, and the decision about one object.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a fixture that does not hold is a broken test")]

mod fixtures;
mod graph;
mod orphan;
mod plan;
mod properties;
