//! Which rules an aggregated role gets, and which changes lead to a sync of it: upstream's cases, and properties of any
//! set of roles.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use clusterrole_aggregation_operator::apply::Configuration;
use clusterrole_aggregation_operator::objects::{ClusterRole, Rule};
use clusterrole_aggregation_operator::observe::Caches;
use clusterrole_aggregation_operator::plan::{Plan, plan};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::object::Key;
use shared::following::cache::Change;
use shared::testing::{ObjectBuilder, forget, object, store, uid};
use shared::working::effect::Effect;
use shared::working::queue::Cause;

fn cluster_role(name: &str) -> ObjectBuilder {
    object("rbac.authorization.k8s.io/v1", "ClusterRole", name).namespace("")
}

fn rule(verb: &str, resource: &str) -> Value {
    json!({ "verbs": [verb], "resources": [resource] })
}

fn hammer_rules() -> Vec<Value> {
    vec![rule("hammer", "nails"), rule("hammer", "wedges")]
}

fn chisel_rules() -> Vec<Value> {
    vec![rule("chisel", "mortises")]
}

fn saw_rules() -> Vec<Value> {
    vec![rule("saw", "boards")]
}

fn role(name: &str, group: &str, rules: Vec<Value>) -> ObjectBuilder {
    cluster_role(name).label("foo", group).set(&["rules"], rules)
}

/// The role that aggregates; each of its selectors is for a value of the label `foo`.
fn combined(groups: &[&str], rules: Vec<Value>) -> ObjectBuilder {
    let selectors: Vec<Value> = groups.iter().map(|group| json!({ "matchLabels": { "foo": group } })).collect();
    selecting("combined", selectors).set(&["rules"], rules)
}

fn selecting(name: &str, selectors: Vec<Value>) -> ObjectBuilder {
    cluster_role(name).set(&["aggregationRule", "clusterRoleSelectors"], selectors)
}

fn cluster(roles: &[ObjectBuilder]) -> Caches {
    let (caches, _) = Caches::new();
    for role in roles {
        store(&caches.cluster_roles, &role.build());
    }
    caches
}

fn planned(caches: &Caches, name: &str) -> Plan {
    plan(&caches.observe(&Key::new("", name)).unwrap())
}

/// The rules that are applied; none if nothing is.
fn applied(plan: &Plan) -> Option<&[Rule]> {
    match plan {
        Plan::Apply { rules, .. } => Some(rules),
        Plan::Nothing(_) => None,
    }
}

#[track_caller]
fn check(roles: &[ObjectBuilder], rules: Option<Vec<Value>>, expected: &str) {
    let planned = planned(&cluster(roles), "combined");
    assert_eq!(planned.to_string(), expected);
    assert_eq!(applied(&planned).map(|rules| json!(rules)), rules.map(Value::from));
    if let Plan::Apply { uid: of, .. } = planned {
        assert_eq!(of, uid("combined"));
    }
}

/// Upstream: `TestSyncClusterRole`.
#[test]
fn a_role_gets_the_rules_of_the_roles_that_it_selects() {
    // "remove dead rules"
    check(
        &[role("hammer", "bar", hammer_rules()), combined(&["bar"], saw_rules())],
        Some(hammer_rules()),
        "apply 2 rules (rules of 1 selected roles: 2 missing, 1 extra)",
    );
    // "strip rules"
    check(
        &[role("hammer", "not-bar", hammer_rules()), combined(&["bar"], hammer_rules())],
        Some(vec![]),
        "apply 0 rules (rules of 0 selected roles: 0 missing, 2 extra)",
    );
    // "select properly and put in order"
    let (hammer, chisel) = (role("hammer", "bar", hammer_rules()), role("chisel", "bar", chisel_rules()));
    let in_order = [chisel_rules(), hammer_rules()].concat();
    check(
        &[hammer.clone(), chisel.clone(), role("saw", "not-bar", saw_rules()), combined(&["bar"], vec![])],
        Some(in_order.clone()),
        "apply 3 rules (rules of 2 selected roles: 3 missing, 0 extra)",
    );
    // "select properly with multiple selectors"
    let all = [in_order.clone(), saw_rules()].concat();
    check(
        &[hammer.clone(), chisel.clone(), role("saw", "not-bar", saw_rules()), combined(&["bar", "not-bar"], vec![])],
        Some(all.clone()),
        "apply 4 rules (rules of 3 selected roles: 4 missing, 0 extra)",
    );
    // "select properly remove duplicates"
    let (saw, other_saw) = (role("saw", "bar", saw_rules()), role("other-saw", "not-bar", saw_rules()));
    check(
        &[hammer.clone(), chisel, saw, other_saw, combined(&["bar", "not-bar"], vec![])],
        Some(all),
        "apply 4 rules (rules of 4 selected roles: 4 missing, 0 extra)",
    );
    // "no diff skip"
    check(&[hammer, combined(&["bar"], hammer_rules())], None, "nothing (has the 2 rules of 1 roles)");
}

#[test]
fn the_order_of_rules_is_that_of_selectors_and_of_names_and_counts() {
    let (hammer, saw) = (role("a-hammer", "b", hammer_rules()), role("b-saw", "a", saw_rules()));
    let (by_name, by_selector) = ([hammer_rules(), saw_rules()].concat(), [saw_rules(), hammer_rules()].concat());
    let order = |foos: &[&str], rules: &[Value]| [hammer.clone(), saw.clone(), combined(foos, rules.to_vec())];
    check(&order(&["b", "a"], &by_name), None, "nothing (has the 3 rules of 2 roles)");
    let turned = "apply 3 rules (rules of 2 selected roles: wrong order or duplicates)";
    check(&order(&["a", "b"], &by_name), Some(by_selector.clone()), turned);
    let twice = [by_selector.clone(), saw_rules()].concat();
    check(&order(&["a", "b"], &twice), Some(by_selector), turned);
}

#[test]
fn a_role_without_rules_is_as_one_with_an_empty_list() {
    for nothing in [json!(null), json!([])] {
        let empty = combined(&["bar"], vec![]).set(&["rules"], nothing);
        check(&[empty], None, "nothing (has the 0 rules of 0 roles)");
    }
    check(&[selecting("combined", vec![])], None, "nothing (has the 0 rules of 0 roles)");
    check(&[cluster_role("combined")], None, "nothing (has no aggregationRule)");
    let none = cluster_role("combined").set(&["aggregationRule"], json!({ "clusterRoleSelectors": null }));
    check(
        &[none.set(&["rules"], saw_rules())],
        Some(vec![]),
        "apply 0 rules (rules of 0 selected roles: 0 missing, 1 extra)",
    );
}

#[test]
fn a_role_gets_nothing_from_itself() {
    let itself = combined(&["bar"], saw_rules()).label("foo", "bar");
    let hammer = role("hammer", "bar", hammer_rules());
    check(&[itself, hammer], Some(hammer_rules()), "apply 2 rules (rules of 1 selected roles: 2 missing, 1 extra)");
}

#[test]
fn every_form_of_selector_selects() {
    let roles = [
        role("hammer", "a", hammer_rules()),
        role("saw", "b", saw_rules()),
        cluster_role("no-foo").set(&["rules"], chisel_rules()),
    ];
    let expression = |operator: &str, values: &[&str]| {
        let mut requirement = json!({ "key": "foo", "operator": operator });
        if !values.is_empty() {
            requirement["values"] = json!(values);
        }
        json!({ "matchExpressions": [requirement] })
    };
    let row = |selector: Value, expected: &[Vec<Value>]| {
        let all: Vec<ObjectBuilder> =
            roles.iter().cloned().chain([selecting("combined", vec![selector.clone()])]).collect();
        let planned = planned(&cluster(&all), "combined");
        let expected = Some(json!(expected.concat()));
        assert_eq!(applied(&planned).map(|rules| json!(rules)), expected, "{selector}");
    };
    row(json!({}), &[hammer_rules(), chisel_rules(), saw_rules()]);
    row(expression("In", &["b", "a", "b"]), &[hammer_rules(), saw_rules()]);
    row(expression("Exists", &[]), &[hammer_rules(), saw_rules()]);
    row(expression("NotIn", &["a"]), &[chisel_rules(), saw_rules()]);
    row(expression("DoesNotExist", &[]), &[chisel_rules()]);
    let mut both = expression("In", &["a", "b"]);
    both["matchLabels"] = json!({ "foo": "b" });
    row(both, &[saw_rules()]);
}

#[test]
fn an_invalid_selector_stops_its_role_alone() {
    let invalid = json!({ "matchExpressions": [{ "key": "foo", "operator": "Gt", "values": ["1"] }] });
    let fine = json!({ "matchLabels": { "foo": "bar" } });
    check(
        &[role("hammer", "bar", hammer_rules()), selecting("combined", vec![fine, invalid])],
        None,
        r#"nothing (invalid selector: "Gt" is not a valid label selector operator)"#,
    );
}

fn meaning(json: &str) -> String {
    serde_json::from_str::<Rule>(json).unwrap().meaning()
}

#[test]
fn rules_are_the_same_where_go_finds_them_deeply_equal() {
    let same = |a: &str, b: &str, expected: bool| assert_eq!(meaning(a) == meaning(b), expected, "{a} {b}");
    let get = r#"{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}"#;
    same(get, r#"{ "resources": ["pods"], "apiGroups": [""], "verbs": ["get"] }"#, true);
    same(
        get,
        r#"{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":[],"nonResourceURLs":null}"#,
        true,
    );
    same(get, r#"{"verbs":["get"],"apiGroups":[""],"resources":["p\u006fds"]}"#, true);
    same(get, r#"{"verbs":["get"],"resources":["pods"]}"#, false);
    same(get, r#"{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"new":true}"#, false);
    same(r#"{"verbs":["get","list"]}"#, r#"{"verbs":["list","get"]}"#, false);
    same(r#"{"new":1e400}"#, r#"{"new":1e500}"#, false);
}

#[test]
fn rules_travel_as_they_were_served() {
    let json = r#"{"verbs":["get"],"new":[1e400,"\u003c",1.50]}"#;
    let rules = [serde_json::from_str::<Rule>(json).unwrap()];
    let configuration = serde_json::to_string(&Configuration::new("a", &rules)).unwrap();
    let head = r#"{"metadata":{"name":"a"}"#;
    assert_eq!(configuration, format!(r#"{head},"rules":[{json}]}}"#));
    let stripped = serde_json::to_string(&Configuration::new("a", &[])).unwrap();
    assert_eq!(stripped, format!(r#"{head},"rules":[]}}"#));
}

fn update(caches: &Caches, new: &ObjectBuilder) -> Vec<Effect> {
    let new: Arc<ClusterRole> = new.build();
    let old = caches.cluster_roles.get(&new.metadata.key);
    store(&caches.cluster_roles, &new);
    caches.cluster_role_changed(match &old {
        Some(old) => Change::Updated { old, new: &new },
        None => Change::Added(&new),
    })
}

fn enqueued(name: &str) -> Effect {
    Effect::Enqueue(Key::new("", name), Cause::Event)
}

#[test]
fn a_change_leads_to_a_sync_of_the_roles_that_it_concerns() {
    let (bar, other) =
        (role("a", "bar", saw_rules()), selecting("other", vec![json!({ "matchLabels": { "foo": "x" } })]));
    let caches = cluster(&[bar.clone(), combined(&["bar"], vec![]), other]);
    assert_eq!(update(&caches, &bar.clone().annotation("a", "b")), []);
    assert_eq!(update(&caches, &role("a", "bar", hammer_rules())), [enqueued("combined")]);
    assert_eq!(update(&caches, &role("a", "x", hammer_rules())), [enqueued("combined"), enqueued("other")]);
    assert_eq!(update(&caches, &role("a", "x", vec![])), [enqueued("other")]);
    // Without rules it gives nothing, whatever its labels.
    assert_eq!(update(&caches, &role("a", "bar", vec![])), []);
    assert_eq!(update(&caches, &role("new", "bar", vec![])), []);
    assert_eq!(update(&caches, &role("new", "y", saw_rules())), []);
    assert_eq!(update(&caches, &bar), [enqueued("combined")]);
    let bar = caches.cluster_roles.get(&Key::new("", "a")).unwrap();
    forget(&caches.cluster_roles, &bar);
    assert_eq!(caches.cluster_role_changed(Change::Deleted(&bar)), [enqueued("combined")]);
}

#[test]
fn a_change_of_an_aggregated_role_leads_to_its_own_sync_unless_it_means_nothing() {
    let caches = cluster(&[role("a", "bar", saw_rules())]);
    let edited = |name: &str| [Effect::Enqueue(Key::new("", name), Cause::Edit)];
    assert_eq!(update(&caches, &combined(&["bar"], vec![])), edited("combined"));
    assert_eq!(update(&caches, &combined(&["bar"], vec![]).annotation("a", "b")), []);
    assert_eq!(update(&caches, &combined(&["bar"], hammer_rules())), [enqueued("combined")]);
    assert_eq!(update(&caches, &combined(&["bar", "x"], hammer_rules())), edited("combined"));
    // One that aggregates no more keeps its rules.
    assert_eq!(update(&caches, &cluster_role("combined").set(&["rules"], hammer_rules())), []);
    // One that selects itself, too, is synced once.
    let itself = combined(&["bar"], hammer_rules()).label("foo", "bar");
    assert_eq!(update(&caches, &itself), edited("combined"));
    let combined = caches.cluster_roles.get(&Key::new("", "combined")).unwrap();
    forget(&caches.cluster_roles, &combined);
    assert_eq!(caches.cluster_role_changed(Change::Deleted(&combined)), []);
}

/// A role of a generated cluster.
#[derive(Clone, Debug)]
struct Generated {
    /// The value of its label `foo`.
    group: Option<&'static str>,
    bar: bool,
    rules: Vec<u8>,
    /// The forms of its selectors; empty if it does not aggregate.
    selectors: Vec<u8>,
}

fn selector(form: u8) -> Value {
    match form {
        0 => json!({ "matchLabels": { "foo": "a" } }),
        1 => json!({ "matchExpressions": [{ "key": "foo", "operator": "In", "values": ["b", "a"] }] }),
        2 => json!({ "matchExpressions": [{ "key": "bar", "operator": "Exists" }] }),
        3 => json!({ "matchExpressions": [{ "key": "foo", "operator": "NotIn", "values": ["a"] }] }),
        4 => {
            json!({ "matchLabels": { "bar": "" }, "matchExpressions": [{ "key": "foo", "operator": "DoesNotExist" }] })
        }
        _ => json!({}),
    }
}

impl Generated {
    fn builder(&self, name: &str) -> ObjectBuilder {
        let rules: Vec<Value> = self.rules.iter().map(|n| rule("get", &n.to_string())).collect();
        let mut role = cluster_role(name).set(&["rules"], rules);
        if let Some(group) = self.group {
            role = role.label("foo", group);
        }
        if self.bar {
            role = role.label("bar", "");
        }
        if !self.selectors.is_empty() {
            let selectors: Vec<Value> = self.selectors.iter().map(|form| selector(*form)).collect();
            role = role.set(&["aggregationRule", "clusterRoleSelectors"], selectors);
        }
        role
    }
}

fn generated() -> impl Strategy<Value = Generated> {
    let group = prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))];
    let (rules, selectors) = (prop::collection::vec(0..4_u8, 0..4), prop::collection::vec(0..6_u8, 0..3));
    (group, any::<bool>(), rules, selectors).prop_map(|(group, bar, rules, selectors)| Generated {
        group,
        bar,
        rules,
        selectors,
    })
}

fn builders(cluster: &[Generated]) -> Vec<ObjectBuilder> {
    cluster.iter().enumerate().map(|(n, role)| role.builder(&n.to_string())).collect()
}

/// Upstream's algorithm, which looks at all roles; none if a role does not aggregate.
fn reference(caches: &Caches, role: &ClusterRole) -> Option<Vec<Rule>> {
    let mut rules: Vec<Rule> = Vec::new();
    role.aggregation_rule.as_ref()?;
    for selector in role.selectors() {
        let selector = selector.selector.as_ref().unwrap();
        let selected = caches.cluster_roles.all().into_iter().filter(|other| selector.matches(&other.metadata.labels));
        for other in selected.filter(|other| other.metadata.key != role.metadata.key) {
            for rule in &*other.rules {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    Some(rules)
}

fn applied_to_all(caches: &Caches) -> BTreeMap<Key, Vec<Rule>> {
    let observed = caches.cluster_roles.all().into_iter().filter_map(|role| caches.observe(&role.metadata.key));
    let plans = observed.map(|observed| (observed.cluster_role.metadata.key.clone(), plan(&observed)));
    plans.filter_map(|(key, plan)| Some((key, applied(&plan)?.to_vec()))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_indices_find_the_same_as_a_look_at_all_roles(roles in prop::collection::vec(generated(), 1..7)) {
        let caches = cluster(&builders(&roles));
        for role in caches.cluster_roles.all() {
            let expected = reference(&caches, &role).filter(|rules| rules[..] != role.rules[..]);
            let planned = plan(&caches.observe(&role.metadata.key).unwrap());
            prop_assert_eq!(applied(&planned).map(<[Rule]>::to_vec), expected, "{:?}", role);
        }
    }

    #[test]
    fn a_change_leads_to_a_sync_wherever_it_makes_a_difference(
        roles in prop::collection::vec(generated(), 1..7),
        at in any::<prop::sample::Index>(),
        becomes in prop::option::of(generated()),
    ) {
        let caches = cluster(&builders(&roles));
        let before = applied_to_all(&caches);
        let name = at.index(roles.len()).to_string();
        let effects = if let Some(becomes) = &becomes {
            update(&caches, &becomes.builder(&name))
        } else {
            let last = caches.cluster_roles.get(&Key::new("", &name)).unwrap();
            forget(&caches.cluster_roles, &last);
            caches.cluster_role_changed(Change::Deleted(&last))
        };
        for (key, rules) in applied_to_all(&caches) {
            let is_of = |effect: &Effect| matches!(effect, Effect::Enqueue(synced, _) if *synced == key);
            let is_synced = effects.iter().any(is_of);
            prop_assert!(is_synced || before.get(&key) == Some(&rules), "{} is not synced: {:?}", key, effects);
        }
    }

    #[test]
    fn the_order_of_events_is_irrelevant_and_after_applying_there_is_nothing_left_to_plan(
        roles in prop::collection::vec(generated(), 1..7),
    ) {
        let builders = builders(&roles);
        let turned: Vec<ObjectBuilder> = builders.iter().rev().cloned().collect();
        prop_assert_eq!(applied_to_all(&cluster(&builders)), applied_to_all(&cluster(&turned)));
        for (key, rules) in applied_to_all(&cluster(&builders)) {
            let caches = cluster(&builders);
            let at: usize = key.name().parse().unwrap();
            let written = builders[at].clone().set(&["rules"], json!(rules));
            store(&caches.cluster_roles, &written.build());
            prop_assert!(!applied_to_all(&caches).contains_key(&key));
        }
    }
}
