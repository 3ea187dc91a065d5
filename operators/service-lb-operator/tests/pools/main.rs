//! Services and address pools: what is read, which addresses a Service gets, and the rules for any order of events.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod asking;
mod config;
mod properties;
mod ranges;
mod sync;
mod table;
mod world;
