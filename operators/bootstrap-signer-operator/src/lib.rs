//! Signs the ConfigMap `kube-public/cluster-info` with each bootstrap token, so that a node which joins by a token
//! knows that it talks to the cluster of that token.
//!
//! Reading order: [`objects`] (the ConfigMap, and what is read of a token) → [`controller`] (one sync; its `changes`
//! say what leads to it) → [`observe`] → [`plan`] and [`plan::jws`] (one signature) → [`apply`]. Left out: a status
//! room, because a ConfigMap has no status; and deleting tokens, which is the token-cleaner-controller's.
//!
//! Upstream: `pkg/controller/bootstrap/bootstrapsigner.go`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod objects;
pub mod observe;
pub mod plan;
