//! Tables over `plan` and `status`, one file per room, and properties over whole rollouts.
//!
//! Rows that come from upstream's tests name them.

#![cfg(test)]

mod builders;
mod creation;
mod objects;
mod progress;
mod properties;
mod reason;
mod recreate;
mod revision;
mod rollback;
mod rolling;
mod scale;
mod status;
