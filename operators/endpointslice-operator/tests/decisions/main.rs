//! The decisions about a Service: tables after upstream's, and the properties of every plan.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a fixture that does not hold is a broken test")]

mod hints;
mod properties;
mod reconciler;
mod trigger;
mod utils;
mod views;
mod world;
