//! The zones and regions of a volume, by the driver's keys instead of Kubernetes' ones.
//!
//! Upstream: `translateTopologyFromInTreeToCSI`, `k8s.io/csi-translation-lib/plugins/in_tree_volume.go`, and
//! `translateTopologyFromInTreevSphereToCSI`, `vsphere_volume.go` beside it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::object::null_as_default;

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";

/// What a label has between several zones.
pub(super) const BETWEEN_ZONES: &str = "__";

pub(super) type Labels = BTreeMap<String, String>;

/// The zone in the label of a volume, before it is split.
pub(super) fn zone_label(labels: &Labels) -> &str {
    let value = |key| labels.get(key).map(String::as_str).filter(|zone| !zone.is_empty());
    value(BETA_ZONE).or_else(|| value(ZONE)).unwrap_or_default()
}

/// How a driver names the zone and the region of a node.
pub(super) enum Topology {
    /// The region keeps Kubernetes' name.
    Zone(&'static str),
    ZoneAndRegion {
        zone: &'static str,
        region: &'static str,
    },
}

impl Topology {
    /// None if it stays as it is.
    pub(super) fn translate(&self, affinity: &NodeAffinity, labels: &Labels) -> Option<NodeAffinity> {
        let mut new = affinity.clone();
        let (zone_key, region_key) = affinity.keys(labels);
        match *self {
            Self::Zone(zone) => {
                let zones = |label: &str| label.split(BETWEEN_ZONES).map(str::to_owned).collect();
                new.replace_or_add(zone_key, zone, labels, zones);
                if region_key == BETA_REGION && affinity.has_values(region_key) {
                    new.replace(region_key, REGION);
                }
            }
            Self::ZoneAndRegion { zone, region } => {
                new.replace_or_add(zone_key, zone, labels, |label| vec![label.to_owned()]);
                new.replace_or_add(region_key, region, labels, |label| vec![label.to_owned()]);
            }
        }
        (new != *affinity).then_some(new)
    }
}

#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct NodeAffinity {
    #[serde(skip_serializing_if = "Option::is_none")]
    required: Option<NodeSelector>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeSelector {
    #[serde(deserialize_with = "null_as_default")]
    node_selector_terms: Vec<Term>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Term {
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    match_expressions: Vec<Requirement>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Requirement {
    key: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    operator: String,
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    values: Vec<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl NodeAffinity {
    fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        let terms = self.required.iter().flat_map(|selector| &selector.node_selector_terms);
        terms.flat_map(|term| &term.match_expressions)
    }

    fn has_values(&self, key: &str) -> bool {
        self.requirements().any(|requirement| requirement.key == key && !requirement.values.is_empty())
    }

    /// The keys that the volume has: its node affinity comes before its labels, and the newer keys before the older
    /// ones.
    ///
    /// Upstream: `getTopologyLabel`.
    fn keys(&self, labels: &Labels) -> (&'static str, &'static str) {
        let requires = |zone: &str| self.requirements().any(|requirement| requirement.key == zone);
        let has_label = |zone: &str| labels.contains_key(zone);
        let is_beta = !requires(ZONE) && (requires(BETA_ZONE) || !has_label(ZONE) && has_label(BETA_ZONE));
        if is_beta { (BETA_ZONE, BETA_REGION) } else { (ZONE, REGION) }
    }

    /// Gives the requirements of one key another one; without any, the label of that key becomes a requirement.
    fn replace_or_add(&mut self, old: &str, new: &str, labels: &Labels, values: impl Fn(&str) -> Vec<String>) {
        if self.has_values(old) {
            self.replace(old, new);
        } else if let Some(label) = labels.get(old) {
            self.add(new, &values(label));
        }
    }

    /// Upstream: `replaceTopology`.
    fn replace(&mut self, old: &str, new: &str) {
        let terms = self.required.iter_mut().flat_map(|selector| &mut selector.node_selector_terms);
        let requirements = terms.flat_map(|term| &mut term.match_expressions);
        requirements.filter(|requirement| requirement.key == old).for_each(|found| new.clone_into(&mut found.key));
    }

    /// Requires one of these values in each term.
    ///
    /// Upstream: `addTopology`.
    fn add(&mut self, key: &str, values: &[String]) {
        let values = values.iter().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let values: BTreeSet<String> = values.collect();
        if values.is_empty() {
            return;
        }
        let terms = &mut self.required.get_or_insert_default().node_selector_terms;
        if terms.is_empty() {
            terms.push(Term::default());
        }
        for term in terms {
            term.match_expressions.push(Requirement {
                key: key.to_owned(),
                operator: "In".to_owned(),
                values: values.iter().cloned().collect(),
                others: Map::new(),
            });
        }
    }
}
