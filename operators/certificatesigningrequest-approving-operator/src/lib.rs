//! Approves the requests of kubelets for client certificates if the requester has the right to such a certificate.
//!
//! Reading order: [`objects`] (what an undecided request asks for) → [`controller`] (one sync; its `changes` say what
//! leads to it) → [`observe`] (the reviews of access) → [`plan`] → [`apply`].
//!
//! Upstream: `pkg/controller/certificates/approver`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
