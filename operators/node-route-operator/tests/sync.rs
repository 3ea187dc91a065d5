//! The operator as it is, against an apiserver and a cloud in the test's process: its informer, its syncs, its calls and
//! its writes.

use std::time::Duration;

use cloud::testing::{Call, Cloud, Fault};
use cloud::{CloudError, Route};
use node_route_operator::controller::NodeRouteOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::{Running, start_at_rest, test};
use shared::testing::{ObjectBuilder, object, uid};

const RANGES: &str = "--cluster-cidr=10.120.0.0/16,fd00::/48";
/// Longer than a round.
const ROUND: Duration = Duration::from_secs(11);

fn node(name: &str, cidrs: &[&str]) -> ObjectBuilder {
    let addresses = json!([{ "type": "InternalIP", "address": "10.0.0.1" }]);
    let bare = object("v1", "Node", name).namespace("");
    bare.set(&["spec", "podCIDRs"], json!(cidrs)).set(&["status", "addresses"], addresses)
}

fn start(server: &Server, cloud: &Cloud) -> Running {
    Running::start::<NodeRouteOperator>(server, &[&cloud.flag(), RANGES])
}

/// `a 10.120.0.0/24` of each route, sorted.
fn routes(cloud: &Cloud) -> Vec<String> {
    let show = |route: &Route| format!("{} {}", route.target_node, route.destination_cidr);
    let mut routes: Vec<String> = cloud.world(|world| world.routes.iter().map(show).collect());
    routes.sort();
    routes
}

fn add_route(cloud: &Cloud, node: &str, cidr: &str) {
    let route = Route {
        name: format!("{node}-{cidr}"),
        target_node: node.to_owned(),
        destination_cidr: cidr.to_owned(),
        ..Route::default()
    };
    cloud.world(|world| world.routes.push(route));
}

/// The reason of a Node's condition NetworkUnavailable.
fn said(server: &Server, name: &str) -> Value {
    let conditions = server.get("nodes", name).map_or(json!([]), |node| node["status"]["conditions"].clone());
    let conditions = conditions.as_array().cloned().unwrap_or_default();
    let own = conditions.into_iter().find(|condition| condition["type"] == "NetworkUnavailable");
    own.map_or(Value::Null, |condition| condition["reason"].clone())
}

fn say(server: &Server, name: &str, reason: &str) {
    let condition = json!({ "type": "NetworkUnavailable", "status": "False", "reason": reason });
    server.change("nodes", name, |node| node["status"]["conditions"] = json!([condition]));
}

fn count(calls: &[String], call: Call) -> usize {
    calls.iter().filter(|text| text.starts_with(&call.to_string())).count()
}

/// Nodes come, move, go and come again, with a restart where the operator was killed. Gives the cluster and the cloud.
async fn live(disturb: impl Fn(&Server, &Cloud)) -> (Server, Cloud) {
    let (server, cloud) = (Server::new(), Cloud::new());
    add_route(&cloud, "gone", "10.120.9.0/24");
    add_route(&cloud, "late", "10.120.8.0/24");
    add_route(&cloud, "", "10.120.7.0/24");
    add_route(&cloud, "elsewhere", "192.168.0.0/24");
    disturb(&server, &cloud);
    let steps: [fn(&Server); 5] = [
        |server| {
            server.add(&node("a", &["10.120.0.0/24", "fd00:0:0:1::/64"]));
            server.add(&node("b", &["10.120.1.0/24"]));
            server.add(&node("late", &[]));
        },
        |server| server.change("nodes", "b", |node| node["status"]["addresses"] = json!([])),
        |server| server.delete("nodes", "a"),
        |server| {
            server.add(&node("a", &["10.120.2.0/24"]).uid_of("another"));
            server.change("nodes", "late", |node| node["spec"] = json!({ "podCIDRs": ["10.120.8.0/24"] }));
        },
        |server| say(server, "b", "CalicoIsUp"),
    ];
    let mut running = start(&server, &cloud);
    for step in steps {
        step(&server);
        // Long enough for a failure to be retried in later rounds, and for a restart.
        for _ in 0..4 {
            running.pass(ROUND).await;
            if running.is_killed() {
                running = start(&server, &cloud);
            }
        }
    }
    drop(running);
    (server, cloud)
}

const ROUTES: [&str; 4] = ["a 10.120.2.0/24", "b 10.120.1.0/24", "elsewhere 192.168.0.0/24", "late 10.120.8.0/24"];

#[track_caller]
fn check_end(server: &Server, cloud: &Cloud, when: &str) {
    assert_eq!(routes(cloud), ROUTES, "{when}");
    let said = ["a", "b", "late"].map(|name| said(server, name));
    assert_eq!(said, [json!("RouteCreated"), json!("RouteCreated"), json!("RouteCreated")], "{when}");
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let (server, cloud) = live(|_, _| {}).await;
        check_end(&server, &cloud, "without a kill");
        let writes = server.writes();
        // Of a, b and late, which has lost a route; again of the new a, of late, and of b after somebody else's.
        assert_eq!(writes.len(), 6, "{writes:?}");
        for n in 0..writes.len() {
            let (server, cloud) = live(|server, _| server.stop_after_writes(n)).await;
            check_end(&server, &cloud, &format!("killed before write {n}"));
        }
    });
}

#[test]
fn a_start_among_nodes_with_their_routes_lists_and_does_nothing_else() {
    test(async {
        let (server, cloud) = live(|_, _| {}).await;
        let writes = server.writes();
        cloud.take_calls();
        let running = start_at_rest::<NodeRouteOperator>(&server, &[&cloud.flag(), RANGES]).await;
        server.change("nodes", "a", |node| node["status"]["beats"] = json!(1));
        running.pass(Duration::from_secs(45)).await;
        assert_eq!((server.writes(), cloud.calls()), (writes, vec!["ListRoutes".to_owned(); 5]));
    });
}

#[test]
fn a_call_that_fails_or_whose_answer_is_lost_is_repeated_and_leaves_nothing_behind() {
    test(async {
        let failed = || Fault::Fail(CloudError::Failed("no quota".to_owned()));
        let late = || Fault::Delay(Duration::from_secs(400));
        for call in [Call::GetInfo, Call::ListRoutes, Call::CreateRoute, Call::DeleteRoute] {
            for fault in [failed(), Fault::Lose, late()] {
                for nth in 0..3 {
                    let disturb = |_: &Server, cloud: &Cloud| {
                        for _ in 0..nth {
                            cloud.on_next(call, Fault::Delay(Duration::ZERO));
                        }
                        cloud.on_next(call, fault.clone());
                    };
                    let (server, cloud) = live(disturb).await;
                    // The last step waits for less than the deadline of a call.
                    let running = start(&server, &cloud);
                    running.pass(2 * ROUND).await;
                    check_end(&server, &cloud, &format!("{fault:?} of {call} {nth}"));
                }
            }
        }
    });
}

#[test]
fn a_cloud_that_dies_is_asked_again_and_a_node_waits_for_it() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        cloud.die();
        server.add(&node("a", &["10.120.0.0/24"]));
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(60)).await;
        assert_eq!((server.writes(), said(&server, "a")), (Vec::new(), Value::Null));
        assert_eq!(running.now("/api/v1/nodes/a"), ["keep (the cloud has not listed its routes yet)"]);
        cloud.revive();
        running.pass(Duration::from_secs(31)).await;
        assert_eq!((routes(&cloud), said(&server, "a")), (vec!["a 10.120.0.0/24".to_owned()], json!("RouteCreated")));
        // While it is away again, a Node that has its route keeps saying so.
        cloud.die();
        server.add(&node("b", &["10.120.1.0/24"]));
        running.pass(Duration::from_secs(60)).await;
        assert_eq!([said(&server, "a"), said(&server, "b")], [json!("RouteCreated"), json!("NoRouteCreated")]);
        cloud.revive();
        running.pass(Duration::from_secs(31)).await;
        assert_eq!(said(&server, "b"), json!("RouteCreated"));
    });
}

#[test]
fn yesterdays_list_makes_no_route_twice_and_takes_none_away() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        add_route(&cloud, "gone", "10.120.9.0/24");
        cloud.fall_asleep();
        server.add(&node("a", &["10.120.0.0/24"]));
        let running = start(&server, &cloud);
        running.pass(5 * ROUND).await;
        assert_eq!((routes(&cloud), said(&server, "a")), (vec!["a 10.120.0.0/24".to_owned()], json!("RouteCreated")));
        cloud.wake_up();
        running.pass(ROUND).await;
        cloud.take_calls();
        running.pass(ROUND).await;
        assert_eq!(cloud.calls(), ["ListRoutes"]);
    });
}

#[test]
fn a_route_that_cannot_be_created_is_reported_and_the_others_are_created() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        cloud.on_next(Call::CreateRoute, Fault::Fail(CloudError::Failed("no quota".to_owned())));
        server.add(&node("a", &["10.120.0.0/24", "fd00:0:0:1::/64"]));
        let running = start(&server, &cloud);
        running.pass(Duration::from_millis(500)).await;
        assert_eq!(
            (routes(&cloud), said(&server, "a")),
            (vec!["a fd00:0:0:1::/64".to_owned()], json!("NoRouteCreated"))
        );
        // How long it took stands between these.
        let started =
            format!("Warning FailedToCreateRoute: Could not create route {} 10.120.0.0/24 for node a after ", uid("a"));
        let [event] = &server.events()[..] else { panic!("one event") };
        assert!(event.starts_with(&started) && event.ends_with(": no quota"), "{event}");
        running.pass(ROUND).await;
        assert_eq!((routes(&cloud).len(), said(&server, "a")), (2, json!("RouteCreated")));
        let condition = &server.get("nodes", "a").unwrap()["status"]["conditions"][0];
        assert_eq!(condition["message"], "RouteController created a route");
        assert_eq!(condition["status"], "False");
    });
}

#[test]
fn a_cloud_that_asks_for_time_gets_it() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        let busy = CloudError::RetryAfter { after: Duration::from_secs(25), message: "busy".to_owned() };
        cloud.on_next(Call::CreateRoute, Fault::Fail(busy));
        server.add(&node("a", &["10.120.0.0/24"]));
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(said(&server, "a"), "NoRouteCreated");
        // Neither rounds nor changes of the Node come earlier.
        server.change("nodes", "a", |node| node["status"]["addresses"] = json!([]));
        running.pass(Duration::from_millis(23_900)).await;
        assert_eq!(count(&cloud.calls(), Call::CreateRoute), 1);
        let [now] = &running.now("/api/v1/nodes/a")[..] else { panic!("one decision") };
        assert!(now.starts_with("keep (the cloud wants no call before 20"), "{now}");
        running.pass(Duration::from_millis(200)).await;
        assert_eq!((routes(&cloud), said(&server, "a")), (vec!["a 10.120.0.0/24".to_owned()], json!("RouteCreated")));
    });
}

#[test]
fn a_list_waits_for_the_cloud_and_so_does_the_next_round() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        let busy = || CloudError::RetryAfter { after: Duration::from_secs(25), message: "busy".to_owned() };
        cloud.on_next(Call::ListRoutes, Fault::Fail(busy()));
        cloud.on_next(Call::DeleteRoute, Fault::Fail(busy()));
        add_route(&cloud, "", "10.120.7.0/24");
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(24)).await;
        assert_eq!(cloud.calls(), ["ListRoutes"]);
        running.pass(Duration::from_secs(2)).await;
        assert_eq!(cloud.take_calls(), ["ListRoutes", "ListRoutes", "DeleteRoute  10.120.7.0/24"]);
        running.pass(Duration::from_secs(23)).await;
        assert_eq!(cloud.calls(), Vec::<String>::new());
        running.pass(Duration::from_secs(2)).await;
        assert_eq!(
            (cloud.calls(), routes(&cloud)),
            (vec!["ListRoutes".to_owned(), "DeleteRoute  10.120.7.0/24".to_owned()], Vec::new())
        );
    });
}

#[test]
fn before_the_nodes_are_listed_no_route_is_deleted() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        server.add(&node("a", &["10.120.0.0/24"]));
        add_route(&cloud, "a", "10.120.0.0/24");
        add_route(&cloud, "gone", "10.120.9.0/24");
        server.hold_watches("nodes");
        let running = start(&server, &cloud);
        running.pass(5 * ROUND).await;
        assert_eq!(cloud.calls(), Vec::<String>::new());
        server.release_watches("nodes");
        running.pass(ROUND).await;
        assert_eq!((routes(&cloud), count(&cloud.calls(), Call::DeleteRoute)), (vec!["a 10.120.0.0/24".to_owned()], 1));
    });
}

#[test]
fn a_new_node_does_not_wait_for_the_next_round() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(1)).await;
        server.add(&node("a", &["10.120.0.0/24"]));
        running.pass(Duration::from_millis(100)).await;
        assert_eq!((routes(&cloud), said(&server, "a")), (vec!["a 10.120.0.0/24".to_owned()], json!("RouteCreated")));
        assert_eq!(count(&cloud.calls(), Call::ListRoutes), 1);
    });
}

#[test]
fn a_route_is_deleted_only_as_the_cloud_lists_it() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(1)).await;
        server.add(&node("a", &["10.120.0.0/24"]));
        running.pass(Duration::from_secs(1)).await;
        server.delete("nodes", "a");
        server.add(&node("a", &["10.120.1.0/24"]).uid_of("another"));
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(count(&cloud.calls(), Call::DeleteRoute), 0);
        running.pass(ROUND).await;
        assert_eq!((routes(&cloud), count(&cloud.calls(), Call::DeleteRoute)), (vec!["a 10.120.1.0/24".to_owned()], 1));
    });
}

#[test]
fn a_condition_of_somebody_else_is_overwritten_once_in_a_round() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        server.add(&node("a", &["10.120.0.0/24"]));
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(1)).await;
        for _ in 0..5 {
            say(&server, "a", "CalicoIsUp");
            running.pass(Duration::from_secs(1)).await;
            assert_eq!(said(&server, "a"), "CalicoIsUp");
        }
        running.pass(ROUND).await;
        assert_eq!((said(&server, "a"), server.count("patch nodes")), (json!("RouteCreated"), 2));
    });
}

#[test]
fn a_route_in_the_way_is_deleted_before_its_destination_gets_another() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        add_route(&cloud, "gone", "10.120.0.0/24");
        cloud.on_next(Call::DeleteRoute, Fault::Fail(CloudError::Failed("locked".to_owned())));
        server.add(&node("a", &["10.120.0.0/24"]));
        let running = start(&server, &cloud);
        running.pass(Duration::from_millis(500)).await;
        assert_eq!(
            (routes(&cloud), said(&server, "a")),
            (vec!["gone 10.120.0.0/24".to_owned()], json!("NoRouteCreated"))
        );
        let why = running.now("/api/v1/nodes/a");
        assert_eq!(why, ["wait for 10.120.0.0/24 (routes: 0 stale, 0 missing, 1 waiting)"]);
        running.pass(Duration::from_secs(2)).await;
        assert_eq!((routes(&cloud), said(&server, "a")), (vec!["a 10.120.0.0/24".to_owned()], json!("RouteCreated")));
        assert_eq!(count(&cloud.calls(), Call::CreateRoute), 1);
    });
}

#[test]
fn a_loose_route_that_cannot_be_deleted_changes_no_period() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        add_route(&cloud, "", "10.120.7.0/24");
        cloud.on_each(Call::DeleteRoute, Fault::Fail(CloudError::Failed("locked".to_owned())));
        let flags = [&cloud.flag(), RANGES, "--route-reconciliation-period=30s"];
        let running = Running::start::<NodeRouteOperator>(&server, &flags);
        running.pass(Duration::from_secs(95)).await;
        assert_eq!((count(&cloud.calls(), Call::ListRoutes), count(&cloud.calls(), Call::DeleteRoute)), (4, 4));
    });
}

#[test]
fn a_node_that_goes_while_a_route_is_deleted_gets_none() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        add_route(&cloud, "a", "10.120.1.0/24");
        cloud.on_next(Call::DeleteRoute, Fault::Delay(Duration::from_secs(60)));
        server.add(&node("a", &["10.120.0.0/24"]));
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(30)).await;
        server.delete("nodes", "a");
        running.pass(Duration::from_secs(60)).await;
        assert_eq!((routes(&cloud), count(&cloud.calls(), Call::CreateRoute)), (Vec::<String>::new(), 0));
    });
}

#[test]
fn many_routes_are_created_at_a_time() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        cloud.on_each(Call::CreateRoute, Fault::Delay(Duration::from_secs(2)));
        for number in 0..250 {
            server.add(&node(&format!("node-{number}"), &[&format!("10.120.{number}.0/24")]));
        }
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(count(&cloud.calls(), Call::CreateRoute), 200);
        running.pass(Duration::from_secs(4)).await;
        assert_eq!(routes(&cloud).len(), 250);
        assert_eq!((count(&cloud.calls(), Call::CreateRoute), server.writes().len()), (250, 250));
    });
}

#[test]
fn a_cloud_without_routes_is_asked_each_minute_whether_it_has_learned_them() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        cloud.set_info(|info| info.routes = false);
        server.add(&node("a", &["10.120.0.0/24"]));
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(59)).await;
        assert_eq!((cloud.calls(), server.writes()), (Vec::<String>::new(), Vec::new()));
        assert_eq!(running.now("/api/v1/nodes/a"), ["keep (the cloud has no routes to keep)"]);
        cloud.set_info(|info| info.routes = true);
        running.pass(Duration::from_secs(2)).await;
        assert_eq!((routes(&cloud), said(&server, "a")), (vec!["a 10.120.0.0/24".to_owned()], json!("RouteCreated")));
    });
}

#[test]
fn without_a_range_nothing_is_changed_in_a_cloud_with_routes() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        add_route(&cloud, "gone", "10.120.9.0/24");
        server.add(&node("a", &["10.120.0.0/24"]));
        let running = Running::start::<NodeRouteOperator>(&server, &[&cloud.flag()]);
        running.pass(ROUND).await;
        assert_eq!((cloud.calls(), server.writes()), (Vec::<String>::new(), Vec::new()));
    });
}

#[test]
fn with_the_flag_off_nothing_is_read() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        server.add(&node("a", &["10.120.0.0/24"]));
        let flags = [&cloud.flag(), RANGES, "--configure-cloud-routes=false"];
        let running = Running::start::<NodeRouteOperator>(&server, &flags);
        running.pass(ROUND).await;
        assert_eq!((cloud.calls(), server.requests()), (Vec::<String>::new(), Vec::new()));
        assert_eq!(running.now("/api/v1/nodes/a"), ["keep (--configure-cloud-routes is false)"]);
    });
}

#[test]
fn the_period_of_rounds_is_the_flags() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        let flags = [&cloud.flag(), RANGES, "--route-reconciliation-period=30s"];
        let running = Running::start::<NodeRouteOperator>(&server, &flags);
        running.pass(Duration::from_secs(95)).await;
        assert_eq!(cloud.calls(), ["ListRoutes"; 4]);
    });
}

#[test]
fn a_shadow_changes_no_route_and_says_which_it_would() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        add_route(&cloud, "gone", "10.120.9.0/24");
        add_route(&cloud, "", "10.120.7.0/24");
        let there = routes(&cloud);
        server.add(&node("a", &["10.120.0.0/24"]));
        let running = Running::start::<NodeRouteOperator>(&server, &[&cloud.flag(), RANGES, "--mode=shadow"]);
        running.pass(Duration::from_secs(90)).await;
        assert_eq!((routes(&cloud), server.writes()), (there, Vec::<String>::new()));
        let report = running.shadow_report().unwrap();
        let mut wanted: Vec<String> =
            report.differences.iter().map(|is| format!("{} {} {}", is.verb, is.resource, is.object)).collect();
        wanted.sort();
        assert_eq!(wanted, ["create routes.cloud a", "delete routes.cloud 10.120.7.0/24", "delete routes.cloud gone"]);
    });
}

#[test]
fn why_says_what_a_node_has_and_what_was_done() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        server.add(&node("a", &["10.120.0.0/24"]));
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(1)).await;
        let why = running.why("/api/v1/nodes/a");
        let [key] = &why.keys[..] else { panic!("{why}") };
        assert_eq!(key.now[0].text, "keep (has its routes, CIDRs: 1)");
        assert_eq!(key.now[0].reason, json!({ "routed": { "cidrs": 1 } }));
        let created = "create 10.120.0.0/24 (routes: 0 stale, 1 missing, 0 waiting)";
        assert_eq!(key.last[0].stages[0].text, created);
        assert!(running.now("/api/v1/nodes/unknown").is_empty());
    });
}
