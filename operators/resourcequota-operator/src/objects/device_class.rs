//! A DeviceClass: which extended resource stands for its devices.
//!
//! Pods may ask for that resource in place of claiming a device, and a quota of the resource is for both.
//! Left out: which devices there are.
//!
//! Upstream: `staging/src/k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache`.

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, ResourceVersion, null_as_default};

use super::countable;
use super::evaluator::IMPLICIT;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawClass")]
pub struct DeviceClass {
    pub key: Key,
    pub resource_version: ResourceVersion,
    pub facts: DeviceClassFacts,
}

countable!(DeviceClass, DeviceClassFacts);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceClassFacts {
    pub name: Text,
    /// The extended resource that stands for its devices, besides the one that is called after the class.
    pub resource: Option<Text>,
}

impl DeviceClassFacts {
    /// Whether this extended resource stands for the devices of this class.
    pub fn has(&self, resource: &str) -> bool {
        self.resource.as_deref() == Some(resource) || resource.strip_prefix(IMPLICIT) == Some(&*self.name)
    }
}

#[derive(Deserialize)]
struct RawClass {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    extended_resource_name: Option<Text>,
}

impl From<RawClass> for DeviceClass {
    fn from(RawClass { metadata, spec }: RawClass) -> Self {
        let Meta { key, resource_version, .. } = metadata;
        let resource = spec.extended_resource_name.filter(|resource| !resource.is_empty());
        let facts = DeviceClassFacts { name: Text::new(key.name()), resource };
        Self { key, resource_version, facts }
    }
}
