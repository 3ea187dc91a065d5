//! All JSON that the tables can hold comes through the wire unchanged, and no bytes at all do harm.

use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

use super::tables::{ABSENT, KINDS, Kind, PARTIAL_OBJECT_METADATA, POD, Row, STATUS, Table};
use super::*;
use crate::api::object::Meta;
use crate::api::time::Time;
use crate::testing::protobuf::{self, message};

/// The values that JSON may have in such a field, without those that JSON leaves out.
fn any_of(kind: &'static Kind) -> BoxedStrategy<Json> {
    match kind {
        Kind::Bool => Just(true).prop_map(Json::from).boxed(),
        Kind::Int => any::<i64>().prop_filter("zero", |number| *number != 0).prop_map(Json::from).boxed(),
        Kind::Text => ".{1,9}".prop_map(Json::from).boxed(),
        Kind::Time => (-62_000_000_000_i64..250_000_000_000)
            .prop_map(|second| Json::from(Time::from_second(second).to_string()))
            .boxed(),
        Kind::Map => btree_map(".{0,9}", ".{0,9}", 1..3).prop_map(|map| json!(map)).boxed(),
        Kind::Message(table) | Kind::Inline(table) => object_of(table),
        Kind::List(kind) => vec(any_of(kind), 1..3).prop_map(Json::from).boxed(),
    }
}

fn object_of(table: &'static Table) -> BoxedStrategy<Json> {
    let rows = rows_of(table).into_iter().filter(|row| row.number != ABSENT);
    let fields: Vec<_> = rows.map(|row| of(any_of(&row.kind)).prop_map(|value| Some((row.name, value?)))).collect();
    let object = |fields: Vec<Option<(&str, Json)>>| {
        fields.into_iter().flatten().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
    };
    fields.prop_map(object).boxed()
}

/// The rows of the fields that JSON has.
fn rows_of(table: &'static Table) -> Vec<&'static Row> {
    let rows = |row: &'static Row| if let Kind::Inline(inner) = &row.kind { rows_of(inner) } else { vec![row] };
    table.rows.iter().flat_map(rows).collect()
}

fn read(table: &'static Table, bytes: &[u8]) -> Result<Json, Error> {
    Json::deserialize(Value::message(table, bytes))
}

/// The parts of a list that comes in pieces of this size, and whether it came to its end.
fn in_pieces(body: &[u8], size: usize) -> Result<(Vec<Json>, bool), Error> {
    let (mut parts, mut read) = (Parts::default(), Vec::new());
    for piece in body.chunks(size) {
        parts.push(piece);
        while let Some(part) = parts.next()? {
            read.push(Json::deserialize(part.value())?);
        }
    }
    Ok((read, parts.is_complete()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_json_has_comes_through_the_wire(pod in object_of(&POD), status in object_of(&STATUS)) {
        prop_assert_eq!(read(&POD, &message(&POD, &pod)).unwrap(), pod);
        prop_assert_eq!(read(&STATUS, &message(&STATUS, &status)).unwrap(), status);
    }

    #[test]
    fn a_list_comes_apart_into_its_objects(items in vec(object_of(&PARTIAL_OBJECT_METADATA), 0..4)) {
        let whole = json!({ "kind": "PartialObjectMetadataList", "metadata": { "continue": "t" }, "items": items });
        let body = protobuf::list(&whole).unwrap();
        let (metadata, objects) = list(&body).unwrap();
        prop_assert_eq!(Json::deserialize(metadata).unwrap(), json!({ "continue": "t" }));
        let objects: Vec<Json> = objects.into_iter().map(|object| Json::deserialize(object).unwrap()).collect();
        prop_assert_eq!(objects, items);
    }

    #[test]
    fn a_list_comes_apart_in_whatever_pieces_it_comes(
        items in vec(object_of(&PARTIAL_OBJECT_METADATA), 0..4),
        size in 1_usize..60,
        cut in any::<prop::sample::Index>(),
    ) {
        let whole = json!({ "kind": "PartialObjectMetadataList", "metadata": { "continue": "t" }, "items": items });
        let body = protobuf::list(&whole).unwrap();
        let (parts, is_complete) = in_pieces(&body, size).unwrap();
        prop_assert!(is_complete);
        prop_assert_eq!(parts, [vec![json!({ "continue": "t" })], items].concat());
        let (_, is_complete) = in_pieces(&body[..cut.index(body.len())], size).unwrap();
        prop_assert!(!is_complete, "what is missing is noticed");
    }

    /// A cut is an error, or between two fields: then the rest is missing, and nothing else has changed.
    #[test]
    fn a_message_that_is_cut_is_never_more_than_it_was(pod in object_of(&PARTIAL_OBJECT_METADATA), cut in any::<prop::sample::Index>()) {
        let bytes = message(&PARTIAL_OBJECT_METADATA, &pod);
        let cut = cut.index(bytes.len() + 1);
        match read(&PARTIAL_OBJECT_METADATA, &bytes[..cut]) {
            Ok(read) => prop_assert!(read == pod || (cut == 0 && read == json!({})), "{read}"),
            Err(error) => prop_assert!(cut < bytes.len(), "{error}"),
        }
    }

    #[test]
    fn no_bytes_do_harm(bytes in vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>(), pod in object_of(&POD)) {
        let mut body = protobuf::list(&json!({ "kind": "PodList", "items": [pod] })).unwrap().to_vec();
        let at = at.index(body.len());
        body.splice(at..(at + 1).min(body.len()), bytes.iter().copied().take(3));
        let enveloped = [MAGIC, &bytes].concat();
        for body in [&bytes, &body, &enveloped] {
            prop_assert!(object(body).is_err());
            if let Ok((parts, true)) = in_pieces(body, 7) {
                prop_assert!(parts.iter().all(Json::is_object));
            }
            for item in list(body).map(|(_, items)| items).unwrap_or_default() {
                prop_assert!(Json::deserialize(item).map_or(true, |object| object.is_object()));
            }
        }
        prop_assert!(read(&POD, &bytes).map_or(true, |object| object.is_object()));
    }
}

/// The fields of a metadata on the wire, one after the other.
fn fields(fields: &[(u8, &[u8])]) -> Vec<u8> {
    let field =
        |(number, content): &(u8, &[u8])| [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], *content].concat();
    fields.iter().flat_map(field).collect()
}

#[test]
fn what_no_view_may_take_for_absent_is_an_error() {
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        #[expect(dead_code, reason = "only its name matters")]
        dns_policy: Option<Json>,
    }
    #[derive(Debug, Deserialize)]
    struct Pod {
        #[expect(dead_code, reason = "only its name matters")]
        spec: Spec,
    }
    #[derive(Debug, Deserialize)]
    struct Flattened {
        #[serde(flatten)]
        #[expect(dead_code, reason = "only that it is flattened matters")]
        pod: Pod,
    }
    let error = Pod::deserialize(Value::message(&POD, &fields(&[(2, b"")]))).unwrap_err().to_string();
    assert_eq!(error, "Spec reads dnsPolicy, which is not in the table of PodSpec");

    let error = Flattened::deserialize(Value::message(&POD, &fields(&[(2, b"")]))).unwrap_err().to_string();
    assert_eq!(error, "Pod is read as a map");

    let metadata = fields(&[(14, b"a"), (1, b"name"), (14, b"b")]);
    let error = read(&PARTIAL_OBJECT_METADATA, &fields(&[(1, &metadata)])).unwrap_err().to_string();
    assert_eq!(error, "finalizers comes in parts");
    let error = read(&PARTIAL_OBJECT_METADATA, &[1 << 3, 1]).unwrap_err().to_string();
    assert!(error.starts_with("the wire has something else than Message"), "{error}");
    for (body, expected) in [
        (&b"{}"[..], "this is no protobuf of the API"),
        (b"k8s\0", "there is no table for  "),
        (b"k8s\0\x0a\x7f", "a field is longer than its message"),
        (b"k8s\0\x0a", "a message ends within a number"),
        (b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "a number has more than 64 bits"),
        (b"k8s\0\x0b", "there is no wire type 3"),
    ] {
        assert_eq!(list(body).map(|_| ()).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_list_in_pieces_that_is_wrong_is_an_error_before_it_is_held() {
    let kind = fields(&[(1, b"v1"), (2, b"PodList")]);
    let begun = [MAGIC, &fields(&[(1, &kind)])].concat();
    for (list, expected) in [
        (&[0x12, 4, 0x12, 3][..], "a part of the list has 3 bytes"),
        (b"\x12\xff\xff\xff\xff\x0f\x12\xff\xff\xff\x7f", "a part of the list has 268435455 bytes"),
        (&[0xff; 20], "a number has more than 64 bits"),
        (&[8; 20], "a list has only messages and texts"),
    ] {
        assert_eq!(in_pieces(&[&begun, list].concat(), 5).unwrap_err().to_string(), expected);
    }
    assert_eq!(in_pieces(b"k8s\0\x12\x02\x12\x00", 5).unwrap_err().to_string(), "the list came before its kind");
    assert_eq!(in_pieces(b"{\"a\":1}", 5).unwrap_err().to_string(), "this is no protobuf of the API");
}

#[test]
fn what_is_no_utf_8_is_replaced_as_gos_json_does() {
    let labels = fields(&[(1, b"\xffkey"), (2, b"value\xff")]);
    let metadata = fields(&[(1, b"a"), (11, &labels)]);
    let meta = Meta::<crate::api::object::NoAnnotations>::deserialize(Value::message(&POD, &fields(&[])));
    assert!(meta.unwrap_err().to_string().contains("name"));
    let object = read(&PARTIAL_OBJECT_METADATA, &fields(&[(1, &metadata)])).unwrap();
    assert_eq!(object, json!({ "metadata": { "name": "a", "labels": { "\u{fffd}key": "value\u{fffd}" } } }));
}

#[test]
fn a_zero_time_is_omitted_or_null_as_in_json() {
    let metadata = fields(&[(1, b"a"), (8, b"")]);
    let condition = fields(&[(1, b"Ready"), (4, b"")]);
    let pod = read(&POD, &fields(&[(1, &metadata), (3, &fields(&[(2, &condition)]))])).unwrap();
    let conditions = json!([{ "type": "Ready", "lastTransitionTime": null }]);
    assert_eq!(pod, json!({ "metadata": { "name": "a" }, "status": { "conditions": conditions } }));
}

#[test]
fn rows_are_as_many_as_there_are_bits_and_all_different() {
    fn check(kind: &Kind) {
        match kind {
            Kind::Message(table) | Kind::Inline(table) => {
                assert!(table.rows.len() <= 64, "{}", table.name);
                let mut numbers: Vec<u64> = table.rows.iter().map(|row| row.number).collect();
                numbers.retain(|number| *number != ABSENT);
                assert!(numbers.is_sorted_by(|one, next| one < next), "{}", table.name);
                table.rows.iter().for_each(|row| check(&row.kind));
            }
            Kind::List(kind) => check(kind),
            Kind::Bool | Kind::Int | Kind::Text | Kind::Time | Kind::Map => {}
        }
    }
    for (.., table) in KINDS {
        check(&Kind::Message(table));
    }
}
