//! The decisions about the Endpoints of a Service: tables after upstream's, and the properties of every plan.

#![expect(clippy::unwrap_used, reason = "a fixture that does not hold is a broken test")]

mod addresses;
mod capacity;
mod pack;
mod plan;
mod properties;
mod world;
