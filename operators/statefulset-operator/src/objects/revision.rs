//! The view of a ControllerRevision that a pod is made from: its template.
//!
//! It is read live where it is needed, for a cache of all revisions would hold ten templates for each StatefulSet. Left
//! out: its place in the history, which [`shared::controllers::revisions`] reads.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use shared::api::object::Meta;
use shared::api::resource::CONTROLLER_REVISIONS;
use shared::api::template::PodTemplate;
use shared::controllers::revisions::data::template_of;

#[derive(Debug)]
pub struct StoredRevision {
    pub metadata: Meta,
    pub template: PodTemplate,
}

shared::view!(StoredRevision, CONTROLLER_REVISIONS);

impl<'de> Deserialize<'de> for StoredRevision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Raw {
            metadata: Meta,
            #[serde(default)]
            data: Box<RawValue>,
        }
        let Raw { metadata, data } = Raw::deserialize(deserializer)?;
        let template = template_of(&data).map_err(serde::de::Error::custom)?;
        Ok(Self { metadata, template })
    }
}
