//! The usage of each kind of object, and the status that follows.

#![expect(clippy::unwrap_used, reason = "a fixture that does not hold is a broken test")]

mod claims;
mod devices;
mod fixtures;
mod pods;
mod properties;
mod quotas;
mod services;
