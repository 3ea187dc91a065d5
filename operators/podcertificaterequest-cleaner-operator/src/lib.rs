//! Deletes PodCertificateRequests 15 minutes after their creation.
//!
//! Reading order: [`objects`] (what is read of a request) → [`controller`] (one sync, and the rounds that lead to it) →
//! [`observe`] (live reads only) → [`plan`] → [`apply`].
//!
//! Upstream: `pkg/controller/certificates/cleaner/pcrcleaner.go`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
