//! The nodes that the pods of a template are for: the fields of the template that say so, ready to be matched.
//!
//! Left out: preferences, affinities among pods, resources and ports, which are the scheduler's. A taint that is tolerated
//! for a while is tolerated here.

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::labels::Labels;
use shared::api::object::null_as_default;
use shared::api::selector::{LabelSelector, LabelSelectorRequirement, Selector};
use shared::api::taint::{self, KnownTaint, Taint, Toleration};
use shared::api::template::PodTemplate;

use super::node::Node;

/// The field of a Node that `matchFields` selects by.
pub const NAME_FIELD: &str = "metadata.name";
/// The operator of a requirement that a value is one of several.
pub const IN: &str = "In";

/// The taints that every daemon tolerates, as the API orders them.
///
/// Upstream: `AddOrUpdateDaemonPodTolerations`, `pkg/controller/daemon/util/daemonset_util.go`.
pub const TOLERATED: [KnownTaint; 6] = [
    KnownTaint::no_execute(taint::NOT_READY),
    KnownTaint::no_execute(taint::UNREACHABLE),
    KnownTaint::no_schedule(taint::DISK_PRESSURE),
    KnownTaint::no_schedule(taint::MEMORY_PRESSURE),
    KnownTaint::no_schedule(taint::PID_PRESSURE),
    KnownTaint::no_schedule(taint::UNSCHEDULABLE),
];

/// The taint that a daemon on the host's network tolerates besides.
pub const TOLERATED_ON_HOST: KnownTaint = KnownTaint::no_schedule(taint::NETWORK_UNAVAILABLE);

/// The nodes that the pods of a template are for.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// The node that the template names; `""` for none.
    node_name: Text,
    /// The labels that a node must have.
    node_selector: Selector,
    /// The required node affinity, of which one term must match; none if there is no such rule.
    terms: Option<Box<[Term]>>,
    tolerations: Box<[Toleration]>,
    pub is_on_host_network: bool,
}

impl Placement {
    pub fn of(template: &PodTemplate) -> serde_json::Result<Self> {
        let spec = template.spec().map(|spec| serde_json::from_str::<Option<RawPodSpec>>(spec.get())).transpose()?;
        let RawPodSpec { node_name, node_selector, affinity, tolerations, host_network } =
            spec.flatten().unwrap_or_default();
        let terms = affinity.and_then(RawAffinity::required);
        Ok(Self {
            node_name,
            node_selector: Selector::from_labels(&node_selector),
            terms: terms.map(|terms| terms.into_iter().filter_map(Term::read).collect()),
            tolerations,
            is_on_host_network: host_network,
        })
    }

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
        of_daemons.any(|tolerated| tolerated.is(taint))
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

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawPodSpec {
    #[serde(deserialize_with = "null_as_default")]
    node_name: Text,
    node_selector: Labels,
    affinity: Option<RawAffinity<RawTerm>>,
    #[serde(deserialize_with = "null_as_default")]
    tolerations: Box<[Toleration]>,
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
