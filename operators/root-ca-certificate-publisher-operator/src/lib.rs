//! Publishes, in every namespace, the CA that verifies the apiserver: the ConfigMap `kube-root-ca.crt`, which every
//! pod's token volume contains.
//!
//! Reading order: [`objects`] (what is watched) → [`controller`] (one sync; its `changes` say what leads to it) →
//! [`observe`] → [`plan`] → [`apply`]. Left out: a status room, because a ConfigMap has none.
//!
//! Upstream: `pkg/controller/certificates/rootcacertpublisher`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
