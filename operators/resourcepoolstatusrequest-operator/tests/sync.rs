//! The operator as it is, against an apiserver in the test's process: its informer, its sync, its writes.

use std::time::Duration;

use resourcepoolstatusrequest_operator::controller::ResourcePoolStatusRequestOperator;
use resourcepoolstatusrequest_operator::objects::RESOURCE_POOL_STATUS_REQUESTS;
use serde_json::json;
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, start_at_rest, survives_kills, test};
use shared::testing::{ObjectBuilder, object};

const KIND: &str = "resourcepoolstatusrequests";
const STATUS: &str = "resourcepoolstatusrequests/status";
const PATH: &str = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests/";
/// By then it has noticed in any case that the kind is served.
const NOTICED: Duration = Duration::from_secs(301);

fn serve(server: &Server) {
    server.serve(RESOURCE_POOL_STATUS_REQUESTS);
}

fn serving() -> Server {
    let server = Server::new();
    serve(&server);
    server
}

fn request(name: &str) -> ObjectBuilder {
    object("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest", name)
        .namespace("")
        .set(&["spec", "driver"], "gpu.example.com")
}

fn add_slice(server: &Server, name: &str, expected: i64) {
    let pool = json!({ "name": "pool", "generation": 1, "resourceSliceCount": expected });
    let spec = json!({ "driver": "gpu.example.com", "pool": pool, "nodeName": "node", "devices": [{ "name": "a" }, { "name": "b" }] });
    server.add(&object("resource.k8s.io/v1", "ResourceSlice", name).namespace("").set(&["spec"], spec));
}

fn add_claim(server: &Server, name: &str) {
    let result = json!({ "driver": "gpu.example.com", "pool": "pool", "device": "a" });
    let status = json!({ "allocation": { "devices": { "results": [result] } } });
    server.add(&object("resource.k8s.io/v1", "ResourceClaim", name).set(&["status"], status));
}

/// Allocated and total devices of the first pool of an answer.
fn answer(server: &Server, name: &str) -> Option<(i64, i64)> {
    let pool = server.get(KIND, name)?["status"]["pools"][0].clone();
    Some((pool["allocatedDevices"].as_i64()?, pool["totalDevices"].as_i64()?))
}

async fn start(server: &Server) -> Running {
    start_at_rest::<ResourcePoolStatusRequestOperator>(server, &[]).await
}

/// Upstream: `TestSyncRequest` and `TestCleanupExpiredRequests`.
#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(serve),
            Pass(NOTICED),
            Do(|server| {
                add_slice(server, "slice", 1);
                add_claim(server, "claim");
                server.add(&request("early"));
            }),
            Pass(Duration::from_mins(50)),
            Do(|server| server.add(&request("late"))),
            Pass(Duration::from_mins(20)),
        ];
        let server = survives_kills::<ResourcePoolStatusRequestOperator>(&[], &life).await;
        assert_eq!((server.keys(KIND), answer(&server, "late")), (vec!["late".to_owned()], Some((1, 2))));
        let writes = [format!("patch {STATUS} early"), format!("patch {STATUS} late"), format!("delete {KIND} early")];
        assert_eq!(server.writes(), writes);
    });
}

#[test]
fn nothing_is_followed_but_requests() {
    test(async {
        let server = Server::new();
        let running = start(&server).await;
        running.pass(NOTICED).await;
        assert_eq!(server.requests(), [""; 0]);
        serve(&server);
        add_slice(&server, "slice", 1);
        server.add(&request("a"));
        running.pass(NOTICED).await;
        assert_eq!(answer(&server, "a"), Some((0, 2)));
        assert_eq!(server.count("watch"), server.count("watch resourcepoolstatusrequests"));
    });
}

#[test]
fn an_incomplete_pool_is_answered_once_it_is_complete() {
    test(async {
        let server = serving();
        add_slice(&server, "first", 2);
        server.add(&request("a"));
        let running = Running::start::<ResourcePoolStatusRequestOperator>(&server, &[]);
        running.pass(Duration::from_secs(20)).await;
        assert_eq!(server.writes(), [""; 0]);
        assert_eq!(server.count("list resourceclaims"), 0, "claims matter for an answer alone");
        add_slice(&server, "second", 2);
        running.pass(Duration::from_secs(6)).await;
        assert_eq!(answer(&server, "a"), Some((0, 4)));
    });
}

#[test]
fn a_request_that_is_never_answered_goes_after_a_day() {
    test(async {
        let server = serving();
        add_slice(&server, "first", 2);
        server.add(&request("a"));
        let running = Running::start::<ResourcePoolStatusRequestOperator>(&server, &[]);
        running.pass(Duration::from_hours(23)).await;
        assert_eq!(server.keys(KIND), ["a"]);
        assert!(server.count("list resourceslices") < 200, "it is not read often");
        running.pass(Duration::from_hours(2)).await;
        assert_eq!(server.keys(KIND), [""; 0]);
    });
}

#[test]
fn lists_that_fail_and_answers_that_are_lost_are_made_up_for() {
    test(async {
        let server = serving();
        add_slice(&server, "slice", 1);
        server.on("list", "resourceslices").times(2).answer(500, "InternalError", "etcd is down");
        server.on("list", "resourceclaims").times(2).answer(429, "TooManyRequests", "later");
        server.on("patch", STATUS).once().lose();
        server.add(&request("a"));
        let running = Running::start::<ResourcePoolStatusRequestOperator>(&server, &[]);
        running.pass(Duration::from_secs(60)).await;
        assert_eq!((answer(&server, "a"), server.writes().len()), (Some((0, 2)), 1));
    });
}

#[test]
fn a_request_that_came_back_under_its_name_is_not_deleted_for_the_old_one() {
    test(async {
        let server = serving();
        server.add(&request("a"));
        let running = start(&server).await;
        let held = server.on("delete", KIND).once().hold();
        running.pass(Duration::from_mins(61)).await;
        held.arrived().await;
        server.delete(KIND, "a");
        server.add(
            &request("a").uid_of("another").set(&["metadata", "creationTimestamp"], server.clock().now().to_string()),
        );
        held.release();
        running.at_rest().await;
        assert_eq!(server.keys(KIND), ["a"]);
    });
}

#[test]
fn why_says_which_pools_are_incomplete() {
    test(async {
        let server = serving();
        add_slice(&server, "first", 2);
        server.add(&request("a"));
        let running = Running::start::<ResourcePoolStatusRequestOperator>(&server, &[]);
        running.pass(Duration::from_secs(1)).await;
        let key = running.why(&format!("{PATH}a")).keys[0].clone();
        let texts =
            |stages: &[shared::api::explain::Stage]| stages.iter().map(|stage| stage.text.clone()).collect::<Vec<_>>();
        let reading = "list ResourceSlices and ResourceClaims (asks about gpu.example.com)";
        assert_eq!(texts(&key.now), [reading]);
        assert_eq!(texts(&key.last[0].stages), [reading, "retry in 5s (pools without all slices: pool)"]);
    });
}
