//! Which kinds a policy's expressions are checked for, and what is found: upstream's cases, and bounds.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use cel_check::Definitions;
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::resource::Resource;
use shared::following::cache::Change;
use shared::testing::{ObjectBuilder, object};
use shared::transport::discovery::Served;
use validatingadmissionpolicy_status_operator::controller::changes::policy_changed;
use validatingadmissionpolicy_status_operator::objects::{LivePolicy, ValidatingAdmissionPolicy};
use validatingadmissionpolicy_status_operator::observe::{Live, Observed, Schemas};
use validatingadmissionpolicy_status_operator::plan::check::{Findings, check};
use validatingadmissionpolicy_status_operator::plan::{Plan, plan, plan_live_read};
use validatingadmissionpolicy_status_operator::status::Configuration;

const POLICY: &str = "ValidatingAdmissionPolicy";

fn policy() -> ObjectBuilder {
    object("admissionregistration.k8s.io/v1", POLICY, "typed").namespace("").set(&["metadata", "generation"], 3)
}

fn rule(groups: &[&str], versions: &[&str], resources: &[&str]) -> Value {
    json!({"apiGroups": groups, "apiVersions": versions, "operations": ["*"], "resources": resources})
}

fn deployments() -> Value {
    rule(&["apps"], &["v1"], &["deployments"])
}

/// A policy about Deployments with these expressions.
fn with_expressions(expressions: &[&str]) -> Value {
    let validations: Vec<Value> = expressions.iter().map(|expression| json!({"expression": expression})).collect();
    json!({"matchConstraints": {"resourceRules": [deployments()]}, "validations": validations})
}

fn with_variable(name: &str, of: &str, expression: &str) -> Value {
    let mut spec = with_expressions(&[expression]);
    spec["variables"] = json!([{"name": name, "expression": of}]);
    spec
}

fn served(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Served {
    let resource = Resource {
        group: Cow::Borrowed(group),
        version: Cow::Borrowed(version),
        kind: Cow::Borrowed(kind),
        plural: Cow::Borrowed(plural),
        namespaced: true,
    };
    Served { resource, verbs: BTreeSet::new(), is_preferred: true }
}

/// Upstream: `buildTypeChecker`.
fn all_served() -> Vec<Served> {
    vec![served("", "v1", "Pod", "pods"), served("apps", "v1", "Deployment", "deployments")]
}

fn live(spec: &Value) -> LivePolicy {
    let mut object = Value::clone(&policy().build());
    object["spec"] = spec.clone();
    serde_json::from_value(object).unwrap()
}

/// What is observed once the policy has been read; each kind has this schema.
fn observed(spec: &Value, schema: Option<&Value>) -> Observed {
    let policy = live(spec);
    let definitions = schema.map(|schema| Arc::new(Definitions::of(schema.to_string().as_bytes()).unwrap()));
    let kinds = policy.spec.kinds(&all_served()).into_iter().map(|kind| (kind, definitions.clone())).collect();
    let params = policy.spec.param_kind().and(definitions);
    let live = Live::Policy { policy: Arc::new(policy), schemas: Schemas { kinds, params } };
    Observed { policy: self::policy().build(), live }
}

fn findings(spec: &Value, schema: Option<&Value>) -> Findings {
    check(&observed(spec, schema)).unwrap()
}

fn with_property(name: &str, of: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": of}}})
}

/// The fields that have warnings, each of which contains the text.
#[track_caller]
fn assert_warnings(name: &str, found: &Findings, fields: &[&str], texts: &[&str]) {
    let found_fields: Vec<&str> = found.warnings.iter().map(|warning| &*warning.field_ref).collect();
    assert_eq!(found_fields, fields, "{name}: {found:#?}");
    for warning in &found.warnings {
        assert!(texts.iter().all(|text| warning.warning.contains(text)), "{name}: {warning:?}");
    }
    assert_eq!(found.undecided, 0, "{name}");
}

/// Upstream: `TestExtractTypeNames`, `typechecking_test.go`.
#[test]
fn the_kinds_follow_from_the_rules() {
    let rows: [(&str, Vec<Value>, &[&str]); 6] = [
        ("empty", vec![], &[]),
        ("specific", vec![deployments()], &["apps/v1, Kind=Deployment"]),
        (
            "multiple",
            vec![deployments(), rule(&[""], &["v1"], &["pods"])],
            &["/v1, Kind=Pod", "apps/v1, Kind=Deployment"],
        ),
        ("all resources", vec![rule(&["apps"], &["v1"], &["*"])], &[]),
        ("sub resources", vec![rule(&["apps"], &["v1"], &["pods/*"])], &[]),
        ("mixtures", vec![deployments(), rule(&["apps"], &["*"], &["deployments"])], &["apps/v1, Kind=Deployment"]),
    ];
    for (name, rules, expected) in rows {
        let spec = live(&json!({"matchConstraints": {"resourceRules": rules}})).spec;
        let kinds: Vec<String> = spec.kinds(&all_served()).iter().map(ToString::to_string).collect();
        assert_eq!(kinds, expected, "{name}");
        assert_eq!(spec.names_kinds(), !expected.is_empty(), "{name}");
    }
}

#[test]
fn a_rule_without_a_group_means_every_group_with_that_resource() {
    let events = [served("", "v1", "Event", "events"), served("events.k8s.io", "v1", "Event", "events")];
    let spec = live(&json!({"matchConstraints": {"resourceRules": [rule(&[""], &["v1"], &["events"])]}})).spec;
    let kinds: Vec<String> = spec.kinds(&events).iter().map(ToString::to_string).collect();
    assert_eq!(kinds, ["/v1, Kind=Event", "events.k8s.io/v1, Kind=Event"]);
}

#[test]
fn a_rule_adds_at_most_ten_kinds_and_a_policy_at_most_fifty() {
    let names: Vec<&'static str> =
        (0..100).map(|number| &*Box::leak(format!("kind{number:02}").into_boxed_str())).collect();
    let all: Vec<Served> = names.iter().map(|name| served("g", "v1", name, name)).collect();
    let count = |rules: Vec<Value>| live(&json!({"matchConstraints": {"resourceRules": rules}})).spec.kinds(&all).len();
    assert_eq!(count(vec![rule(&["g"], &["v1"], &names[..12])]), 10);
    assert_eq!(count(names.chunks(9).map(|names| rule(&["g"], &["v1"], names)).collect()), 50);
}

const FIRST: &[&str] = &["spec.validations[0].expression"];

/// A case of upstream's: its name, the policy, the schema of each kind, and what is found.
struct Row(&'static str, Value, Option<Value>, &'static [&'static str], &'static [&'static str]);

#[track_caller]
fn check_rows(rows: Vec<Row>) {
    for Row(name, spec, schema, fields, texts) in rows {
        assert_warnings(name, &findings(&spec, schema.as_ref()), fields, texts);
    }
}

fn with_param_kind(kind: &str, expression: &str) -> Value {
    let mut spec = with_expressions(&[expression]);
    spec["paramKind"] = json!({"apiVersion": "v1", "kind": kind});
    spec
}

/// Upstream: `TestTypeCheck`, `typechecking_test.go`: the cases without variables.
#[test]
fn expressions_are_checked_against_schemas() {
    let deployment = with_expressions(&["object.foo == 'bar'"]);
    let (foo, bar, number) =
        (with_property("foo", "string"), with_property("bar", "string"), with_property("foo", "integer"));
    let params = with_param_kind("DoesNotMatter", "object.foo == params.bar");
    let untyped_params = with_param_kind("Config", "params != null");
    let mut message = deployment.clone();
    message["validations"][0]["messageExpression"] = json!("object.foo + 114514");
    let mut reproducer = with_expressions(&["has(object.spec.text)"]);
    reproducer["matchConstraints"]["resourceRules"] = json!([rule(&["example.com"], &["v1alpha1"], &["reproducers"])]);
    let any_properties = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"text": {"type": "string"}}},
        "status": {"type": "object", "properties": {
            "problematicProperty": {"type": "object", "additionalProperties": true}
        }},
    }});
    let several = with_expressions(&["object.foo == 'bar'", "object.bar == 'foo'"]);
    let authorizer = with_expressions(&["authorizer.group('').resource('endpoints').check('create').allowed()"]);
    let no_check = with_expressions(&["authorizer.allowed()"]);
    check_rows(vec![
        Row("empty", json!({}), None, &[], &[]),
        Row("unresolved schema", deployment.clone(), None, &[], &[]),
        Row("passed check", deployment.clone(), Some(foo.clone()), &[], &[]),
        Row("undefined field", deployment.clone(), Some(bar), FIRST, &["undefined field 'foo'"]),
        Row("field type mismatch", deployment, Some(number), FIRST, &["found no matching overload"]),
        Row("params", params, Some(foo.clone()), FIRST, &["undefined field 'bar'"]),
        Row("params with untyped schema", untyped_params, Some(json!({})), &[], &[]),
        Row("multiple expressions", several, Some(foo.clone()), &["spec.validations[1].expression"], &[]),
        Row("message expressions", message, Some(foo.clone()), &["spec.validations[0].messageExpression"], &[]),
        Row("authorizer", authorizer, Some(foo.clone()), &[], &[]),
        Row(
            "authorizer invalid",
            no_check,
            Some(foo),
            FIRST,
            &["found no matching overload for 'allowed' applied to 'kubernetes.authorization.Authorizer"],
        ),
        Row("additionalProperties: true", reproducer, Some(any_properties), &[], &[]),
        Row("schema without type", with_expressions(&["true"]), Some(json!({})), &[], &[]),
    ]);
}

/// Upstream: `TestTypeCheck`, `typechecking_test.go`: the cases with variables.
#[test]
fn variables_have_the_types_of_their_expressions() {
    let number = || Some(with_property("foo", "integer"));
    let of_name = |of| with_variable("name", of, "variables.name == object.foo");
    check_rows(vec![
        Row("variables valid", with_variable("works", "true", "variables.works"), number(), &[], &[]),
        Row(
            "variables missing field",
            with_variable("works", "true", "variables.nonExisting"),
            number(),
            FIRST,
            &["undefined field 'nonExisting'"],
        ),
        Row(
            "variables field wrong type",
            of_name("'something'"),
            number(),
            FIRST,
            &["found no matching overload for '_==_' applied to '(string, int)"],
        ),
        Row(
            "error in variables, not reported during type checking.",
            of_name("object.foo == 'str'"),
            number(),
            &[],
            &[],
        ),
    ]);
}

/// Upstream: `TestTypeChecking`, `pkg/controller/validatingadmissionpolicystatus/controller_test.go`.
#[test]
fn deployments_are_checked() {
    let spec = json!({"type": "object", "properties": {"replicas": {"type": "integer", "format": "int32"}}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let confused = "found no matching overload for '_>_' applied to '(int, string)'";
    let (first, second) = ("spec.validations[0].expression", "spec.validations[1].expression");
    let check = |name, expressions: &[&str], fields: &[&str], texts: &[&str]| {
        assert_warnings(name, &findings(&with_expressions(expressions), Some(&schema)), fields, texts);
    };
    check("deployment with correct expression", &["object.spec.replicas > 1"], &[], &[]);
    check(
        "deployment with type confusion",
        &["object.spec.replicas < 100", "object.spec.replicas > '1'"],
        &[second],
        &[confused],
    );
    let two = with_expressions(&["object.spec.nonExistingFirst > 1", "object.spec.replicas > '1'"]);
    let two = findings(&two, Some(&schema));
    assert_warnings("two expressions different type checking errors", &two, &[first, second], &[]);
    assert!(two.warnings[0].warning.contains("undefined field 'nonExistingFirst'"));
    assert!(two.warnings[1].warning.contains(confused));
    check(
        "one expression, two warnings",
        &["object.spec.replicas < 100", "object.spec.replicas > '1' && object.spec.nonExisting == 1"],
        &[second],
        &["undefined field 'nonExisting'", confused],
    );
}

#[test]
fn a_warning_names_each_kind_for_which_an_expression_is_wrong() {
    let mut spec = with_expressions(&["object.bar"]);
    spec["matchConstraints"]["resourceRules"] = json!([deployments(), rule(&[""], &["v1"], &["pods"])]);
    let found = findings(&spec, Some(&with_property("foo", "string")));
    let error = "ERROR: <input>:1:7: undefined field 'bar'\n | object.bar\n | ......^\n";
    assert_eq!(found.warnings[0].warning, format!("/v1, Kind=Pod: {error}\napps/v1, Kind=Deployment: {error}"));
    assert_eq!((found.warnings.len(), found.kinds, found.unknown_kinds), (1, 2, 0));
}

#[test]
fn variables_keep_the_types_that_upstream_keeps() {
    let schema = json!({"type": "object", "properties": {
        "names": {"type": "array", "items": {"type": "string"}}, "spec": {"type": "object", "properties": {}},
    }});
    for (of, expression, is_wrong) in [
        ("object.names", "variables.v[0] == 1", true),
        ("{'a': object.names}", "variables.v['a'][0] == 1", true),
        ("object.spec", "variables.v.anything", false),
        ("[object.spec]", "variables.v[0].anything", false),
        ("object.?names", "variables.v.anything", false),
        ("type(1)", "variables.v == 1", false),
        ("timestamp('2020-01-01T00:00:00Z')", "variables.v == 1", true),
        ("null", "variables.v == 1", true),
    ] {
        let found = findings(&with_variable("v", of, expression), Some(&schema));
        assert_eq!(!found.warnings.is_empty(), is_wrong, "{of}: {found:?}");
    }
}

#[test]
fn what_cannot_be_checked_gets_no_warning_and_is_counted() {
    let deep = format!("{}object.bar{}", "(".repeat(1_000), ")".repeat(1_000));
    let spec = with_expressions(&[&deep, "object.bar", "1 +"]);
    let found = findings(&spec, Some(&with_property("foo", "string")));
    assert_eq!((found.warnings.len(), found.undecided), (1, 2));
}

#[test]
fn a_policy_is_checked_within_its_budget_and_its_warnings_have_a_limit() {
    let wrong = vec!["object.bar"; 40].join(" && ");
    let spec = with_expressions(&vec![&*wrong; 100]);
    let found = findings(&spec, Some(&with_property("foo", "string")));
    let bytes: usize = found.warnings.iter().map(|warning| warning.warning.len()).sum();
    assert!(bytes <= 256 * 1024 && found.omitted > 0 && !found.warnings.is_empty(), "{bytes} {}", found.omitted);
    let many = vec!["object.foo == 'a'"; 2_000].join(" && ");
    let found = findings(&with_expressions(&vec![&*many; 40]), Some(&with_property("foo", "string")));
    assert!(found.undecided > 0 && found.warnings.is_empty());
}

#[test]
fn a_policy_is_read_once_for_each_generation() {
    let at = |generation: i64, checked: i64| {
        let policy = policy().set(&["metadata", "generation"], generation);
        let policy = policy.set(&["status", "observedGeneration"], checked);
        Observed { policy: policy.build(), live: Live::NotRead }
    };
    let read = plan_live_read(&at(3, 2)).unwrap();
    let expected = "read the policy and the schemas of its kinds (generation 3 is not checked, 2 is)";
    assert_eq!(read.to_string(), expected);
    for checked in [3, 4] {
        let observed = at(3, checked);
        assert_eq!(plan_live_read(&observed), None);
        assert_eq!(plan(&observed, Findings::default()).to_string(), "nothing (generation 3 is checked)");
    }
    let gone = Observed { live: Live::Gone, ..at(3, 2) };
    assert_eq!(
        (plan_live_read(&gone), plan(&gone, Findings::default()).to_string()),
        (None, "nothing (deleted)".into())
    );
}

#[test]
fn a_plan_is_about_the_generation_that_was_read() {
    let observed = observed(&with_expressions(&["object.bar", "1 +"]), Some(&with_property("foo", "string")));
    let plan = plan(&observed, check(&observed).unwrap());
    let expected = "apply the status of generation 3 (1 warnings for 1 kinds, 1 expressions that cannot be checked)";
    assert_eq!(plan.to_string(), expected);
    let Plan::Apply { warnings, generation, .. } = plan else { panic!("nothing") };
    let applied = json!(Configuration::new("typed", generation, &warnings));
    assert_eq!(applied["status"]["observedGeneration"], 3);
    let expected = json!({"fieldRef": "spec.validations[0].expression", "warning": warnings[0].warning});
    assert_eq!(applied["status"]["typeChecking"], json!({"expressionWarnings": [expected]}));
    assert_eq!(json!(Configuration::new("typed", 3, &[]))["status"]["typeChecking"], json!({}));
}

fn keys(change: Change<'_, ValidatingAdmissionPolicy>) -> usize {
    policy_changed(change).len()
}

#[test]
fn a_change_leads_to_a_sync_while_the_policy_is_not_checked() {
    let at = |generation: i64, checked: i64| -> Arc<ValidatingAdmissionPolicy> {
        let policy = policy().set(&["metadata", "generation"], generation);
        policy.set(&["status", "observedGeneration"], checked).build()
    };
    assert_eq!(keys(Change::Added(&at(1, 0))), 1);
    assert_eq!(keys(Change::Added(&at(1, 1))), 0);
    assert_eq!(keys(Change::Updated { old: &at(1, 1), new: &at(2, 1) }), 1);
    assert_eq!(keys(Change::Updated { old: &at(2, 1), new: &at(2, 2) }), 0);
    assert_eq!(keys(Change::Updated { old: &at(2, 2), new: &at(2, 0) }), 1);
    assert_eq!(keys(Change::Deleted(&at(2, 1))), 0);
}

proptest! {
    #[test]
    fn the_order_of_rules_is_irrelevant(order in Just(vec![0_usize, 1, 2, 3]).prop_shuffle()) {
        let rules = [
            deployments(),
            rule(&[""], &["v1"], &["pods"]),
            rule(&["apps", ""], &["v1"], &["pods", "deployments"]),
            rule(&["*"], &["v1"], &["pods"]),
        ];
        let kinds = |order: &[usize]| {
            let rules: Vec<&Value> = order.iter().map(|at| &rules[*at]).collect();
            live(&json!({"matchConstraints": {"resourceRules": rules}})).spec.kinds(&all_served())
        };
        prop_assert_eq!(kinds(&order), kinds(&[0, 1, 2, 3]));
    }
}
