//! The views of a Pod: the names of its ephemeral volumes for the cache, and their templates for a live read.
//!
//! A template is raw JSON, so that a claim gets each field of it.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use shared::api::names::ephemeral_claim_name;
use shared::api::object::{Key, Meta};
use shared::api::resource::PODS;

#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    pub metadata: Meta,
    pub ephemeral_volumes: Box<[Box<str>]>,
}

shared::view!(Pod, PODS);

impl Pod {
    pub fn claim_keys(&self) -> impl Iterator<Item = Key> {
        self.ephemeral_volumes.iter().map(|volume| claim_key(&self.metadata.key, volume))
    }
}

/// The claim of an ephemeral volume.
pub fn claim_key(pod: &Key, volume: &str) -> Key {
    Key::new(pod.namespace(), &ephemeral_claim_name(pod.name(), volume))
}

/// A pod with the templates of its ephemeral volumes.
#[derive(Debug)]
pub struct LivePod {
    pub metadata: Meta,
    pub ephemeral_volumes: Vec<(Box<str>, ClaimTemplate)>,
}

shared::view!(LivePod, PODS);

/// Its metadata can have labels and annotations only.
#[derive(Clone, Debug, Default)]
pub struct ClaimTemplate {
    pub labels: Option<Box<RawValue>>,
    pub annotations: Option<Box<RawValue>>,
    pub spec: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "E: Deserialize<'de>"))]
struct Raw<'a, E> {
    metadata: Meta,
    #[serde(borrow, default = "RawSpec::empty")]
    spec: RawSpec<'a, E>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "E: Deserialize<'de>"))]
struct RawSpec<'a, E> {
    #[serde(borrow, default = "Option::default")]
    volumes: Option<Vec<RawVolume<'a, E>>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "E: Deserialize<'de>"))]
struct RawVolume<'a, E> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(default = "Option::default")]
    ephemeral: Option<E>,
}

impl<E> RawSpec<'_, E> {
    const fn empty() -> Self {
        Self { volumes: None }
    }

    fn ephemeral_volumes(self) -> impl Iterator<Item = (Box<str>, E)> {
        let volumes = self.volumes.into_iter().flatten();
        volumes.filter_map(|volume| Some((Box::from(&*volume.name), volume.ephemeral?)))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEphemeral {
    #[serde(default)]
    volume_claim_template: Option<RawTemplate>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawTemplate {
    metadata: Option<RawTemplateMeta>,
    spec: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawTemplateMeta {
    labels: Option<Box<RawValue>>,
    annotations: Option<Box<RawValue>>,
}

impl From<RawEphemeral> for ClaimTemplate {
    fn from(RawEphemeral { volume_claim_template }: RawEphemeral) -> Self {
        let RawTemplate { metadata, spec } = volume_claim_template.unwrap_or_default();
        let RawTemplateMeta { labels, annotations } = metadata.unwrap_or_default();
        Self { labels, annotations, spec }
    }
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Raw { metadata, spec } = Raw::<IgnoredAny>::deserialize(deserializer)?;
        Ok(Self { metadata, ephemeral_volumes: spec.ephemeral_volumes().map(|(name, _)| name).collect() })
    }
}

impl<'de> Deserialize<'de> for LivePod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Raw { metadata, spec } = Raw::<RawEphemeral>::deserialize(deserializer)?;
        let volumes = spec.ephemeral_volumes().map(|(name, ephemeral)| (name, ephemeral.into()));
        Ok(Self { metadata, ephemeral_volumes: volumes.collect() })
    }
}
