//! Deletes old CertificateSigningRequests: finished ones after an hour, all others after a day.
//!
//! Reading order: [`objects`] (what is read of a request) → [`controller`] (one sync; its `changes` say what leads to
//! it) → [`observe`] → [`plan`] → [`apply`].
//!
//! Upstream: `pkg/controller/certificates/cleaner`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
