//! Publishes the CA of the apiserver's certificate in a ClusterTrustBundle, from which a pod's volume takes it.
//!
//! The bundle is called by a hash of the CA. Another CA gets another bundle, and then the one before goes.
//!
//! Reading order: [`objects`] (what is read of a bundle, and its versions) → [`controller`] (one sync; its `versions`
//! find out whether bundles are served, its `changes` say what leads to a sync) → [`observe`] → [`plan`] → [`apply`].
//! Left out: a status room, because a bundle has none.
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
