//! Removes the entries of dead apiservers from StorageVersions.
//!
//! Reading order: [`objects`] (what is read of StorageVersions and of the Leases of apiservers) → [`controller`] (one
//! sync; its `changes` say what leads to it) → [`observe`] → [`plan`] → [`apply`] → [`status`].
//!
//! Upstream: `pkg/controller/storageversiongc`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
