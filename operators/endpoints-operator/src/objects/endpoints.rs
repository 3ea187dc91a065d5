//! The view of Endpoints: all fields that this operator writes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess};
use serde::{Deserialize, Deserializer};
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};

use super::{ENDPOINTS, Subset, annotations};

/// The addresses of the Service with the same key.
#[derive(Debug, PartialEq, Deserialize)]
pub struct Endpoints {
    /// Their metadata, with the annotations that this operator reads.
    pub metadata: Meta<Marks>,
    /// The addresses, grouped by ports.
    #[serde(default, deserialize_with = "null_as_default")]
    pub subsets: Vec<Subset>,
}

shared::view!(Endpoints, ENDPOINTS, Marks);

/// Endpoints without their addresses.
#[derive(Debug, Deserialize)]
pub struct EndpointsMetadata {
    /// Their metadata, with the annotations that this operator reads.
    pub metadata: Meta<Marks>,
}

shared::view!(EndpointsMetadata, ENDPOINTS, Marks);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The value of [`annotations::OVER_CAPACITY`].
    pub over_capacity: Option<Text>,
    pub is_lock: bool,
}

impl<'de> Deserialize<'de> for Marks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Marks;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Marks, A::Error> {
                let mut marks = Marks::default();
                while let Some(Str(key)) = map.next_key()? {
                    match &*key {
                        annotations::OVER_CAPACITY => marks.over_capacity = Some(map.next_value()?),
                        other => {
                            marks.is_lock |= other == annotations::LEADER;
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(marks)
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

#[derive(Deserialize)]
struct Str<'a>(#[serde(borrow)] Cow<'a, str>);
