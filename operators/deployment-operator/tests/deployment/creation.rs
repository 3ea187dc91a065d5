//! The ReplicaSet of a template that has none, and what follows from its creation.

use std::sync::Arc;

use deployment_operator::objects::annotations;
use deployment_operator::observe::Observed;
use deployment_operator::plan::new_replica_set::{AfterCreation, Creation, after_creation};
use deployment_operator::plan::{NewReplicaSet, Step};
use serde_json::json;

use crate::builders::*;

fn created(observed: &Observed) -> NewReplicaSet {
    let plan = planned(observed);
    match plan.steps.last() {
        Some(Step::CreateReplicaSet(new)) => (**new).clone(),
        _ => panic!("{plan}"),
    }
}

/// Upstream: `TestSyncDeploymentCreatesReplicaSet`.
#[test]
fn it_carries_what_the_deployment_says() {
    let observed = deployment("v2", 10)
        .rolling("25%", 0)
        .annotate("kubernetes.io/change-cause", "why")
        .annotate(annotations::REVISION, "1")
        .annotate("kubectl.kubernetes.io/last-applied-configuration", "{}")
        .spec("minReadySeconds", 5)
        .with(&[set("v1", 10)]);
    let new = created(&observed);
    let hash = new.template.pod_template_hash().unwrap().to_owned();
    assert_eq!(new.name, format!("web-{hash}"));
    assert_eq!(hash, observed.spec().template.hash(None));
    assert_eq!((new.replicas, new.min_ready_seconds), (3, 5));
    assert_eq!(new.selector.text(), format!(r#"{{"matchLabels":{{"app":"web","pod-template-hash":"{hash}"}}}}"#));
    let of = |key| new.annotations.get(key);
    assert_eq!(of("kubernetes.io/change-cause"), Some("why"));
    assert_eq!(of(annotations::REVISION), Some("2"));
    assert_eq!((of(annotations::DESIRED_REPLICAS), of(annotations::MAX_REPLICAS)), (Some("10"), Some("13")));
    assert_eq!(new.annotations.iter().count(), 4);
    let mut template = template("v2");
    template["metadata"]["labels"]["pod-template-hash"] = hash.into();
    assert_eq!(serde_json::to_value(&new.template).unwrap(), template);
}

#[test]
fn a_field_this_build_does_not_know_reaches_it() {
    let mut unknown = deployment("v1", 1);
    unknown.0["spec"]["template"]["spec"]["newField"] = json!({ "a": 1.5 });
    unknown.0["spec"]["selector"]["newField"] = json!(["b"]);
    let new = created(&unknown.with(&[]));
    assert_eq!(serde_json::to_value(&new.template).unwrap()["spec"]["newField"], json!({ "a": 1.5 }));
    assert_eq!(serde_json::to_value(&new.selector).unwrap()["newField"], json!(["b"]));
}

#[test]
fn its_first_size_is_the_room_for_surge() {
    let size = |surge: i32, old: i32| created(&deployment("v2", 10).rolling(surge, 0).with(&[set("v1", old)])).replicas;
    assert_eq!(size(0, 10), 0);
    assert_eq!(size(3, 10), 3);
    assert_eq!(size(3, 5), 8);
    assert_eq!(size(3, 0), 10);
    assert_eq!(size(3, 20), 0);
}

/// Upstream: `TestDeploymentController_generateReplicaSetName`.
#[test]
fn a_long_name_is_cut_and_the_hash_is_not() {
    let name = created(&deployment("v1", 1).named(&"a".repeat(250)).with(&[])).name;
    assert!(name.len() <= 253 && name.starts_with(&"a".repeat(240)), "{name}");
    assert!(name.ends_with(&format!("-{}", deployment("v1", 1).build().spec.template.hash(None))));
}

#[test]
fn after_a_collision_the_name_is_another() {
    let name = |count: Option<i32>| created(&deployment("v1", 1).status("collisionCount", count).with(&[])).name;
    assert_ne!(name(None), name(Some(1)));
    assert_ne!(name(Some(1)), name(Some(2)));
}

#[test]
fn its_revision_is_above_all_old_ones() {
    let revision = |old: &[ReplicaSet]| {
        let new = created(&deployment("v9", 1).with(old));
        new.annotations.get(annotations::REVISION).unwrap().to_owned()
    };
    assert_eq!(revision(&[]), "1");
    assert_eq!(revision(&[set("v1", 1).annotate(annotations::REVISION, "7"), set("v2", 0)]), "8");
    assert_eq!(revision(&[set("v1", 1).annotate(annotations::REVISION, "odd"), set("v2", 0)]), "3");
}

const NOTHING: AfterCreation = AfterCreation { new: None, progressing: None, collision_count: None, event: None };

fn after(deployment: &Deployment, creation: &Creation) -> AfterCreation {
    let observed = deployment.with(&[]);
    after_creation(&observed, &created(&observed), creation, now())
}

#[test]
fn a_creation_is_told_and_starts_the_deadline() {
    let three = deployment("v1", 3);
    let new = Arc::new(set("v1", 3).build());
    let name = created(&three.with(&[])).name;
    let after_it = after(&three, &Creation::Created(Arc::clone(&new)));
    assert_eq!(after_it.event.unwrap().message, format!("Scaled up replica set {name} from 0 to 3"));
    assert_eq!((after_it.new, after_it.progressing), (Some(Arc::clone(&new)), None));
    let empty = after(&deployment("v1", 0).deadline(60), &Creation::Created(new));
    assert_eq!(empty.event, None);
    let progressing = empty.progressing.unwrap();
    assert_eq!((&*progressing.status, &*progressing.reason), ("True", "NewReplicaSetCreated"));
    assert_eq!(&*progressing.message, format!("Created new replica set {name:?}"));
    assert_eq!(progressing.last_update_time.unwrap().second(), NOW);
}

#[test]
fn one_that_exists_is_the_new_one_if_it_is_ours_and_of_our_template() {
    let three = deployment("v1", 3).deadline(60);
    let ours = Arc::new(set("v1", 2).build());
    let expected = AfterCreation { new: Some(Arc::clone(&ours)), ..NOTHING };
    assert_eq!(after(&three, &Creation::AlreadyExists(Some(ours))), expected);
    let collided = |count| AfterCreation { collision_count: Some(count), ..NOTHING };
    let of_other_template = Creation::AlreadyExists(Some(Arc::new(set("v1", 2).of_template("v2").build())));
    assert_eq!(after(&three, &of_other_template), collided(1));
    assert_eq!(after(&three.clone().status("collisionCount", 1), &of_other_template), collided(2));
    let of_another = set("v1", 2).meta("ownerReferences", json!([]));
    assert_eq!(after(&three, &Creation::AlreadyExists(Some(Arc::new(of_another.build())))), collided(1));
    // The cache does not know it yet.
    assert_eq!(after(&three, &Creation::AlreadyExists(None)), NOTHING);
}

#[test]
fn a_failure_is_told_and_noted() {
    let three = deployment("v1", 3);
    let failed = Creation::Failed("exceeded quota".to_owned());
    let name = created(&three.with(&[])).name;
    let message = format!("Failed to create new replica set {name:?}: exceeded quota");
    let without_deadline = after(&three, &failed);
    assert_eq!(without_deadline.progressing, None);
    let event = without_deadline.event.unwrap();
    assert_eq!(
        format!("{:?} {} {}", event.kind, event.reason, event.message),
        format!("Warning ReplicaSetCreateError {message}")
    );
    let progressing = after(&three.deadline(60), &failed).progressing.unwrap();
    assert_eq!((&*progressing.status, &*progressing.reason), ("False", "ReplicaSetCreateError"));
    assert_eq!(&*progressing.message, message);
}

#[test]
fn a_terminating_namespace_needs_nothing() {
    assert_eq!(after(&deployment("v1", 3).deadline(60), &Creation::NamespaceTerminating), NOTHING);
}

#[test]
fn after_the_creation_the_sync_goes_on_where_it_was() {
    let observed = deployment("v2", 10).rolling(3, 2).annotate(annotations::REVISION, "1").with(&[set("v1", 10)]);
    let new = set("v2", 3).available(0).status("replicas", 0).status("observedGeneration", 0).created(NOW);
    let plan = planned(&observed.with_replica_set(Arc::new(new.sized_for(10, 13).build())));
    assert_eq!(
        plan.to_string(),
        "rolling update; revision 2; scale web-v1 10→8 (old: enough are available); status: rollout"
    );
}
