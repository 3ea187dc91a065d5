//! Gives every namespace its ServiceAccount `default`, without which no pod is admitted there.
//!
//! Reading order: [`objects`] (what is watched) → [`controller`] (one sync; its `changes` say what leads to it) →
//! [`observe`] → [`plan`] → [`apply`].
//!
//! Upstream: `pkg/controller/serviceaccount/serviceaccounts_controller.go`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
