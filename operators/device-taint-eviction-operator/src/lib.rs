//! Deletes pods whose claims have devices with taints of the effect `NoExecute`: at once if a claim does not tolerate one of
//! them, and after a while if it does, but not forever. A condition of each DeviceTaintRule reports the
//! progress.
//!
//! Reading order: [`objects`] (the fields of claims, slices, rules and pods) → [`controller`] (the sync of a pod, and that
//! of a rule) → [`observe`], with [`memory`] (the pending deletions) → [`plan`] → [`apply`] → [`status`] (the conditions).
//!
//! Upstream: `pkg/controller/devicetainteviction`.

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
