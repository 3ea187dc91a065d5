//! The four kinds of patches, as far as controllers use them.
//!
//! Left out: the merge keys of a strategic merge patch beyond those of metadata, conditions, an account's Secrets and the users of a claim, and
//! operations of a JSON patch on lists. Both are refused, so that no test passes by a patch that was not applied.
//! Server-side apply knows no owners of fields, and replaces every list.

use serde_json::{Map, Value};

use super::store::child;
use crate::api::resource::Resource;

/// RFC 7386.
pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    let target = as_object(target);
    for (name, value) in fields {
        if value.is_null() {
            target.remove(name);
        } else {
            merge(target.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// Upstream: `mergeMap`, staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go.
pub(super) fn strategic_merge(target: &mut Value, patch: &Map<String, Value>) -> Result<(), String> {
    const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
    let target = as_object(target);
    for (name, value) in patch {
        match (name.strip_prefix(DELETE_FROM), value) {
            (Some(list), Value::Array(gone)) => {
                if let Some(Value::Array(items)) = target.get_mut(list) {
                    items.retain(|item| !gone.contains(item));
                }
            }
            (_, _) if name.starts_with('$') => return Err(format!("{name} is not supported")),
            (_, Value::Null) => drop(target.remove(name)),
            (_, Value::Object(fields)) => strategic_merge(target.entry(name).or_insert(Value::Null), fields)?,
            (_, Value::Array(items)) => {
                let known = target.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                merge_list(name, known, items)?;
            }
            (_, Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                target.insert(name.clone(), value.clone());
            }
        }
    }
    Ok(())
}

fn merge_list(name: &str, known: &mut Value, items: &[Value]) -> Result<(), String> {
    let merge_key = match name {
        "ownerReferences" | "reservedFor" => "uid",
        "conditions" => "type",
        "secrets" => "name",
        "finalizers" => "",
        _ => {
            *known = Value::Array(items.to_vec());
            return Ok(());
        }
    };
    let Value::Array(known) = known else { return Err(format!("{name} is no list")) };
    let items = if let [directive, items @ ..] = items
        && directive["$patch"] == "replace"
    {
        known.clear();
        items
    } else {
        items
    };
    for item in items {
        let same =
            |other: &Value| if merge_key.is_empty() { other == item } else { other[merge_key] == item[merge_key] };
        match (item, known.iter_mut().find(|other| same(other))) {
            (_, _) if item["$patch"] == "delete" => known.retain(|other| !same(other)),
            (Value::Object(fields), Some(found)) => strategic_merge(found, fields)?,
            (_, Some(_)) => {}
            (_, None) => known.push(item.clone()),
        }
    }
    Ok(())
}

/// Server-side apply with force, by a manager that applies the same fields each time.
///
/// Upstream: `Apply`, staging/src/k8s.io/apimachinery/pkg/util/managedfields/internal/structuredmerge.go.
pub(super) fn apply(
    target: &mut Value,
    configuration: &Value,
    resource: &Resource,
    manager: Option<&String>,
) -> Result<(), String> {
    let (told, expected) = (&configuration["apiVersion"], resource.api_version());
    if *told != expected || configuration["kind"] != *resource.kind {
        return Err(format!("Incorrect version specified in apply patch: {told}, expected: {expected}"));
    }
    if manager.is_none_or(String::is_empty) {
        return Err("fieldManager: Required value: is required for apply patch".to_owned());
    }
    merge(target, configuration);
    Ok(())
}

/// RFC 6902; a failed test refuses the whole.
pub(super) fn json_patch(target: &mut Value, operations: &[Value]) -> Result<(), String> {
    for operation in operations {
        let path = operation["path"].as_str().unwrap_or_default();
        let (parent, field) = path.rsplit_once('/').ok_or_else(|| format!("no path: {path:?}"))?;
        let field = field.replace("~1", "/").replace("~0", "~");
        let parent = target.pointer_mut(parent).and_then(Value::as_object_mut);
        let parent = parent.ok_or_else(|| format!("{path} is not in an object"))?;
        let value = &operation["value"];
        match (operation["op"].as_str().unwrap_or_default(), parent.get(&field)) {
            ("test", found) if found == Some(value) => {}
            ("test", _) => return Err(format!("testing value {path} failed")),
            ("replace" | "remove", None) => return Err(format!("{path} is missing")),
            ("add" | "replace", _) => drop(parent.insert(field, value.clone())),
            ("remove", Some(_)) => drop(parent.remove(&field)),
            (other, _) => return Err(format!("operation {other:?} is not supported")),
        }
    }
    Ok(())
}

fn as_object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    child(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn strategic(mut target: Value, patch: &Value) -> Result<Value, String> {
        strategic_merge(&mut target, patch.as_object().unwrap()).map(|()| target)
    }

    #[test]
    fn a_merge_patch_removes_by_null_and_replaces_lists() {
        let mut target = json!({ "a": { "b": 1, "c": 2 }, "list": [1, 2] });
        merge(&mut target, &json!({ "a": { "b": null, "d": { "e": null, "f": 3 } }, "list": [3] }));
        assert_eq!(target, json!({ "a": { "c": 2, "d": { "f": 3 } }, "list": [3] }));
    }

    #[test]
    fn a_strategic_merge_patch_merges_lists_by_their_key() {
        let target = json!({ "metadata": { "ownerReferences": [{ "uid": "a", "name": "n" }, { "uid": "b" }], "finalizers": ["x", "y"] } });
        let patch = json!({ "metadata": {
            "ownerReferences": [{ "$patch": "delete", "uid": "b" }, { "uid": "a", "controller": true }, { "uid": "c" }],
            "$deleteFromPrimitiveList/finalizers": ["x"],
        } });
        assert_eq!(
            strategic(target.clone(), &patch).unwrap()["metadata"],
            json!({ "ownerReferences": [{ "uid": "a", "name": "n", "controller": true }, { "uid": "c" }], "finalizers": ["y"] })
        );
        let patch = json!({ "metadata": { "finalizers": ["x", "z"] } });
        assert_eq!(strategic(target.clone(), &patch).unwrap()["metadata"]["finalizers"], json!(["x", "y", "z"]));
        assert!(strategic(target, &json!({ "$patch": "replace" })).is_err());
        let target = json!({ "conditions": [{ "type": "a", "reason": "r" }, { "type": "b" }] });
        let patch = json!({ "conditions": [{ "$patch": "replace" }, { "type": "a" }] });
        assert_eq!(strategic(target, &patch).unwrap(), json!({ "conditions": [{ "type": "a" }] }));
        assert_eq!(strategic(json!({}), &patch).unwrap(), json!({ "conditions": [{ "type": "a" }] }));
    }

    #[test]
    fn a_json_patch_refuses_the_whole_when_a_test_fails() {
        let patch = json!([{ "op": "test", "path": "/a", "value": 1 }, { "op": "add", "path": "/b~1c", "value": 2 }]);
        let mut target = json!({ "a": 1 });
        json_patch(&mut target, patch.as_array().unwrap()).unwrap();
        assert_eq!(target, json!({ "a": 1, "b/c": 2 }));
        target["a"] = json!(2);
        assert!(json_patch(&mut target, patch.as_array().unwrap()).is_err());
        assert!(json_patch(&mut target, &[json!({ "op": "remove", "path": "/d" })]).is_err());
    }
}
