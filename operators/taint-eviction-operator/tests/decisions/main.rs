//! Which pods go, when, and how they are marked: upstream's tables, and rules for all pods and nodes.

#![expect(clippy::panic, reason = "a plan of another kind is a failed test")]

mod explained;
mod fixtures;
mod plan;
mod properties;
mod status;
mod taints;
