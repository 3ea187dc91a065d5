//! Signs the ConfigMap `kube-public/cluster-info` with each bootstrap token, so that a joining node can tell the right
//! cluster by its token.
//!
//! Reading order: [`objects`] (the ConfigMap, and what is read of a token) → [`controller`] (one sync; its `changes`
//! say what leads to it) → [`observe`] → [`plan`] and [`plan::jws`] (one signature) → [`apply`].
//!
//! Upstream: `pkg/controller/bootstrap/bootstrapsigner.go`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
