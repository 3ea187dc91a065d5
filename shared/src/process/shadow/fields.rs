//! Where an object differs from what a write wants, field by field.
//!
//! Items of lists are told apart by what names them: conditions by `type`, containers by `name`, owners by `uid`, all
//! others by their place. Left out: defaults, which the server would add to a whole object; and what a Secret holds,
//! which is not for all who may see what a shadow would write.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::write::{Form, Write};
use crate::api::explain::FieldDifference;

/// The most fields of one write that are kept, and the most bytes of a value.
const FIELDS_MAX: usize = 32;
const VALUE_BYTES_MAX: usize = 1024;

/// The fields that name a list's items: the first of these that all items have.
const NAMES: [&str; 3] = ["type", "name", "uid"];
/// The resource whose values are not shown, and what is shown in their place.
const SECRETS: &str = "secrets";
const HIDDEN: &str = "(not shown)";
/// How a strategic merge patch removes items of a list that are no objects.
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const CONDITIONS: &str = "status.conditions";
const NOT_WRITTEN: [&str; 7] = [
    "apiVersion",
    "kind",
    "metadata.uid",
    "metadata.resourceVersion",
    "metadata.managedFields",
    "metadata.generation",
    "metadata.creationTimestamp",
];

/// The fields of the live object that this write would change.
pub(super) fn differences(write: &Write, live: &Value) -> Vec<FieldDifference> {
    let body: Value = serde_json::from_slice(&write.body).unwrap_or_default();
    let mut found = Found(Vec::new());
    match write.form {
        Form::None => {}
        Form::Json => found.operations(&body, live),
        Form::Merge | Form::StrategicMerge => found.value(String::new(), Some(live), Some(&body), write.form),
        Form::Whole => {
            let (has, wants) = (written_part(live, &write.subresource), written_part(&body, &write.subresource));
            found.value(String::new(), Some(&has), Some(&wants), Form::Whole);
        }
    }
    if write.target.resource == SECRETS {
        for difference in &mut found.0 {
            hide(difference);
        }
    }
    found.0
}

/// Hides what differs, unless it is in the metadata. Whether there is a value stays to be seen.
fn hide(FieldDifference { path, has, wants }: &mut FieldDifference) {
    if !path.starts_with("metadata.") {
        for value in [has, wants].into_iter().filter(|value| !value.is_null()) {
            *value = HIDDEN.into();
        }
    }
}

/// The part of an object that a PUT to this subresource writes.
fn written_part(object: &Value, subresource: &str) -> Value {
    let is_written = |field: &str| match subresource {
        "" => field != "status",
        "status" => field == "status",
        "finalize" => field == "spec",
        _ => true,
    };
    let fields = object.as_object().into_iter().flatten();
    fields.filter(|(field, _)| is_written(field)).map(|(field, value)| (field.clone(), value.clone())).collect()
}

/// The items that a strategic merge patch has for a list, and whether a directive before them replaces the list.
fn without_directive(wants: &[Value]) -> (&[Value], bool) {
    match wants {
        [directive, wants @ ..] if directive.get("$patch").is_some_and(|value| value == "replace") => (wants, true),
        _ => (wants, false),
    }
}

struct Found(Vec<FieldDifference>);

impl Found {
    fn push(&mut self, path: String, has: Option<&Value>, wants: Option<&Value>) {
        if self.0.len() < FIELDS_MAX {
            self.0.push(FieldDifference { path, has: shortened(has), wants: shortened(wants) });
        }
    }

    fn value(&mut self, path: String, has: Option<&Value>, wants: Option<&Value>, form: Form) {
        let (has, wants) = (has.filter(|value| !value.is_null()), wants.filter(|value| !value.is_null()));
        if has == wants || NOT_WRITTEN.contains(&&*path) {
            return;
        }
        match (has, wants) {
            (Some(Value::Object(has)), Some(Value::Object(wants))) => self.object(&path, has, wants, form),
            // Removing an absent field is no difference.
            (None, Some(Value::Object(wants))) if form != Form::Whole && !wants.is_empty() => {
                self.object(&path, &Map::new(), wants, form);
            }
            (Some(Value::Array(has)), Some(Value::Array(wants))) => self.list(path, has, wants, form),
            (None, Some(Value::Array(wants))) if form == Form::StrategicMerge => {
                let (wants, _) = without_directive(wants);
                if !wants.is_empty() {
                    self.push(path, None, Some(&wants.into()));
                }
            }
            _ => self.push(path, has, wants),
        }
    }

    fn object(&mut self, path: &str, has: &Map<String, Value>, wants: &Map<String, Value>, form: Form) {
        let fields: BTreeSet<&String> = match form {
            Form::Whole => has.keys().chain(wants.keys()).collect(),
            Form::Merge | Form::StrategicMerge | Form::Json | Form::None => wants.keys().collect(),
        };
        for field in fields {
            if let Some(list) = field.strip_prefix(DELETE_FROM) {
                let there = has.get(list).and_then(Value::as_array).into_iter().flatten();
                let goes = |item: &&Value| wants[field].as_array().is_some_and(|goes| goes.contains(item));
                there.filter(goes).for_each(|item| self.push(join(path, list), Some(item), None));
            } else if !field.starts_with('$') {
                self.value(join(path, field), has.get(field), wants.get(field), form);
            }
        }
    }

    fn list(&mut self, path: String, has: &[Value], wants: &[Value], form: Form) {
        let (wants, is_replaced) = without_directive(wants);
        if has == wants {
            return;
        }
        // Of the lists that operators write into a status no other one merges.
        let is_replaced = is_replaced || (path.starts_with("status.") && path != CONDITIONS);
        let form = if is_replaced && form == Form::StrategicMerge { Form::Merge } else { form };
        let before = self.0.len();
        let merges = form == Form::StrategicMerge;
        // An item of a list that does not merge is replaced whole.
        let inside = if merges { form } else { Form::Whole };
        let is_named =
            |name: &&&str| has.iter().chain(wants).all(|item| item.get(**name).is_some_and(Value::is_string));
        let is_plain = has.iter().chain(wants).all(|item| !item.is_object());
        if is_plain && merges {
            wants.iter().filter(|item| !has.contains(item)).for_each(|item| self.push(path.clone(), None, Some(item)));
            return;
        }
        if is_plain {
            return self.push(path, Some(&has.into()), Some(&wants.into()));
        }
        if let Some(name) = NAMES.iter().find(is_named) {
            let find = |items: &'_ [Value], item: &Value| items.iter().find(|other| other[name] == item[name]).cloned();
            for item in wants {
                let at = format!("{path}[{name}={}]", item[name].as_str().unwrap_or_default());
                let goes = item.get("$patch").is_some_and(|directive| directive == "delete");
                self.value(at, find(has, item).as_ref(), Some(item).filter(|_| !goes), inside);
            }
            for item in has.iter().filter(|item| !merges && find(wants, item).is_none()) {
                let at = format!("{path}[{name}={}]", item[name].as_str().unwrap_or_default());
                self.push(at, Some(item), None);
            }
        } else {
            for index in 0..has.len().max(wants.len()) {
                self.value(format!("{path}[{index}]"), has.get(index), wants.get(index), inside);
            }
        }
        if !merges && self.0.len() == before {
            // The same items in another order.
            self.push(path, Some(&has.into()), Some(&wants.into()));
        }
    }

    fn operations(&mut self, operations: &Value, live: &Value) {
        for operation in operations.as_array().into_iter().flatten() {
            let pointer = operation["path"].as_str().unwrap_or_default();
            let wants = match operation["op"].as_str() {
                Some("add" | "replace") => operation.get("value"),
                Some("remove") => None,
                _ => continue,
            };
            let path = pointer
                .split('/')
                .skip(1)
                .fold(String::new(), |path, segment| join(&path, &segment.replace("~1", "/").replace("~0", "~")));
            self.value(path, live.pointer(pointer), wants, Form::Whole);
        }
    }
}

/// A field's path. A name that a path would break at stands in brackets.
fn join(path: &str, field: &str) -> String {
    if field.contains(['.', '/']) || field.parse::<usize>().is_ok() {
        format!("{path}[{field}]")
    } else if path.is_empty() {
        field.to_owned()
    } else {
        format!("{path}.{field}")
    }
}

/// The value, or the beginning of its text where it is long.
fn shortened(value: Option<&Value>) -> Value {
    let Some(value) = value else { return Value::Null };
    let text = value.to_string();
    if text.len() <= VALUE_BYTES_MAX {
        return value.clone();
    }
    format!("{}…", &text[..text.floor_char_boundary(VALUE_BYTES_MAX)]).into()
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Method};
    use serde_json::json;

    use super::*;

    const PATH: &str = "/apis/apps/v1/namespaces/ns/deployments/web";

    #[track_caller]
    fn check(method: &Method, kind: &'static str, path: &str, live: &Value, body: &Value, expected: &[&str]) {
        let kind = HeaderValue::from_static(kind);
        let write = Write::read(method, path, Some(&kind), &body.to_string().into());
        let found = differences(&write, live);
        let lines: Vec<String> =
            found.iter().map(|FieldDifference { path, has, wants }| format!("{path}: {has} -> {wants}")).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_merge_patch_changes_what_it_names() {
        let live = json!({ "metadata": { "uid": "u", "labels": { "a": "1" } },
            "status": { "replicas": 2, "conditions": [{ "type": "A", "status": "True" }, { "type": "B", "status": "True" }] } });
        let body = json!({ "metadata": { "uid": "u", "resourceVersion": "7" },
            "status": { "replicas": 3, "ready": null, "conditions": [{ "type": "A", "status": "False" }, { "type": "C", "status": "True" }] } });
        check(
            &Method::PATCH,
            "application/merge-patch+json",
            &format!("{PATH}/status"),
            &live,
            &body,
            &[
                r#"status.conditions[type=A].status: "True" -> "False""#,
                r#"status.conditions[type=C]: null -> {"status":"True","type":"C"}"#,
                r#"status.conditions[type=B]: {"status":"True","type":"B"} -> null"#,
                "status.replicas: 2 -> 3",
            ],
        );
        let same = json!({ "metadata": { "uid": "u" }, "status": { "replicas": 2, "gone": { "a": null } } });
        check(&Method::PATCH, "application/merge-patch+json", PATH, &live, &same, &[]);
        let turned = json!({ "status": { "conditions": [{ "type": "B", "status": "True" }, { "type": "A", "status": "True" }] } });
        let whole = r#"status.conditions: [{"status":"True","type":"A"},{"status":"True","type":"B"}] -> [{"status":"True","type":"B"},{"status":"True","type":"A"}]"#;
        check(&Method::PATCH, "application/merge-patch+json", PATH, &live, &turned, &[whole]);
    }

    #[test]
    fn what_a_secret_holds_is_not_shown() {
        let live = json!({ "metadata": { "uid": "u" }, "data": { "a": "c2VjcmV0", "b": "c2VjcmV0" } });
        let body = json!({ "metadata": { "annotations": { "mine": "yes" } }, "data": { "a": "b3RoZXI=", "c": "bmV3", "b": null } });
        let expected = [
            r#"data.a: "(not shown)" -> "(not shown)""#,
            r#"data.b: "(not shown)" -> null"#,
            r#"data.c: null -> "(not shown)""#,
            r#"metadata.annotations.mine: null -> "yes""#,
        ];
        let path = "/api/v1/namespaces/ns/secrets/a";
        check(&Method::PATCH, "application/merge-patch+json", path, &live, &body, &expected);
        let whole = json!({ "metadata": { "uid": "u" }, "stringData": { "a": "secret" } });
        let expected = [r#"data: "(not shown)" -> null"#, r#"stringData: null -> "(not shown)""#];
        check(&Method::PUT, "application/json", path, &live, &whole, &expected);
    }

    #[test]
    fn an_apply_changes_the_fields_that_it_names() {
        let live = json!({ "metadata": { "name": "a", "uid": "u", "labels": { "a": "1" } },
            "rules": [{ "verbs": ["get"] }, { "verbs": ["list"] }] });
        let body = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": "a", "uid": "u" }, "rules": [{ "verbs": ["get", "watch"] }] });
        check(
            &Method::PATCH,
            "application/apply-patch+yaml",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/a?fieldManager=m&force=true",
            &live,
            &body,
            &[r#"rules[0].verbs: ["get"] -> ["get","watch"]"#, r#"rules[1]: {"verbs":["list"]} -> null"#],
        );
    }

    #[test]
    fn a_strategic_merge_patch_merges_lists() {
        let live = json!({ "metadata": { "finalizers": ["a", "b"],
            "ownerReferences": [{ "uid": "1", "name": "x" }, { "uid": "2", "name": "y" }] } });
        let body = json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["b", "c"], "finalizers": ["a", "d"],
            "ownerReferences": [{ "$patch": "delete", "uid": "1" }, { "$patch": "delete", "uid": "3" }, { "uid": "4" }] } });
        check(
            &Method::PATCH,
            "application/strategic-merge-patch+json",
            PATH,
            &live,
            &body,
            &[
                r#"metadata.finalizers: "b" -> null"#,
                r#"metadata.finalizers: null -> "d""#,
                r#"metadata.ownerReferences[uid=1]: {"name":"x","uid":"1"} -> null"#,
                r#"metadata.ownerReferences[uid=4].uid: null -> "4""#,
            ],
        );
    }

    #[test]
    fn conditions_that_are_replaced_are_compared_one_by_one() {
        let live = json!({ "status": { "uncounted": ["u", "v"],
            "conditions": [{ "type": "A", "status": "True" }, { "type": "B", "status": "True" }] } });
        let check = |status: Value, expected: &[&str]| {
            let (path, body) = (format!("{PATH}/status"), json!({ "status": status }));
            check(&Method::PATCH, "application/strategic-merge-patch+json", &path, &live, &body, expected);
        };
        let directive = json!({ "$patch": "replace" });
        check(
            json!({ "conditions": [directive, { "type": "A", "status": "False" }], "uncounted": ["u"] }),
            &[
                r#"status.conditions[type=A].status: "True" -> "False""#,
                r#"status.conditions[type=B]: {"status":"True","type":"B"} -> null"#,
                r#"status.uncounted: ["u","v"] -> ["u"]"#,
            ],
        );
        let same = json!([directive, { "type": "A", "status": "True" }, { "type": "B", "status": "True" }]);
        check(json!({ "conditions": same }), &[]);
        check(json!({ "conditions": [{ "type": "A", "status": "True" }] }), &[]);
        check(json!({ "absent": [directive] }), &[]);
        check(json!({ "absent": [directive, { "type": "A" }] }), &[r#"status.absent: null -> [{"type":"A"}]"#]);
    }

    #[test]
    fn the_operations_of_a_json_patch_are_read_one_by_one() {
        let live = json!({ "metadata": { "annotations": { "a/b": "1" } }, "spec": { "paused": true, "list": [1, 2] } });
        let body = json!([
            { "op": "test", "path": "/metadata/uid", "value": "u" },
            { "op": "replace", "path": "/metadata/resourceVersion", "value": "7" },
            { "op": "remove", "path": "/metadata/annotations/a~1b" },
            { "op": "replace", "path": "/spec/paused", "value": true },
            { "op": "add", "path": "/spec/list/1", "value": 3 },
        ]);
        check(
            &Method::PATCH,
            "application/json-patch+json",
            PATH,
            &live,
            &body,
            &[r#"metadata.annotations[a/b]: "1" -> null"#, "spec.list[1]: 2 -> 3"],
        );
    }

    #[test]
    fn a_whole_object_lacks_what_it_does_not_name() {
        let live = json!({ "metadata": { "resourceVersion": "7", "managedFields": [{}] }, "data": { "a": "1", "b": "2" },
            "spec": { "finalizers": ["kubernetes"] }, "status": { "phase": "Active" } });
        let body = json!({ "metadata": { "resourceVersion": "7" }, "data": { "a": "1" }, "spec": { "finalizers": [] },
            "status": { "phase": "Terminating" } });
        let path = "/api/v1/namespaces/ns";
        check(
            &Method::PUT,
            "application/json",
            path,
            &live,
            &body,
            &[r#"data.b: "2" -> null"#, r#"spec.finalizers: ["kubernetes"] -> []"#],
        );
        let phase = r#"status.phase: "Active" -> "Terminating""#;
        check(&Method::PUT, "application/json", &format!("{path}/status"), &live, &body, &[phase]);
        let finalizers = r#"spec.finalizers: ["kubernetes"] -> []"#;
        check(&Method::PUT, "application/json", &format!("{path}/finalize"), &live, &body, &[finalizers]);
    }

    #[test]
    fn what_is_long_is_shortened_and_of_many_fields_some_are_kept() {
        let many: Map<String, Value> =
            (0..2 * FIELDS_MAX).map(|n| (format!("f{n}"), "ü".repeat(VALUE_BYTES_MAX).into())).collect();
        let write = Write::read(&Method::PUT, PATH, None, &Value::from(many).to_string().into());
        let found = differences(&write, &json!({}));
        assert_eq!(found.len(), FIELDS_MAX);
        assert!(found.iter().all(|field| {
            field.wants.as_str().is_some_and(|text| text.ends_with('…') && text.len() < VALUE_BYTES_MAX + 8)
        }));
    }
}
