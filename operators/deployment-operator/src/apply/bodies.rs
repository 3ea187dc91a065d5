//! The JSON of each write.
//!
//! Left out: the status, whose patch is [`crate::status`]'s.

use std::collections::BTreeMap;

use serde::Serialize;
use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::api::owner::{Owner, OwnerReference};
use shared::api::template::PodTemplate;

use crate::objects::{Json, annotations};
use crate::plan::{NewReplicaSet, ReplicaSetUpdate, Rollback};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateBody<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: CreateMetadata<'a>,
    spec: CreateSpec<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CreateMetadata<'a> {
    name: &'a str,
    namespace: &'a str,
    labels: Labels,
    annotations: BTreeMap<&'a str, &'a str>,
    owner_references: [OwnerReference<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CreateSpec<'a> {
    replicas: i32,
    min_ready_seconds: i32,
    selector: &'a Json,
    template: &'a PodTemplate,
}

impl<'a> CreateBody<'a> {
    pub(super) fn new(owner: &'a Owner, new: &'a NewReplicaSet) -> Self {
        let NewReplicaSet { name, annotations, replicas, min_ready_seconds, selector, template } = new;
        Self {
            api_version: "apps/v1",
            kind: "ReplicaSet",
            metadata: CreateMetadata {
                name,
                namespace: owner.key.namespace(),
                labels: template.labels(),
                annotations: annotations.iter().collect(),
                owner_references: [owner.controller_ref()],
            },
            spec: CreateSpec { replicas: *replicas, min_ready_seconds: *min_ready_seconds, selector, template },
        }
    }
}

/// A strategic merge patch of a ReplicaSet: what it does not name stays.
#[derive(Serialize)]
pub(super) struct UpdateBody<'a> {
    metadata: UpdateMetadata<'a>,
    spec: UpdateSpec,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UpdateMetadata<'a> {
    annotations: &'a BTreeMap<Text, Text>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UpdateSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_ready_seconds: Option<i32>,
}

impl<'a> UpdateBody<'a> {
    pub(super) fn new(update: &'a ReplicaSetUpdate) -> Self {
        let ReplicaSetUpdate {
            key: _,
            uid: _,
            resource_version: _,
            annotations,
            min_ready_seconds,
            scale,
            why: _,
            event: _,
            before_status: _,
        } = update;
        Self {
            metadata: UpdateMetadata { annotations },
            spec: UpdateSpec { replicas: scale.map(|scale| scale.to), min_ready_seconds: *min_ready_seconds },
        }
    }
}

#[derive(Serialize)]
pub(super) struct Operation<'a> {
    op: &'static str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<OperationValue<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum OperationValue<'a> {
    Text(&'a Text),
    Template(&'a PodTemplate),
}

/// A JSON patch, because a template is replaced and not merged.
pub(super) fn rollback_patch(rollback: &Rollback) -> Vec<Operation<'_>> {
    let Rollback { to, event: _ } = rollback;
    let operation = |op, path: &str, value| Operation { op, path: path.to_owned(), value };
    let mut patch = vec![operation("remove", &annotation_path(annotations::ROLLBACK_TO), None)];
    if let Some(to) = to {
        patch.push(operation("replace", "/spec/template", Some(OperationValue::Template(&to.template))));
        for (key, value) in &to.set {
            patch.push(operation("add", &annotation_path(key), Some(OperationValue::Text(value))));
        }
        patch.extend(to.remove.iter().map(|key| operation("remove", &annotation_path(key), None)));
    }
    patch
}

fn annotation_path(key: &str) -> String {
    format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use shared::api::object::{Key, ResourceVersion};
    use shared::api::resource::DEPLOYMENTS;
    use shared::testing::uid;

    use super::*;
    use crate::objects::Annotations;
    use crate::plan::reasons::Why;
    use crate::plan::{RollbackTarget, Scale};

    fn sent(body: &impl Serialize) -> Value {
        serde_json::to_value(body).unwrap()
    }

    fn texts(pairs: &[(&str, &str)]) -> BTreeMap<Text, Text> {
        pairs.iter().map(|(key, value)| (Text::new(key), Text::new(value))).collect()
    }

    #[test]
    fn a_new_replica_set_is_whole() {
        let owner = Owner { resource: DEPLOYMENTS, key: Key::new("ns", "web"), uid: uid("web"), being_deleted: false };
        let template =
            json!({ "metadata": { "labels": { "app": "web", "pod-template-hash": "5d4f" } }, "spec": { "new": 1 } });
        let new = NewReplicaSet {
            name: "web-5d4f".to_owned(),
            annotations: Annotations::new([("a", "1")]),
            replicas: 3,
            min_ready_seconds: 0,
            selector: serde_json::from_value(json!({ "matchLabels": { "app": "web" }, "new": [] })).unwrap(),
            template: serde_json::from_value(template.clone()).unwrap(),
        };
        assert_eq!(
            sent(&CreateBody::new(&owner, &new)),
            json!({
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": "web-5d4f",
                    "namespace": "ns",
                    "labels": { "app": "web", "pod-template-hash": "5d4f" },
                    "annotations": { "a": "1" },
                    "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                        "uid": uid("web"), "controller": true, "blockOwnerDeletion": true }],
                },
                "spec": { "replicas": 3, "minReadySeconds": 0, "template": template,
                    "selector": { "matchLabels": { "app": "web" }, "new": [] } },
            })
        );
    }

    #[test]
    fn an_update_names_only_what_changes() {
        let mut update = ReplicaSetUpdate {
            key: Key::new("ns", "web-5d4f"),
            uid: uid("web-5d4f"),
            resource_version: ResourceVersion(7),
            annotations: texts(&[("a", "1")]),
            min_ready_seconds: None,
            scale: Some(Scale { from: 1, to: 0 }),
            why: Why::Recreated,
            event: None,
            before_status: true,
        };
        let metadata = json!({ "annotations": { "a": "1" } });
        assert_eq!(sent(&UpdateBody::new(&update)), json!({ "metadata": metadata, "spec": { "replicas": 0 } }));
        (update.scale, update.min_ready_seconds) = (None, Some(5));
        assert_eq!(sent(&UpdateBody::new(&update)), json!({ "metadata": metadata, "spec": { "minReadySeconds": 5 } }));
    }

    #[test]
    fn a_rollback_replaces_the_template_and_single_annotations() {
        let wish = json!([{ "op": "remove", "path": "/metadata/annotations/deprecated.deployment.rollback.to" }]);
        let given_up = Rollback { to: None, event: None };
        assert_eq!(sent(&rollback_patch(&given_up)), wish);
        let template = json!({ "metadata": {}, "spec": { "new": 1.5 } });
        let to = RollbackTarget {
            template: serde_json::from_value(template.clone()).unwrap(),
            set: texts(&[("example.org/a~b", "1")]),
            remove: vec![Text::new("c")],
            revision: 1,
        };
        let mut expected = wish;
        let changes = [
            json!({ "op": "replace", "path": "/spec/template", "value": template }),
            json!({ "op": "add", "path": "/metadata/annotations/example.org~1a~0b", "value": "1" }),
            json!({ "op": "remove", "path": "/metadata/annotations/c" }),
        ];
        expected.as_array_mut().unwrap().extend(changes);
        let rollback = Rollback { to: Some(to), event: None };
        assert_eq!(sent(&rollback_patch(&rollback)), expected);
    }
}
