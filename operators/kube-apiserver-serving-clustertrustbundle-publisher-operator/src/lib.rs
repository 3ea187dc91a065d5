//! Publishes the CA of the apiserver's certificate in a ClusterTrustBundle, for the projected volumes of pods.
//!
//! The bundle is named after a hash of the CA. A new CA gets a new bundle, and then the previous one is deleted.
//!
//! Reading order: [`objects`] (what is read of a bundle, and its name) → [`controller`] (one sync; its
//! `changes` say what leads to it) → [`observe`] → [`plan`] → [`apply`].
//!
//! Upstream: `pkg/controller/certificates/clustertrustbundlepublisher`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
