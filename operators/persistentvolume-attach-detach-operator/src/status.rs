//! The status of a node: the volumes that are attached, which its kubelet may mount.
//!
//! Upstream: `updateNodeStatus`, `pkg/controller/volume/attachdetach/statusupdater/node_status_updater.go`.

use serde_json::{Value, json};

use crate::objects::node::AttachedVolume;

/// The patch of `/status`. An empty list is removed, as upstream does.
pub fn attached_status(volumes: &[AttachedVolume]) -> Value {
    let volumes = (!volumes.is_empty()).then_some(volumes);
    json!({ "status": { "volumesAttached": volumes } })
}
