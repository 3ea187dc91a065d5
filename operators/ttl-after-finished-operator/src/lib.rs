//! Deletes finished Jobs when their time to live is over.
//!
//! Reading order: [`objects`] (what is read of a Job) → [`controller`] (which event wakes which key, and one sync) →
//! `observe` → [`plan`] → `apply`. Left out: a status room, because nothing is written of a Job but its deletion.
//!
//! Upstream: `pkg/controller/ttlafterfinished`.

mod apply;
pub mod controller;
pub mod flags;
mod metrics;
pub mod objects;
mod observe;
pub mod plan;
