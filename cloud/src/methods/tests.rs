use std::collections::BTreeSet;

use protox::prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, Kind, Value};

use super::*;
use crate::messages::ErrorDetail;

/// A message of this crate, as far as a test compares it.
pub(super) struct Shape {
    name: &'static str,
    /// Its default, with the names of all fields.
    shown: fn() -> String,
    /// Its bytes after it was read from these.
    again: fn(&[u8]) -> Vec<u8>,
}

impl Shape {
    pub(super) const fn of<M: Message + Default + std::fmt::Debug>(name: &'static str) -> Self {
        Self { name, shown: || format!("{:?}", M::default()), again: |bytes| M::decode(bytes).unwrap().encode_to_vec() }
    }
}

/// The file as a compiler of the protocol reads it.
fn contract() -> DescriptorPool {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
    let files = protox::compile(["cloud/v1/cloud.proto"], [folder]).unwrap();
    DescriptorPool::from_file_descriptor_set(files).unwrap()
}

/// A value that is not the default.
#[expect(clippy::wildcard_enum_match_arm, reason = "a kind that is used later fails the test")]
fn value(field: &FieldDescriptor) -> Value {
    let one = match field.kind() {
        Kind::Bool => Value::Bool(true),
        Kind::Uint32 => Value::U32(1),
        Kind::Uint64 => Value::U64(1),
        Kind::String => Value::String("text".to_owned()),
        // No UTF-8: a string refuses it.
        Kind::Bytes => Value::Bytes(b"\xff".to_vec().into()),
        Kind::Enum(of) => Value::EnumNumber(of.values().last().unwrap().number()),
        other => panic!("{other:?} is used nowhere"),
    };
    if field.is_list() { Value::List(vec![one.clone(), one]) } else { one }
}

fn check(Shape { name, shown, again }: &Shape) {
    let descriptor = contract().get_message_by_name(&format!("cloud.v1.{name}")).unwrap();
    let mut whole = DynamicMessage::new(descriptor.clone());
    let shown = shown();
    for field in descriptor.fields() {
        whole.set_field(&field, value(&field));
        assert!(shown.contains(&format!("{}: ", field.name())), "{shown} lacks {}", field.name());
    }
    assert_eq!(shown.matches(": ").count(), descriptor.fields().count(), "{shown} has more than the file");
    let bytes = whole.encode_to_vec();
    let again = DynamicMessage::decode(descriptor, &*again(&bytes)).unwrap();
    assert_eq!(again, whole, "{name} loses a field");
}

#[test]
fn the_calls_are_those_of_the_file() {
    let of_file: BTreeSet<(String, String, String)> = contract()
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>())
        .map(|method| {
            let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
            (path, method.input().name().to_owned(), method.output().name().to_owned())
        })
        .collect();
    let own = METHODS
        .iter()
        .map(|(path, [request, response])| ((*path).to_owned(), request.name.to_owned(), response.name.to_owned()));
    assert_eq!(own.collect::<BTreeSet<_>>(), of_file);
}

#[test]
fn the_messages_are_those_of_the_file() {
    for (_, [request, response]) in METHODS {
        check(request);
        check(response);
    }
    check(&Shape::of::<ErrorDetail>("ErrorDetail"));
}
