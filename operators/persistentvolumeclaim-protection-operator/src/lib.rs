//! Protects each PersistentVolumeClaim with a finalizer for as long as a scheduled pod uses it.
//!
//! Reading order: [`objects`] (the views of claims and pods) → [`controller`] (the wiring; its `changes` say what leads to a
//! sync) → [`observe`] → [`plan`] → [`apply`]. The last two and the sync are the same for all protected kinds.
//!
//! Upstream: `pkg/controller/volume/pvcprotection`.

pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;

pub use shared::controllers::protection::{apply, plan};
