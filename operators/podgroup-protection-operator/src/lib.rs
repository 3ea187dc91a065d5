//! Lets a PodGroup go once each of its pods has ended or is gone.
//!
//! Reading order: [`objects`] (the views of groups and pods) → [`controller`] (the wiring; its `changes` say what leads to a
//! sync) → [`observe`] → [`plan`] → [`apply`]. The last two and the sync are the same for all protected kinds.
//!
//! Upstream: `pkg/controller/scheduling/podgroupprotection`.

pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;

pub use shared::controllers::protection::{apply, plan};
