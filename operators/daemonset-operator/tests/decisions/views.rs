//! The fields that are read of DaemonSets and pods, and the API's defaults.

use daemonset_operator::objects::pod::{Place, Pod};
use daemonset_operator::objects::{DaemonSet, DaemonSetStatus, UpdateType};
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::testing::{self, ObjectBuilder, object};

use crate::fixtures::{NEW, SetBuilder, pinned, pod, required, set, unready};

#[test]
fn a_set_that_says_little_has_the_defaults_of_the_api() {
    for bare in [
        json!({}),
        json!({ "selector": null, "template": null, "revisionHistoryLimit": null }),
        json!({ "template": { "spec": { "nodeSelector": null, "tolerations": null, "affinity": null } } }),
    ] {
        let set = object("apps/v1", "DaemonSet", "web").set(&["spec"], bare).build::<DaemonSet>();
        let spec = &set.spec;
        assert_eq!((spec.revision_history_limit, spec.min_ready_seconds), (10, 0));
        assert_eq!((spec.update_strategy.type_, spec.allows_surge()), (UpdateType::RollingUpdate, false));
        assert_eq!((set.template_generation, &set.status), (None, &DaemonSetStatus::default()));
        assert!(!spec.selects(&shared::api::labels::Labels::new([("app", "web")])) && !spec.selects_everything());
    }
}

#[test]
fn a_set_says_whether_a_node_may_have_two_of_its_pods() {
    let allows = |set: ObjectBuilder| set.build::<DaemonSet>().spec.allows_surge();
    assert!(allows(set().surge(1)) && allows(set().surge("1%")));
    assert!(!allows(set()) && !allows(set().surge("0%")) && !allows(set().surge("odd")));
    let on_delete = json!({ "type": "OnDelete", "rollingUpdate": { "maxSurge": 1 } });
    assert!(!allows(set().with("updateStrategy", on_delete)));
}

#[test]
fn a_template_that_cannot_be_read_is_refused() {
    let odd = set().with_pod("tolerations", "odd");
    assert!(serde_json::from_str::<DaemonSet>(&odd.json().to_string()).is_err());
}

/// Upstream: `TestGetTargetNodeName`.
#[test]
fn a_pod_says_where_it_is_or_will_be() {
    let place = |pod: ObjectBuilder| pod.build::<Pod>().place.clone();
    let with = |terms| unready("web-1", "", NEW).set(&["spec", "affinity"], required(&terms));
    let named =
        |operator: &str, values: &[&str]| json!({ "key": "metadata.name", "operator": operator, "values": values });
    let of = |requirement: Value| with(json!([{ "matchFields": [requirement] }]));
    assert_eq!(place(pod("web-1", "a", NEW)), Place::Bound(Text::new("a")));
    assert_eq!(place(pinned("web-1", "a", NEW)), Place::Pinned(Text::new("a")));
    assert_eq!(place(pinned("web-1", "a", NEW).node("b")), Place::Bound(Text::new("b")));
    assert_eq!(place(unready("web-1", "", NEW)), Place::Nowhere);
    assert_eq!(place(of(named("In", &["a", "b"]))), Place::Nowhere);
    assert_eq!(place(of(named("NotIn", &["a"]))), Place::Nowhere);
    let expression = json!({ "key": "metadata.name", "operator": "In", "values": ["a"] });
    assert_eq!(place(with(json!([{ "matchExpressions": [expression] }]))), Place::Nowhere);
    let second = json!([{ "matchFields": [named("NotIn", &["b"])] }, { "matchFields": [named("In", &["a"])] }]);
    assert_eq!(place(with(second)), Place::Pinned(Text::new("a")));
}

#[test]
fn states_of_a_pod_that_differ_in_nothing_that_counts_are_alike() {
    let first = pod("web-1", "a", NEW).build::<Pod>();
    let alike = |other: ObjectBuilder| first.is_alike(&other.build::<Pod>());
    assert!(alike(pod("web-1", "a", NEW).set(&["metadata", "resourceVersion"], "9").annotation("a", "b")));
    assert!(!alike(pod("web-1", "a", NEW).label("a", "b")));
    assert!(!alike(pod("web-1", "b", NEW)));
    assert!(!alike(pod("web-1", "a", NEW).phase("Failed")));
    assert!(!alike(pod("web-1", "a", NEW).terminating()));
    assert!(!alike(unready("web-1", "a", NEW)));
    assert!(!testing::pod("bare").build::<Pod>().has_hash(""));
}
