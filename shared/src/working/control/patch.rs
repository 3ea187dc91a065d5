//! A patch, and how the preconditions of a write get into its body.
//!
//! Left out: server-side apply without force. A controller takes over the fields that it applies.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::Preconditions;
use crate::api::json;
use crate::api::resource::Resource;
use crate::transport::client::PatchType;

/// A change of an object, without uid and resourceVersion, which are the write's [`Preconditions`].
#[derive(Clone, Debug)]
pub struct Patch {
    pub(super) kind: PatchType,
    pub(super) subresource: &'static str,
    /// The field manager of server-side apply; `""` for the other kinds, whose manager is the user agent's first word.
    manager: &'static str,
    body: Bytes,
}

impl Patch {
    pub fn new(kind: PatchType, body: &impl Serialize) -> Self {
        Self { kind, subresource: "", manager: "", body: json(body) }
    }

    /// A merge patch: a field replaces, `null` removes, other fields stay.
    pub fn merge(body: &impl Serialize) -> Self {
        Self::new(PatchType::Merge, body)
    }

    /// A strategic merge patch, which merges single items of lists; custom resources don't take one.
    pub fn strategic(body: &impl Serialize) -> Self {
        Self::new(PatchType::StrategicMerge, body)
    }

    pub fn operations(body: &impl Serialize) -> Self {
        Self::new(PatchType::Json, body)
    }

    /// Server-side apply of an object with its `metadata`; the write adds `apiVersion` and `kind`. The manager owns the
    /// fields in it from then on, also those that had another owner. A field that it applied before and leaves out now is
    /// removed.
    pub fn apply(manager: &'static str, body: &impl Serialize) -> Self {
        Self { manager, ..Self::new(PatchType::Apply, body) }
    }

    /// A patch of the status subresource of a built-in kind whose `conditions`, if it has any, merge by their type: a field
    /// replaces, `conditions` and other lists too, `null` removes, other fields stay. As a merge patch the same costs the
    /// apiserver nearly twice as much, for it takes the object into JSON and back.
    pub fn status(body: &impl Serialize) -> Self {
        let body = json(body);
        let body = replacing_conditions(&body).unwrap_or(body);
        Self { kind: PatchType::StrategicMerge, subresource: "status", manager: "", body }
    }

    #[must_use]
    pub fn on(self, subresource: &'static str) -> Self {
        Self { subresource, ..self }
    }

    #[must_use]
    pub fn on_status(self) -> Self {
        self.on("status")
    }

    /// The parameters of the request; those without a value are not sent.
    pub(super) fn query(&self) -> [(&'static str, &'static str); 2] {
        let force = if self.manager.is_empty() { "" } else { "true" };
        [("fieldManager", self.manager), ("force", force)]
    }

    /// The body that the server refuses (409) where the preconditions don't hold, for an object of a kind that is served
    /// as `spoken`.
    pub(super) fn body<U: Serialize, V: Serialize>(
        &self,
        spoken: &Resource,
        preconditions: &Preconditions<U, V>,
    ) -> Bytes {
        let guarded = match self.kind {
            PatchType::Json => operations_under(preconditions, &self.body),
            PatchType::Merge | PatchType::StrategicMerge => object_under(preconditions, &self.body),
            PatchType::Apply => typed(spoken, &self.body).and_then(|body| object_under(preconditions, &body)),
        };
        // The server refuses an empty body, so a patch without preconditions changes nothing.
        guarded.unwrap_or_default()
    }
}

/// An object's JSON with its kind, in the version of the request's path.
fn typed(spoken: &Resource, body: &[u8]) -> serde_json::Result<Bytes> {
    let mut object: BTreeMap<&str, &RawValue> = serde_json::from_slice(body)?;
    let (api_version, kind) = (to_raw_value(&spoken.api_version())?, to_raw_value(&spoken.kind)?);
    object.extend([("apiVersion", &*api_version), ("kind", &*kind)]);
    Ok(json(&object))
}

/// An object's JSON with the preconditions in its metadata; every other field stays as it is written.
pub(super) fn object_under<U: Serialize, V: Serialize>(
    preconditions: &Preconditions<U, V>,
    body: &[u8],
) -> serde_json::Result<Bytes> {
    let mut object: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(body)?;
    let metadata = object.get("metadata").map(|metadata| BTreeMap::deserialize(&**metadata)).transpose()?;
    let mut metadata: BTreeMap<String, Box<RawValue>> = metadata.unwrap_or_default();
    let Preconditions { uid, resource_version } = preconditions;
    metadata.insert("uid".to_owned(), to_raw_value(uid)?);
    if let Some(version) = resource_version {
        metadata.insert("resourceVersion".to_owned(), to_raw_value(version)?);
    }
    object.insert("metadata".to_owned(), to_raw_value(&metadata)?);
    Ok(json(&object))
}

/// The body with a directive among its status's conditions, where it has some: without it those that are left out would
/// stay, as would the fields left out of the others.
fn replacing_conditions(body: &[u8]) -> serde_json::Result<Bytes> {
    type Fields = BTreeMap<String, Box<RawValue>>;
    let mut object: Fields = serde_json::from_slice(body)?;
    if let Some(status) = object.get_mut("status") {
        let mut fields = Fields::deserialize(&**status)?;
        if let Some(conditions) = fields.get_mut("conditions")
            && let Some(mut all) = Option::<VecDeque<Box<RawValue>>>::deserialize(&**conditions)?
        {
            all.push_front(to_raw_value(&BTreeMap::from([("$patch", "replace")]))?);
            *conditions = to_raw_value(&all)?;
            *status = to_raw_value(&fields)?;
        }
    }
    Ok(json(&object))
}

/// The server compares the resourceVersion that the patched object has: 409 where it is another than the newest.
fn operations_under<U: Serialize, V: Serialize>(
    preconditions: &Preconditions<U, V>,
    body: &[u8],
) -> serde_json::Result<Bytes> {
    #[derive(Serialize)]
    struct Operation<T> {
        op: &'static str,
        path: &'static str,
        value: T,
    }
    let Preconditions { uid, resource_version } = preconditions;
    let mut all = vec![to_raw_value(&Operation { op: "test", path: "/metadata/uid", value: uid })?];
    if let Some(value) = resource_version {
        all.push(to_raw_value(&Operation { op: "replace", path: "/metadata/resourceVersion", value })?);
    }
    let operations: Vec<Box<RawValue>> = serde_json::from_slice(body)?;
    all.extend(operations);
    Ok(json(&all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::resource::PODS;
    use crate::api::url::with_query;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(patch: &Patch, expected: &Value) {
        let preconditions = Preconditions { uid: "u", resource_version: Some("7") };
        let sent: Value = serde_json::from_slice(&patch.body(&PODS, &preconditions)).unwrap();
        assert_eq!(sent, *expected);
    }

    #[test]
    fn every_kind_of_patch_carries_its_preconditions() {
        let guard = json!({ "uid": "u", "resourceVersion": "7" });
        check(&Patch::merge(&json!({})), &json!({ "metadata": guard }));
        let mut metadata = guard.clone();
        metadata["labels"] = json!({ "a": null });
        let body = json!({ "metadata": { "labels": { "a": null } }, "spec": { "a": [1.50] } });
        let expected = json!({ "metadata": metadata, "spec": { "a": [1.50] } });
        check(&Patch::strategic(&body), &expected);
        check(
            &Patch::operations(&json!([{ "op": "remove", "path": "/a" }])),
            &json!([
                { "op": "test", "path": "/metadata/uid", "value": "u" },
                { "op": "replace", "path": "/metadata/resourceVersion", "value": "7" },
                { "op": "remove", "path": "/a" },
            ]),
        );
    }

    #[test]
    fn a_status_replaces_its_conditions_and_leaves_other_fields() {
        let of = |status: Value| {
            let patch = Patch::status(&json!({ "metadata": { "annotations": { "a": "b" } }, "status": status }));
            assert_eq!((patch.kind, patch.subresource), (PatchType::StrategicMerge, "status"));
            let sent: Value = serde_json::from_slice(&patch.body(&PODS, &Preconditions::from("u"))).unwrap();
            assert_eq!(sent["metadata"], json!({ "annotations": { "a": "b" }, "uid": "u" }));
            sent["status"].clone()
        };
        let directive = json!({ "$patch": "replace" });
        assert_eq!(
            of(json!({ "replicas": 1, "conditions": [{ "type": "A" }] })),
            json!({ "replicas": 1, "conditions": [directive, { "type": "A" }] })
        );
        assert_eq!(of(json!({ "conditions": [] })), json!({ "conditions": [directive] }));
        for as_it_is in [json!({ "conditions": null }), json!({ "active": [{ "name": "a" }] }), json!({})] {
            assert_eq!(of(as_it_is.clone()), as_it_is);
        }
    }

    #[test]
    fn an_apply_names_its_kind_and_its_manager_and_takes_fields_over() {
        let apply = Patch::apply("m", &json!({ "metadata": { "name": "a" }, "spec": { "a": [1.50] } }));
        let metadata = json!({ "name": "a", "uid": "u", "resourceVersion": "7" });
        let expected = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": { "a": [1.50] } });
        check(&apply, &expected);
        assert_eq!(with_query("/a", &apply.query()), "/a?fieldManager=m&force=true");
        assert_eq!(with_query("/a", &Patch::merge(&json!({})).query()), "/a");
    }

    #[test]
    fn without_a_version_only_the_uid_is_compared() {
        let body = Patch::merge(&json!({ "spec": {} })).body(&PODS, &Preconditions::from("u"));
        assert_eq!(body, r#"{"metadata":{"uid":"u"},"spec":{}}"#);
    }

    #[test]
    fn what_cannot_be_guarded_is_not_sent() {
        assert_eq!(Patch::merge(&json!(1)).body(&PODS, &Preconditions::from("u")), "");
    }
}
