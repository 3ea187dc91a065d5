//! The target of an address, which a slice copies from the Endpoints.

use serde::{Deserialize, Serialize};
use shared::api::intern::Text;
use shared::api::object::Uid;
use shared::controllers::endpoints::address::Referent;

#[derive(Clone, Debug, Default, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reference {
    /// Such as `Pod`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub kind: Text,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub namespace: Text,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: Text,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub uid: Text,
    /// Such as `v1`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub api_version: Text,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub resource_version: Text,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub field_path: Text,
}

/// Ignores the version of the object.
///
/// Upstream: `semanticIgnoreResourceVersion`, `staging/src/k8s.io/endpointslice/util/controller_utils.go`.
impl PartialEq for Reference {
    fn eq(&self, other: &Self) -> bool {
        let Self { kind, namespace, name, uid, api_version, resource_version: _, field_path } = self;
        (kind, namespace, name) == (&other.kind, &other.namespace, &other.name)
            && (uid, api_version, field_path) == (&other.uid, &other.api_version, &other.field_path)
    }
}

impl Referent for Reference {
    fn name(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }

    fn uid(&self) -> Uid {
        if self.uid.is_empty() { Uid::default() } else { Uid::parse(&self.uid) }
    }
}
