//! The view of a Node: who attaches its volumes, which it has and uses, and whether it is well.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};
use shared::api::condition::{Condition, is_true};
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::NODES;
use shared::api::taint::{OUT_OF_SERVICE, Taint};

use super::volume::VolumeName;

/// A kubelet sets it where it leaves attaching to the control plane. Its value does not matter.
///
/// Upstream: `ControllerManagedAttachAnnotation`, `pkg/volume/util/util.go`.
pub const CONTROLLER_MANAGED_ATTACH: &str = "volumes.kubernetes.io/controller-managed-attach-detach";

const READY: &str = "Ready";

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawNode")]
pub struct Node {
    /// With it, whether the node's kubelet leaves attaching to the control plane.
    pub metadata: Meta<IsManaged>,
    pub is_ready: bool,
    /// Whether a person says that it has failed for good.
    pub is_out_of_service: bool,
    /// The volumes that its kubelet uses, or is about to use.
    pub in_use: Box<[VolumeName]>,
    /// The volumes that its kubelet may mount.
    pub attached: Box<[AttachedVolume]>,
}

shared::view!(Node, NODES, IsManaged);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IsManaged(pub bool);

/// An entry of `status.volumesAttached`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachedVolume {
    pub name: VolumeName,
    #[serde(default)]
    pub device_path: Text,
}

impl Node {
    pub fn uses(&self, volume: &VolumeName) -> bool {
        self.in_use.contains(volume)
    }

    pub fn reports(&self, volume: &VolumeName) -> bool {
        self.attached.iter().any(|attached| attached.name == *volume)
    }

    pub const fn is_managed(&self) -> bool {
        self.metadata.annotations.0
    }
}

impl<'de> Deserialize<'de> for IsManaged {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = IsManaged;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<IsManaged, A::Error> {
                let mut is_managed = false;
                while let Some((Str(key), IgnoredAny)) = map.next_entry()? {
                    is_managed |= key == CONTROLLER_MANAGED_ATTACH;
                }
                Ok(IsManaged(is_managed))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

#[derive(Deserialize)]
struct Str<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct RawNode {
    metadata: Meta<IsManaged>,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawSpec {
    #[serde(deserialize_with = "null_as_default")]
    taints: Vec<Taint>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
    #[serde(deserialize_with = "null_as_default")]
    volumes_in_use: Box<[VolumeName]>,
    #[serde(deserialize_with = "null_as_default")]
    volumes_attached: Box<[AttachedVolume]>,
}

impl From<RawNode> for Node {
    fn from(RawNode { metadata, spec, status }: RawNode) -> Self {
        Self {
            metadata,
            is_ready: is_true(&status.conditions, READY),
            is_out_of_service: spec.taints.iter().any(|taint| *taint.key == *OUT_OF_SERVICE),
            in_use: status.volumes_in_use,
            attached: status.volumes_attached,
        }
    }
}
