use serde_json::json;
use shared::api::owner::Claim;
use shared::testing::{ObjectBuilder, object, store};

use super::*;
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
}

#[test]
fn one_that_selects_everything_nothing_or_nobody_knows_what_claims_nothing() {
    let sets = [owned("a", "web"), replica_set("b")];
    check(&deployment("web").set(&["spec", "selector"], json!({})), &sets, "own  adopt  release ");
    check(&deployment("web").set(&["spec", "selector"], json!(null)), &sets[1..], "own  adopt  release ");
    let odd = json!({ "matchExpressions": [{ "key": "app", "operator": "Odd" }] });
    check(&deployment("web").set(&["spec", "selector"], odd), &sets, "own  adopt  release ");
}
