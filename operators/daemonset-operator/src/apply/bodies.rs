//! The JSON of a pod: the template's, pinned to a node.
//!
//! The template stays the raw JSON it was served as; only upstream's changes are spliced in. Left out: revisions, whose
//! JSON is [`shared::controllers::revisions`]'.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use shared::api::labels::Labels;
use shared::api::object::Kind;
use shared::api::owner::Owner;
use shared::api::pod::creation::{NoLabels, pod_body_with};
use shared::api::raw::{RawObject, raw_of};
use shared::api::taint::{KnownTaint, Toleration, TolerationOperator};

use crate::objects::placement::{IN, NAME_FIELD, TOLERATED, TOLERATED_ON_HOST};
use crate::objects::{DaemonSet, GENERATION_LABEL, REVISION_LABEL};

/// The field with the rules of nodes that the scheduler must keep to.
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Makes the pods of one DaemonSet, which differ in their nodes alone.
pub(super) struct PodMaker<'a> {
    set: &'a DaemonSet,
    owner: Owner,
    labels: Labels,
    spec: RawObject<'a>,
    affinity: RawObject<'a>,
    node_affinity: RawObject<'a>,
}

impl<'a> PodMaker<'a> {
    /// For pods that carry this hash.
    ///
    /// Upstream: `CreatePodTemplate`, `pkg/controller/daemon/util/daemonset_util.go`.
    pub(super) fn new(set: &'a DaemonSet, hash: &str) -> serde_json::Result<Self> {
        let template = &set.spec.template;
        let mut labels = template.labels();
        if let Some(generation) = set.template_generation {
            labels = labels.with(GENERATION_LABEL, &generation.to_string());
        }
        if !hash.is_empty() {
            labels = labels.with(REVISION_LABEL, hash);
        }
        let outline =
            template.spec().map(|spec| serde_json::from_str::<Option<Outline<'a>>>(spec.get())).transpose()?;
        let Outline { affinity, tolerations } = outline.flatten().unwrap_or_default();
        let of_nodes = affinity.map(|json| serde_json::from_str::<Option<OfNodes<'a>>>(json.get())).transpose()?;
        let mut spec = object_of(template.spec())?;
        spec.insert("tolerations", tolerations_of(set, tolerations.unwrap_or_default())?);
        let node_affinity = object_of(of_nodes.flatten().and_then(|of_nodes| of_nodes.node_affinity))?;
        let affinity = object_of(affinity)?;
        Ok(Self { set, owner: set.owner(), labels, spec, affinity, node_affinity })
    }

    /// The pod for this node. Of the required rules for nodes only its name is left, for the node was chosen by them.
    ///
    /// Upstream: `ReplaceDaemonSetPodNodeNameNodeAffinity`, `daemonset_util.go`, and `CreatePods`,
    /// `pkg/controller/controller_utils.go`.
    pub(super) fn pod_on(&self, node: &str) -> Result<Bytes, NoLabels> {
        let by_name = json!({ "key": NAME_FIELD, "operator": IN, "values": [node] });
        let required = json!({ "nodeSelectorTerms": [{ "matchFields": [by_name] }] });
        let mut node_affinity = self.node_affinity.borrowed();
        node_affinity.insert(REQUIRED, raw_of(&required));
        let mut affinity = self.affinity.borrowed();
        affinity.insert("nodeAffinity", raw_of(&node_affinity));
        let mut spec = self.spec.borrowed();
        spec.insert("affinity", raw_of(&affinity));
        pod_body_with(&self.owner, &self.set.spec.template, self.labels.clone(), &spec)
    }
}

#[derive(Default, Deserialize)]
struct Outline<'a> {
    #[serde(borrow, default)]
    affinity: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tolerations: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfNodes<'a> {
    #[serde(borrow, default)]
    node_affinity: Option<&'a RawValue>,
}

/// The entries of what is there; none of what is not.
fn object_of(json: Option<&RawValue>) -> serde_json::Result<RawObject<'_>> {
    json.map_or_else(|| Ok(RawObject::default()), RawObject::parse)
}

/// The template's tolerations and those of a daemon, which replace equal ones that hold for a while only.
///
/// Upstream: `AddOrUpdateDaemonPodTolerations`, `daemonset_util.go`.
fn tolerations_of(set: &DaemonSet, of_template: Vec<&RawValue>) -> serde_json::Result<Box<RawValue>> {
    let mut tolerations: Vec<Box<RawValue>> = of_template.into_iter().map(ToOwned::to_owned).collect();
    let on_host = set.spec.placement.is_on_host_network.then_some(TOLERATED_ON_HOST);
    for taint in TOLERATED.into_iter().chain(on_host) {
        let own = raw_of(&json!({ "key": taint.key, "operator": "Exists", "effect": taint.effect.as_str() }));
        let mut is_there = false;
        for known in &mut tolerations {
            if is_alike(&serde_json::from_str(known.get())?, taint) {
                is_there = true;
                known.clone_from(&own);
            }
        }
        if !is_there {
            tolerations.push(own);
        }
    }
    Ok(raw_of(&tolerations))
}

/// Whether a toleration is that of a daemon for this taint, for however long.
///
/// Upstream: `MatchToleration`, `staging/src/k8s.io/api/core/v1/toleration.go`.
fn is_alike(toleration: &Toleration, taint: KnownTaint) -> bool {
    let Toleration { key, operator, value, effect, seconds: _ } = toleration;
    let is_same = *key == *taint.key && *effect == taint.effect;
    is_same && *operator == TolerationOperator::Exists && value.is_empty()
}

#[cfg(test)]
mod tests;
