//! Protects each VolumeAttributesClass with a finalizer for as long as a volume or a claim names it.
//!
//! Reading order: [`objects`] (the views of classes, volumes and claims) → [`controller`] (the wiring; its `changes` say what leads to a
//! sync) → [`observe`] → [`plan`] → [`apply`]. The last two and the sync are the same for all protected kinds.
//!
//! Upstream: `pkg/controller/volume/vacprotection`.

pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;

pub use shared::controllers::protection::{apply, plan};
