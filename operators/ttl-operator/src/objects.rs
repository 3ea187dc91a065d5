//! What a Node is to this operator: one annotation, and that it is there.
//!
//! Left out: everything else, such as whether it is ready or being deleted; every Node counts.

use serde::Deserialize;
use shared::api::object::Meta;
use shared::api::resource::NODES;

/// The annotation that kubelets read.
///
/// Upstream: `ObjectTTLAnnotationKey`, `staging/src/k8s.io/api/core/v1/annotation_key_constants.go`.
pub const TTL: &str = "node.alpha.kubernetes.io/ttl";

/// A Node by its metadata.
#[derive(Debug, PartialEq, Deserialize)]
pub struct Node {
    /// Its metadata, and what its annotation says.
    pub metadata: Meta<Ttl>,
}

shared::view!(Node, NODES, Ttl);

/// What the annotation [`TTL`] says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "RawAnnotations")]
pub enum Ttl {
    /// It is not there.
    #[default]
    Missing,
    /// It is no whole number.
    Unreadable,
    /// This, in whatever way it is written.
    Seconds(i64),
}

#[derive(Deserialize)]
struct RawAnnotations {
    #[serde(rename = "node.alpha.kubernetes.io/ttl", default)]
    ttl: Option<String>,
}

/// Upstream: `getIntFromAnnotation`, `pkg/controller/ttl/ttl_controller.go`.
impl From<RawAnnotations> for Ttl {
    fn from(RawAnnotations { ttl }: RawAnnotations) -> Self {
        ttl.map_or(Self::Missing, |text| text.parse().map_or(Self::Unreadable, Self::Seconds))
    }
}
