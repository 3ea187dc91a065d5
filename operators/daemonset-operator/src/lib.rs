//! Keeps a pod of each DaemonSet on every node that it is for, and replaces pods of an earlier template node by node.
//!
//! Reading order: [`objects`] (the views) → [`controller`] (one sync) → [`observe`] → [`plan`] → [`apply`] →
//! [`status`]. A sync plans in stages, for each decision depends on the writes before it: the claims
//! ([`plan::claim`]), the revision of the template ([`plan::revisions`]), the pods ([`plan`]), the end of old
//! revisions. A node has a queue and a sync of its own ([`plan::nodes`]), which finds the DaemonSets that it concerns.
//! Upstream: `pkg/controller/daemon`.
//! Left out: binding pods to their nodes, which the scheduler does, and deleting pods that a DaemonSet leaves behind,
//! which are the garbage collector's.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod memory;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
