//! Creates a PersistentVolumeClaim from the template of each ephemeral volume of a pod.
//!
//! Reading order: [`objects`] (the views of claims and pods) → [`controller`] (one sync; its `changes` say what leads to
//! it) → [`observe`] → [`plan`] → [`apply`].
//!
//! Upstream: `pkg/controller/volume/ephemeral`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
