//! Signs approved requests for certificates with the CA of their signer.
//!
//! Reading order: [`objects`] (the content of an approved request) → [`controller`] (one sync; its `changes` say what
//! leads to it) → [`observe`] (the current CA) → [`plan`] (the certificate, without serial number and signature) →
//! [`status`] → [`apply`] (the signature).
//!
//! Upstream: `pkg/controller/certificates/signer` and `pkg/controller/certificates/authority`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
