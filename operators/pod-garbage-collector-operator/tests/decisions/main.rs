//! Which pods go and how they are marked: upstream's tables, and what holds for all pods and nodes.

#![expect(clippy::unwrap_used, reason = "a fixture that does not hold is a broken test")]

mod fixtures;
mod plan;
mod properties;
mod status;
