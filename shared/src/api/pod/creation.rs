//! The body of a request that creates a pod from a template: the same bytes for each of a thousand alike.
//!
//! Left out: fields that differ from pod to pod (a Job's index, a DaemonSet's node). A controller that needs them
//! changes the template, or gives labels and spec of its own.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::api::json;
use crate::api::labels::Labels;
use crate::api::names::pod_name_prefix;
use crate::api::owner::{Owner, OwnerReference};
use crate::api::template::PodTemplate;

/// The template has no labels, so no selector would ever find its pods again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unable to create pods, no labels")]
pub struct NoLabels;

/// The JSON of a pod that `owner` makes from `template`: its labels, annotations, finalizers and spec as served, a
/// generateName and the controller's reference. Nothing else of the template's metadata.
///
/// Upstream: `GetPodFromTemplate` and `createPods`, `pkg/controller/controller_utils.go`.
pub fn pod_body(owner: &Owner, template: &PodTemplate) -> Result<Bytes, NoLabels> {
    pod_body_with(owner, template, template.labels(), &template.spec())
}

/// The same with these labels and this spec in place of the template's.
pub fn pod_body_with<S: Serialize>(
    owner: &Owner,
    template: &PodTemplate,
    labels: Labels,
    spec: &S,
) -> Result<Bytes, NoLabels> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Body<'a, S> {
        api_version: &'static str,
        kind: &'static str,
        metadata: Metadata<'a>,
        spec: &'a S,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        generate_name: String,
        labels: Labels,
        #[serde(skip_serializing_if = "Option::is_none")]
        annotations: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        finalizers: Option<&'a RawValue>,
        owner_references: [OwnerReference<'a>; 1],
    }
    if labels.is_empty() {
        return Err(NoLabels);
    }
    debug_assert_eq!(template.left_out(), 0, "a large template has to be read before");
    let metadata = Metadata {
        generate_name: pod_name_prefix(owner.key.name()),
        labels,
        annotations: template.annotations(),
        finalizers: template.finalizers(),
        owner_references: [owner.controller_ref()],
    };
    Ok(json(&Body { api_version: "v1", kind: "Pod", metadata, spec }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::object::Key;
    use crate::api::resource::REPLICA_SETS;
    use crate::testing::uid;

    fn template(json: &str) -> PodTemplate {
        serde_json::from_str(json).unwrap()
    }

    fn body(template: &PodTemplate) -> Result<String, NoLabels> {
        let owner = Owner { resource: REPLICA_SETS, key: Key::new("ns", "web"), uid: uid("web"), being_deleted: false };
        pod_body(&owner, template).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Upstream: `TestCreatePodsWithGenerateName`.
    #[test]
    fn a_pod_gets_what_the_template_says_and_its_controller() {
        let json = r#"{"metadata":{"name":"dropped","labels":{"app":"web"},"annotations":{"a":"b"},
            "finalizers":["f"],"ownerReferences":[{"dropped":true}]},"spec":{"containers":[],"notKnownYet":{"x":1.0}}}"#;
        let owner = uid("web");
        assert_eq!(
            body(&template(json)).unwrap(),
            format!(
                r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"generateName":"web-","labels":{{"app":"web"}},"annotations":{{"a":"b"}},"finalizers":["f"],"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"{owner}","controller":true,"blockOwnerDeletion":true}}]}},"spec":{{"containers":[],"notKnownYet":{{"x":1.0}}}}}}"#
            )
        );
    }

    #[test]
    fn a_template_without_labels_makes_no_pods() {
        assert_eq!(body(&template(r#"{"spec":{}}"#)), Err(NoLabels));
    }
}
