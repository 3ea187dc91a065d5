//! The operator as it is, against an apiserver in the test's process: its informers, its feeds, its sync, its writes.

use std::time::Duration;

use resourcequota_operator::controller::ResourceQuotaOperator;
use serde_json::{Value, json};
use shared::api::resource::Resource;
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, object, pod};

/// Longer than it takes until what was created is counted again.
const SOON: Duration = Duration::from_secs(15);

fn quota(name: &str, hard: &Value) -> ObjectBuilder {
    object("v1", "ResourceQuota", name).set(&["spec", "hard"], hard.clone())
}

fn secret(name: &str) -> ObjectBuilder {
    object("v1", "Secret", name)
}

fn worker(name: &str) -> ObjectBuilder {
    let container = json!({ "name": "c", "resources": { "requests": { "cpu": "250m" } } });
    pod(name).set(&["spec", "containers"], json!([container]))
}

fn start(server: &Server) -> Running {
    Running::start::<ResourceQuotaOperator>(server, &[])
}

fn used(server: &Server, name: &str) -> Value {
    server.get("resourcequotas", &format!("default/{name}")).unwrap_or_default()["status"]["used"].clone()
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                let hard = json!({ "secrets": "5", "pods": "5", "cpu": "4", "count/deployments.apps": "5" });
                server.add(&quota("team", &hard));
                server.add(&secret("a"));
                server.add(&worker("p"));
                server.add(&worker("q"));
            }),
            Do(|server| server.add(&object("apps/v1", "Deployment", "web"))),
            Do(|server| server.add(&secret("elsewhere").namespace("other"))),
            Pass(SOON),
            Do(|server| server.end_pods("Succeeded")),
            Do(|server| server.delete("secrets", "default/a")),
            Do(|server| {
                server.change("resourcequotas", "default/team", |quota| {
                    quota["spec"]["hard"] = json!({ "secrets": "5", "count/pods": "9", "count/deployments.apps": "5" });
                });
            }),
            Pass(SOON),
        ];
        let server = survives_kills::<ResourceQuotaOperator>(&[], &life).await;
        assert_eq!(used(&server, "team"), json!({ "secrets": "0", "count/pods": "2", "count/deployments.apps": "1" }));
        let writes = server.writes();
        assert!(writes.iter().all(|write| write.starts_with("patch resourcequotas/status ")), "{writes:?}");
    });
}

#[test]
fn what_goes_is_given_back_and_what_comes_is_counted_a_while_later() {
    test(async {
        let server = Server::new();
        server.add(&quota("team", &json!({ "pods": "5", "cpu": "4" })));
        let running = start(&server);
        running.at_rest().await;
        assert_eq!(used(&server, "team"), json!({ "pods": "0", "cpu": "0" }));
        server.add(&worker("p"));
        running.at_rest().await;
        assert_eq!(used(&server, "team"), json!({ "pods": "0", "cpu": "0" }), "the apiserver charges that");
        running.pass(SOON).await;
        assert_eq!(used(&server, "team"), json!({ "pods": "1", "cpu": "250m" }));
        server.delete("pods", "default/p");
        running.at_rest().await;
        assert_eq!(used(&server, "team"), json!({ "pods": "0", "cpu": "0" }));
    });
}

#[test]
fn only_kinds_that_a_quota_limits_are_followed_and_only_in_its_namespace() {
    test(async {
        let server = Server::new();
        let running = start(&server);
        running.pass(Duration::from_mins(3)).await;
        let lists = |server: &Server| server.requests().into_iter().filter(|line| line.starts_with("list ")).count();
        let before = lists(&server);
        server.add(&quota("team", &json!({ "secrets": "5" })));
        running.at_rest().await;
        assert_eq!((lists(&server) - before, server.count("list secrets")), (1, 1));
        assert_eq!(used(&server, "team"), json!({ "secrets": "0" }));
    });
}

#[test]
fn a_kind_that_cannot_be_listed_holds_up_no_other_and_is_told_of_once() {
    test(async {
        let server = Server::new();
        let refused = server.on("list", "services").answer(500, "InternalError", "no");
        server.add(&quota("team", &json!({ "secrets": "5", "services": "5" })));
        server.add(&quota("other", &json!({ "secrets": "5" })));
        server.add(&secret("a"));
        let running = start(&server);
        running.pass(Duration::from_mins(2)).await;
        assert!(refused.count() > 1);
        let one = json!({ "secrets": "1" });
        assert_eq!([used(&server, "team"), used(&server, "other")], [one.clone(), one]);
        let told: Vec<String> = server.events().into_iter().filter(|event| event.contains("UsageNotCounted")).collect();
        assert_eq!(told.len(), 1, "{told:?}");

        server.on("list", "services");
        running.pass(Duration::from_mins(2)).await;
        assert_eq!(used(&server, "team"), json!({ "secrets": "1", "services": "0" }));
    });
}

#[test]
fn a_kind_that_is_served_later_is_counted_then() {
    test(async {
        let server = Server::new();
        server.add(&quota("team", &json!({ "count/crontabs.stable.example.com": "5", "secrets": "5" })));
        let running = start(&server);
        running.at_rest().await;
        assert_eq!(used(&server, "team"), json!({ "secrets": "0" }));
        server.serve(Resource::namespaced("stable.example.com", "v1", "CronTab", "crontabs"));
        server.add(&object("stable.example.com/v1", "CronTab", "a"));
        running.pass(Duration::from_mins(1)).await;
        assert_eq!(used(&server, "team"), json!({ "secrets": "0", "count/crontabs.stable.example.com": "1" }));
    });
}

#[test]
fn claims_count_under_an_extended_resource_once_a_class_of_devices_has_it() {
    test(async {
        let server = Server::new();
        server.serve(Resource::cluster_scoped("resource.k8s.io", "v1", "DeviceClass", "deviceclasses"));
        let exactly = json!({ "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3 });
        let requests = json!([{ "name": "r", "exactly": exactly }]);
        let claim = object("resource.k8s.io/v1", "ResourceClaim", "c");
        server.add(&claim.set(&["spec", "devices", "requests"], requests));
        server.add(&quota("team", &json!({ "requests.example.com/gpu": "9" })));
        let running = start(&server);
        running.pass(SOON).await;
        assert_eq!(used(&server, "team"), json!({ "requests.example.com/gpu": "0" }));
        assert_eq!(server.count("list resourceclaims"), 0);
        let class = object("resource.k8s.io/v1", "DeviceClass", "gpu").namespace("");
        server.add(&class.set(&["spec", "extendedResourceName"], "example.com/gpu"));
        running.pass(SOON).await;
        assert_eq!(used(&server, "team"), json!({ "requests.example.com/gpu": "3" }));
        server.delete("deviceclasses", "gpu");
        running.pass(SOON).await;
        assert_eq!(used(&server, "team"), json!({ "requests.example.com/gpu": "0" }));
    });
}

#[test]
fn what_goes_together_is_given_back_in_two_writes() {
    test(async {
        let server = Server::new();
        server.add(&quota("team", &json!({ "pods": "50" })));
        (0..20).for_each(|at| server.add(&worker(&format!("p{at}"))));
        let running = start(&server);
        running.pass(SOON).await;
        let writes = server.count("patch resourcequotas/status");
        for at in 0..20 {
            server.delete("pods", &format!("default/p{at}"));
            running.pass(Duration::from_millis(1)).await;
        }
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(used(&server, "team"), json!({ "pods": "0" }));
        assert_eq!(server.count("patch resourcequotas/status") - writes, 2);
    });
}

#[test]
fn beyond_a_few_namespaces_a_kind_is_followed_in_all_of_them_alone() {
    test(async {
        let server = Server::new();
        let running = start(&server);
        for at in 0..20 {
            server.add(&quota("team", &json!({ "secrets": "5" })).namespace(&format!("n{at}")));
            running.at_rest().await;
        }
        running.pass(Duration::from_mins(1)).await;
        server.add(&secret("a").namespace("n3"));
        running.pass(SOON).await;
        let status = server.get("resourcequotas", "n3/team").unwrap()["status"]["used"].clone();
        assert_eq!(status, json!({ "secrets": "1" }));
        let lists = server.count("list secrets");
        // Whoever follows in a namespace besides lists again.
        server.expire_watches("secrets");
        running.pass(SOON).await;
        assert_eq!(server.count("list secrets") - lists, 1);
    });
}

#[test]
fn usage_that_somebody_else_has_written_is_mended_by_the_full_count() {
    test(async {
        let server = Server::new();
        server.add(&quota("team", &json!({ "secrets": "5" })));
        let running = start(&server);
        // Past the look whether the first list has come.
        running.pass(SOON).await;
        server.change("resourcequotas", "default/team", |quota| quota["status"]["used"]["secrets"] = "4".into());
        running.pass(SOON).await;
        assert_eq!(used(&server, "team"), json!({ "secrets": "4" }));
        running.pass(Duration::from_mins(5)).await;
        assert_eq!(used(&server, "team"), json!({ "secrets": "0" }));
    });
}

#[test]
fn a_status_that_was_charged_meanwhile_is_not_written_over() {
    test(async {
        let server = Server::new();
        server.add(&quota("team", &json!({ "secrets": "5" })));
        let held = server.on("patch", "resourcequotas/status").once().hold();
        let running = start(&server);
        held.arrived().await;
        // The apiserver charges a creation.
        server.change("resourcequotas", "default/team", |quota| {
            quota["status"] = json!({ "hard": { "secrets": "5" }, "used": { "secrets": "1" } });
        });
        server.add(&secret("a"));
        held.release();
        running.at_rest().await;
        assert_eq!(used(&server, "team"), json!({ "secrets": "1" }));
        assert_eq!(server.count("patch resourcequotas/status"), 1);
    });
}

#[test]
fn why_says_what_is_counted_and_what_is_not() {
    test(async {
        let server = Server::new();
        server.add(&quota("team", &json!({ "secrets": "5", "example.com/foo": "1" })));
        server.add(&secret("a"));
        let running = start(&server);
        running.at_rest().await;
        let why = running.why("/api/v1/namespaces/default/resourcequotas/team");
        let [key] = &why.keys[..] else { panic!("{why}") };
        assert_eq!(key.queue, "resourcequota_primary");
        let expected = "use secrets 1 (1 kinds are counted; nothing is counted for example.com/foo)";
        assert_eq!(key.now[0].text, expected);
        let reason = json!({ "counted": { "kinds": 1, "untracked": ["example.com/foo"], "more": 0 } });
        assert_eq!(key.now[0].reason, reason);
        assert!(running.why("/api/v1/namespaces/default/resourcequotas/gone").keys[0].now.is_empty());
    });
}
