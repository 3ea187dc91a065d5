//! Empties namespaces that are being deleted, and then lets them go.
//!
//! Reading order: [`objects`] (a namespace, word for word) → [`controller`] (one sync) → [`observe`] → [`plan`] (what to
//! delete in which order, and what follows from what remains) → [`apply`] → [`status`] (the conditions).
//! Upstream: `pkg/controller/namespace`.
//! Left out: what is in other namespaces and refers to this one.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
