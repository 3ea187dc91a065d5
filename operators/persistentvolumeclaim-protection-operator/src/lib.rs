//! Protects each PersistentVolumeClaim with a finalizer for as long as a scheduled pod uses it.
//!
//! Reading order: [`objects`] (the views of claims and pods) → [`controller`] (one sync; its `changes` say what leads to
//! it) → [`observe`] → [`plan`] → [`apply`].
//!
//! Upstream: `pkg/controller/volume/pvcprotection`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
