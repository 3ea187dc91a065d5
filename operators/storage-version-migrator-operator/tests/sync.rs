//! The operator as it is, against an apiserver in the test's process: its informers, its syncs, its writes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use serde_json::{Value, json};
use shared::api::resource::Resource;
use shared::testing::apiserver::{Rule, Server};
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, start_at_rest, survives_kills, test};
use shared::testing::{ObjectBuilder, object};
use storage_version_migrator_operator::controller::StorageVersionMigratorOperator;
use storage_version_migrator_operator::objects::STORAGE_VERSION_MIGRATIONS;
use storage_version_migrator_operator::objects::definition::CUSTOM_RESOURCE_DEFINITIONS;

const WIDGETS: Resource = Resource::namespaced("example.com", "v1", "Widget", "widgets");
const KIND: &str = "storageversionmigrations";
const STATUS: &str = "storageversionmigrations/status";
const DEFINITION: &str = "widgets.example.com";
const PATH: &str = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations/";
/// By then it has noticed in any case that the kind is served.
const NOTICED: Duration = Duration::from_secs(301);
/// A resource that is not served fails a migration after this time.
const UNSERVED: Duration = Duration::from_secs(70);

fn serve(server: &Server) {
    for kind in [STORAGE_VERSION_MIGRATIONS, CUSTOM_RESOURCE_DEFINITIONS, WIDGETS] {
        server.serve(kind);
    }
}

fn serving() -> Server {
    let server = Server::new();
    serve(&server);
    server
}

fn migration_of(name: &str, group: &str, resource: &str) -> ObjectBuilder {
    object("storagemigration.k8s.io/v1beta1", "StorageVersionMigration", name)
        .namespace("")
        .set(&["spec", "resource"], json!({ "group": group, "resource": resource }))
}

fn migration(name: &str) -> ObjectBuilder {
    migration_of(name, "example.com", "widgets")
}

fn add_definition(server: &Server) {
    let versions = json!([{ "name": "v1beta1", "storage": false }, { "name": "v1", "storage": true }]);
    server.add(
        &object("apiextensions.k8s.io/v1", "CustomResourceDefinition", DEFINITION)
            .namespace("")
            .set(&["spec", "versions"], versions)
            .set(&["status", "storedVersions"], json!(["v1beta1", "v1"])),
    );
}

fn add_widgets(server: &Server, count: usize) {
    for number in 0..count {
        server.add(&object("example.com/v1", "Widget", &format!("w{number:04}")));
    }
}

async fn start(server: &Server) -> Running {
    start_at_rest::<StorageVersionMigratorOperator>(server, &[]).await
}

/// The conditions of an object, such as `Running=True MigrationRunning`.
fn conditions(server: &Server, resource: &str, name: &str) -> Vec<String> {
    let object = server.get(resource, name).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let line = |condition: &Value| {
        let [type_, status, reason] = ["type", "status", "reason"].map(|field| text(&condition[field]));
        format!("{type_}={status} {reason}")
    };
    conditions.iter().map(line).collect()
}

fn message(server: &Server, name: &str, type_: &str) -> String {
    let object = server.get(KIND, name).unwrap();
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == type_).unwrap();
    found["message"].as_str().unwrap().to_owned()
}

const DONE: [&str; 2] = ["Running=False MigrationCompleted", "Succeeded=True StorageVersionMigrationSucceeded"];
const LOST: [&str; 2] = ["Running=False MigrationCompleted", "Failed=True StorageVersionMigrationFailed"];

fn stored_versions(server: &Server) -> Value {
    server.get("customresourcedefinitions", DEFINITION).unwrap()["status"]["storedVersions"].clone()
}

/// Starts the operator, and stops it at its first patches of this resource, until the rule is released.
async fn stopped_at(server: &Server, resource: &str) -> (Running, Rule) {
    let held = server.on("patch", resource).hold();
    let running = Running::start::<StorageVersionMigratorOperator>(server, &[]);
    held.arrived().await;
    (running, held)
}

/// Upstream's controller of 1.37 reads the first of these, and that of 1.36 the second.
#[test]
fn a_migration_succeeds_in_each_version_in_which_apiservers_serve_it() {
    for version in ["v1", "v1beta1"] {
        test(async {
            let server = Server::new();
            server.serve(Resource { version: version.into(), ..STORAGE_VERSION_MIGRATIONS });
            server.serve(CUSTOM_RESOURCE_DEFINITIONS);
            server.serve(WIDGETS);
            add_definition(&server);
            add_widgets(&server, 1);
            let migration = object(&format!("storagemigration.k8s.io/{version}"), "StorageVersionMigration", "a");
            let of = json!({ "group": "example.com", "resource": "widgets" });
            server.add(&migration.namespace("").set(&["spec", "resource"], of));
            start(&server).await;
            assert_eq!(conditions(&server, KIND, "a"), DONE, "{version}");
        });
    }
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(serve),
            Pass(NOTICED),
            Do(|server| {
                add_definition(server);
                add_widgets(server, 3);
                server.add(&migration("a"));
            }),
            Do(|server| server.add(&migration("b"))),
        ];
        let server = survives_kills::<StorageVersionMigratorOperator>(&[], &life).await;
        for name in ["a", "b"] {
            assert_eq!(conditions(&server, KIND, name), DONE);
        }
        let migrating = ["StorageMigrating=False MigrationSucceeded"];
        assert_eq!(conditions(&server, "customresourcedefinitions", DEFINITION), migrating);
        assert_eq!(stored_versions(&server), json!(["v1"]));
        let definition = "patch customresourcedefinitions/status widgets.example.com";
        let own = format!("patch {STATUS} a");
        let widgets = ["w0000", "w0001", "w0002"].map(|name| format!("patch widgets default/{name}"));
        let [first, second, third] = widgets.each_ref().map(String::as_str);
        let own = own.as_str();
        let expected = [definition, own, own, first, second, third, own, definition, own];
        assert_eq!(server.writes()[..9], expected);
    });
}

#[test]
fn nothing_is_followed_where_the_kind_is_not_served() {
    test(async {
        let server = Server::new();
        let running = start(&server).await;
        running.pass(NOTICED).await;
        assert_eq!(server.requests(), [""; 0]);
        serve(&server);
        add_widgets(&server, 1);
        server.add(&migration("a"));
        running.pass(NOTICED).await;
        assert_eq!(conditions(&server, KIND, "a"), DONE);
        assert_eq!(server.count("watch widgets"), 0);
    });
}

#[test]
fn the_version_comes_from_a_list_of_no_object() {
    test(async {
        let server = serving();
        add_widgets(&server, 2);
        server.add(&migration("a"));
        let refused = server.on("list", "widgets").answer(500, "InternalError", "etcd is down");
        let running = Running::start::<StorageVersionMigratorOperator>(&server, &[]);
        running.pass(Duration::from_secs(20)).await;
        assert!(refused.count() > 1);
        assert_eq!(server.count("list widgets @fake:svm_ns!/"), refused.count());
        assert_eq!(conditions(&server, KIND, "a"), ["Running=True MigrationRunning"]);
        refused.times(0);
        running.pass(Duration::from_secs(60)).await;
        assert_eq!(conditions(&server, KIND, "a"), DONE);
        let version = server.get(KIND, "a").unwrap()["status"]["resourceVersion"].clone();
        assert!(version.as_str().is_some_and(|version| version.parse::<u64>().is_ok()), "{version}");
    });
}

#[test]
fn what_is_sent_rewrites_an_object_and_changes_nothing() {
    test(async {
        let server = serving();
        add_widgets(&server, 1);
        let before = server.get("widgets", "default/w0000").unwrap();
        server.add(&migration("a"));
        let running = start(&server).await;
        assert_eq!(server.count("patch widgets default/w0000"), 1);
        assert_eq!(server.get("widgets", "default/w0000").unwrap(), before);
        running.pass(Duration::from_secs(5)).await;
        let ended =
            "Normal StorageVersionMigrationSucceeded: All objects of widgets.example.com are in the storage version";
        assert_eq!(server.events(), [ended]);
    });
}

#[test]
fn a_long_migration_goes_on_where_it_was_after_a_restart() {
    test(async {
        let server = serving();
        add_widgets(&server, 1200);
        server.add(&migration("a"));
        // The condition Running, the version, the first page, the progress, and half of the second page.
        server.stop_after_writes(2 + 500 + 1 + 250);
        let running = start(&server).await;
        assert!(running.is_killed());
        let running = start(&server).await;
        assert_eq!(conditions(&server, KIND, "a"), DONE);
        assert_eq!(server.count("patch widgets default/w0000"), 1);
        assert_eq!(server.count("patch widgets default/w0499"), 1);
        assert_eq!(server.count("patch widgets default/w0500"), 2);
        assert_eq!(server.count("patch widgets default/w1199"), 1);
        running.pass(Duration::from_secs(5)).await;
        let events = server.events();
        let told = "Normal StorageVersionMigrationInProgress: Objects of widgets.example.com so far: 1000, 200 left";
        assert!(events.iter().any(|event| event == told), "{events:?}");
    });
}

#[test]
fn objects_that_were_written_since_are_left_alone() {
    test(async {
        let server = serving();
        add_widgets(&server, 600);
        server.add(&migration("a"));
        let (running, held) = stopped_at(&server, KIND).await;
        for number in 500..550 {
            server
                .set_default("widgets", &format!("default/w{number:04}"), |widget| widget["spec"] = json!({ "a": 1 }));
        }
        server.delete("widgets", "default/w0599");
        held.release();
        running.at_rest().await;
        assert_eq!(conditions(&server, KIND, "a"), DONE);
        assert_eq!(server.count("patch widgets default/"), 500 + 49);
    });
}

#[test]
fn an_object_that_is_written_or_deleted_at_the_same_time_fails_nothing() {
    test(async {
        let server = serving();
        add_widgets(&server, 3);
        server.add(&migration("a"));
        let (running, held) = stopped_at(&server, "widgets").await;
        server.change("widgets", "default/w0000", |widget| widget["spec"] = json!({ "a": 1 }));
        server.delete("widgets", "default/w0001");
        server.delete("widgets", "default/w0002");
        server.add(&object("example.com/v1", "Widget", "w0002").uid_of("another"));
        held.release();
        running.at_rest().await;
        assert_eq!(conditions(&server, KIND, "a"), DONE);
    });
}

/// Upstream: `TestSync`, "Retriable patch error is returned directly".
#[test]
fn a_server_that_is_too_busy_or_broken_is_asked_again() {
    test(async {
        for (code, reason) in [(503, "ServiceUnavailable"), (500, "InternalError"), (504, "Timeout")] {
            let server = serving();
            add_widgets(&server, 3);
            server.add(&migration("a"));
            server.on("patch", "widgets").times(5).answer(code, reason, "later");
            let running = Running::start::<StorageVersionMigratorOperator>(&server, &[]);
            running.pass(Duration::from_secs(60)).await;
            assert_eq!(conditions(&server, KIND, "a"), DONE, "{reason}");
        }
    });
}

/// Upstream: `TestSync`, "Fatal patch error fails migration".
#[test]
fn a_refusal_fails_the_migration_and_keeps_the_stored_versions() {
    test(async {
        let server = serving();
        add_definition(&server);
        add_widgets(&server, 3);
        server.add(&migration("a"));
        server.on("patch", "widgets").answer(422, "Invalid", "spec.a: Required value");
        let running = start(&server).await;
        assert_eq!(conditions(&server, KIND, "a"), LOST);
        let failed = "migration encountered unhandled error: spec.a: Required value";
        assert_eq!(message(&server, "a", "Failed"), failed);
        assert_eq!(stored_versions(&server), json!(["v1beta1", "v1"]));
        let migrating = ["StorageMigrating=False MigrationFailed"];
        assert_eq!(conditions(&server, "customresourcedefinitions", DEFINITION), migrating);
        running.pass(Duration::from_secs(5)).await;
        let told = format!("Warning StorageVersionMigrationFailed: {failed}");
        assert!(server.events().contains(&told), "{:?}", server.events());
    });
}

#[test]
fn a_definition_that_changes_during_the_migration_keeps_its_stored_versions() {
    test(async {
        let server = serving();
        add_definition(&server);
        add_widgets(&server, 1);
        server.add(&migration("a"));
        let (running, held) = stopped_at(&server, "widgets").await;
        server.change("customresourcedefinitions", DEFINITION, |definition| {
            definition["spec"]["versions"][0]["storage"] = true.into();
            definition["spec"]["versions"][1]["storage"] = false.into();
        });
        held.release();
        running.at_rest().await;
        assert_eq!(conditions(&server, KIND, "a"), DONE);
        assert_eq!(stored_versions(&server), json!(["v1beta1", "v1"]));
    });
}

#[test]
fn one_migration_of_a_resource_runs_at_a_time() {
    test(async {
        let server = serving();
        add_widgets(&server, 1);
        for name in ["a", "b"] {
            server.add(&migration(name));
        }
        server.add(&migration_of("c", "", "configmaps"));
        let (running, held) = stopped_at(&server, "widgets").await;
        running.pass(Duration::from_secs(5)).await;
        assert_eq!(conditions(&server, KIND, "a"), ["Running=True MigrationRunning"]);
        assert_eq!(conditions(&server, KIND, "b"), [""; 0]);
        assert_eq!(conditions(&server, KIND, "c"), DONE, "it is of another resource");
        assert_eq!(running.now(&format!("{PATH}b")), ["nothing (not started)", "nothing (a is running)"]);
        held.release();
        running.at_rest().await;
        assert_eq!(conditions(&server, KIND, "b"), DONE);
    });
}

#[test]
fn a_running_migration_that_is_deleted_makes_room_for_the_next_one() {
    test(async {
        let server = serving();
        add_widgets(&server, 1);
        for name in ["a", "b"] {
            server.add(&migration(name));
        }
        let (running, held) = stopped_at(&server, "widgets").await;
        server.delete(KIND, "a");
        held.release();
        running.at_rest().await;
        assert_eq!(
            (server.keys(KIND), conditions(&server, KIND, "b")),
            (vec!["b".to_owned()], DONE.map(str::to_owned).to_vec())
        );
    });
}

#[test]
fn an_expired_token_begins_the_list_again() {
    test(async {
        let server = serving();
        add_widgets(&server, 600);
        server.add(&migration("a"));
        let (running, held) = stopped_at(&server, KIND).await;
        server.on("list", "widgets").once().answer(410, "Expired", "too old");
        held.release();
        running.at_rest().await;
        assert_eq!(conditions(&server, KIND, "a"), DONE);
        assert_eq!(server.count("patch widgets default/w0000"), 2);
        assert_eq!(server.count("patch widgets default/w0599"), 1);
    });
}

#[test]
fn a_first_page_that_has_expired_is_listed_again() {
    test(async {
        let server = serving();
        add_widgets(&server, 3);
        server.add(&migration("a"));
        // The version is set after a list of no object.
        let held = server.on("list", "widgets").hold();
        let running = Running::start::<StorageVersionMigratorOperator>(&server, &[]);
        held.arrived().await;
        let expired = server.on("list", "widgets").times(3).answer(410, "Expired", "too old");
        held.release();
        running.pass(Duration::from_secs(60)).await;
        assert_eq!((conditions(&server, KIND, "a"), expired.count()), (DONE.map(str::to_owned).to_vec(), 3));
        assert_eq!(server.count(&format!("patch {KIND} a")), 0, "there is no progress to forget");
    });
}

#[test]
fn a_resource_that_nothing_serves_fails_its_migration_after_a_minute() {
    test(async {
        let server = serving();
        server.add(&migration_of("a", "example.com", "gadgets"));
        server.add(&migration_of("b", "gone.example.com", "widgets"));
        let running = Running::start::<StorageVersionMigratorOperator>(&server, &[]);
        running.pass(Duration::from_secs(30)).await;
        assert_eq!(conditions(&server, KIND, "a"), ["Running=True MigrationRunning"]);
        running.pass(UNSERVED).await;
        for name in ["a", "b"] {
            assert_eq!(conditions(&server, KIND, name), LOST);
            assert_eq!(message(&server, name, "Failed"), "resource does not exist in discovery");
        }
    });
}

#[test]
fn a_resource_that_is_served_later_is_migrated_then() {
    test(async {
        let server = Server::new();
        for kind in [STORAGE_VERSION_MIGRATIONS, CUSTOM_RESOURCE_DEFINITIONS] {
            server.serve(kind);
        }
        server.add(&migration("a"));
        let running = Running::start::<StorageVersionMigratorOperator>(&server, &[]);
        running.pass(Duration::from_secs(30)).await;
        server.serve(WIDGETS);
        running.pass(Duration::from_secs(10)).await;
        assert_eq!(conditions(&server, KIND, "a"), DONE);
    });
}

/// Upstream: `TestIsResourceMigratable`. Left out: "multiple versions", which asks about a version that nothing serves.
#[test]
fn only_resources_with_the_verbs_are_migrated() {
    const ALL: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];
    const EVENTS: &[&str] = &["get", "list", "watch", "create", "delete"];
    const SECRETS: &[&str] = &["get", "watch", "create", "delete", "update", "delete"];
    const CONFIG_MAPS: &[&str] = &["get", "watch", "create", "delete", "update", "patch", "delete"];
    const FOO: &[&str] = &["get", "watch", "create", "update", "patch", "delete"];
    let document = |resource: &str, kind: &str, verbs: &[&str]| json!({ "resources": [{ "name": resource, "kind": kind, "namespaced": true, "verbs": verbs }] });
    test(async {
        for (case, group, resource, kind, verbs) in [
            ("migratable resource", "", "pods", "Pod", ALL),
            ("non-updatable resource", "", "events", "Event", EVENTS),
            ("non-patchable resource", "", "secrets", "Secret", SECRETS),
            ("non-listable resource", "", "configmaps", "ConfigMap", CONFIG_MAPS),
            ("multiple versions and groups", "bar", "foo", "Foo", FOO),
            ("unknown resource", "", "foo", "", &[]),
        ] {
            let server = serving();
            let version = if group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{group}/v1alpha1") };
            server.serve_document(&format!("/apis/{group}"), json!({ "versions": [{ "version": "v1alpha1" }] }));
            let listed = if kind.is_empty() { json!({ "resources": [] }) } else { document(resource, kind, verbs) };
            server.serve_document(&version, listed);
            server.add(&migration_of("a", group, resource));
            let running = Running::start::<StorageVersionMigratorOperator>(&server, &[]);
            running.pass(UNSERVED).await;
            let expected = match case {
                "migratable resource" => DONE,
                _ => LOST,
            };
            assert_eq!(conditions(&server, KIND, "a"), expected, "{case}");
            if case == "non-listable resource" {
                let expected =
                    "resource \"/v1, Resource=configmaps\" does not support discovery operations: [update patch list]";
                assert_eq!(message(&server, "a", "Failed"), expected);
            }
        }
    });
}

#[test]
fn why_says_how_far_a_migration_has_come() {
    test(async {
        let server = serving();
        add_widgets(&server, 600);
        server.add(&migration("a"));
        let (running, held) = stopped_at(&server, "widgets").await;
        let path = format!("{PATH}a");
        let discovering = "discover the resource (objects of widgets.example.com so far: 0)";
        assert_eq!(running.now(&path), [discovering, "nothing (a is running)"]);
        let rewriting = "rewrite 500, then the next page (objects so far: 500, left: 100)";
        let last = running.last(&path);
        assert!(last.iter().any(|stage| stage == rewriting), "{last:?}");
        held.release();
        running.at_rest().await;
        assert_eq!(running.now(&path), ["nothing (finished)", "nothing (no migration is left)"]);
    });
}

#[test]
fn the_answers_of_writes_may_be_lost() {
    test(async {
        for target in ["customresourcedefinitions/status", STATUS, "widgets", KIND] {
            let server = serving();
            add_definition(&server);
            add_widgets(&server, 501);
            server.add(&migration("a"));
            server.on("patch", target).once().lose();
            start(&server).await;
            assert_eq!(conditions(&server, KIND, "a"), DONE, "{target}");
            assert_eq!(stored_versions(&server), json!(["v1"]), "{target}");
        }
    });
}
