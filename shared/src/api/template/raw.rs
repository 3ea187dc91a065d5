//! Changing one entry of a JSON object while every other byte of its values stays as it was.
//!
//! Left out: a general editor. Only labels are ever changed.

use std::borrow::Cow;
use std::fmt;

use serde::de::MapAccess;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// A pod template with one label more.
pub(super) fn with_label(template: &RawValue, key: &str, value: &str) -> Box<RawValue> {
    edited(template, &["metadata", "labels"], &|labels| labels.insert(key, raw_text(value)))
}

/// A pod template without a label.
pub(super) fn without_label(template: &RawValue, key: &str) -> Box<RawValue> {
    edited(template, &["metadata", "labels"], &|labels| labels.remove(key))
}

/// A label selector that also wants `key` to be `value`. What it has besides `matchLabels` stays as it is.
///
/// Source: `CloneSelectorAndAddLabel`, `pkg/util/labels/labels.go`.
pub fn with_match_label(selector: &RawValue, key: &str, value: &str) -> Box<RawValue> {
    edited(selector, &["matchLabels"], &|labels| labels.insert(key, raw_text(value)))
}

fn raw_text(text: &str) -> Box<RawValue> {
    raw_of(&text)
}

fn raw_of(value: &impl Serialize) -> Box<RawValue> {
    // Texts, and objects of texts and raw values, are always JSON.
    to_raw_value(value).unwrap_or_default()
}

/// The object with the object at `path` edited; what is missing on the way is made.
fn edited(object: &RawValue, path: &[&str], edit: &dyn Fn(&mut RawObject<'_>)) -> Box<RawValue> {
    let mut entries = RawObject::parse(object);
    match path {
        [] => edit(&mut entries),
        [field, rest @ ..] => {
            let inner = entries.get(field).map_or_else(Box::default, ToOwned::to_owned);
            entries.replace(field, edited(&inner, rest, edit));
        }
    }
    raw_of(&entries)
}

/// The entries of an object in the order they came.
#[derive(Default)]
struct RawObject<'a>(Vec<(Cow<'a, str>, Cow<'a, RawValue>)>);

impl<'a> RawObject<'a> {
    /// Anything but an object, `null` above all, is as good as an empty one.
    fn parse(json: &'a RawValue) -> Self {
        serde_json::from_str(json.get()).unwrap_or_default()
    }

    fn get(&self, key: &str) -> Option<&RawValue> {
        self.0.iter().find(|(candidate, _)| candidate == key).map(|(_, value)| &**value)
    }

    fn remove(&mut self, key: &str) {
        self.0.retain(|(candidate, _)| candidate != key);
    }

    /// Puts the value where the key is, or else first: `metadata` comes before `spec`.
    fn replace(&mut self, key: &str, value: Box<RawValue>) {
        match self.0.iter_mut().find(|(candidate, _)| candidate == key) {
            Some(entry) => entry.1 = Cow::Owned(value),
            None => self.0.insert(0, (Cow::Owned(key.to_owned()), Cow::Owned(value))),
        }
    }

    /// Puts the value where the key is, or else before the first greater key: the apiserver serves maps sorted.
    fn insert(&mut self, key: &str, value: Box<RawValue>) {
        let at = self.0.iter().position(|(candidate, _)| candidate.as_ref() >= key).unwrap_or(self.0.len());
        self.remove(key);
        self.0.insert(at, (Cow::Owned(key.to_owned()), Cow::Owned(value)));
    }
}

impl Serialize for RawObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, &**value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RawObject<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = RawObject<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<RawObject<'de>, M::Error> {
                let mut entries = Vec::new();
                while let Some(Key(key)) = map.next_key()? {
                    entries.push((key, Cow::Borrowed(map.next_value::<&RawValue>()?)));
                }
                Ok(RawObject(entries))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

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
