//! The tools with which tests are written.

pub(crate) mod attachments;
pub(crate) mod behind;
pub(crate) mod clusters;
pub(crate) mod collector;
pub(crate) mod csi;
pub(crate) mod devices;
mod dump;
pub(crate) mod kubelet;
pub(crate) mod migrations;
pub(crate) mod objects;
mod quota;
pub(crate) mod requests;
pub(crate) mod sampler;
pub(crate) mod scene;
pub(crate) mod trust_bundles;
pub(crate) mod webhook;

pub(crate) use clusters::{operators, start_operators, with_cluster};
pub(crate) use objects::{daemon_set, deployment, image, stateful_set, template, uid};
pub(crate) use scene::{DEADLINE, Scene, on_shared_cluster, without_kubelets};
