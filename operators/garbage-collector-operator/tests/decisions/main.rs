//! What the graph makes of events, and what is decided about one object.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a fixture that does not hold is a broken test")]

mod fixtures;
mod graph;
mod orphan;
mod plan;
mod properties;
