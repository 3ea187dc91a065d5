//! Attaches the volumes of pods to their nodes, through VolumeAttachments that a CSI driver's attacher carries out, and
//! detaches those that no pod needs.
//!
//! Reading order: [`objects`] (volumes and their names, pods, nodes, VolumeAttachments) → [`controller`] (the sync of a
//! volume; the sync of a node writes what the node reports) → [`observe`], with [`memory`] (what is waited for, and since
//! when) → [`plan`] → [`apply`] → [`status`] (what a node reports).
//!
//! Upstream: `pkg/controller/volume/attachdetach`.

pub mod apply;
pub mod controller;
pub mod facts;
pub mod flags;
pub mod memory;
pub mod metrics;
pub mod objects;
pub mod observe;
pub mod plan;
pub mod status;
