//! The JSON of each write.
//!
//! Templates stay the raw JSON they were served as; only upstream's changes are spliced in. Left out: revisions, whose
//! JSON is [`shared::controllers::revisions`]'.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use shared::api::labels::Labels;
use shared::api::names::pod_name_prefix;
use shared::api::object::Kind;
use shared::api::owner::OwnerReference;
use shared::api::raw::{RawObject, raw_of};
use shared::api::template::PodTemplate;

use crate::objects::names::{claim_name, pod_name};
use crate::objects::{ClaimTemplate, POD_INDEX_LABEL, POD_NAME_LABEL, REVISION_LABEL, StatefulSet};
use crate::plan::claim_owners::OwnerChange;

/// A new pod: the template's, with its name, its place, its revision, and its claims among the volumes.
///
/// Upstream: `newStatefulSetPod`, `pkg/controller/statefulset/stateful_set_utils.go`, and `GetPodFromTemplate`,
/// `pkg/controller/controller_utils.go`.
pub(super) fn pod_body(
    set: &StatefulSet,
    template: &PodTemplate,
    ordinal: i64,
    revision: &str,
) -> serde_json::Result<Bytes> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Body<'a> {
        api_version: &'static str,
        kind: &'static str,
        metadata: Metadata<'a>,
        spec: RawObject<'a>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        name: &'a str,
        generate_name: String,
        namespace: &'a str,
        labels: BTreeMap<&'a str, &'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        annotations: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        finalizers: Option<&'a RawValue>,
        owner_references: [OwnerReference<'a>; 1],
    }
    let mut spec = template.spec().map_or_else(|| Ok(RawObject::default()), RawObject::parse)?;
    let (name, index) = (pod_name(set.metadata.name(), ordinal), ordinal.to_string());
    spec.replace("hostname", raw_of(&name));
    if set.spec.service_name.is_empty() {
        spec.remove("subdomain");
    } else {
        spec.replace("subdomain", raw_of(&set.spec.service_name));
    }
    if !set.spec.volume_claim_templates.is_empty() {
        let volumes = volumes(set, ordinal, spec.get("volumes"))?;
        spec.replace("volumes", volumes);
    }
    let (owner, template_labels) = (set.owner(), template.labels());
    let own = [(POD_NAME_LABEL, name.as_str()), (POD_INDEX_LABEL, index.as_str()), (REVISION_LABEL, revision)];
    let metadata = Metadata {
        name: &name,
        generate_name: pod_name_prefix(set.metadata.name()),
        namespace: set.metadata.namespace(),
        labels: template_labels.iter().chain(own).collect(),
        annotations: template.annotations(),
        finalizers: template.finalizers(),
        owner_references: [owner.controller_ref()],
    };
    Ok(shared::api::json(&Body { api_version: "v1", kind: "Pod", metadata, spec }))
}

/// The claims, and the template's volumes of other names.
///
/// Upstream: `updateStorage`, `stateful_set_utils.go`.
fn volumes(set: &StatefulSet, ordinal: i64, served: Option<&RawValue>) -> serde_json::Result<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow, default)]
        name: Cow<'a, str>,
    }
    let served = served.map(|json| serde_json::from_str::<Option<Vec<&RawValue>>>(json.get())).transpose()?.flatten();
    let claims: Vec<Box<RawValue>> = claim_volumes(set, ordinal).iter().map(raw_of).collect();
    let mut volumes: Vec<&RawValue> = claims.iter().map(|claim| &**claim).collect();
    for volume in served.unwrap_or_default() {
        let Named { name } = serde_json::from_str(volume.get())?;
        if !set.spec.has_claim_template(&name) {
            volumes.push(volume);
        }
    }
    Ok(raw_of(&volumes))
}

fn claim_volumes(set: &StatefulSet, ordinal: i64) -> Vec<Value> {
    let volume = |template: &ClaimTemplate| {
        let claim = claim_name(&template.name, set.metadata.name(), ordinal);
        json!({ "name": template.name, "persistentVolumeClaim": { "claimName": claim } })
    };
    set.spec.volume_claim_templates.iter().map(volume).collect()
}

/// A strategic merge patch that gives a pod its identity, its volumes, or both. The apiserver refuses the volumes of a
/// pod that has others, as upstream finds out, too.
///
/// Upstream: `updateIdentity` and `updateStorage`, `stateful_set_utils.go`.
pub(super) fn pod_patch(set: &StatefulSet, ordinal: i64, identity: bool, storage: bool) -> Value {
    let mut patch = json!({});
    if identity {
        let (name, index) = (pod_name(set.metadata.name(), ordinal), ordinal.to_string());
        patch["metadata"] = json!({ "labels": { POD_NAME_LABEL: name, POD_INDEX_LABEL: index } });
    }
    if storage {
        let mut volumes = claim_volumes(set, ordinal);
        for volume in &mut volumes {
            // Without other sources that a volume of this name may have.
            volume["$retainKeys"] = json!(["name", "persistentVolumeClaim"]);
        }
        patch["spec"] = json!({ "volumes": volumes });
    }
    patch
}

/// A new claim: its template's, with its name and the labels that the selector asks for.
///
/// Upstream: `getPersistentVolumeClaims`, `stateful_set_utils.go`.
pub(super) fn claim_body(set: &StatefulSet, template: &ClaimTemplate, name: &str) -> serde_json::Result<Bytes> {
    let json = template.json().ok_or_else(|| serde::de::Error::custom("it is not cached"))?;
    let mut claim = RawObject::parse(json)?;
    let served = claim.get("metadata").map_or_else(Box::default, ToOwned::to_owned);
    let mut metadata = RawObject::parse(&served)?;
    let labels = metadata.get("labels").map(|json| serde_json::from_str::<Labels>(json.get()));
    let labels = labels.transpose()?.unwrap_or_default();
    let labels: BTreeMap<&str, &str> = labels.iter().chain(set.spec.match_labels.iter()).collect();
    if !labels.is_empty() {
        metadata.replace("labels", raw_of(&labels));
    }
    metadata.replace("namespace", raw_of(&set.metadata.namespace()));
    metadata.replace("name", raw_of(&name));
    claim.remove("status");
    claim.replace("metadata", raw_of(&metadata));
    claim.replace("kind", raw_of(&"PersistentVolumeClaim"));
    claim.replace("apiVersion", raw_of(&"v1"));
    Ok(shared::api::json(&claim))
}

/// A strategic merge patch of the owners of a claim.
///
/// Upstream: `updateClaimOwnerRefForSetAndPod`, `stateful_set_utils.go`.
pub(super) fn owners_patch(change: &OwnerChange) -> Value {
    let OwnerChange { claim: _, uid: _, resource_version: _, remove, add } = change;
    let removed = remove.iter().map(|uid| json!({ "$patch": "delete", "uid": uid }));
    let added = add.iter().map(|owner| json!(owner.controller_ref()));
    let owners: Vec<Value> = removed.chain(added).collect();
    json!({ "metadata": { "ownerReferences": owners } })
}

#[cfg(test)]
mod tests;
