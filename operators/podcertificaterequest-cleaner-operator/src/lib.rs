//! Deletes PodCertificateRequests a quarter of an hour after they were made, whatever has become of them.
//!
//! Reading order: [`objects`] (what is read of a request) → [`controller`] (one sync, and the rounds that lead to it) →
//! [`observe`] (all of it live) → [`plan`] → [`apply`]. Left out: a status room, because nothing is written of a request
//! but its deletion, and changes, because none is followed.
//!
//! Upstream: `pkg/controller/certificates/cleaner/pcrcleaner.go`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
