//! Lists and events as protobuf: a serde `Deserializer` that reads the views as they are, by tables of field numbers.
//!
//! Nothing recurses deeper than the tables go, and every length is checked before it is used. Left out: writing, and
//! fields that no view reads: a view that asks for one is refused, because it would take the field for absent.
//!
//! Upstream: staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf/protobuf.go.

mod events;
mod fields;
mod parts;
mod read;
pub(crate) mod tables;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::Error;

pub use self::events::{Frame, event, frame};
use self::fields::{Fields, Wire};
pub(crate) use self::parts::{Part, Parts};
pub use self::read::Value;
pub(crate) use self::tables::has_table_of;
use self::tables::{LIST_META, TYPE_META, Table, items_of, object_of};
use crate::api::unreadable::read_alone;

/// The first bytes of each such answer. No JSON begins with them.
pub(crate) const MAGIC: &[u8] = b"k8s\0";

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TypeMeta {
    api_version: String,
    kind: String,
}

pub(crate) fn is_protobuf(body: &[u8]) -> bool {
    body.starts_with(MAGIC)
}

/// Reads an object by itself in the form in which it came.
///
/// # Errors
/// When it is neither JSON nor protobuf, when there is no table for its kind, or when the view cannot read it.
pub(crate) fn read_object<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    read_alone(|| if is_protobuf(body) { T::deserialize(object(body)?) } else { serde_json::from_slice(body) })
}

/// A list in its parts: its metadata, and each of its objects.
pub fn list(body: &[u8]) -> Result<(Value<'_>, Vec<Value<'_>>), Error> {
    let (kind, mut list) = open(body)?;
    let table = table_of(&kind, items_of)?;
    let (mut metadata, mut items) = (Value::message(&LIST_META, &[]), Vec::new());
    while let Some(field) = list.next()? {
        match field {
            (1, Wire::Bytes(bytes)) => metadata = Value::message(&LIST_META, bytes),
            (2, Wire::Bytes(bytes)) => items.push(Value::message(table, bytes)),
            _ => {}
        }
    }
    Ok((metadata, items))
}

fn table_of(
    TypeMeta { api_version, kind }: &TypeMeta,
    find: fn(&str, &str) -> Option<&'static Table>,
) -> Result<&'static Table, Error> {
    find(api_version, kind).ok_or_else(|| Error::custom(format_args!("there is no table for {api_version} {kind}")))
}

/// An object by itself, such as the `Status` with which the apiserver answers a failed request.
///
/// # Errors
/// When there is no table for its kind.
pub fn object(body: &[u8]) -> Result<Value<'_>, Error> {
    let (kind, raw) = open(body)?;
    Ok(Value::message(table_of(&kind, object_of)?, raw.rest()))
}

/// Takes the envelope off, `runtime.Unknown`.
fn open(body: &[u8]) -> Result<(TypeMeta, Fields<'_>), Error> {
    let envelope = body.strip_prefix(MAGIC).ok_or_else(|| Error::custom("this is no protobuf of the API"))?;
    let (mut envelope, mut kind, mut raw) = (Fields::new(envelope), TypeMeta::default(), Fields::new(&[]));
    while let Some(field) = envelope.next()? {
        match field {
            (1, Wire::Bytes(bytes)) => kind = TypeMeta::deserialize(Value::message(&TYPE_META, bytes))?,
            (2, Wire::Bytes(bytes)) => raw = Fields::new(bytes),
            _ => {}
        }
    }
    Ok((kind, raw))
}

#[cfg(test)]
mod tests;
