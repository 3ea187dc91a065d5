//! One text for all pod templates that are semantically equal.
//!
//! Upstream compares typed objects. Here the type is known only where it makes a difference: which maps hold texts, which
//! values are quantities or times, and which objects are no pointers in Go, so that an empty one says nothing.
//! Left out: scalars that equal their absence (`false`, `0`, `""`): the apiserver leaves those out itself.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::api::quantity::{Format, Quantity};
use crate::api::time::Time;

pub(super) fn text(template: &RawValue) -> String {
    let value: Value = serde_json::from_str(template.get()).unwrap_or_default();
    let mut text = String::new();
    match simplified(value, Field::TEMPLATE) {
        Some(value) => value.write(&mut text),
        None => text.push_str("{}"),
    }
    text
}

/// A value without the differences of form that mean nothing.
enum Simple {
    Scalar(String),
    List(Vec<Self>),
    Object(BTreeMap<String, Self>),
}

impl Simple {
    fn write(&self, out: &mut String) {
        match self {
            Self::Scalar(text) => out.push_str(text),
            Self::List(items) => {
                write_series(out, ['[', ']'], items, Self::write);
            }
            Self::Object(entries) => {
                write_series(out, ['{', '}'], entries, |(key, value), out| {
                    out.push_str(&Value::from(key.as_str()).to_string());
                    out.push(':');
                    value.write(out);
                });
            }
        }
    }
}

fn write_series<T>(
    out: &mut String,
    [open, close]: [char; 2],
    items: impl IntoIterator<Item = T>,
    write: impl Fn(T, &mut String),
) {
    out.push(open);
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(close);
}

/// The kind of value that a field of this place holds.
#[derive(Clone, Copy)]
struct Field {
    kind: Kind,
    /// 0 for the template, 1 for its metadata and spec, …
    depth: usize,
    /// Whether an empty object is as good as none.
    empty_is_none: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A struct in Go, or a list of them; or unknown.
    Struct,
    /// A map whose keys and texts are the user's.
    TextMap,
    QuantityMap,
    Quantity,
    /// A quantity that is no pointer in Go, so that 0 is as good as none.
    QuantityOrZero,
    Time,
}

impl Field {
    const TEMPLATE: Self = Self { kind: Kind::Struct, depth: 0, empty_is_none: true };

    fn named(self, name: &str) -> Self {
        let depth = self.depth + 1;
        let (kind, empty_is_none) = match self.kind {
            Kind::TextMap => (Kind::TextMap, false),
            Kind::QuantityMap => (Kind::Quantity, false),
            Kind::Struct | Kind::Quantity | Kind::QuantityOrZero | Kind::Time => match name {
                "labels" | "annotations" | "nodeSelector" | "matchLabels" | "volumeAttributes" | "options" => {
                    (Kind::TextMap, true)
                }
                "limits" | "requests" | "overhead" => (Kind::QuantityMap, true),
                "sizeLimit" => (Kind::Quantity, false),
                "divisor" => (Kind::QuantityOrZero, false),
                "creationTimestamp" | "deletionTimestamp" => (Kind::Time, false),
                "metadata" => (Kind::Struct, true),
                // A container's resources are a struct; a pod's, at the depth 2, are a pointer to one.
                "resources" => (Kind::Struct, depth != 2),
                _ => (Kind::Struct, false),
            },
        };
        Self { kind, depth, empty_is_none }
    }
}

/// `None` for a value that means the same as no value.
fn simplified(value: Value, field: Field) -> Option<Simple> {
    match value {
        Value::Null => None,
        Value::Array(items) => {
            let null = || Simple::Scalar("null".to_owned());
            let of_item = Field { empty_is_none: false, ..field };
            let items: Vec<Simple> =
                items.into_iter().map(|item| simplified(item, of_item).unwrap_or_else(null)).collect();
            (!items.is_empty()).then_some(Simple::List(items))
        }
        Value::Object(entries) => {
            let entries: BTreeMap<String, Simple> = entries
                .into_iter()
                .filter_map(|(key, value)| simplified(value, field.named(&key)).map(|value| (key, value)))
                .collect();
            (!entries.is_empty() || !field.empty_is_none).then_some(Simple::Object(entries))
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => scalar(&value, field.kind).map(Simple::Scalar),
    }
}

fn scalar(value: &Value, kind: Kind) -> Option<String> {
    match kind {
        Kind::Struct | Kind::TextMap | Kind::QuantityMap => Some(value.to_string()),
        Kind::Quantity | Kind::QuantityOrZero => match quantity(value) {
            Some(quantity) if quantity.is_zero() && kind == Kind::QuantityOrZero => None,
            Some(quantity) => Some(quantity.with_format(Format::DecimalExponent).to_string()),
            None => Some(value.to_string()),
        },
        Kind::Time => match serde_json::from_value::<Time>(value.clone()) {
            Ok(time) => Some(time.second().to_string()),
            Err(_) => Some(value.to_string()),
        },
    }
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
