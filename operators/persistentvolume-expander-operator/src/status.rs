//! What is written with the status of a claim: the name of the resizer that expands its volume.
//!
//! Upstream: `SetClaimResizer`, `pkg/volume/util/resize_util.go`.

use serde_json::{Value, json};
use shared::api::csi_translation::InTreePlugin;

use crate::objects::RESIZER;

/// The strategic merge patch of `/status`.
pub fn resizer(plugin: InTreePlugin) -> Value {
    json!({ "metadata": { "annotations": { RESIZER: plugin.driver } } })
}
