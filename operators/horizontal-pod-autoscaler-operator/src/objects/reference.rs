//! A reference to the target of an autoscaler, or to the object of a metric.

use serde::{Deserialize, Serialize};
use shared::api::intern::Text;

/// An object in the autoscaler's namespace, by kind and name. Upstream: `CrossVersionObjectReference`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reference {
    pub kind: Text,
    pub name: Text,
    /// Only the group matters.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub api_version: Text,
}
