//! Working on keys: each is synced once at a time, decides, and writes safely.

pub mod consistency;
pub mod context;
pub mod control;
pub mod decisions;
pub mod effect;
pub mod events;
pub mod expectations;
pub mod queue;
pub mod worker;
