//! One attempt on one object: delete it, let it go, or leave it alone.
//!
//! Everything is read live, for the graph may lag: [`observe`] → [`plan`] → [`apply`].
//! Left out: objects whose dependents are orphaned, which is [`crate::attempt_to_orphan`].
//!
//! Upstream: `attemptToDeleteItem`, `pkg/controller/garbagecollector/garbagecollector.go`.

pub mod apply;
pub mod observe;
pub mod plan;
