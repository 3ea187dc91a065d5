//! The one crate that all operators share: it follows the apiserver, decides once per key, and writes safely.
//!
//! It has three floors, each a folder that knows only those below it:
//! - [`api`]: the API's nouns as lean values. Pure: no client, no cache, no clock.
//! - [`runtime`]: being a process that follows the apiserver, syncs keys and writes.
//! - [`controllers`]: code of several operators above that, such as keeping a number of pods.
//!
//! Invariants, each held by a lint, a test of `tidy`, or a signature:
//! - This crate knows no operator.
//! - Operators never name `kube::Api`; only [`runtime::informer`] watches (and [`runtime::leader`] its one Lease); only
//!   [`runtime::control`], [`runtime::events`] and [`runtime::leader`] write.
//!
//! Left out on purpose: a generic reconcile loop that hides the key or the queue, and any code that has one user only.

#![warn(missing_docs)]

pub mod api;
pub mod controllers;
pub mod runtime;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
