//! Deletes bootstrap tokens when they expire: the Secrets by which new nodes join a cluster.
//!
//! Reading order: [`objects`] (what is read of a token) → [`controller`] (one sync; its `changes` say what leads to it)
//! → [`observe`] → [`plan`] → [`apply`].
//!
//! Upstream: `pkg/controller/bootstrap/tokencleaner.go`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
