//! Which evictions a DeviceTaintRule explains, and which only a driver: those wait for the brake.

use device_taint_eviction_operator::plan::{Step, plan};
use serde_json::{Value, json};
use shared::testing::uid;

use crate::fixtures::{KEY, Scene, after, allocated, claim_of, of_driver, pod_of, rule, slice, something, toleration};

/// The driver whose taints alone evict the pod after so many seconds; none if a rule explains it.
fn suspect(scene: &Scene, seconds: i64) -> Option<String> {
    let plan = plan(&scene.observed(), after(seconds));
    let Step::Evict(eviction) = &plan.step else { panic!("{plan}") };
    assert_eq!(eviction.suspect.as_ref(), plan.suspect());
    eviction.suspect.as_ref().map(|suspect| {
        assert_eq!(suspect.claim, uid("my-claim"));
        suspect.driver.to_string()
    })
}

fn tolerated_for(seconds: i64) -> Vec<Value> {
    vec![toleration(KEY, Some("something"), Some(seconds))]
}

#[test]
fn a_rule_explains_an_eviction_only_if_it_would_evict_the_pod_by_now() {
    let of_slice = |tolerations: &[Value]| Scene::new(&[something()], tolerations);
    let with_rule = |added: &str, tolerations: &[Value]| Scene {
        rules: vec![of_driver("NoExecute").set(&["spec", "taint", "timeAdded"], added)],
        ..of_slice(tolerations)
    };
    let driver = Some("some-driver".to_owned());
    assert_eq!(suspect(&of_slice(&[]), 0), driver);
    assert_eq!(suspect(&of_slice(&tolerated_for(60)), 60), driver);
    assert_eq!(suspect(&with_rule("2026-01-01T12:00:00Z", &[]), 0), None);
    assert_eq!(suspect(&with_rule("2026-01-01T12:00:30Z", &[]), 29), driver);
    assert_eq!(suspect(&with_rule("2026-01-01T12:00:30Z", &[]), 30), None);
    assert_eq!(suspect(&with_rule("2026-01-01T12:00:30Z", &tolerated_for(60)), 89), driver);
    assert_eq!(suspect(&with_rule("2026-01-01T11:59:30Z", &tolerated_for(60)), 30), None);
    // A rule for another device explains nothing.
    let rules = vec![rule("other", json!({ "device": "other" }), "NoExecute")];
    assert_eq!(suspect(&Scene { rules, ..of_slice(&[]) }, 0), driver);
}

#[test]
fn of_several_drivers_the_one_with_the_earliest_taint_is_doubted() {
    let mut other_device = allocated("instance", &[toleration("", None, Some(30))]);
    other_device["driver"] = "other-driver".into();
    let claims = vec![
        claim_of("my-claim", &[allocated("instance", &tolerated_for(10))], &["my-pod"]),
        claim_of("other", &[other_device], &["my-pod"]),
    ];
    let slices = vec![slice(&[something()]), slice(&[something()]).set(&["spec", "driver"], "other-driver")];
    let scene = Scene { pod: pod_of("my-pod", &["other", "my-claim"]), claims, slices, ..Scene::new(&[], &[]) };
    assert_eq!(suspect(&scene, 60), Some("some-driver".to_owned()));
}
