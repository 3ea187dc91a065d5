//! The one crate all operators share: what it takes to follow the apiserver, decide once per key, and write safely.
//!
//! Reading order: [`object`] (the lean views) → [`informer`] and [`cache`] (list + watch) → [`queue`] and [`worker`]
//! (one sync per key) → [`owner`] (claim, adopt, release) → [`control`] (every write) → [`run`] (an operator's main).
//!
//! Invariants, each held by a lint, a test of `tidy`, or a signature:
//! - This crate knows no operator.
//! - Operators never name `kube::Api`; only [`informer`] watches (and [`leader`] its one Lease); only [`control`], [`events`] and [`leader`] write.
//! - The pure modules import no tokio, no client, no clock.
//!
//! Left out on purpose: a generic reconcile loop that hides the key or the queue, and any code that has one user only.

#![warn(missing_docs)]

// What objects look like.
pub mod intern;
pub mod labels;
pub mod object;
pub mod resource;
pub mod time;

// Pure helpers.
pub mod condition;
pub mod hash;
pub mod int_or_percent;
pub mod names;
pub mod pod;
pub mod quantity;
pub mod selector;
pub mod template;

// Following the apiserver.
pub mod api_error;
pub mod cache;
pub mod client;
pub mod clock;
pub mod discovery;
pub mod informer;

// Deciding once per key.
pub mod consistency;
pub mod expectations;
pub mod queue;
pub mod worker;

// Writing.
pub mod control;
pub mod events;
pub mod leader;
pub mod owner;
pub mod pod_control;

// Keeping pods.
pub mod replicas;

// Being a process.
pub mod decisions;
pub mod flags;
pub mod metrics;
pub mod run;
pub mod serving;
pub mod telemetry;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
