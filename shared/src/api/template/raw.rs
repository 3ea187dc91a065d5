//! Changing one label of a template or selector while every other byte of its values stays as it was.

use serde_json::value::RawValue;

use crate::api::raw::{RawObject, raw_of};

pub(super) fn with_label(template: &RawValue, key: &str, value: &str) -> Box<RawValue> {
    edited(template, &["metadata", "labels"], &|labels| labels.insert(key, raw_of(&value)))
}

/// A pod template without a label.
pub(super) fn without_label(template: &RawValue, key: &str) -> Box<RawValue> {
    edited(template, &["metadata", "labels"], &|labels| labels.remove(key))
}

/// A label selector that also wants `key` to be `value`. Its other fields stay as they are.
///
/// Upstream: `CloneSelectorAndAddLabel`, `pkg/util/labels/labels.go`.
pub fn with_match_label(selector: &RawValue, key: &str, value: &str) -> Box<RawValue> {
    edited(selector, &["matchLabels"], &|labels| labels.insert(key, raw_of(&value)))
}

/// The object with the object at `path` edited; what is missing on the way is made. Everything on the way was read as
/// objects before.
fn edited(object: &RawValue, path: &[&str], edit: &dyn Fn(&mut RawObject<'_>)) -> Box<RawValue> {
    let mut entries = RawObject::parse(object).unwrap_or_default();
    match path {
        [] => edit(&mut entries),
        [field, rest @ ..] => {
            let inner = entries.get(field).map_or_else(Box::default, ToOwned::to_owned);
            entries.replace(field, edited(&inner, rest, edit));
        }
    }
    raw_of(&entries)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn only_the_label_changes() {
        let template = r#"{"metadata":{"creationTimestamp":null,"labels":{"app":"web","z":"\u00e9"},"new":1e400},"spec":{"b":1.0,"a":[ 1 ]},"x":12345678901234567890123}"#;
        let with = with_label(&raw(template), "pod-template-hash", "5d4f");
        assert_eq!(with.get(), template.replace(r#""app":"web","#, r#""app":"web","pod-template-hash":"5d4f","#));
        assert_eq!(without_label(&with, "pod-template-hash").get(), template);
        let again = with_label(&with, "pod-template-hash", "777");
        assert_eq!(again.get(), with.get().replace("5d4f", "777"));
    }

    #[test]
    fn missing_metadata_is_made() {
        for (template, expected) in [
            (r#"{"spec":{}}"#, r#"{"metadata":{"labels":{"a":"b"}},"spec":{}}"#),
            (r#"{"metadata":null}"#, r#"{"metadata":{"labels":{"a":"b"}}}"#),
            (r#"{"metadata":{"name":"n"}}"#, r#"{"metadata":{"labels":{"a":"b"},"name":"n"}}"#),
            (r#"{"metadata":{"labels":null}}"#, r#"{"metadata":{"labels":{"a":"b"}}}"#),
        ] {
            assert_eq!(with_label(&raw(template), "a", "b").get(), expected);
        }
    }

    #[test]
    fn a_selector_keeps_what_this_build_does_not_know() {
        let selector =
            raw(r#"{"matchLabels":{"app":"web"},"matchExpressions":[{"key":"a","operator":"New"}],"matchMore":{}}"#);
        let expected = selector.get().replace(r#""web""#, r#""web","pod-template-hash":"5d4f""#);
        assert_eq!(with_match_label(&selector, "pod-template-hash", "5d4f").get(), expected);
        assert_eq!(with_match_label(&raw("{}"), "a", "b").get(), r#"{"matchLabels":{"a":"b"}}"#);
    }

    proptest! {
        #[test]
        fn adding_and_removing_a_label_gives_back_the_same_text(keys in prop::collection::btree_map("[a-o]{1,4}", "[^\\p{C}]{0,4}", 0..5)) {
            let template = raw(&serde_json::json!({ "metadata": { "labels": keys }, "spec": { "a": 1 } }).to_string());
            let with = with_label(&template, "pod-template-hash", "x");
            let without = without_label(&with, "pod-template-hash");
            prop_assert_eq!(without.get(), template.get());
            let mut expected: serde_json::Value = serde_json::from_str(template.get()).unwrap();
            expected["metadata"]["labels"]["pod-template-hash"] = "x".into();
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(with.get()).unwrap(), expected);
        }
    }
}
