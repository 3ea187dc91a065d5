//! The lines that the apiserver sends over a watch, as far as a reflector reads them.
//!
//! An object's event is parsed in one pass. Left out: the objects themselves, which are the reader's.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::api::object::ResourceVersion;

/// One line of a watch.
pub(super) enum Event<'a, T> {
    /// A change of an object, and the object.
    Object {
        /// `ADDED`, `MODIFIED` or `DELETED`.
        kind: &'a str,
        /// As it is now; of a deleted one its last state.
        object: T,
    },
    /// A bookmark, an error, an object that this build cannot read, or an event that it does not know.
    Other {
        /// Which of them.
        kind: &'a str,
        /// The JSON that came with it.
        raw: &'a RawValue,
    },
}

impl<'a, T: Deserialize<'a>> Event<'a, T> {
    /// Reads a line; an object that cannot be read is left raw, so only a line that is no event at all is an error.
    pub(super) fn read(line: &'a [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(line).or_else(|_| {
            let Unread { kind, object } = serde_json::from_slice(line)?;
            Ok(Self::Other { kind, raw: object })
        })
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Event<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EventVisitor(PhantomData))
    }
}

struct EventVisitor<'a, T>(PhantomData<fn() -> Event<'a, T>>);

impl<'de: 'a, 'a, T: Deserialize<'de>> Visitor<'de> for EventVisitor<'a, T> {
    type Value = Event<'a, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event of a watch")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let (mut kind, mut event) = ("", None);
        while let Some(field) = map.next_key::<&str>()? {
            match (field, kind) {
                ("type", _) => kind = map.next_value()?,
                ("object", "ADDED" | "MODIFIED" | "DELETED") => {
                    event = Some(Event::Object { kind, object: map.next_value()? });
                }
                // Where the object came before the type it is read again, as the apiserver never sends it so.
                ("object", "") => return Err(serde::de::Error::missing_field("type")),
                ("object", _) => event = Some(Event::Other { kind, raw: map.next_value()? }),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        event.ok_or_else(|| serde::de::Error::missing_field("object"))
    }
}

/// The same in two passes.
#[derive(Deserialize)]
struct Unread<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
pub(super) struct Bookmark {
    pub(super) metadata: BookmarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BookmarkMeta {
    #[serde(default)]
    pub(super) resource_version: ResourceVersion,
    #[serde(default)]
    pub(super) annotations: BookmarkAnnotations,
}

#[derive(Default, Deserialize)]
pub(super) struct BookmarkAnnotations {
    #[serde(rename = "k8s.io/initial-events-end")]
    pub(super) initial_events_end: Option<String>,
}

#[derive(Default, Deserialize)]
pub(super) struct Identity {
    pub(super) metadata: IdentityMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct IdentityMeta {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) resource_version: ResourceVersion,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a line is read: what happened, and whether the object was read with it.
    fn check(line: &str, expected: &str) {
        let read = match Event::<IdentityMeta>::read(line.as_bytes()) {
            Ok(Event::Object { kind, object }) => format!("{kind} {}", object.name),
            Ok(Event::Other { kind, raw }) => format!("{kind} raw {raw}"),
            Err(_) => "no event".to_owned(),
        };
        assert_eq!(read, expected, "{line}");
    }

    #[test]
    fn an_object_is_read_with_its_event_and_anything_else_is_left_raw() {
        check(r#"{"type":"ADDED","object":{"name":"a"}}"#, "ADDED a");
        check(r#"{"type":"DELETED","new":[{}],"object":{"name":"a"}}"#, "DELETED a");
        check(r#"{"object":{"name":"a"},"type":"MODIFIED"}"#, r#"MODIFIED raw {"name":"a"}"#);
        check(r#"{"type":"MODIFIED","object":{"name":7}}"#, r#"MODIFIED raw {"name":7}"#);
        check(r#"{"type":"BOOKMARK","object":{"name":"a"}}"#, r#"BOOKMARK raw {"name":"a"}"#);
        check(r#"{"type":"ADDED"}"#, "no event");
        check("[]", "no event");
    }
}
