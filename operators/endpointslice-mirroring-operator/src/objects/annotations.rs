//! The annotations of Endpoints and of slices: the mirrored ones, and the keys of the others.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess};
use serde::{Deserialize, Deserializer};
use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::controllers::endpoints::TRIGGER_TIME;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// The annotations that a slice copies from its Endpoints.
    pub mirrored: Labels,
    /// The keys of the others. Their values, of which one repeats the whole object, are not kept.
    pub others: Box<[Text]>,
}

/// Upstream: `newEndpointSlice`, `pkg/controller/endpointslicemirroring/utils.go`.
fn is_mirrored(key: &str) -> bool {
    ![TRIGGER_TIME, LAST_APPLIED].contains(&key)
}

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Annotations;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Annotations, M::Error> {
                let (mut mirrored, mut others): (Vec<(Text, Text)>, Vec<Text>) = Default::default();
                while let Some(key) = map.next_key::<Text>()? {
                    if is_mirrored(&key) {
                        mirrored.push((key, map.next_value()?));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                        others.push(key);
                    }
                }
                others.sort_unstable();
                let mirrored = Labels::new(mirrored.iter().map(|(key, value)| (key.as_str(), value.as_str())));
                Ok(Annotations { mirrored, others: others.into() })
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}
