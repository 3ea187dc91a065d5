//! The live read of a spec whose template a cache does not keep, because it is [too large](crate::api::kept).
//!
//! Left out: when it is needed. Each controller plans it where the next step copies the template.

use std::fmt;
use std::sync::Arc;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::api::object::{Kind, Meta, NoAnnotations, Object};
use crate::api::template::PodTemplate;
use crate::working::control::Control;
use crate::working::decisions::{self, LiveRead};

/// A kind whose cached view lacks a large template.
pub trait Abridged: Kind + Clone {
    /// The bytes of its spec that the cache does not keep; 0 if nothing is missing.
    fn left_out(&self) -> usize;

    /// This state with the templates of its spec, which was read live.
    fn completed(&self, spec: &RawValue) -> serde_json::Result<Self>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum NotCached {
    /// A step needs a template that is too large for the cache.
    LargeTemplate { bytes: usize },
}

/// Plans to read the spec of an object, unless the cached one is complete.
pub fn read_spec<T: Abridged>(cached: &T) -> Option<LiveRead<NotCached>> {
    let bytes = cached.left_out();
    (bytes > 0).then_some(LiveRead { step: "read the template", reason: NotCached::LargeTemplate { bytes } })
}

/// Reads the spec of a cached object, and gives the cached state with the templates that it lacks.
///
/// An edit that the cache has not seen is an error: the decision that needs the template was about the spec before it.
pub async fn complete<T: Abridged>(control: &Control, cached: &Arc<T>) -> anyhow::Result<Arc<T>> {
    let (meta, kind) = (cached.meta(), &T::RESOURCE.kind);
    let live: Live = control
        .get(&T::RESOURCE, &meta.key)
        .await
        .with_context(|| format!("cannot read the template of the {kind}"))?;
    ensure!(live.metadata.uid == meta.uid, "the {kind} was deleted and created again");
    ensure!(live.metadata.generation == meta.generation, "the {kind} was edited after the cached state");
    let whole = cached.completed(&live.spec).with_context(|| format!("cannot read the template of the {kind}"))?;
    Ok(Arc::new(whole))
}

pub fn template_of(spec: &RawValue) -> serde_json::Result<PodTemplate> {
    #[derive(Deserialize)]
    struct Spec {
        #[serde(default, deserialize_with = "PodTemplate::whole")]
        template: PodTemplate,
    }
    serde_json::from_str::<Spec>(spec.get()).map(|spec| spec.template)
}

/// The view of an object with its whole spec.
#[derive(Debug, Deserialize)]
struct Live {
    metadata: Meta,
    #[serde(default)]
    spec: Box<RawValue>,
}

impl Object for Live {
    type Annotations = NoAnnotations;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl decisions::Reason for NotCached {}

impl fmt::Display for NotCached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::LargeTemplate { bytes } = self;
        write!(f, "its {bytes} bytes are not cached")
    }
}

#[cfg(test)]
mod tests;
