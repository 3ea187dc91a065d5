//! Publishes the CA that verifies the apiserver in every namespace: the ConfigMap `kube-root-ca.crt`, which every pod's
//! token volume contains.
//!
//! Reading order: [`objects`] (what is watched) → [`controller`] (one sync; its `changes` say what leads to it) →
//! [`observe`] → [`plan`] → [`apply`].
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
