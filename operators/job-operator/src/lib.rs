//! Runs pods of each Job until enough have succeeded, and counts each of them once.
//!
//! Reading order: [`objects`] (the views) → [`controller`] (one sync) → [`observe`] → [`plan`] → [`apply`] → [`status`].
//! A sync plans three times, for each decision depends on the writes before it: pods ([`plan`]), the pods that are
//! counted ([`plan::tracking`]), the status after that ([`status`]). Upstream: `pkg/controller/job`.
//! Left out: Workloads and `PodGroups` (upstream's alpha gate `WorkloadWithJob`), Jobs that another controller manages, and
//! deleting finished Jobs.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
