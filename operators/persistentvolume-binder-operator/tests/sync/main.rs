//! The operator as it is, against an apiserver in the test's process: its informers, its syncs, its writes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod binding;
mod recycling;
mod world;
