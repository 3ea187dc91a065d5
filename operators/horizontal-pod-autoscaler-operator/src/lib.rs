//! Scales what HorizontalPodAutoscalers name, by the metrics that they name.
//!
//! Reading order: [`objects`] (the fields that are read) → [`controller`] (one sync) → [`observe`], with
//! [`observe::scales`] and [`observe::metrics`] (what is read live), and [`observe::history`] (what is remembered) →
//! [`plan`] → [`apply`] → [`status`].
//! Left out: the metrics themselves. Other apiservers serve them, behind the apiserver.
//!
//! Upstream: `pkg/controller/podautoscaler`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
