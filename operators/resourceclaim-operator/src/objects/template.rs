//! The view of a ResourceClaimTemplate: its spec as it is, up to the size that a cache keeps.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use shared::api::kept::Kept;
use shared::api::object::{Meta, null_as_default};
use shared::controllers::live_spec::Abridged;

use super::RESOURCE_CLAIM_TEMPLATES;
use super::claim::RawSpec;

#[derive(Clone, Debug)]
pub struct ResourceClaimTemplate {
    pub metadata: Meta,
    pub has_admin_access: bool,
    pub has_prioritized_list: bool,
    /// Metadata and spec of the claims. It never changes.
    pub spec: Kept,
}

shared::view!(ResourceClaimTemplate, RESOURCE_CLAIM_TEMPLATES);

impl Abridged for ResourceClaimTemplate {
    fn left_out(&self) -> usize {
        self.spec.left_out()
    }

    fn completed(&self, spec: &RawValue) -> serde_json::Result<Self> {
        Ok(Self { spec: Kept::Whole(spec.to_owned()), ..self.clone() })
    }
}

/// What a claim takes from its template. Its metadata can have labels and annotations only.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClaimContent<'a> {
    #[serde(borrow, deserialize_with = "null_as_default")]
    pub metadata: ClaimMetadata<'a>,
    #[serde(borrow)]
    pub spec: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClaimMetadata<'a> {
    #[serde(borrow)]
    pub labels: Option<&'a RawValue>,
    #[serde(borrow)]
    pub annotations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawTemplate {
    metadata: Meta,
    #[serde(default)]
    spec: Box<RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawTemplateSpec {
    #[serde(deserialize_with = "null_as_default")]
    spec: RawSpec,
}

impl<'de> Deserialize<'de> for ResourceClaimTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RawTemplate { metadata, spec } = RawTemplate::deserialize(deserializer)?;
        let read = serde_json::from_str::<Option<RawTemplateSpec>>(spec.get()).map_err(serde::de::Error::custom)?;
        let devices = read.unwrap_or_default().spec.devices;
        let (has_admin_access, has_prioritized_list) = (devices.has_admin_access(), devices.has_prioritized_list());
        Ok(Self { metadata, has_admin_access, has_prioritized_list, spec: Kept::new(spec) })
    }
}
