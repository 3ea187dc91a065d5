//! Approves the requests of kubelets for client certificates, where the one who asks may have such a certificate.
//!
//! Reading order: [`objects`] (what an undecided request asks for) → [`controller`] (one sync; its `changes` say what
//! leads to it) → [`observe`] (the reviews of access) → [`plan`] → [`apply`]. Left out: a status room. An approval is
//! all that is written of a status, and it follows from the plan alone.
//!
//! Upstream: `pkg/controller/certificates/approver`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
