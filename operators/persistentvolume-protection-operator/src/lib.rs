//! Protects each PersistentVolume with a finalizer for as long as it is bound to a claim.
//!
//! Reading order: [`objects`] (the views of a PersistentVolume) → [`controller`] (one sync; its `changes` say what leads
//! to it) → [`observe`] → [`plan`] → [`apply`].
//!
//! Upstream: `pkg/controller/volume/pvprotection`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
