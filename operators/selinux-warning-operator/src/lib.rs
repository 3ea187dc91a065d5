//! Warns of pods that use one volume with different SELinux labels: on one node, only one of them could use it.
//!
//! Reading order: [`objects`] (the views; [`objects::label`] says which labels conflict) → [`controller`] (one sync;
//! its `changes` say what leads to it) → [`memory`] (which pods use a volume, and how) → [`observe`] → [`plan`] →
//! [`apply`].
//!
//! Upstream: `pkg/controller/volume/selinuxwarning`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod memory;
mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
