//! The view of a Node: its metadata with one annotation.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess};
use serde::{Deserialize, Deserializer};
use shared::api::object::Meta;
use shared::api::resource::NODES;

/// The annotation that kubelets read.
///
/// Upstream: `ObjectTTLAnnotationKey`, `staging/src/k8s.io/api/core/v1/annotation_key_constants.go`.
pub const TTL: &str = "node.alpha.kubernetes.io/ttl";

/// A Node by its metadata.
#[derive(Debug, PartialEq, Deserialize)]
pub struct Node {
    pub metadata: Meta<Ttl>,
}

shared::view!(Node, NODES, Ttl);

/// The value of the annotation [`TTL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ttl {
    #[default]
    Missing,
    /// It is not a whole number.
    Unreadable,
    Seconds(i64),
}

/// Upstream: `getIntFromAnnotation`, `pkg/controller/ttl/ttl_controller.go`.
impl<'de> Deserialize<'de> for Ttl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Ttl;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ttl, A::Error> {
                let mut ttl = Ttl::Missing;
                while let Some(Str(key)) = map.next_key()? {
                    if key == TTL {
                        let Str(text) = map.next_value()?;
                        ttl = text.parse().map_or(Ttl::Unreadable, Ttl::Seconds);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(ttl)
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

#[derive(Deserialize)]
struct Str<'a>(#[serde(borrow)] Cow<'a, str>);
