use serde_json::{Value, json};

use super::*;
use crate::testing::protobuf::read_pod;

fn taint(json: &Value) -> Taint {
    serde_json::from_str(&json.to_string()).unwrap()
}

/// As a pod in JSON has it, which is as a pod on the wire has it.
#[track_caller]
fn toleration(json: &Value) -> Toleration {
    #[derive(Deserialize)]
    struct Pod {
        spec: Spec,
    }
    #[derive(Deserialize)]
    struct Spec {
        tolerations: [Toleration; 1],
    }
    let pod = json!({ "spec": { "tolerations": [json] } });
    let of_json: Pod = serde_json::from_str(&pod.to_string()).unwrap();
    let of_wire: Pod = read_pod(&pod).unwrap();
    assert_eq!(of_json.spec.tolerations, of_wire.spec.tolerations);
    let [toleration] = of_json.spec.tolerations;
    toleration
}

/// Upstream: `TestTolerationToleratesTaint`, the feature gate on where a row needs it.
#[test]
fn a_toleration_is_about_a_key_values_and_an_effect() {
    const SLA: &str = "node.kubernetes.io/sla";
    let row = |of_pod: Value, of_node: Value, expected: bool| {
        assert_eq!(toleration(&of_pod).tolerates(&taint(&of_node)), expected, "{of_pod} {of_node}");
    };
    let foo = |value: &str| json!({ "key": "foo", "value": value, "effect": "NoSchedule" });
    let exists = json!({ "key": "foo", "operator": "Exists", "effect": "NoSchedule" });
    let equal = |value: &str| json!({ "key": "foo", "operator": "Equal", "value": value, "effect": "NoSchedule" });
    row(exists.clone(), json!({ "key": "foo", "effect": "NoSchedule" }), true);
    row(exists.clone(), foo("bar"), true);
    row(json!({ "key": "", "operator": "Exists", "effect": "NoSchedule" }), foo("bar"), true);
    row(equal("bar"), foo("bar"), true);
    row(equal("value1"), foo("value2"), false);
    row(equal("bar"), json!({ "key": "foo", "value": "bar", "effect": "NoExecute" }), false);
    for (operator, limit, value, expected) in [
        ("Gt", "950", "800", false),
        ("Gt", "750", "950", true),
        ("Lt", "800", "950", false),
        ("Lt", "950", "800", true),
        ("Gt", "950", "950", false),
        ("Gt", "950", "high", false),
        ("Gt", "-100", "-200", false),
        ("Gt", "9223372036854775806", "100", false),
    ] {
        let of_pod = json!({ "key": SLA, "operator": operator, "value": limit, "effect": "NoSchedule" });
        row(of_pod, json!({ "key": SLA, "value": value, "effect": "NoSchedule" }), expected);
    }
    // What upstream's table leaves out.
    row(exists, json!({ "key": "bar", "effect": "NoSchedule" }), false);
    row(json!({ "operator": "Exists" }), json!({ "key": "foo", "value": "bar", "effect": "NoExecute" }), true);
    row(json!({ "value": "bar" }), foo("bar"), true);
    row(json!({ "key": "foo", "operator": "", "value": "bar", "effect": "" }), foo("bar"), true);
    row(json!({ "key": "foo" }), json!({ "key": "foo", "effect": "PreferNoSchedule" }), true);
    row(json!({ "key": "foo", "operator": "In", "value": "bar" }), foo("bar"), false);
    row(json!({ "key": "foo", "operator": "Exists", "effect": "Odd" }), foo("bar"), false);
}

/// Upstream: `TestCompareNumericValues`.
#[test]
fn numbers_are_compared_only_if_both_are_as_go_prints_them() {
    let row = |operator: &str, limit: &str, value: &str, expected: bool| {
        let of_pod = toleration(&json!({ "key": "k", "operator": operator, "value": limit }));
        let of_node = taint(&json!({ "key": "k", "value": value }));
        assert_eq!(of_pod.tolerates(&of_node), expected, "{operator} {limit:?} {value:?}");
    };
    for (limit, value) in [
        ("100", "200"),
        ("-100", "-50"),
        ("0", "1"),
        ("-1", "0"),
        ("9223372036854775806", "9223372036854775807"),
        ("0", "9223372036854775807"),
        ("-9223372036854775808", "0"),
    ] {
        row("Gt", limit, value, true);
        row("Gt", value, limit, false);
        row("Lt", value, limit, true);
        row("Lt", limit, value, false);
    }
    for same in ["100", "0"] {
        row("Gt", same, same, false);
        row("Lt", same, same, false);
    }
    for odd in ["abc", "xyz", "", "0100", "+100", "-0", "100.5", "-", " 200 ", "9223372036854775808"] {
        for operator in ["Gt", "Lt"] {
            row(operator, odd, "200", false);
            row(operator, "100", odd, false);
        }
    }
}

/// Upstream: `TestMatchTaint`.
#[test]
fn a_taint_is_known_by_its_key_and_its_effect() {
    let known = KnownTaint::no_schedule("foo");
    let is = |key: &str, value: &str, effect| known.is(&Taint { key: key.into(), value: value.into(), effect });
    assert!(is("foo", "bar", TaintEffect::NoSchedule) && is("foo", "different-value", TaintEffect::NoSchedule));
    assert!(!is("different-key", "bar", TaintEffect::NoSchedule) && !is("foo", "bar", TaintEffect::PreferNoSchedule));
    assert_eq!(known.to_string(), "foo:NoSchedule");
}

/// Upstream: `TestTaintToString`.
#[test]
fn taints_are_shown_as_kubectl_shows_them() {
    for (json, expected) in [
        (json!({ "key": "foo", "value": "bar", "effect": "NoSchedule" }), "foo=bar:NoSchedule"),
        (json!({ "key": "foo", "effect": "NoSchedule" }), "foo:NoSchedule"),
        (json!({ "key": "foo" }), "foo"),
        (json!({ "key": "foo", "value": "bar" }), "foo=bar:"),
        (json!({ "key": "foo", "effect": "PreferNoSchedule", "timeAdded": null }), "foo:PreferNoSchedule"),
        (json!({ "key": "foo", "effect": "NoExecute", "notKnownYet": {} }), "foo:NoExecute"),
    ] {
        assert_eq!(taint(&json).to_string(), expected);
    }
}

#[test]
fn both_are_small() {
    assert!(size_of::<Taint>() <= 40, "{} bytes", size_of::<Taint>());
    assert!(size_of::<Toleration>() <= 56, "{} bytes", size_of::<Toleration>());
}

#[test]
fn a_toleration_may_end() {
    let seconds = |json: Value| toleration(&json).seconds;
    assert_eq!(seconds(json!({ "operator": "Exists" })), None);
    assert_eq!(seconds(json!({ "operator": "Exists", "tolerationSeconds": 300 })), Some(300));
}
