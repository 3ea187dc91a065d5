//! An object's JSON in protobuf, as an apiserver sends it where this is asked for, so that tests read the same form.
//!
//! Left out: fields without a row in the tables, which no view reads.

use bytes::Bytes;
use serde_json::Value;

use crate::api::protobuf;
use crate::api::protobuf::tables::{LIST_META, POD, STATUS, items_of, object_of};
use crate::api::protobuf::write::{envelope, message, put};

/// A list; none of a kind without a table.
pub fn list(list: &Value) -> Option<Bytes> {
    let kind = list["kind"].as_str()?;
    let api_version = if kind == "PartialObjectMetadataList" { "meta.k8s.io/v1" } else { "v1" };
    let table = items_of(api_version, kind)?;
    let mut raw = Vec::new();
    put(&mut raw, 1, &message(&LIST_META, &list["metadata"]));
    for item in list["items"].as_array().into_iter().flatten() {
        put(&mut raw, 2, &message(table, item));
    }
    Some(envelope(api_version, kind, &raw))
}

/// A `Status`.
pub fn status(status: &Value) -> Bytes {
    envelope("v1", "Status", &message(&STATUS, status))
}

/// An event of a watch, in its frame; none of an object of a kind without a table.
pub fn event(kind: &str, (api_version, object_kind): (&str, &str), object: &Value) -> Option<Bytes> {
    let table = object_of(api_version, object_kind)?;
    let (mut raw, mut event) = (Vec::new(), Vec::new());
    put(&mut raw, 1, &envelope(api_version, object_kind, &message(table, object)));
    put(&mut event, 1, kind.as_bytes());
    put(&mut event, 2, &raw);
    let length = u32::try_from(event.len()).ok()?;
    Some([&length.to_be_bytes()[..], &event].concat().into())
}

/// Reads a pod's JSON as if it had come as protobuf.
///
/// # Errors
/// When the view cannot read it so.
pub fn read_pod<T: serde::de::DeserializeOwned>(pod: &Value) -> serde_json::Result<T> {
    T::deserialize(protobuf::Value::message(&POD, &message(&POD, pod)))
}
