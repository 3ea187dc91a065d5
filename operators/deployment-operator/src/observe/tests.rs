use serde_json::json;
use shared::api::owner::Claim;
use shared::testing::{ObjectBuilder, object, pod, store};

use super::*;
use crate::objects::Pod;
use crate::plan::claim::plan_claim;

/// Of two Deployments that select the same.
fn deployment(name: &str) -> ObjectBuilder {
    object("apps/v1", "Deployment", name)
        .set(&["spec", "selector"], json!({ "matchLabels": { "app": "web" } }))
        .set(&["spec", "strategy", "type"], "Recreate")
}

fn replica_set(name: &str) -> ObjectBuilder {
    object("apps/v1", "ReplicaSet", name).set(&["spec"], json!({})).label("app", "web")
}

fn owned(name: &str, owner: &str) -> ObjectBuilder {
    replica_set(name).owned_by::<Deployment>(&deployment(owner).build::<Deployment>())
}

fn names<T: shared::api::object::Object>(objects: &[Arc<T>]) -> String {
    objects.iter().map(|object| object.meta().name()).collect::<Vec<_>>().join(",")
}

/// A Deployment beside these ReplicaSets.
fn observe(deployment: &ObjectBuilder, replica_sets: &[ObjectBuilder]) -> Observed {
    let (caches, _) = Caches::new();
    let deployment: Arc<Deployment> = deployment.build();
    store(&caches.deployments, &deployment);
    for replica_set in replica_sets {
        store(&caches.replica_sets, &replica_set.build());
    }
    caches.observe(&deployment.metadata.key).unwrap()
}

#[track_caller]
fn check(deployment: &ObjectBuilder, replica_sets: &[ObjectBuilder], expected: &str) {
    let Claim { owned, adopt, release } = plan_claim(&observe(deployment, replica_sets));
    let found = format!("own {} adopt {} release {}", names(&owned), names(&adopt), names(&release));
    assert_eq!(found, expected);
}

/// Upstream: `TestGetReplicaSetsForDeployment`, `TestGetReplicaSetsForDeploymentAdoptRelease`.
#[test]
fn a_deployment_claims_its_own_and_the_orphans_it_selects() {
    let both = [owned("a", "web"), owned("b", "other")];
    check(&deployment("web"), &both, "own a adopt  release ");
    check(&deployment("other"), &both, "own b adopt  release ");
    let relabelled = owned("b", "web").label("app", "db");
    check(&deployment("web"), &[replica_set("a"), relabelled.clone()], "own  adopt a release b");
    check(&deployment("web").terminating(), &[replica_set("a"), relabelled], "own  adopt  release ");
    check(&deployment("web"), &[replica_set("a").label("app", "db")], "own  adopt  release ");
}

#[test]
fn what_is_in_another_namespace_is_not_its_own() {
    let elsewhere = [owned("a", "web").namespace("elsewhere"), replica_set("b").namespace("elsewhere")];
    check(&deployment("web"), &elsewhere, "own  adopt  release ");
    let caches = Caches::new().0;
    let own: Arc<ReplicaSet> = owned("a", "web").build();
    store(&caches.pods, &pod("x").namespace("elsewhere").owned_by(&*own).build());
    assert_eq!(names::<Pod>(&caches.pods_of(&[own])), "");
}

#[test]
fn one_that_selects_everything_nothing_or_nobody_knows_what_claims_nothing() {
    let sets = [owned("a", "web"), replica_set("b")];
    check(&deployment("web").set(&["spec", "selector"], json!({})), &sets, "own  adopt  release ");
    check(&deployment("web").set(&["spec", "selector"], json!(null)), &sets[1..], "own  adopt  release ");
    let odd = json!({ "matchExpressions": [{ "key": "app", "operator": "Odd" }] });
    check(&deployment("web").set(&["spec", "selector"], odd), &sets, "own  adopt  release ");
}

/// Upstream: `TestGetPodMapForReplicaSets`; pods that have ended are not watched.
#[test]
fn its_pods_are_those_of_its_sets() {
    let (caches, _) = Caches::new();
    let web: Arc<Deployment> = deployment("web").build();
    store(&caches.deployments, &web);
    let [a, b, orphan, other]: [Arc<ReplicaSet>; 4] =
        [owned("a", "web"), owned("b", "web"), replica_set("c"), owned("d", "other")].map(|set| set.build());
    for set in [&a, &b, &orphan, &other] {
        store(&caches.replica_sets, set);
    }
    for pod in [
        pod("a1").owned_by(&*a),
        pod("a2").owned_by(&*a).terminating(),
        pod("b1").owned_by(&*b),
        pod("c1").owned_by(&*orphan),
        pod("d1").owned_by(&*other),
        pod("orphan").label("app", "web"),
    ] {
        store(&caches.pods, &pod.build());
    }
    let observed = caches.observe(&web.metadata.key).unwrap();
    let counts =
        |sets: &[(&Arc<ReplicaSet>, usize)]| sets.iter().map(|(set, pods)| (set.metadata.uid, *pods)).collect();
    assert_eq!(observed.running_pods, counts(&[(&a, 2), (&b, 1), (&orphan, 1)]));
    // The adoption of the orphan failed.
    let observed = observed.claimed(vec![Arc::clone(&b), Arc::clone(&a)]);
    assert_eq!(observed.running_pods, counts(&[(&a, 2), (&b, 1)]));
    assert_eq!(names(&observed.replica_sets), "a,b");
}
