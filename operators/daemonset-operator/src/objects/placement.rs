//! The nodes that the pods of a template are for: the fields of the template that say so, ready to be matched.
//!
//! Left out: preferences, affinities among pods, resources and ports, which are the scheduler's, and a toleration's
//! seconds: a taint that is tolerated for a while is tolerated here.

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::api::object::null_as_default;
use shared::api::selector::{LabelSelector, LabelSelectorRequirement, Selector};
use shared::api::template::PodTemplate;

use super::node::{Node, Taint, TaintEffect};

/// The field of a Node that `matchFields` selects by.
pub const NAME_FIELD: &str = "metadata.name";
/// The operator of a requirement that a value is one of several.
pub const IN: &str = "In";

/// The taints that every daemon tolerates, as the API orders them, and their effects.
///
/// Upstream: `AddOrUpdateDaemonPodTolerations`, `pkg/controller/daemon/util/daemonset_util.go`.
pub const TOLERATED: [(&str, TaintEffect); 6] = [
    ("node.kubernetes.io/not-ready", TaintEffect::NoExecute),
    ("node.kubernetes.io/unreachable", TaintEffect::NoExecute),
    ("node.kubernetes.io/disk-pressure", TaintEffect::NoSchedule),
    ("node.kubernetes.io/memory-pressure", TaintEffect::NoSchedule),
    ("node.kubernetes.io/pid-pressure", TaintEffect::NoSchedule),
    ("node.kubernetes.io/unschedulable", TaintEffect::NoSchedule),
];

/// The taint that a daemon on the host's network tolerates besides.
pub const TOLERATED_ON_HOST: (&str, TaintEffect) = ("node.kubernetes.io/network-unavailable", TaintEffect::NoSchedule);

/// The nodes that the pods of a template are for.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// The node that the template names; `""` for none.
    node_name: Text,
    /// The labels that a node must have.
    node_selector: Selector,
    /// The required node affinity, of which one term must match; none if there is no such rule.
    terms: Option<Box<[Term]>>,
    /// The template's tolerations.
    tolerations: Box<[Toleration]>,
    /// Whether its pods are on the host's network.
    pub is_on_host_network: bool,
}

impl Placement {
    /// Reads the template.
    pub fn of(template: &PodTemplate) -> serde_json::Result<Self> {
        let spec = template.spec().map(|spec| serde_json::from_str::<Option<RawPodSpec>>(spec.get())).transpose()?;
        let RawPodSpec { node_name, node_selector, affinity, tolerations, host_network } =
            spec.flatten().unwrap_or_default();
        let terms = affinity.and_then(RawAffinity::required);
        Ok(Self {
            node_name,
            node_selector: Selector::from_labels(&node_selector),
            terms: terms.map(|terms| terms.into_iter().filter_map(Term::read).collect()),
            tolerations: tolerations.into_iter().filter_map(Toleration::read).collect(),
            is_on_host_network: host_network,
        })
    }

    /// Whether the template names another node.
    pub fn names_another(&self, node: &Node) -> bool {
        !self.node_name.is_empty() && *self.node_name != *node.metadata.name()
    }

    /// Whether the node has the labels of the node selector.
    pub fn selects(&self, node: &Node) -> bool {
        self.node_selector.matches(&node.metadata.labels)
    }

    /// Whether the required node affinity allows the node. A term that cannot be read, or says nothing, allows none.
    ///
    /// Upstream: `RequiredNodeAffinity.Match`, `staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity`.
    pub fn has_affinity(&self, node: &Node) -> bool {
        self.terms.as_ref().is_none_or(|terms| terms.iter().any(|term| term.matches(node)))
    }

    /// Whether its pods tolerate a taint, by the template or because they are daemons.
    ///
    /// Upstream: `FindMatchingUntoleratedTaint`, `staging/src/k8s.io/component-helpers/scheduling/corev1/helpers.go`.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let on_host = self.is_on_host_network.then_some(TOLERATED_ON_HOST);
        let mut of_daemons = TOLERATED.into_iter().chain(on_host);
        of_daemons.any(|(key, effect)| *taint.key == *key && taint.effect == effect)
            || self.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    }
}

/// One term of a required node affinity: all of it must match.
#[derive(Clone, Debug, PartialEq)]
struct Term {
    labels: Selector,
    numbers: Box<[Numeric]>,
    fields: Box<[FieldTest]>,
}

impl Term {
    /// None for one that can match no node.
    ///
    /// Upstream: `newNodeSelectorTerm`, `nodeaffinity.go`.
    fn read(RawTerm { match_expressions, match_fields }: RawTerm) -> Option<Self> {
        if match_expressions.is_empty() && match_fields.is_empty() {
            return None;
        }
        let is_numeric = |requirement: &LabelSelectorRequirement| matches!(requirement.operator.as_str(), "Gt" | "Lt");
        let (numbers, sets): (Vec<_>, Vec<_>) = match_expressions.into_iter().partition(is_numeric);
        let sets = LabelSelector { match_expressions: sets.into(), ..LabelSelector::default() };
        Some(Self {
            labels: Selector::parse(&sets).ok()?,
            numbers: numbers.iter().map(Numeric::read).collect::<Option<_>>()?,
            fields: match_fields.iter().map(FieldTest::read).collect::<Option<_>>()?,
        })
    }

    fn matches(&self, node: &Node) -> bool {
        let labels = &node.metadata.labels;
        self.labels.matches(labels)
            && self.numbers.iter().all(|number| number.matches(labels))
            && self.fields.iter().all(|field| field.matches(node))
    }
}

/// A requirement that a label is a number above or below another.
#[derive(Clone, Debug, PartialEq)]
struct Numeric {
    key: Text,
    is_above: bool,
    limit: i64,
}

impl Numeric {
    fn read(requirement: &LabelSelectorRequirement) -> Option<Self> {
        let [limit] = &*requirement.values else { return None };
        // As upstream: the limit must be a label's value too, so none is negative.
        let as_set = LabelSelectorRequirement { operator: IN.into(), ..requirement.clone() };
        Selector::parse(&LabelSelector { match_expressions: [as_set].into(), ..LabelSelector::default() }).ok()?;
        let (key, is_above) = (requirement.key.clone(), requirement.operator == "Gt");
        Some(Self { key, is_above, limit: limit.parse().ok()? })
    }

    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key).and_then(|value| value.parse::<i64>().ok());
        value.is_some_and(|value| if self.is_above { value > self.limit } else { value < self.limit })
    }
}

/// A requirement on a field of the node.
#[derive(Clone, Debug, PartialEq)]
struct FieldTest {
    key: Text,
    value: Text,
    is_equal: bool,
}

impl FieldTest {
    fn read(requirement: &LabelSelectorRequirement) -> Option<Self> {
        let [value] = &*requirement.values else { return None };
        let is_equal = match requirement.operator.as_str() {
            IN => true,
            "NotIn" => false,
            _ => return None,
        };
        Some(Self { key: requirement.key.clone(), value: value.clone(), is_equal })
    }

    /// A node has no field but its name.
    fn matches(&self, node: &Node) -> bool {
        let field = if self.key == NAME_FIELD { node.metadata.name() } else { "" };
        (*self.value == *field) == self.is_equal
    }
}

/// A toleration of the template.
#[derive(Clone, Debug, PartialEq)]
struct Toleration {
    /// The key of the taints; `""` for any.
    key: Text,
    values: Values,
    /// The effect of the taints; none for any.
    effect: Option<TaintEffect>,
}

/// The values of the taints that a toleration is about.
#[derive(Clone, Debug, PartialEq)]
enum Values {
    Any,
    Is(Text),
    Below(i64),
    Above(i64),
}

impl Toleration {
    /// None if it tolerates no taint that matters.
    fn read(RawToleration { key, operator, value, effect }: RawToleration) -> Option<Self> {
        let effect = if effect.is_empty() { None } else { Some(TaintEffect::parse(&effect)?) };
        let values = match operator.as_str() {
            "" | "Equal" => Values::Is(value),
            "Exists" => Values::Any,
            "Lt" => Values::Below(number(&value)?),
            "Gt" => Values::Above(number(&value)?),
            _ => return None,
        };
        Some(Self { key, values, effect })
    }

    /// Upstream: `ToleratesTaint`, staging/src/k8s.io/api/core/v1/toleration.go. There numbers are compared only if the
    /// feature gate `TaintTolerationComparisonOperators` is on.
    fn tolerates(&self, taint: &Taint) -> bool {
        let has_key = self.key.is_empty() || self.key == taint.key;
        let has_effect = self.effect.is_none_or(|effect| effect == taint.effect);
        has_key
            && has_effect
            && match &self.values {
                Values::Any => true,
                Values::Is(value) => *value == taint.value,
                Values::Below(limit) => number(&taint.value).is_some_and(|value| value < *limit),
                Values::Above(limit) => number(&taint.value).is_some_and(|value| value > *limit),
            }
    }
}

/// A whole number as Go prints it: `+1`, `01` and `-0` are none.
fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawPodSpec {
    #[serde(deserialize_with = "null_as_default")]
    node_name: Text,
    node_selector: Labels,
    affinity: Option<RawAffinity<RawTerm>>,
    #[serde(deserialize_with = "null_as_default")]
    tolerations: Vec<RawToleration>,
    #[serde(deserialize_with = "null_as_default")]
    host_network: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawTerm {
    #[serde(deserialize_with = "null_as_default")]
    match_expressions: Vec<LabelSelectorRequirement>,
    #[serde(deserialize_with = "null_as_default")]
    match_fields: Vec<LabelSelectorRequirement>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawToleration {
    key: Text,
    operator: Text,
    value: Text,
    effect: Text,
}

/// `spec.affinity` of a pod or of a template, with the terms of its required node affinity as `T`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawAffinity<T> {
    node_affinity: Option<RawNodeAffinity<T>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawNodeAffinity<T> {
    required_during_scheduling_ignored_during_execution: Option<RawNodeSelector<T>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawNodeSelector<T> {
    node_selector_terms: Option<Vec<T>>,
}

impl<T> RawAffinity<T> {
    /// The terms of the required node affinity, if there is one.
    pub(super) fn required(self) -> Option<Vec<T>> {
        let required = self.node_affinity?.required_during_scheduling_ignored_during_execution?;
        Some(required.node_selector_terms.unwrap_or_default())
    }
}
