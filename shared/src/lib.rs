//! The one crate that all operators share: it follows the apiserver, decides once per key, and writes safely.
//!
//! Each floor is a folder that knows only those below it, from the lowest one:
//! - [`api`]: the API's nouns as lean values. Pure: no client, no cache, no clock.
//! - [`transport`]: requests to the apiserver.
//! - [`following`]: informers and the caches that they fill.
//! - [`working`]: queues, workers and safe writes.
//! - [`process`]: flags, metrics, leadership, and an operator's main.
//! - [`controllers`]: code of several operators above that, such as keeping a number of pods.
//!
//! Invariants, each held by a lint, a test of `tidy`, or a signature:
//! - This crate knows no operator.
//! - Operators never name `kube::Api`; only [`following::informer`] watches (and [`process::leader`] its one Lease); only
//!   [`working::control`], [`working::events`] and [`process::leader`] write.
//!
//! Left out on purpose: a generic reconcile loop that hides the key or the queue, and any code that has one user only.

pub mod api;
pub mod controllers;
pub mod following;
pub mod process;
pub mod transport;
pub mod working;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
