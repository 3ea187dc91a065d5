//! Names, ordinals and the owners of claims: rows of upstream's `stateful_set_utils_test.go`.

use std::sync::Arc;

use serde_json::{Value, json};
use shared::testing::{ObjectBuilder, uid};
use statefulset_operator::objects::claim::PersistentVolumeClaim;
use statefulset_operator::objects::names::{is_member_of, ordinals_of_interest, parent_and_ordinal};
use statefulset_operator::objects::pod::Pod;
use statefulset_operator::objects::{POD_NAME_LABEL, StatefulSet};
use statefulset_operator::plan::claim_owners::{
    PodIdentity, has_non_controller_owner, has_stale_pod, has_stale_set, has_unexpected_controller,
    is_claim_owner_up_to_date, owner_change,
};
use statefulset_operator::plan::pods::{identity_matches, is_running_and_ready, storage_matches};

use crate::fixtures::{NEW, SetBuilder, after, claim, named, owned, pod, set, unready};

fn view(pod: &ObjectBuilder) -> Arc<Pod> {
    pod.build()
}

/// Upstream: `TestGetParentNameAndOrdinal`.
#[test]
fn a_name_ends_in_an_ordinal() {
    for (name, expected) in [
        ("web-1", Some(("web", 1))),
        ("my-web-01", Some(("my-web", 1))),
        ("web-2147483647", Some(("web", 2_147_483_647))),
        ("web-2147483648", Some(("web", -1))),
        ("-7", Some(("", 7))),
        ("1-bar", None),
        ("web-", None),
        ("web-1x", None),
        ("web--1", Some(("web-", 1))),
        ("web", None),
        ("7", None),
    ] {
        assert_eq!(parent_and_ordinal(name), expected, "{name}");
    }
}

/// Upstream: `TestIsMemberOf`.
#[test]
fn a_pod_is_one_of_the_set_that_its_name_names() {
    let (web, other) = (set(3).build::<StatefulSet>(), set(3).set(&["metadata", "name"], "we").build::<StatefulSet>());
    let pod = view(&pod(1, NEW));
    assert!(is_member_of(&web, &pod) && !is_member_of(&other, &pod));
    assert!(!is_member_of(&web, &view(&named("web-x", 1, NEW))));
}

/// Upstream: `TestIdentityMatches`.
#[test]
fn the_identity_is_the_name_and_the_label_with_it() {
    let set = set(3).build::<StatefulSet>();
    assert!(identity_matches(&set, &view(&pod(1, NEW))));
    assert!(!identity_matches(&set, &view(&named("foo", 1, NEW))));
    assert!(!identity_matches(&set, &view(&named("web-01", 1, NEW))));
    assert!(!identity_matches(&set, &view(&pod(1, NEW).label(POD_NAME_LABEL, "web-2"))));
}

/// Upstream: `TestStorageMatches`.
#[test]
fn the_storage_is_a_claim_for_each_template() {
    let set = set(3).with_claims().build::<StatefulSet>();
    let with = |volumes: Value| view(&pod(1, NEW).set(&["spec", "volumes"], volumes));
    let of = |name: &str, claim: &str| json!({ "name": name, "persistentVolumeClaim": { "claimName": claim } });
    assert!(storage_matches(&set, &view(&pod(1, NEW))));
    assert!(storage_matches(&set, &with(json!([{ "name": "tmp", "emptyDir": {} }, of("data", "data-web-1")]))));
    assert!(!storage_matches(&set, &with(json!([]))));
    assert!(!storage_matches(&set, &with(json!([{ "name": "data" }]))));
    assert!(!storage_matches(&set, &with(json!([of("data", "foo")]))));
    assert!(!storage_matches(&set, &with(json!([of("other", "data-web-1")]))));
    assert!(!storage_matches(&set, &view(&named("bar", 1, NEW))));
}

/// Upstream: `TestIsRunningAndReady`.
#[test]
fn a_pod_that_runs_and_is_ready_is_both() {
    assert!(!is_running_and_ready(&view(&unready(1, NEW).phase("Pending"))));
    assert!(!is_running_and_ready(&view(&unready(1, NEW))));
    assert!(!is_running_and_ready(&view(&pod(1, NEW).phase("Failed"))));
    assert!(is_running_and_ready(&view(&pod(1, NEW))));
}

#[test]
fn pods_there_are_and_pods_that_may_come_are_of_interest() {
    let of = |replicas: i32, pods: &[ObjectBuilder]| {
        let pods: Vec<Arc<Pod>> = pods.iter().map(view).collect();
        Vec::from_iter(ordinals_of_interest(&set(replicas).build::<StatefulSet>(), &pods))
    };
    assert_eq!(of(2, &[]), [0, 1]);
    assert_eq!(of(2, &[pod(1, NEW), pod(7, NEW), named("other-9", 9, NEW), named("web-x", 0, NEW)]), [0, 1, 7]);
    assert_eq!(of(i32::MAX, &[pod(9, NEW)]).len(), 501);
}

/// Every combination of a retention policy with a pod that stays (ordinal 1) or is too many (2): whether the pod is to
/// own its claims, or the set.
const POLICIES: [(&str, &str, i64, bool, bool); 8] = [
    ("Retain", "Retain", 1, false, false),
    ("Retain", "Retain", 2, false, false),
    ("Retain", "Delete", 1, false, true),
    ("Retain", "Delete", 2, false, true),
    ("Delete", "Retain", 1, false, false),
    ("Delete", "Retain", 2, true, false),
    ("Delete", "Delete", 1, false, true),
    ("Delete", "Delete", 2, true, false),
];

fn entry(kind: &str, name: &str, uid_of: &str, controller: Option<bool>) -> Value {
    let api_version = match kind {
        "Pod" => "v1",
        "StatefulSet" => "apps/v1",
        _ => "example.com/v1",
    };
    json!({ "apiVersion": api_version, "kind": kind, "name": name, "uid": uid(uid_of), "controller": controller })
}

fn with_owners(owners: &[Value]) -> Arc<PersistentVolumeClaim> {
    owned(claim(1), owners).build()
}

/// Upstream: `TestIsClaimOwnerUpToDate` and `TestUpdateClaimOwnerRefForSetAndPod`.
#[test]
fn a_claim_gets_the_owner_of_the_retention_policy_and_keeps_those_of_others() {
    for (when_scaled, when_deleted, ordinal, wants_pod, wants_set) in POLICIES {
        let set = set(2).with_claims().retention(when_scaled, when_deleted).build::<StatefulSet>();
        let name = format!("web-{ordinal}");
        let pod = PodIdentity::of(&view(&pod(ordinal, NEW)));
        for variation in 0..8 {
            let [has_pod, has_set, has_others] = [1, 2, 4].map(|bit| variation & bit != 0);
            let owners = [
                has_pod.then(|| entry("Pod", &name, &name, Some(true))),
                has_set.then(|| entry("StatefulSet", "web", "web", Some(true))),
                has_others.then(|| entry("Pod", "rand1", "rand1", None)),
                has_others.then(|| entry("Random", "rand2", "rand2", Some(false))),
            ];
            let owners: Vec<Value> = owners.into_iter().flatten().collect();
            let claim = with_owners(&owners);
            let context = format!("{when_scaled} {when_deleted} {ordinal}: {owners:?}");
            let is_right = (has_pod, has_set) == (wants_pod, wants_set);
            assert_eq!(is_claim_owner_up_to_date(&claim, &set, &pod), is_right, "{context}");

            let changed = after(&owners, &owner_change(&claim, &set, &pod));
            let count = |uid_of: &str| changed.iter().filter(|owner| owner["uid"] == json!(uid(uid_of))).count();
            assert_eq!((count(&name), count("web")), (usize::from(wants_pod), usize::from(wants_set)), "{context}");
            assert_eq!([count("rand1"), count("rand2")], [usize::from(has_others); 2], "{context}");
            assert!(is_claim_owner_up_to_date(&with_owners(&changed), &set, &pod), "{context}");
        }
    }
}

/// Upstream: `TestClaimOwnerUpToDateEdgeCases`.
#[test]
fn an_owner_that_is_no_controller_or_one_beside_another_is_put_right_and_a_stale_one_is_left_alone() {
    let of = |when_scaled: &str, owners: &[Value]| {
        let set = set(1).with_claims().retention(when_scaled, "Delete").build::<StatefulSet>();
        is_claim_owner_up_to_date(&with_owners(owners), &set, &PodIdentity::of(&view(&pod(1, NEW))))
    };
    let yes = Some(true);
    for (kind, name, when_scaled) in [("Pod", "web-1", "Delete"), ("StatefulSet", "web", "Retain")] {
        assert!(of(when_scaled, &[entry(kind, name, name, yes)]), "{kind}");
        assert!(!of(when_scaled, &[entry(kind, name, name, None)]), "{kind} that is no controller");
        assert!(of(when_scaled, &[entry(kind, name, "stale", yes)]), "{kind} of another uid");
        let both = [entry(kind, name, name, yes), entry(kind, "random", "random", yes)];
        assert!(!of(when_scaled, &both), "{kind} beside another controller");
        assert!(of(when_scaled, &both[1..]), "{kind} that is another's");
    }
}

/// Upstream: `TestUpdateClaimControllerRef`, and `unexpected controller` of `TestUpdateClaimOwnerRefForSetAndPod`.
#[test]
fn a_change_of_owners_leaves_one_controller() {
    let set = set(2).with_claims().retention("Delete", "Delete").build::<StatefulSet>();
    let pod = PodIdentity::of(&view(&pod(1, NEW)));
    let (ours, other) = (|| entry("StatefulSet", "web", "web", Some(true)), || entry("Else", "foo", "foo", None));
    let namesake = || entry("Else", "web", "else", None);
    let manager = || entry("Else", "foo", "foo", Some(true));
    for (name, owners, expected) in [
        ("set correctly", vec![ours(), other()], vec!["foo", "web"]),
        ("missing controller", vec![entry("StatefulSet", "web", "web", None)], vec!["web"]),
        ("matching name but missing", vec![namesake()], vec!["else", "web"]),
        ("not present", vec![], vec!["web"]),
        ("another set of this name", vec![entry("StatefulSet", "web", "stale", Some(true)), other()], vec!["foo"]),
        ("unexpected controller", vec![ours(), manager()], vec!["foo"]),
    ] {
        let changed = after(&owners, &owner_change(&with_owners(&owners), &set, &pod));
        let expected: Vec<Value> = expected.into_iter().map(|of| json!(uid(of))).collect();
        let uids: Vec<&Value> = changed.iter().map(|owner| &owner["uid"]).collect();
        assert_eq!(uids, expected.iter().collect::<Vec<_>>(), "{name}");
        let controllers = changed.iter().filter(|owner| owner["controller"] == true).count();
        assert!(controllers <= 1, "{name}: {changed:?}");
    }
}

/// Upstream: `TestHasUnexpectedController`.
#[test]
fn any_other_controller_is_unexpected_unless_claims_stay_anyway() {
    let pod = PodIdentity::of(&view(&pod(1, NEW)));
    let own = || entry("Pod", "web-1", "web-1", Some(true));
    for (name, owners, expected) in [
        ("custom controller", vec![entry("Custom", "simon", "other", Some(true))], true),
        ("custom non-controller", vec![entry("Custom", "simon", "other", Some(false))], false),
        ("custom unspecified controller", vec![entry("Custom", "simon", "other", None)], false),
        ("other pod controller", vec![entry("Pod", "simon", "other", Some(true))], true),
        ("other set controller", vec![entry("StatefulSet", "simon", "other", Some(true))], true),
        ("own set controller", vec![entry("StatefulSet", "web", "web", Some(true))], false),
        ("own set controller, stale uid", vec![entry("StatefulSet", "web", "stale", Some(true))], true),
        ("own pod controller", vec![own()], false),
        ("own pod controller, stale uid", vec![entry("Pod", "web-1", "stale", Some(true))], true),
        ("own controller and another", vec![own(), entry("Custom", "simon", "other", Some(true))], true),
        ("own controller and a non-controller", vec![own(), entry("Custom", "simon", "other", Some(false))], false),
    ] {
        let claim = with_owners(&owners);
        for (when_scaled, when_deleted) in [("Delete", "Retain"), ("Retain", "Delete"), ("Delete", "Delete")] {
            let set = set(2).retention(when_scaled, when_deleted).build::<StatefulSet>();
            assert_eq!(has_unexpected_controller(&claim, &set, &pod), expected, "{name}, {when_scaled} {when_deleted}");
        }
        assert!(!has_unexpected_controller(&claim, &set(2).build::<StatefulSet>(), &pod), "{name}");
    }
}

/// Upstream: `TestNonController`.
#[test]
fn an_owner_of_ours_that_is_no_controller_is_found_by_its_uid() {
    let (set, pod) = (set(2).build::<StatefulSet>(), PodIdentity::of(&view(&pod(1, NEW))));
    let of_pod = |controller| entry("Pod", "web-1", "web-1", controller);
    let of_set = |controller| entry("Set", "web", "web", controller);
    let yes = Some(true);
    for (name, owners, expected) in [
        ("set and pod controller", vec![of_pod(yes), of_set(yes)], false),
        ("set controller, pod noncontroller", vec![of_pod(None), of_set(yes)], true),
        ("set noncontroller, pod controller", vec![of_pod(yes), of_set(None)], true),
        ("set controller", vec![of_set(yes)], false),
        ("pod controller", vec![of_pod(yes)], false),
        ("nothing", vec![], false),
        ("set noncontroller", vec![of_set(None)], true),
        ("set noncontroller with ptr", vec![of_set(Some(false))], true),
        ("pod noncontroller", vec![of_pod(None)], true),
        ("other noncontroller", vec![entry("Pod", "web-1", "not-matching", None)], false),
    ] {
        assert_eq!(has_non_controller_owner(&with_owners(&owners), &set, &pod), expected, "{name}");
    }
}

/// Upstream: `TestHasStaleOwnerRef` and `TestMatchesRef`.
#[test]
fn an_owner_of_our_name_and_another_uid_is_stale() {
    let claim = with_owners(&[
        entry("Pod", "web-0", "web-0", None),
        entry("Pod", "web-1", "before", None),
        entry("StatefulSet", "web", "before", None),
    ]);
    let of = |ordinal: i64| PodIdentity::of(&view(&pod(ordinal, NEW)));
    assert!(!has_stale_pod(&claim, &of(0)));
    assert!(has_stale_pod(&claim, &of(1)));
    assert!(!has_stale_pod(&claim, &of(2)));
    assert!(has_stale_pod(&claim, &PodIdentity { uid: None, ..of(0) }), "it is not made yet");
    assert!(has_stale_set(&claim, &set(1).build::<StatefulSet>()));
    assert!(!has_stale_set(&claim, &set(1).uid_of("before").build::<StatefulSet>()));
}
