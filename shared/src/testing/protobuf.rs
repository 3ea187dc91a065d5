//! An object's JSON in protobuf, as an apiserver sends it where this is asked for, so that tests read the same form.
//!
//! Left out: fields without a row in the tables, which no view reads.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::api::protobuf::tables::{ABSENT, Kind, LIST_META, POD, Row, STATUS, TYPE_META, Table, items_of, object_of};
use crate::api::protobuf::{self, MAGIC};
use crate::api::time::Time;

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

/// An object by itself; none of a kind without a table.
pub fn object(object: &Value) -> Option<Bytes> {
    let (api_version, kind) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
    Some(envelope(api_version, kind, &message(object_of(api_version, kind)?, object)))
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

/// A message of this kind in `runtime.Unknown`.
fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Bytes {
    let mut body = MAGIC.to_vec();
    put(&mut body, 1, &message(&TYPE_META, &json!({ "apiVersion": api_version, "kind": kind })));
    put(&mut body, 2, raw);
    body.into()
}

/// The fields of an object that have a row.
pub(crate) fn message(table: &Table, object: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in table.rows.iter().filter(|row| row.number != ABSENT) {
        match &row.kind {
            Kind::Inline(inner) => put(&mut bytes, row.number, &message(inner, object)),
            Kind::Bool | Kind::Int | Kind::Text | Kind::Time | Kind::Map | Kind::Message(_) | Kind::List(_) => {
                field(&mut bytes, row, &object[row.name]);
            }
        }
    }
    bytes
}

fn field(bytes: &mut Vec<u8>, row: &Row, value: &Value) {
    match (&row.kind, value) {
        (Kind::List(kind), Value::Array(values)) => {
            for value in values {
                single(bytes, row.number, kind, value);
            }
        }
        (Kind::Map, Value::Object(entries)) => {
            for (key, value) in entries {
                let mut entry = Vec::new();
                single(&mut entry, 1, &Kind::Text, &Value::from(&**key));
                single(&mut entry, 2, &Kind::Text, value);
                put(bytes, row.number, &entry);
            }
        }
        (kind, Value::Null) if row.omits_zero => single(bytes, row.number, kind, &zero(kind)),
        (_, Value::Null) => {}
        (kind, value) => single(bytes, row.number, kind, value),
    }
}

/// The value that Go writes for a field that JSON has left out.
fn zero(kind: &Kind) -> Value {
    match kind {
        Kind::Bool => false.into(),
        Kind::Int => 0.into(),
        Kind::Text => "".into(),
        Kind::Time | Kind::Map | Kind::Message(_) | Kind::Inline(_) | Kind::List(_) => Value::Null,
    }
}

fn single(bytes: &mut Vec<u8>, number: u64, kind: &Kind, value: &Value) {
    match kind {
        Kind::Bool => put_number(bytes, number, value.as_bool().unwrap_or_default().into()),
        Kind::Int => put_number(bytes, number, value.as_i64().unwrap_or_default().cast_unsigned()),
        Kind::Text => put(bytes, number, value.as_str().unwrap_or_default().as_bytes()),
        Kind::Message(table) => put(bytes, number, &message(table, value)),
        Kind::Time => {
            let mut time = Vec::new();
            if let Ok(read) = serde_json::from_value::<Time>(value.clone()) {
                put_number(&mut time, 1, read.second().cast_unsigned());
                put_number(&mut time, 2, 0);
            }
            put(bytes, number, &time);
        }
        Kind::Map | Kind::Inline(_) | Kind::List(_) => {}
    }
}

/// A field that has a length.
fn put(bytes: &mut Vec<u8>, number: u64, content: &[u8]) {
    put_varint(bytes, number << 3 | 2);
    put_varint(bytes, u64::try_from(content.len()).unwrap_or_default());
    bytes.extend_from_slice(content);
}

fn put_number(bytes: &mut Vec<u8>, number: u64, value: u64) {
    put_varint(bytes, number << 3);
    put_varint(bytes, value);
}

fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(u8::try_from(value & 0x7f).unwrap_or_default() | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap_or_default());
}
