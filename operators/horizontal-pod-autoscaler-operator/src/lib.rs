//! Scales the targets of HorizontalPodAutoscalers by their metrics.
//!
//! Reading order: [`objects`] (the fields that are read) → [`controller`] (one sync) → [`observe`], with [`memory`],
//! and with [`observe::scales`] and [`observe::metrics`] (what is read live) → [`plan`] → [`apply`] → [`status`].
//!
//! Upstream: `pkg/controller/podautoscaler`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod memory;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
