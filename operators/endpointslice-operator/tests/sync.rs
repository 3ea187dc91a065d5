//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use endpointslice_operator::EndpointSliceOperator;
use serde_json::json;
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{object, pod};

const FLAGS: [&str; 1] = ["--max-endpoints-per-slice=2"];
const SECONDS: Duration = Duration::from_secs(3);

fn add_service(server: &Server) {
    let spec = json!({
        "ports": [{ "name": "http", "protocol": "TCP", "targetPort": 80, "port": 80 }],
        "selector": { "app": "web" }, "ipFamilies": ["IPv4"], "clusterIP": "10.0.0.1",
    });
    server.add(&object("v1", "Node", "node"));
    server.add(&object("v1", "Service", "web").set(&["spec"], spec));
}

fn add_pod(server: &Server, n: usize) {
    let ip = format!("10.2.0.{n}");
    let pod = pod(&format!("web-{n}")).label("app", "web").ready().set(&["status", "podIP"], ip.as_str());
    server.add(&pod.set(&["status", "podIPs"], json!([{ "ip": ip }])));
}

fn change_port(server: &Server) {
    server.change("services", "default/web", |service| service["spec"]["ports"][0]["targetPort"] = 81.into());
}

fn endpoints(server: &Server) -> usize {
    let slices = server.list("endpointslices");
    slices.iter().map(|slice| slice["endpoints"].as_array().map_or(0, Vec::len)).sum()
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                add_service(server);
                (1..=3).for_each(|n| add_pod(server, n));
            }),
            Pass(SECONDS),
            Do(|server| server.delete("pods", "default/web-2")),
            Pass(SECONDS),
            Do(change_port),
            Pass(SECONDS),
        ];
        let server = survives_kills::<EndpointSliceOperator>(&FLAGS, &life).await;
        assert_eq!(endpoints(&server), 2);
    });
}

#[test]
fn a_creation_whose_answer_is_lost_leaves_each_endpoint_once() {
    test(async {
        let server = Server::new();
        server.on("create", "endpointslices").once().lose();
        add_service(&server);
        add_pod(&server, 1);
        let running = Running::start::<EndpointSliceOperator>(&server, &FLAGS);
        running.at_rest().await;
        running.pass(SECONDS).await;
        assert_eq!((server.keys("endpointslices").len(), endpoints(&server)), (1, 1));
    });
}

#[test]
fn a_watch_that_stands_still_makes_no_second_slice() {
    test(async {
        let server = Server::new();
        let running = Running::start::<EndpointSliceOperator>(&server, &FLAGS);
        running.at_rest().await;
        server.hold_watches("endpointslices");
        add_service(&server);
        add_pod(&server, 1);
        running.pass(SECONDS).await;
        add_pod(&server, 2);
        running.pass(Duration::from_secs(1)).await;
        assert_eq!((server.keys("endpointslices").len(), endpoints(&server)), (1, 1));
        server.release_watches("endpointslices");
        running.pass(SECONDS).await;
        assert_eq!((server.keys("endpointslices").len(), endpoints(&server)), (1, 2));
    });
}
