//! Deletes the content of namespaces that are being deleted, and then finalizes them.
//!
//! Reading order: [`objects`] (a namespace, with every field) → [`controller`] (one sync) → [`observe`] → [`plan`] (what to
//! delete in which order, and what follows from what remains) → [`apply`] → [`status`] (the conditions).
//! Upstream: `pkg/controller/namespace`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
