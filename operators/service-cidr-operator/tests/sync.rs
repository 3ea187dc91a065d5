//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use serde_json::{Value, json};
use service_cidr_operator::controller::ServiceCidrOperator;
use service_cidr_operator::objects::FINALIZER;
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{is_followed_only_while_needed, the_first_one_waits};
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, object};

/// Longer than the grace period.
const GRACE: Duration = Duration::from_secs(11);

fn service_cidr(name: &str, cidr: &str) -> ObjectBuilder {
    object("networking.k8s.io/v1", "ServiceCIDR", name).namespace("").set(&["spec", "cidrs"], json!([cidr]))
}

fn add_address(server: &Server, address: &str) {
    let labels = json!({
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    });
    let object = object("networking.k8s.io/v1", "IPAddress", address).namespace("");
    server.add(&object.set(&["metadata", "labels"], labels));
}

fn start(server: &Server) -> Running {
    Running::start::<ServiceCidrOperator>(server, &[])
}

/// The condition Ready, such as `False Terminating`; `gone` where the ServiceCIDR is.
fn ready(server: &Server, name: &str) -> String {
    let Some(service_cidr) = server.get("servicecidrs", name) else { return "gone".to_owned() };
    let conditions = service_cidr["status"]["conditions"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all: Vec<String> = conditions
        .map(|condition| [&condition["type"], &condition["status"], &condition["reason"]].map(text).join(" "))
        .collect();
    all.join(", ")
}

const READY: &str = "Ready True ";
const TERMINATING: &str = "Ready False Terminating";

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                server.add(&service_cidr("inner", "10.0.0.0/24"));
                server.add(&service_cidr("outer", "10.0.0.0/16"));
                server.add(&service_cidr("other", "172.16.0.0/16"));
                for address in ["10.0.0.5", "10.0.7.7", "172.16.0.1"] {
                    add_address(server, address);
                }
            }),
            Do(|server| server.delete("servicecidrs", "inner")),
            Pass(GRACE),
            Do(|server| server.delete("servicecidrs", "outer")),
            Do(|server| server.delete("ipaddresses", "10.0.0.5")),
            Do(|server| server.delete("servicecidrs", "other")),
            Do(|server| server.delete("ipaddresses", "10.0.7.7")),
            Pass(GRACE),
        ];
        let server = survives_kills::<ServiceCidrOperator>(&[], &life).await;
        let all = ["inner", "outer", "other"].map(|name| ready(&server, name));
        assert_eq!(all, ["gone", "gone", TERMINATING]);
    });
}

#[test]
fn a_service_cidr_is_ready_and_stays_for_as_long_as_an_address_needs_it() {
    test(async {
        let server = Server::new();
        server.add(&service_cidr("a", "10.0.0.0/24"));
        add_address(&server, "10.0.0.5");
        let running = start(&server);
        running.at_rest().await;
        assert_eq!(server.writes(), ["patch servicecidrs a", "patch servicecidrs/status a"]);
        assert_eq!(server.get("servicecidrs", "a").unwrap()["metadata"]["finalizers"], json!([FINALIZER]));
        assert_eq!(ready(&server, "a"), READY);
        server.delete("servicecidrs", "a");
        running.pass(Duration::from_mins(10)).await;
        assert_eq!(ready(&server, "a"), TERMINATING);
        assert_eq!(server.writes()[2..], ["patch servicecidrs/status a"]);
        // Another one takes the address over.
        server.add(&service_cidr("b", "10.0.0.0/16"));
        running.at_rest().await;
        assert_eq!([ready(&server, "a"), ready(&server, "b")], ["gone", READY]);
        server.delete("servicecidrs", "b");
        running.pass(GRACE).await;
        assert_eq!(ready(&server, "b"), TERMINATING);
        server.delete("ipaddresses", "10.0.0.5");
        running.at_rest().await;
        assert_eq!(ready(&server, "b"), "gone");
        assert_eq!(server.events(), Vec::<String>::new());
    });
}

#[test]
fn an_address_that_was_allocated_within_the_grace_period_keeps_its_range() {
    test(async {
        let server = Server::new();
        server.add(&service_cidr("a", "10.0.0.0/24"));
        let running = start(&server);
        running.at_rest().await;
        server.delete("servicecidrs", "a");
        running.pass(Duration::from_secs(8)).await;
        assert_eq!(ready(&server, "a"), READY);
        add_address(&server, "10.0.0.5");
        running.pass(Duration::from_mins(1)).await;
        assert_eq!(ready(&server, "a"), TERMINATING);
        server.delete("ipaddresses", "10.0.0.5");
        running.at_rest().await;
        assert_eq!(ready(&server, "a"), "gone");
    });
}

#[test]
fn two_that_are_deleted_together_do_not_both_count_on_the_other() {
    test(async {
        let server = Server::new();
        for name in ["a", "b"] {
            server.add(&service_cidr(name, "10.0.0.0/24"));
        }
        add_address(&server, "10.0.0.5");
        let running = start(&server);
        running.at_rest().await;
        server.delete("servicecidrs", "a");
        server.delete("servicecidrs", "b");
        running.pass(GRACE).await;
        assert_eq!([ready(&server, "a"), ready(&server, "b")], ["gone", TERMINATING]);
    });
}

#[test]
fn a_condition_that_is_refused_is_told_and_tried_again() {
    test(async {
        let server = Server::new();
        server.on("patch", "servicecidrs/status").times(3).answer(403, "Forbidden", "not today");
        server.add(&service_cidr("a", "10.0.0.0/24"));
        let running = start(&server);
        running.at_rest().await;
        assert_eq!((ready(&server, "a"), server.count("patch servicecidrs/status")), (READY.to_owned(), 4));
        assert_eq!(server.count("patch servicecidrs a"), 1);
        let told = "Warning KubernetesServiceCIDRError: The ServiceCIDR Status can not be set to Ready=True";
        assert_eq!(server.events(), [told]);
        // Of one that cannot go, its own status alone tells.
        server.on("patch", "servicecidrs/status").times(2).answer(500, "InternalError", "etcd is down");
        add_address(&server, "10.0.0.5");
        server.delete("servicecidrs", "a");
        running.at_rest().await;
        assert_eq!((ready(&server, "a").as_str(), server.events().len()), (TERMINATING, 1));
    });
}

#[test]
fn without_the_finalizer_a_service_cidr_is_not_made_ready() {
    test(async {
        let server = Server::new();
        server.on("patch", "servicecidrs").times(3).answer(500, "InternalError", "etcd is down");
        server.add(&service_cidr("a", "10.0.0.0/24"));
        start(&server).at_rest().await;
        let (finalizer, status) = ("patch servicecidrs a", "patch servicecidrs/status a");
        assert_eq!(server.writes(), [finalizer, finalizer, finalizer, finalizer, status]);
    });
}

#[test]
fn what_somebody_takes_away_comes_back() {
    test(async {
        let server = Server::new();
        server.add(&service_cidr("a", "10.0.0.0/24"));
        let running = start(&server);
        running.at_rest().await;
        server.change("servicecidrs", "a", |object| object["metadata"]["finalizers"] = json!([]));
        running.at_rest().await;
        server.change("servicecidrs", "a", |object| object["status"]["conditions"] = json!([]));
        running.at_rest().await;
        assert_eq!(server.get("servicecidrs", "a").unwrap()["metadata"]["finalizers"], json!([FINALIZER]));
        assert_eq!(ready(&server, "a"), READY);
    });
}

#[test]
fn a_service_cidr_that_has_gone_is_not_brought_back() {
    test(async {
        let server = Server::new();
        server.add(&service_cidr("a", "10.0.0.0/24"));
        let held = server.on("patch", "servicecidrs/status").once().hold();
        let running = start(&server);
        held.arrived().await;
        server.change("servicecidrs", "a", |object| object["metadata"]["finalizers"] = json!([]));
        server.delete("servicecidrs", "a");
        held.release();
        running.at_rest().await;
        assert_eq!(ready(&server, "a"), "gone");
    });
}

/// Being deleted, and held by somebody else too.
fn add_going(server: &Server) {
    let finalizers = json!([FINALIZER, "example.com/hold"]);
    server.add(&service_cidr("a", "10.0.0.0/24").terminating().set(&["metadata", "finalizers"], finalizers));
}

#[test]
fn addresses_are_followed_only_while_a_service_cidr_is_being_deleted() {
    test(async {
        let server = Server::new();
        server.add(&service_cidr("staying", "10.0.0.0/16"));
        add_address(&server, "10.0.0.5");
        let remove = |server: &Server| {
            server.change("servicecidrs", "a", |object| object["metadata"]["finalizers"] = json!([]));
        };
        is_followed_only_while_needed::<ServiceCidrOperator>(&server, "ipaddresses", add_going, remove).await;
    });
}

#[test]
fn nothing_goes_before_its_addresses_are_known_however_they_come() {
    let first = |server: &Server| {
        add_address(server, "10.0.0.5");
        add_going(server);
    };
    let then = |server: &Server| assert_eq!(ready(server, "a"), TERMINATING);
    test(the_first_one_waits::<ServiceCidrOperator>(&[], "ipaddresses", first, then));
}

#[test]
fn addresses_that_came_and_went_while_nobody_followed_them_count_as_they_are() {
    test(async {
        let server = Server::new();
        server.add(&service_cidr("a", "10.0.0.0/24"));
        server.add(&service_cidr("b", "10.0.0.0/16"));
        add_address(&server, "10.0.7.7");
        let running = start(&server);
        running.at_rest().await;
        server.delete("servicecidrs", "a");
        running.pass(Duration::from_mins(60)).await;
        assert_eq!(ready(&server, "a"), "gone");
        server.delete("ipaddresses", "10.0.7.7");
        add_address(&server, "10.0.9.9");
        server.delete("servicecidrs", "b");
        running.pass(GRACE).await;
        assert_eq!(ready(&server, "b"), TERMINATING);
        server.delete("ipaddresses", "10.0.9.9");
        running.at_rest().await;
        assert_eq!(ready(&server, "b"), "gone");
    });
}

#[test]
fn a_watch_that_stands_still_keeps_a_range_for_longer_and_no_more() {
    test(async {
        let server = Server::new();
        server.add(&service_cidr("a", "10.0.0.0/24"));
        add_address(&server, "10.0.0.5");
        let running = start(&server);
        running.at_rest().await;
        server.delete("servicecidrs", "a");
        running.pass(GRACE).await;
        server.hold_watches("ipaddresses");
        server.delete("ipaddresses", "10.0.0.5");
        running.at_rest().await;
        assert_eq!(ready(&server, "a"), TERMINATING);
        server.expire_watches("ipaddresses");
        server.release_watches("ipaddresses");
        running.pass(GRACE).await;
        assert_eq!(ready(&server, "a"), "gone");
    });
}

#[test]
fn why_says_what_keeps_a_service_cidr() {
    test(async {
        let server = Server::new();
        server.add(&service_cidr("a", "10.0.0.0/24"));
        let running = start(&server);
        running.at_rest().await;
        let path = "/apis/networking.k8s.io/v1/servicecidrs/a";
        let why = running.why(path);
        let [key] = &why.keys[..] else { panic!("{why}") };
        assert_eq!(key.now[0].text, "keep (not being deleted)");
        add_address(&server, "10.0.0.5");
        server.delete("servicecidrs", "a");
        running.at_rest().await;
        let why = running.why(path);
        assert_eq!(why.keys[0].now[0].text, "keep (10.0.0.5 is in no other ServiceCIDR)");
        let kept = json!({ "onlyHere": { "addresses": 1, "first": "10.0.0.5" } });
        assert_eq!(why.keys[0].now[0].reason, kept, "{why}");
        server.delete("ipaddresses", "10.0.0.5");
        running.at_rest().await;
        let timer = running.why(path).keys[0].standing.timer.clone().expect("a timer");
        assert_eq!(timer.purpose, "the end of its grace period");
        running.pass(GRACE).await;
        assert!(running.why(path).keys[0].now.is_empty());
    });
}
