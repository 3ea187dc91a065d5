//! JSON objects as a list of raw entries: one entry changes while every other byte of the values stays as it was.
//!
//! Numbers, escapes and fields that this build does not know survive, and entries keep their order; an entry that comes
//! twice stays twice unless it is the one that changes. Left out: arrays, which a `Vec<&RawValue>` reads and writes.

use std::borrow::Cow;
use std::fmt;

use serde::de::MapAccess;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// The JSON of a text, or of lists and objects of texts and raw values.
pub fn raw_of(value: &impl Serialize) -> Box<RawValue> {
    // Such values are always JSON.
    to_raw_value(value).unwrap_or_default()
}

/// An object of the API without its managed fields, which only the apiserver reads.
pub fn without_managed_fields(object: &RawValue) -> serde_json::Result<Box<RawValue>> {
    let mut fields = RawObject::parse(object)?;
    fields.remove_managed_fields()?;
    Ok(raw_of(&fields))
}

/// The entries of an object in the order they came.
#[derive(Clone, Debug, Default)]
pub struct RawObject<'a>(Vec<(Cow<'a, str>, Cow<'a, RawValue>)>);

impl<'a> RawObject<'a> {
    /// Reads an object; `null` is an empty one, as in Go.
    pub fn parse(json: &'a RawValue) -> serde_json::Result<Self> {
        serde_json::from_str::<Option<Self>>(json.get()).map(Option::unwrap_or_default)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value at `key`. Of several the last one counts, as in Go.
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.0.iter().rev().find(|(candidate, _)| candidate == key).map(|(_, value)| &**value)
    }

    /// Removes the managed fields from an object of the API; only the apiserver reads them.
    pub fn remove_managed_fields(&mut self) -> serde_json::Result<()> {
        let Some(metadata) = self.get("metadata").map(ToOwned::to_owned) else { return Ok(()) };
        let mut metadata = RawObject::parse(&metadata)?;
        metadata.remove("managedFields");
        self.replace("metadata", raw_of(&metadata));
        Ok(())
    }

    pub fn remove(&mut self, key: &str) {
        self.0.retain(|(candidate, _)| candidate != key);
    }

    /// Puts the value where the key is, or else first: `metadata` comes before `spec`.
    pub fn replace(&mut self, key: &str, value: Box<RawValue>) {
        let at = self.0.iter().position(|(candidate, _)| candidate == key).unwrap_or(0);
        self.put(at, key, value);
    }

    /// Puts the value where the key is, or else before the first greater key: the apiserver serves maps sorted.
    pub fn insert(&mut self, key: &str, value: Box<RawValue>) {
        let at = self.0.iter().position(|(candidate, _)| candidate.as_ref() >= key).unwrap_or(self.0.len());
        self.put(at, key, value);
    }

    /// No entry of this key is before `at`.
    fn put(&mut self, at: usize, key: &str, value: Box<RawValue>) {
        self.remove(key);
        self.0.insert(at, (Cow::Owned(key.to_owned()), Cow::Owned(value)));
    }

    /// The same entries, to be changed without a copy of their values.
    pub fn borrowed(&self) -> RawObject<'_> {
        RawObject(self.0.iter().map(|(key, value)| (Cow::Borrowed(&**key), Cow::Borrowed(&**value))).collect())
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

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
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
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    fn check(json: &str, edit: impl Fn(&mut RawObject<'_>), expected: &str) {
        let json = raw(json);
        let mut object = RawObject::parse(&json).unwrap();
        edit(&mut object);
        assert_eq!(raw_of(&object).get(), expected);
        assert_eq!(raw_of(&object.borrowed()).get(), expected);
    }

    #[test]
    fn one_entry_changes_and_all_others_stay_as_they_came() {
        let one = || raw("1");
        check("null", |object| object.insert("a", one()), r#"{"a":1}"#);
        check(r#"{"b":1e400,"d":"\u003c"}"#, |object| object.insert("c", one()), r#"{"b":1e400,"c":1,"d":"\u003c"}"#);
        check(r#"{"b":[ 2 ],"a":0}"#, |object| object.replace("a", one()), r#"{"b":[ 2 ],"a":1}"#);
        check(r#"{"b":-0.0}"#, |object| object.replace("a", one()), r#"{"a":1,"b":-0.0}"#);
        check(r#"{"b":2,"b":3,"a":1}"#, |object| object.remove("a"), r#"{"b":2,"b":3}"#);
    }

    #[test]
    fn of_an_entry_that_comes_twice_the_last_one_counts() {
        let twice = r#"{"a":0,"b":1,"\u0061":2}"#;
        assert_eq!(RawObject::parse(&raw(twice)).unwrap().get("a").map(RawValue::get), Some("2"));
        check(twice, |object| object.replace("a", raw("3")), r#"{"a":3,"b":1}"#);
        check(twice, |object| object.insert("a", raw("3")), r#"{"a":3,"b":1}"#);
        check(twice, |object| object.remove("a"), r#"{"b":1}"#);
    }

    #[test]
    fn only_the_managed_fields_of_an_object_are_left_out() {
        let managed = r#"{"kind":"Node","metadata":{"name":"a","managedFields":[{}],"uid":"b"},"spec":{"x":1e400}}"#;
        let lean = r#"{"kind":"Node","metadata":{"name":"a","uid":"b"},"spec":{"x":1e400}}"#;
        for (object, expected) in [(managed, lean), (lean, lean), ("{}", "{}")] {
            assert_eq!(without_managed_fields(&raw(object)).unwrap().get(), expected);
        }
        assert!(without_managed_fields(&raw(r#"{"metadata":[]}"#)).is_err());
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for json in ["[]", "1", r#""a""#, "true"] {
            assert!(RawObject::parse(&raw(json)).is_err(), "{json}");
        }
    }
}
