//! Signs approved requests for certificates with the CA of their signer.
//!
//! Reading order: [`objects`] (what an approved request asks for) → [`controller`] (one sync; its `changes` say what
//! leads to it) → [`observe`] (the CA as its files have it now) → [`plan`] (the certificate, but for its serial number
//! and signature) → [`apply`] (the signature) → [`status`]. Left out: signers whose names do not begin with
//! `kubernetes.io/`, which are other programs.
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
