//! The events that the apiserver sends over a watch, as far as a reflector reads them: lines of JSON, or frames of
//! protobuf. Each says by its first byte which it is.
//!
//! An object's event is parsed in one pass. Left out: the objects themselves, which are the reader's.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::api::object::ResourceVersion;
use crate::api::protobuf::{self, Frame};
use crate::api::unreadable::read_alone;
use crate::transport::api_error::Status;
use crate::transport::client::page::Item;

pub(super) enum Event<'a, T> {
    Object {
        /// `ADDED`, `MODIFIED` or `DELETED`.
        kind: &'a str,
        /// As it is now; of a deleted one its last state.
        object: T,
    },
    Error(Status),
    /// A bookmark, an object that this build cannot read, or an event that it does not know.
    Other {
        kind: &'a str,
        item: Item<'a>,
    },
}

impl<'a, T: Deserialize<'a>> Event<'a, T> {
    /// Reads an event; an object that cannot be read is left as it is, so only what is no event at all is an error.
    pub(super) fn read(bytes: &'a [u8]) -> serde_json::Result<Self> {
        if let Frame::Of(_) = protobuf::frame(bytes) {
            return Self::read_frame(Frame::content(bytes));
        }
        let line = read_alone(|| serde_json::from_slice(bytes))
            .or_else(|_| serde_json::from_slice(bytes).map(Line::Unread))?;
        Ok(match line {
            Line::Object(kind, object) => Self::Object { kind, object },
            Line::Unread(Unread { kind: "ERROR", object }) => Self::error(object.get().as_bytes()),
            Line::Unread(Unread { kind, object }) => Self::Other { kind, item: Item::Json(object) },
        })
    }

    fn read_frame(content: &'a [u8]) -> serde_json::Result<Self> {
        let (kind, object) = read_alone(|| protobuf::event(content))?;
        if kind == "ERROR" {
            return Ok(Self::error(object));
        }
        let value = read_alone(|| protobuf::object(object))?;
        let read = if is_change(kind) { read_alone(|| T::deserialize(value)).ok() } else { None };
        let other = || Self::Other { kind, item: Item::Protobuf(value) };
        Ok(read.map_or_else(other, |object| Self::Object { kind, object }))
    }

    fn error(status: &[u8]) -> Self {
        Self::Error(Status::from_body(500, status))
    }
}

/// The version of an event; none if it cannot be read or is an error.
pub(super) fn version(event: &[u8]) -> Option<ResourceVersion> {
    let Identity { metadata } = match Event::read(event).ok()? {
        Event::Object { kind: _, object } => object,
        Event::Other { kind: _, item } => item.read().ok()?,
        Event::Error(_) => return None,
    };
    Some(metadata.resource_version).filter(|version| *version != ResourceVersion::default())
}

fn is_change(kind: &str) -> bool {
    matches!(kind, "ADDED" | "MODIFIED" | "DELETED")
}

enum Line<'a, T> {
    Object(&'a str, T),
    Unread(Unread<'a>),
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Line<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LineVisitor(PhantomData))
    }
}

struct LineVisitor<'a, T>(PhantomData<fn() -> Line<'a, T>>);

impl<'de: 'a, 'a, T: Deserialize<'de>> Visitor<'de> for LineVisitor<'a, T> {
    type Value = Line<'a, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event of a watch")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let (mut kind, mut line) = ("", None);
        while let Some(field) = map.next_key::<&str>()? {
            match field {
                "type" => kind = map.next_value()?,
                "object" if is_change(kind) => line = Some(Line::Object(kind, map.next_value()?)),
                // Where the object came before the type it is read again, as the apiserver never sends it so.
                "object" if kind.is_empty() => return Err(serde::de::Error::missing_field("type")),
                "object" => line = Some(Line::Unread(Unread { kind, object: map.next_value()? })),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        line.ok_or_else(|| serde::de::Error::missing_field("object"))
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

impl Identity {
    /// Empty where even this cannot be read.
    pub(super) fn of(item: Item<'_>) -> Self {
        item.read().unwrap_or_default()
    }
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
    use serde_json::{Value, json};

    use super::*;
    use crate::testing;

    /// How an event is read: what happened, and whether the object was read with it.
    fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8], name: fn(&T) -> &str) -> String {
        match Event::<T>::read(bytes) {
            Ok(Event::Object { kind, object }) => format!("{kind} {}", name(&object)),
            Ok(Event::Error(status)) => format!("{} {}", status.code, status.message),
            Ok(Event::Other { kind, item: Item::Json(raw) }) => format!("{kind} raw {raw}"),
            Ok(Event::Other { kind, item }) => format!("{kind} {}", item.read::<Identity>().unwrap().metadata.name),
            Err(_) => "no event".to_owned(),
        }
    }

    fn check(line: &str, expected: &str) {
        assert_eq!(read::<IdentityMeta>(line.as_bytes(), |meta| &meta.name), expected, "{line}");
    }

    #[test]
    fn an_object_is_read_with_its_event_and_anything_else_is_left_raw() {
        check(r#"{"type":"ADDED","object":{"name":"a"}}"#, "ADDED a");
        check(r#"{"type":"DELETED","new":[{}],"object":{"name":"a"}}"#, "DELETED a");
        check(r#"{"object":{"name":"a"},"type":"MODIFIED"}"#, r#"MODIFIED raw {"name":"a"}"#);
        check(r#"{"type":"MODIFIED","object":{"name":7}}"#, r#"MODIFIED raw {"name":7}"#);
        check(r#"{"type":"BOOKMARK","object":{"name":"a"}}"#, r#"BOOKMARK raw {"name":"a"}"#);
        check(r#"{"type":"ADDED"}"#, "no event");
        check(r#"{"type":"ERROR","object":{"code":410,"message":"too old"}}"#, "410 too old");
        check(r#"{"type":"ERROR","object":"sick"}"#, r#"500 "sick""#);
        check("[]", "no event");
    }

    #[test]
    fn frames_are_read_likewise() {
        const POD: (&str, &str) = ("v1", "Pod");
        let check = |kind, of, object: Value, expected: &str| {
            let frame = testing::protobuf::event(kind, of, &object).unwrap();
            assert_eq!(read::<Identity>(&frame, |object| &object.metadata.name), expected);
            // Whatever is missing of it, it is no event, and no harm.
            for end in 4..frame.len() {
                assert_eq!(read::<Identity>(&frame[..end], |object| &object.metadata.name), "no event", "{end}");
            }
        };
        let named = json!({ "metadata": { "name": "a" } });
        check("MODIFIED", POD, named.clone(), "MODIFIED a");
        check("DELETED", ("meta.k8s.io/v1", "PartialObjectMetadata"), named.clone(), "DELETED a");
        check("BOOKMARK", POD, named, "BOOKMARK a");
        check("ERROR", ("v1", "Status"), json!({ "code": 410, "message": "too old" }), "410 too old");
    }

    #[test]
    fn a_bookmark_says_where_a_list_ends_in_either_form() {
        for annotations in [json!({}), json!({ "k8s.io/initial-events-end": "true", "other": "x" })] {
            let bookmark = json!({ "metadata": { "resourceVersion": "7", "annotations": annotations } });
            let frame = testing::protobuf::event("BOOKMARK", ("v1", "Pod"), &bookmark).unwrap();
            let line = json!({ "type": "BOOKMARK", "object": bookmark }).to_string();
            for bytes in [&*frame, line.as_bytes()] {
                let Ok(Event::Other { item, .. }) = Event::<Identity>::read(bytes) else { panic!("no bookmark") };
                let Bookmark { metadata } = item.read().unwrap();
                assert_eq!(metadata.resource_version, ResourceVersion(7));
                assert_eq!(metadata.annotations.initial_events_end.is_some(), annotations != json!({}));
            }
        }
    }
}
