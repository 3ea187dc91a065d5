//! Keeps the pods of each StatefulSet: each has a name, a place in an order, and volumes that outlive it.
//!
//! Reading order: [`objects`] (the views) → [`controller`] (one sync) → [`observe`] → [`plan`] → [`apply`] →
//! [`status`]. A sync plans three times, for each decision depends on the writes before it: the claims
//! ([`plan::claim`]), the revision of the template ([`plan::revisions`]), the pods and their volumes ([`plan`]).
//! Upstream: `pkg/controller/statefulset`.
//! Left out: deleting what a StatefulSet leaves behind, which is the garbage collector's.

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
