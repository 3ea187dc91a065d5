//! Gives each ClusterRole with an `aggregationRule` the rules of the roles that its selectors match, and no others.
//!
//! Reading order: [`objects`] (the view of a role) → [`controller`] (one sync; its `changes` say which roles a change
//! concerns) → [`observe`] (the indices that lead from a label to roles) → [`plan`] → [`apply`].
//!
//! Upstream: `pkg/controller/clusterroleaggregation`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
