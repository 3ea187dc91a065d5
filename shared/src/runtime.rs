//! Being a process that follows the apiserver, syncs each key once, and writes safely.
//!
//! Reading order: [`informer`] and [`cache`] (list + watch) → [`queue`] and [`worker`] (one sync per key) → [`control`]
//! (every write) → [`run`] (an operator's main).
//! Left out: what any one kind of controller decides.

// Following the apiserver.
pub mod api_error;
pub mod cache;
pub mod client;
pub mod clock;
mod collection;
mod demand;
pub mod discovery;
mod feed;
mod followed;
mod health;
mod identity;
pub mod informer;
mod pages;
mod reflector;
mod source;
mod watched;

// Deciding once per key.
pub mod answers;
pub mod consistency;
pub mod context;
pub mod decisions;
pub mod effect;
pub mod expectations;
pub(crate) mod explain;
pub mod queue;
pub mod worker;

// Writing.
pub mod control;
pub mod events;
pub mod leader;

// Being a process.
pub mod flags;
pub mod metrics;
pub mod run;
pub mod serving;
pub mod shadow;
pub mod telemetry;
