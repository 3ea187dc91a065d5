//! Publishes, in every namespace, the CA that verifies the apiserver: the ConfigMap `kube-root-ca.crt`, which every
//! pod's token volume contains.
//!
//! Reading order: [`objects`] (what is watched) → [`controller`] (which event wakes which namespace, and one sync) →
//! [`observe`] → [`plan`] → `apply`. Left out: a status room, because a ConfigMap has none.
//!
//! Upstream: `pkg/controller/certificates/rootcacertpublisher`.

mod apply;
pub mod controller;
pub mod flags;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
