//! The view of a Pod that has not ended: its group.

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, null_as_default};
use shared::api::pod::group::pod_group;
use shared::api::resource::PODS;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawPod")]
pub struct Pod {
    pub metadata: Meta,
    pub group: Option<Text>,
}

shared::view!(Pod, PODS);

impl Pod {
    /// The key of its group.
    pub fn group_key(&self) -> Option<Key> {
        self.group.as_deref().map(|group| Key::new(self.metadata.namespace(), group))
    }
}

#[derive(Deserialize)]
struct RawPod {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    #[serde(deserialize_with = "pod_group")]
    scheduling_group: Option<Text>,
}

impl From<RawPod> for Pod {
    fn from(RawPod { metadata, spec }: RawPod) -> Self {
        Self { metadata, group: spec.scheduling_group }
    }
}
