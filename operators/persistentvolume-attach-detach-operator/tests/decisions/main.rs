//! What happens to a volume on its nodes: upstream's tables, and rules for all of them.

#![expect(clippy::panic, reason = "a plan of another kind is a failed test")]

mod fixtures;
mod memory;
mod messages;
mod names;
mod nodes;
mod properties;
mod volumes;
