//! The decisions about the slices of Endpoints: tables after upstream's, and the properties of every plan.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a fixture that does not hold is a broken test")]

mod properties;
mod reconciler;
mod recycle;
mod sync;
mod utils;
mod world;
