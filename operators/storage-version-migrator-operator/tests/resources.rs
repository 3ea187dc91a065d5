//! Which migration of a resource starts or ends, and what its definition says then: upstream's cases, and properties of
//! any migrations.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::object::ResourceVersion;
use shared::api::resource::Resource;
use shared::testing::properties::order_is_irrelevant;
use shared::testing::{NOW, ObjectBuilder, ago, object};
use storage_version_migrator_operator::objects::Migration;
use storage_version_migrator_operator::objects::condition::ConditionPatch;
use storage_version_migrator_operator::objects::definition::Definition;
use storage_version_migrator_operator::observe::ObservedResource;
use storage_version_migrator_operator::observe::live::ServedVersion;
use storage_version_migrator_operator::plan::resource::{DefinitionChange, Next, Plan, plan};

const WIDGETS: Resource = Resource::namespaced("example.com", "v1", "Widget", "widgets");

/// With these true conditions.
fn migration(name: &str, conditions: &[&str]) -> ObjectBuilder {
    let conditions: Vec<Value> = conditions.iter().map(|type_| json!({ "type": type_, "status": "True" })).collect();
    object("storagemigration.k8s.io/v1beta1", "StorageVersionMigration", name)
        .namespace("")
        .set(&["spec", "resource"], json!({ "group": "example.com", "resource": "widgets" }))
        .set(&["status", "conditions"], conditions)
}

fn versioned(migration: ObjectBuilder) -> ObjectBuilder {
    migration.set(&["status", "resourceVersion"], "12345")
}

/// The definition of widgets in this generation; `v1` was stored, and `v2` is.
fn definition(generation: i64) -> ObjectBuilder {
    let versions = json!([{ "name": "v1", "storage": false }, { "name": "v2", "storage": true }]);
    object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com")
        .namespace("")
        .generation(generation)
        .set(&["spec", "versions"], versions)
        .set(&["status", "storedVersions"], json!(["v1", "v2"]))
}

/// With the condition of a migration that was started for this generation.
fn migrating(definition: ObjectBuilder, status: &str, generation: i64) -> ObjectBuilder {
    let condition = json!({ "type": "StorageMigrating", "status": status, "observedGeneration": generation });
    definition.set(&["status", "conditions"], json!([condition]))
}

fn observed(migrations: &[ObjectBuilder], definition: Option<&ObjectBuilder>) -> ObservedResource {
    let migrations: Vec<Arc<Migration>> = migrations.iter().map(ObjectBuilder::build).collect();
    let definition: Option<Definition> =
        definition.map(|definition| serde_json::from_value(definition.json().clone()).unwrap());
    ObservedResource { migrations, definition: Some(definition), served: None }
}

fn executed(observed: &ObservedResource) -> Plan {
    match plan(observed, NOW) {
        Next::Execute(plan) => plan,
        Next::Ask(live_read) => unreachable!("{live_read}"),
    }
}

fn text(observed: &ObservedResource) -> String {
    plan(observed, NOW).to_string()
}

fn change(plan: Plan) -> Option<DefinitionChange> {
    let (Plan::Start { definition, .. } | Plan::Finish { definition, .. }) = plan else { unreachable!("{plan}") };
    definition
}

/// The condition and the stored versions of a change.
fn summary(change: &DefinitionChange) -> String {
    let DefinitionChange { generation, condition, stored_versions, .. } = change;
    let (status, reason, message) = condition.texts();
    let versions: Vec<&str> = stored_versions.iter().map(|version| &**version).collect();
    format!("{status} {reason} {message} @{generation} [{}]", versions.join(" "))
}

/// Upstream: `TestCustomResourceController_Sync`, "Initial sync: CRD missing" and "Initial sync: CRD exists". The stored
/// versions are always applied here.
#[test]
fn a_migration_starts() {
    let pending = [migration("test-svm", &[])];
    assert_eq!(text(&observed(&pending, None)), "start test-svm (test-svm is the only one)");
    assert_eq!(change(executed(&observed(&pending, None))), None);
    let change = change(executed(&observed(&pending, Some(&definition(1))))).unwrap();
    assert_eq!(summary(&change), "True MigrationRunning Migration test-svm is running @1 [v1 v2]");
    let running = json!({ "status": { "conditions": [{
        "type": "Running", "status": "True", "reason": "MigrationRunning", "message": "The migration is running",
        "lastTransitionTime": NOW.to_string(),
    }] } });
    assert_eq!(json!(ConditionPatch::running(NOW)), running);
}

/// Upstream: `TestCustomResourceController_Sync`, "Migration running (No-op)"; `TestRVSync`, "RV already set".
#[test]
fn a_running_migration_keeps_others_waiting() {
    let running = versioned(migration("test-svm", &["Running"]));
    assert_eq!(text(&observed(std::slice::from_ref(&running), Some(&definition(1)))), "nothing (test-svm is running)");
    assert_eq!(text(&observed(&[migration("a", &[]), running], None)), "nothing (test-svm is running)");
}

/// Upstream: `TestCustomResourceController_Sync`, "Migration succeeded: Update CRD stored versions".
#[test]
fn after_a_migration_the_definition_has_one_stored_version() {
    let succeeded = [migration("test-svm", &["Succeeded", "Running"])];
    let definition = migrating(definition(1), "True", 1);
    let change = change(executed(&observed(&succeeded, Some(&definition)))).unwrap();
    let message = "The migration has succeeded and the stored versions have been updated";
    assert_eq!(summary(&change), format!("False MigrationSucceeded {message} @1 [v2]"));
}

/// Upstream: `TestCustomResourceController_Sync`, "Migration succeeded: CRD generation mismatch (No update)".
#[test]
fn the_stored_versions_of_a_definition_that_was_changed_meanwhile_stay() {
    let succeeded = [migration("test-svm", &["Succeeded", "Running"])];
    let message =
        "The migration has succeeded but the stored versions have not been updated due to a generation mismatch";
    for definition in [definition(2), migrating(definition(2), "True", 1)] {
        let change = change(executed(&observed(&succeeded, Some(&definition)))).unwrap();
        assert_eq!(summary(&change), format!("False MigrationSucceeded {message} @2 [v1 v2]"));
    }
}

/// Upstream: `TestCustomResourceController_Sync`, "Migration failed: CRD condition updated", where upstream takes `v1` from
/// the stored versions although objects may still be stored in it.
#[test]
fn after_a_failed_migration_the_stored_versions_stay() {
    let failed = [migration("test-svm", &["Failed", "Running"])];
    let definition = migrating(definition(1), "True", 1);
    let change = change(executed(&observed(&failed, Some(&definition)))).unwrap();
    assert_eq!(summary(&change), "False MigrationFailed The migration has failed @1 [v1 v2]");
}

/// Upstream: `TestCustomResourceController_Sync`, "Cleanup admission updates SVM condition".
#[test]
fn a_finished_migration_does_not_run_any_more() {
    let succeeded = [migration("test-svm", &["Succeeded", "Running"])];
    assert_eq!(text(&observed(&succeeded, None)), "end it (test-svm has succeeded)");
    let completed = json!({ "status": { "conditions": [{
        "type": "Running", "status": "False", "reason": "MigrationCompleted", "message": "Migration completed",
        "lastTransitionTime": NOW.to_string(), "observedGeneration": 3,
    }] } });
    assert_eq!(json!(ConditionPatch::completed(3, NOW)), completed);
}

#[test]
fn a_definition_that_shows_the_end_of_the_migration_is_not_written_again() {
    let succeeded = [migration("test-svm", &["Succeeded", "Running"])];
    let definition = migrating(definition(2), "False", 2);
    assert_eq!(change(executed(&observed(&succeeded, Some(&definition)))), None);
}

/// Upstream: `TestCustomResourceController_Sync`, "Promote older SVM first".
#[test]
fn the_oldest_migration_starts_first() {
    let created =
        |name: &str, age: i64| migration(name, &[]).set(&["metadata", "creationTimestamp"], ago(age).to_string());
    let both = [created("test-svm-newer", -3600), created("test-svm-older", 3600)];
    assert_eq!(text(&observed(&both, None)), "start test-svm-older (test-svm-older is the oldest of 2)");
    let twins = [created("b", 0), created("a", 0), migration("done", &["Succeeded"])];
    assert_eq!(text(&observed(&twins, None)), "start a (a is the oldest of 2)");
}

#[test]
fn the_definition_is_read_before_a_migration_starts_or_ends() {
    let unread = |conditions: &[&str]| {
        let observed = observed(&[migration("a", conditions)], None);
        text(&ObservedResource { definition: None, ..observed })
    };
    assert_eq!(unread(&[]), "read the definition of the resource (a starts or ends)");
    assert_eq!(unread(&["Running", "Failed"]), "read the definition of the resource (a starts or ends)");
}

fn version(migration: &ObjectBuilder, served: Option<ServedVersion>) -> String {
    let observed = observed(std::slice::from_ref(migration), None);
    text(&ObservedResource { definition: None, served, ..observed })
}

fn served(version: u64) -> ServedVersion {
    ServedVersion::In { resource: WIDGETS, version: ResourceVersion(version) }
}

/// Upstream: `TestRVSync`, "Successful RV acquisition", "Resource not migratable" and "Invalid RV returned"; "SVM not
/// found" and "Metadata list error" are in `sync.rs`. "Migration not active" and "SVM has no CRD condition" start it here.
#[test]
fn a_started_migration_gets_the_version_of_its_resource() {
    let started = migration("a", &["Running"]);
    assert_eq!(version(&started, None), "read the version of the resource (a has no version yet)");
    assert_eq!(version(&started, Some(served(12345))), "migrate up to version 12345 (a has no version yet)");
    let unmigratable = Some(ServedVersion::Unmigratable(WIDGETS));
    let message =
        "resource \"example.com/v1, Resource=widgets\" does not support discovery operations: [update patch list]";
    let why = "a: the resource cannot be listed, patched and updated";
    assert_eq!(version(&started, unmigratable), format!("fail: {message} ({why})"));
    let message = "latest resourceVersion for example.com/v1, Resource=widgets is not valid: resource version is not well \
                   formed: 0";
    assert_eq!(version(&started, Some(served(0))), format!("fail: {message} (a: a resourceVersion is not a number)"));
}

#[test]
fn a_resource_that_is_not_served_fails_the_migration_after_a_minute() {
    let started = |age: i64| migration("a", &["Running"]).set(&["metadata", "creationTimestamp"], ago(age).to_string());
    let unserved = |age| version(&started(age), Some(ServedVersion::Not));
    assert_eq!(unserved(59), "wait (the apiserver does not serve the resource of a yet)");
    let why = "a: the apiserver does not serve the resource";
    assert_eq!(unserved(60), format!("fail: resource does not exist in discovery ({why})"));
}

proptest! {
    /// No migration starts while another one runs; one that has finished never starts; and the order is irrelevant.
    #[test]
    fn one_migration_of_a_resource_runs(states in proptest::collection::vec((0_u8..5, 0_i64..3), 1..6)) {
        let all: Vec<ObjectBuilder> = states.iter().enumerate().map(|(at, (state, age))| {
            let conditions: &[&str] = match state {
                0 => &[],
                1 => &["Running"],
                2 => &["Running", "Succeeded"],
                3 => &["Failed"],
                _ => &["Running", "Failed"],
            };
            let created = ago(*age).to_string();
            versioned(migration(&format!("m{at}"), conditions)).set(&["metadata", "creationTimestamp"], created)
        }).collect();
        let planned = executed(&observed(&all, None));
        let has = |wanted: u8| states.iter().any(|(state, _)| *state == wanted);
        match &planned {
            Plan::Start { migration, .. } => {
                prop_assert!(!migration.is_running() && !migration.is_finished());
                prop_assert!(!has(1) && !has(2) && !has(4));
            }
            Plan::Finish { migration, .. } => prop_assert!(migration.is_running() && migration.is_finished()),
            Plan::Keep(_) | Plan::SetVersion { .. } | Plan::Wait { .. } | Plan::Fail { .. } => {
                prop_assert!(has(1) || !has(0));
            }
        }
        if !matches!(planned, Plan::Keep(_) | Plan::Finish { .. }) {
            order_is_irrelevant(&all, |all| executed(&observed(all, None)).to_string());
        }
    }
}
