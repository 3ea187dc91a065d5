//! What is decided for a Service: tables after upstream's, and what holds for every plan.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a fixture that does not hold is a broken test")]

mod hints;
mod properties;
mod reconciler;
mod trigger;
mod utils;
mod views;
mod world;
