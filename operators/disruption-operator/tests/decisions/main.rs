//! How many pods may be evicted, and what is written of it: upstream's tables, and what holds for all budgets and pods.

#![expect(clippy::unwrap_used, reason = "a fixture that does not hold is a broken test")]

mod fixtures;
mod plan;
mod properties;
mod stale;
mod status;
mod views;
