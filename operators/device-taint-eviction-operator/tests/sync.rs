//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

use std::time::Duration;

use device_taint_eviction_operator::controller::DeviceTaintEvictionOperator;
use device_taint_eviction_operator::objects::DEVICE_TAINT_RULES;
use serde_json::{Value, json};
use shared::api::resource::Resource;
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{is_followed_only_while_needed, the_first_one_waits};
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{NOW, ObjectBuilder, object, uid};

const RULES: [&str; 1] = ["--feature-gates=DRADeviceTaintRules=true"];
const TAINT: &str = "example.com/broken";
/// By then it has noticed in any case that a kind is served.
const NOTICED: Duration = Duration::from_secs(301);

fn taint() -> Value {
    json!({ "key": TAINT, "effect": "NoExecute", "timeAdded": NOW.to_string() })
}

/// A slice of a node's pool; its device `gpu-0` has these taints.
fn slice_of(name: &str, (node, generation): (&str, i64), taints: &Value) -> ObjectBuilder {
    object("resource.k8s.io/v1", "ResourceSlice", name)
        .namespace("")
        .set(&["spec", "driver"], "gpu.example.com")
        .set(&["spec", "pool"], json!({ "name": node, "generation": generation, "resourceSliceCount": 1 }))
        .set(&["spec", "devices"], json!([{ "name": "gpu-0", "taints": taints }, { "name": "gpu-1" }]))
}

fn tainted_slice() -> ObjectBuilder {
    slice_of("slice", ("worker", 1), &json!([taint()]))
}

fn set_taints(server: &Server, taints: Value) {
    server.change("resourceslices", "slice", |slice| slice["spec"]["devices"][0]["taints"] = taints);
}

/// A claim of `gpu-0` that a pod of the same name uses, and tolerates all taints for so many seconds; 0 is not at all.
fn claim(name: &str, seconds: i64) -> ObjectBuilder {
    let tolerations = json!([{ "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds }]);
    let results = json!([{
        "request": "gpu", "driver": "gpu.example.com", "pool": "worker", "device": "gpu-0", "tolerations": tolerations,
    }]);
    object("resource.k8s.io/v1", "ResourceClaim", name)
        .set(&["status", "allocation", "devices", "results"], results)
        .set(&["status", "reservedFor"], json!([{ "resource": "pods", "name": name, "uid": uid(name) }]))
}

fn pod(name: &str) -> ObjectBuilder {
    shared::testing::pod(name).set(&["spec", "resourceClaims"], json!([{ "name": "gpu", "resourceClaimName": name }]))
}

fn add_user(server: &Server, name: &str, seconds: i64) {
    server.add(&claim(name, seconds));
    server.add(&pod(name));
}

fn rule(effect: &str) -> ObjectBuilder {
    rule_in("v1beta2", effect)
}

fn rule_in(version: &str, effect: &str) -> ObjectBuilder {
    object(&format!("resource.k8s.io/{version}"), "DeviceTaintRule", "rule")
        .namespace("")
        .set(&["spec", "deviceSelector"], json!({ "driver": "gpu.example.com" }))
        .set(&["spec", "taint"], json!({ "key": TAINT, "effect": effect, "timeAdded": NOW.to_string() }))
}

async fn start(server: &Server, flags: &[&str]) -> Running {
    let running = Running::start::<DeviceTaintEvictionOperator>(server, flags);
    running.at_rest().await;
    running
}

fn evicts(pods: &[&str]) -> Vec<String> {
    let writes = |pod: &&str| [format!("patch pods/status default/{pod}"), format!("delete pods default/{pod}")];
    pods.iter().flat_map(writes).collect()
}

const MARKING: &str = "Normal DeviceTaintManagerEviction: Marking for deletion";
const CANCELLING: &str = "Normal DeviceTaintManagerEviction: Cancelling deletion";
const TELL: &str = "patch devicetaintrules/status rule";

/// The rule's condition: status, reason and message.
fn told(server: &Server) -> String {
    let condition = server.get("devicetaintrules", "rule").map(|rule| rule["status"]["conditions"][0].clone());
    let condition = condition.unwrap_or_default();
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    format!("{} {}: {}", text("status"), text("reason"), text("message"))
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                server.add(&slice_of("other", ("worker-2", 7), &json!([])));
                server.add(&tainted_slice());
                server.add(&claim("stays", 0).set(&["status", "reservedFor"], json!([])));
                server.add(&pod("stays"));
                add_user(server, "goes", 0);
                add_user(server, "waits", 60);
            }),
            Pass(Duration::from_mins(5)),
        ];
        let server = survives_kills::<DeviceTaintEvictionOperator>(&[], &life).await;
        assert_eq!(server.writes(), evicts(&["goes", "waits"]));
        let goes = server.get("pods", "default/goes").map(|pod| pod["status"]["conditions"].clone());
        let condition = json!([{
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByDeviceTaintManager",
            "message": "Device Taint manager: deleting due to NoExecute taint", "lastTransitionTime": NOW.to_string(),
        }]);
        assert_eq!(goes, Some(condition));
        assert_eq!(server.events(), [MARKING, MARKING]);
    });
}

/// Upstream: `TestCancelEviction`.
#[test]
fn a_taint_that_is_removed_in_time_cancels_a_pending_deletion() {
    test(async {
        let server = Server::new();
        server.add(&tainted_slice());
        add_user(&server, "waits", 60);
        let running = start(&server, &[]).await;
        running.pass(Duration::from_secs(50)).await;
        set_taints(&server, json!([{ "key": TAINT, "effect": "NoSchedule" }]));
        running.pass(Duration::from_mins(10)).await;
        assert_eq!((server.writes(), server.events()), (vec![], vec![CANCELLING.to_owned()]));

        // "evict-pod-resourceclaim-again": the time belongs to the taint, so it is over when the same one comes again.
        set_taints(&server, json!([taint()]));
        running.at_rest().await;
        assert_eq!(server.writes(), evicts(&["waits"]));
    });
}

/// Upstream: `TestCancelEviction`.
#[test]
fn no_event_reports_a_pending_deletion_whose_pod_is_deleted() {
    test(async {
        let server = Server::new();
        server.add(&tainted_slice());
        add_user(&server, "waits", 60);
        let running = start(&server, &[]).await;
        server.delete("pods", "default/waits");
        running.pass(Duration::from_mins(10)).await;
        assert_eq!((server.writes(), server.events()), (vec![], vec![]));
    });
}

/// Upstream: "cancel-eviction-remove-taint-in-new-slice", "cancel-eviction-remove-slice", and "delete" of `TestEviction`.
#[test]
fn of_a_pool_only_the_newest_generation_counts() {
    test(async {
        let server = Server::new();
        server.add(&tainted_slice());
        add_user(&server, "waits", 60);
        let running = start(&server, &[]).await;
        server.add(&slice_of("newer", ("worker", 2), &json!([])));
        running.at_rest().await;
        assert_eq!(server.events(), [CANCELLING]);
        // The newer slice shadows the taint until it is gone.
        running.pass(Duration::from_mins(2)).await;
        assert_eq!(server.writes(), [""; 0]);
        server.delete("resourceslices", "newer");
        running.at_rest().await;
        assert_eq!(server.writes(), evicts(&["waits"]));
    });
}

/// Upstream: "no-evict-resourceclaim-deallocated" and "no-evict-resourceclaim-deleted".
#[test]
fn a_claim_that_loses_its_device_cancels_a_pending_deletion() {
    test(async {
        let server = Server::new();
        server.add(&tainted_slice());
        for name in ["deallocated", "deleted", "given-to-another"] {
            add_user(&server, name, 60);
        }
        let running = start(&server, &[]).await;
        server.change("resourceclaims", "default/deallocated", |claim| claim["status"] = json!({}));
        server.delete("resourceclaims", "default/deleted");
        server.change("resourceclaims", "default/given-to-another", |claim| claim["status"]["reservedFor"] = json!([]));
        running.pass(Duration::from_mins(10)).await;
        assert_eq!((server.writes(), server.events()), (vec![], vec![CANCELLING.to_owned(); 3]));
    });
}

/// Upstream: `TestController`, "no-evict-pod-not-scheduled".
#[test]
fn pods_that_are_bound_and_claims_that_are_reserved_late_count() {
    test(async {
        let server = Server::new();
        server.add(&tainted_slice());
        server.add(&claim("bound", 0));
        server.add(&pod("bound").node(""));
        server.add(&claim("reserved", 0).set(&["status", "reservedFor"], json!([])));
        server.add(&pod("reserved"));
        let running = start(&server, &[]).await;
        assert_eq!(server.writes(), [""; 0]);
        server.change("pods", "default/bound", |pod| pod["spec"]["nodeName"] = "worker".into());
        running.at_rest().await;
        assert_eq!(server.writes(), evicts(&["bound"]));
        let consumers = json!([{ "resource": "pods", "name": "reserved", "uid": uid("reserved") }]);
        server.change("resourceclaims", "default/reserved", |claim| claim["status"]["reservedFor"] = consumers);
        running.at_rest().await;
        assert_eq!(server.writes(), evicts(&["bound", "reserved"]));
    });
}

/// All orders of so many events.
fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = permutations(count - 1);
    let longer = shorter.iter().flat_map(|order| {
        (0..count).map(|at| {
            let mut order = order.clone();
            order.insert(at, count - 1);
            order
        })
    });
    longer.collect()
}

/// Applies events to a cluster in each order, and compares the writes after the last one, sorted, and the events.
fn check_each_order(flags: &[&str], before: fn(&Server), events: &[fn(&Server)], writes: &[String], told: &[&str]) {
    let mut expected = writes.to_vec();
    expected.sort_unstable();
    for order in permutations(events.len()) {
        test(async {
            let server = Server::new();
            before(&server);
            let running = start(&server, flags).await;
            for event in &order {
                events[*event](&server);
                running.at_rest().await;
            }
            let mut writes: Vec<String> = server.writes();
            writes.retain(|write| !write.starts_with("patch devicetaintrules"));
            writes.sort_unstable();
            assert_eq!(
                (writes, server.events()),
                (expected.clone(), told.iter().map(ToString::to_string).collect()),
                "{order:?}"
            );
        });
    }
}

/// Upstream: `TestController` runs each of its cases in each order of its events.
#[test]
fn any_order_of_events_leads_to_the_same() {
    let nothing: fn(&Server) = |_| {};
    let slice: fn(&Server) = |server| server.add(&tainted_slice());
    let other_slice: fn(&Server) = |server| server.add(&slice_of("other", ("worker-2", 7), &json!([taint()])));
    let claim_of_pod: fn(&Server) = |server| server.add(&claim("goes", 0));
    let pod_goes: fn(&Server) = |server| server.add(&pod("goes"));
    let evict: fn(&Server) = |server| server.add(&rule("NoExecute"));
    // "evict-pod-resourceclaim"
    let events = [slice, other_slice, claim_of_pod, pod_goes];
    check_each_order(&[], nothing, &events, &evicts(&["goes"]), &[MARKING]);
    // "evict-pod-rule"
    check_each_order(&RULES, nothing, &[claim_of_pod, pod_goes, evict], &evicts(&["goes"]), &[MARKING]);
    // "evict-many-pods-same-namespace"
    let other_claim: fn(&Server) = |server| server.add(&claim("goes-too", 0));
    let other_pod: fn(&Server) = |server| server.add(&pod("goes-too"));
    let events = [claim_of_pod, pod_goes, other_claim, other_pod, evict];
    check_each_order(&RULES, nothing, &events, &evicts(&["goes", "goes-too"]), &[MARKING, MARKING]);
    // "no-evict-wrong-pod"
    let another: fn(&Server) = |server| server.add(&pod("goes").uid_of("another"));
    check_each_order(&[], nothing, &[slice, claim_of_pod, another], &[], &[]);
    // "cancel-eviction-remove-taint-in-new-slice"
    let waiting: fn(&Server) = |server| {
        server.add(&tainted_slice());
        add_user(server, "waits", 60);
    };
    let removed: fn(&Server) = |server| server.delete("resourceslices", "slice");
    let replaced: fn(&Server) = |server| server.add(&slice_of("newer", ("worker", 2), &json!([])));
    check_each_order(&[], waiting, &[removed, replaced], &[], &[CANCELLING]);
    // "evict-pod-resourceclaim-unrelated-changes"
    let going: fn(&Server) = |server| {
        server.add(&tainted_slice());
        server.add(&claim("goes", 0));
    };
    let other_device: fn(&Server) = |server| {
        server.change("resourceslices", "slice", |slice| slice["spec"]["devices"][1]["taints"] = json!([taint()]));
    };
    let same_claim: fn(&Server) = |server| {
        server.change("resourceclaims", "default/goes", |claim| claim["metadata"]["labels"] = json!({ "a": "b" }));
    };
    check_each_order(&[], going, &[other_device, same_claim, pod_goes], &evicts(&["goes"]), &[MARKING]);
}

/// Upstream: `TestRetry`.
#[test]
fn a_failed_deletion_is_retried_and_has_one_event() {
    test(async {
        let server = Server::new();
        server.add(&tainted_slice());
        let refused = server.on("delete", "pods").answer(500, "InternalError", "failed calling webhook").times(7);
        add_user(&server, "goes", 0);
        let running = start(&server, &[]).await;
        assert_eq!((refused.count(), server.count("delete pods")), (7, 8));
        assert_eq!(server.count("patch pods"), 1, "it is marked once");
        assert_eq!(server.events(), [MARKING]);

        // Until it may stay. No event announced it.
        let refused = server.on("patch", "pods/status").answer(500, "InternalError", "failed calling webhook");
        add_user(&server, "stays", 0);
        running.pass(Duration::from_mins(2)).await;
        assert!(refused.count() > 1);
        set_taints(&server, json!([]));
        running.at_rest().await;
        let before = refused.count();
        running.pass(Duration::from_mins(2)).await;
        assert_eq!((refused.count(), server.count("delete pods")), (before, 8));
        assert_eq!(server.events(), [MARKING, CANCELLING]);
    });
}

#[test]
fn an_unknown_path_does_not_show_that_a_pod_is_gone() {
    test(async {
        let server = Server::new();
        server.add(&tainted_slice());
        server.on("patch", "pods/status").once().answer(404, "", "404 page not found");
        server.on("delete", "pods").once().answer(404, "", "404 page not found");
        add_user(&server, "goes", 0);
        let _running = start(&server, &[]).await;
        assert_eq!((server.count("delete pods"), is_being_deleted(&server, "default/goes")), (2, true));
    });
}

/// Upstream: `TestParallelPodDeletion`.
#[test]
fn no_event_announces_the_deletion_of_a_pod_that_is_already_deleted() {
    test(async {
        let server = Server::new();
        server.add(&tainted_slice());
        let held = server.on("patch", "pods/status").once().hold();
        add_user(&server, "goes", 0);
        let running = Running::start::<DeviceTaintEvictionOperator>(&server, &[]);
        held.arrived().await;
        server.delete("pods", "default/goes");
        held.release();
        running.at_rest().await;
        assert_eq!((server.count("delete pods"), server.events()), (0, vec![]));
    });
}

#[test]
fn a_decision_about_one_pod_does_nothing_to_another_of_its_name() {
    test(async {
        let server = Server::new();
        server.add(&tainted_slice());
        let held = server.on("patch", "pods/status").once().hold();
        add_user(&server, "web-0", 0);
        let running = Running::start::<DeviceTaintEvictionOperator>(&server, &[]);
        held.arrived().await;
        server.delete("pods", "default/web-0");
        server.add(&pod("web-0").uid_of("another"));
        held.release();
        running.at_rest().await;
        assert_eq!((server.count("delete pods"), server.events()), (0, vec![]));
        let conditions = server.get("pods", "default/web-0").map(|pod| pod["status"]["conditions"].clone());
        assert_eq!(conditions, Some(Value::Null));
    });
}

/// Upstream: `TestDeviceTaintRule`, "delayed".
#[test]
fn a_rule_reports_a_simulation_then_the_progress_and_then_the_result() {
    test(async {
        let server = Server::new();
        server.add(&slice_of("slice", ("worker", 1), &json!([])));
        add_user(&server, "goes", 30);
        server.add(&rule("None"));
        let running = start(&server, &RULES).await;
        let simulated = "False NoEffect: 2 published devices selected. 1 allocated device selected. 1 pod would be evicted \
                         in 1 namespace if the effect was NoExecute. This information will not be updated again. \
                         Recreate the DeviceTaintRule to trigger an update.";
        assert_eq!((told(&server).as_str(), server.writes()), (simulated, vec![TELL.to_owned()]));
        running.pass(Duration::from_mins(1)).await;
        assert_eq!(server.writes().len(), 1);

        let at = server.clock().now().to_string();
        server.change("devicetaintrules", "rule", |rule| {
            rule["spec"]["taint"]["effect"] = "NoExecute".into();
            rule["spec"]["taint"]["timeAdded"] = at.into();
        });
        running.at_rest().await;
        assert_eq!(told(&server), "True PodsPendingEviction: 1 pod needs to be evicted in 1 namespace.");
        running.pass(Duration::from_secs(29)).await;
        assert_eq!(server.count("delete pods"), 0);
        running.pass(Duration::from_secs(15)).await;
        assert_eq!(server.count("delete pods"), 1);
        assert_eq!(told(&server), "False Completed: 1 pod evicted since starting the controller.");
        let writes = server.writes().len();
        running.pass(Duration::from_mins(10)).await;
        drop(running);
        drop(start(&server, &RULES).await);
        assert_eq!(server.writes().len(), writes, "another process writes nothing");
    });
}

/// Upstream's controller of 1.37 reads the first of these, and that of 1.36 the second.
#[test]
fn a_rule_evicts_and_reports_in_each_version_in_which_apiservers_serve_it() {
    for version in ["v1", "v1beta2"] {
        test(async {
            let server = Server::new();
            server.withdraw("devicetaintrules");
            server.serve(Resource { version: version.into(), ..DEVICE_TAINT_RULES });
            add_user(&server, "goes", 0);
            server.add(&rule_in(version, "NoExecute"));
            let running = start(&server, &RULES).await;
            running.pass(Duration::from_mins(1)).await;
            assert_eq!(server.count("delete pods"), 1, "{version}");
            assert_eq!(told(&server), "False Completed: 1 pod evicted since starting the controller.", "{version}");
        });
    }
}

#[test]
fn without_its_feature_gate_a_rule_does_nothing() {
    test(async {
        let server = Server::new();
        add_user(&server, "stays", 0);
        server.add(&rule("NoExecute"));
        let running = start(&server, &[]).await;
        running.pass(Duration::from_mins(1)).await;
        assert_eq!((server.writes(), server.count("list devicetaintrules")), (vec![], 0));
    });
}

#[test]
fn the_taints_of_drivers_count_while_rules_are_not_served() {
    test(async {
        let server = Server::new();
        server.withdraw("devicetaintrules");
        server.add(&tainted_slice());
        add_user(&server, "goes", 0);
        let running = start(&server, &RULES).await;
        assert_eq!(server.writes(), evicts(&["goes"]));

        set_taints(&server, json!([]));
        add_user(&server, "ruled", 0);
        server.serve(DEVICE_TAINT_RULES);
        server.add(&rule("NoExecute"));
        running.pass(NOTICED).await;
        assert_eq!((server.count("delete pods"), is_being_deleted(&server, "default/ruled")), (2, true));
    });
}

#[test]
fn a_rule_reports_that_its_pods_stay() {
    test(async {
        let server = Server::new();
        add_user(&server, "waits", 3600);
        server.add(&rule("NoExecute"));
        let running = start(&server, &RULES).await;
        assert_eq!(told(&server), "True PodsPendingEviction: 1 pod needs to be evicted in 1 namespace.");
        server.change("resourceclaims", "default/waits", |claim| claim["status"] = json!({}));
        running.pass(Duration::from_secs(25)).await;
        assert_eq!((told(&server).as_str(), server.events()), ("False NotStarted: ", vec![CANCELLING.to_owned()]));
    });
}

#[test]
fn a_rule_survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                add_user(server, "goes", 0);
                server.add(&rule("NoExecute"));
            }),
            Pass(Duration::from_mins(1)),
            // A process that began after the deletion has not counted it.
            Do(|server| server.delete("devicetaintrules", "rule")),
        ];
        let server = survives_kills::<DeviceTaintEvictionOperator>(&RULES, &life).await;
        assert_eq!(server.count("delete pods"), 1);
    });
}

/// So many pods on devices of one driver, all tainted at once, and a minute later.
async fn after_a_minute(pods: usize, by_rule: bool) -> (Server, Running) {
    let server = Server::new();
    server.add(&if by_rule { rule("NoExecute") } else { tainted_slice() });
    for at in 0..pods {
        add_user(&server, &format!("pod-{at}"), 0);
    }
    let running = start(&server, &RULES).await;
    running.pass(Duration::from_mins(1)).await;
    (server, running)
}

fn is_being_deleted(server: &Server, pod: &str) -> bool {
    server.get("pods", pod).is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_string())
}

/// How many pods are not deleted.
fn left(server: &Server) -> usize {
    server.keys("pods").iter().filter(|pod| !is_being_deleted(server, pod)).count()
}

#[test]
fn if_a_driver_taints_everything_a_share_of_the_pods_is_deleted_at_once_and_the_others_slowly() {
    test(async {
        let (server, running) = after_a_minute(40, false).await;
        assert!((16..=18).contains(&left(&server)), "of 40 claims 22 lose theirs, and then one each minute");
        let slowed = server.list("events").into_iter().filter(|event| event["reason"] == "MassDeletionSlowed");
        let [slowed] = &slowed.collect::<Vec<Value>>()[..] else { panic!("{:?}", server.events()) };
        let message = slowed["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("Slowed down deletions: 22 of 40 claims of gpu.example.com"), "{message}");
        assert_eq!(slowed["involvedObject"]["kind"], "Lease");

        // The claims that lost their pods still count: fewer that are left do not go faster.
        for _ in 0..10 {
            for pod in server.keys("pods").iter().filter(|pod| is_being_deleted(&server, pod)) {
                server.delete("pods", pod);
                server.delete("resourceclaims", pod);
            }
            running.pass(Duration::from_mins(1)).await;
        }
        assert!((2..=8).contains(&left(&server)), "{} are left", left(&server));
        set_taints(&server, json!([]));
        running.pass(Duration::from_mins(10)).await;
        assert!((2..=8).contains(&left(&server)), "the last ones may stay");
    });
}

#[test]
fn a_claim_that_is_allocated_again_counts_once_in_the_population() {
    test(async {
        let (server, running) = after_a_minute(40, false).await;
        for pod in server.keys("pods").iter().filter(|pod| is_being_deleted(&server, pod)) {
            let status = server.get("resourceclaims", pod).map(|claim| claim["status"].clone()).unwrap_or_default();
            server.delete("pods", pod);
            server.change("resourceclaims", pod, |claim| claim["status"] = json!({}));
            running.pass(Duration::from_secs(1)).await;
            let allocated = json!({ "allocation": status["allocation"] });
            server.change("resourceclaims", pod, |claim| claim["status"] = allocated);
        }
        running.pass(Duration::from_mins(1)).await;
        let waits = server.keys("pods").into_iter().find(|pod| !is_being_deleted(&server, pod)).unwrap_or_default();
        let why = running.why(&format!("/api/v1/namespaces/{}", waits.replace('/', "/pods/")));
        let held = why.keys[0].last.iter().flat_map(|decision| &decision.stages).map(|stage| stage.text.as_str());
        let held: Vec<&str> = held.filter(|text| text.contains("of gpu.example.com")).collect();
        assert!(held.first().is_some_and(|text| text.contains(" of 40 claims ")), "{held:?}");
    });
}

#[test]
fn few_pods_and_pods_of_rules_do_not_wait() {
    test(async {
        for (pods, by_rule) in [(10, false), (40, true)] {
            let (server, _running) = after_a_minute(pods, by_rule).await;
            assert_eq!(left(&server), 0, "{pods}");
        }
    });
}

#[test]
fn pods_are_followed_only_while_a_claim_of_their_namespace_is_tainted() {
    test(async {
        let server = Server::new();
        server.add(&slice_of("slice", ("worker", 1), &json!([])));
        add_user(&server, "user", 3600);
        let add = |server: &Server| set_taints(server, json!([taint()]));
        let remove = |server: &Server| set_taints(server, json!([]));
        is_followed_only_while_needed::<DeviceTaintEvictionOperator>(&server, "pods default/", add, remove).await;
    });
}

#[test]
fn slices_are_followed_only_while_a_claim_is_allocated() {
    test(async {
        let server = Server::new();
        server.add(&tainted_slice());
        let add = |server: &Server| server.add(&claim("user", 0));
        let remove = |server: &Server| server.delete("resourceclaims", "default/user");
        is_followed_only_while_needed::<DeviceTaintEvictionOperator>(&server, "resourceslices", add, remove).await;
    });
}

#[test]
fn nothing_is_decided_before_the_first_list_of_pods_and_of_slices() {
    test(async {
        let add = |server: &Server| {
            server.add(&tainted_slice());
            add_user(server, "goes", 0);
        };
        let then = |server: &Server| assert_eq!(server.writes(), evicts(&["goes"]));
        the_first_one_waits::<DeviceTaintEvictionOperator>(&[], "pods", add, then).await;
        the_first_one_waits::<DeviceTaintEvictionOperator>(&[], "resourceslices", add, then).await;
    });
}

/// Upstream: "no-evict-no-taint-update".
#[test]
fn healthy_devices_and_other_changes_cost_nothing() {
    test(async {
        let server = Server::new();
        server.add(&slice_of("slice", ("worker", 1), &json!([])));
        add_user(&server, "healthy", 0);
        let running = start(&server, &[]).await;
        let requests = server.requests().len();
        for beat in 0..50 {
            server.change("resourceslices", "slice", |slice| slice["spec"]["pool"]["generation"] = beat.into());
            server.change("resourceclaims", "default/healthy", |claim| claim["status"]["devices"] = json!([beat]));
            running.at_rest().await;
        }
        assert_eq!(server.requests().len(), requests);
        assert_eq!(running.why("/api/v1/namespaces/default/pods/healthy").keys[0].last, []);
    });
}

#[test]
fn why_names_the_taints_that_evict_a_pod_and_the_time() {
    test(async {
        let server = Server::new();
        server.add(&tainted_slice());
        add_user(&server, "waits", 60);
        add_user(&server, "goes", 0);
        server.add(&rule("NoExecute"));
        let running = start(&server, &RULES).await;
        let why = running.why("/api/v1/namespaces/default/pods/waits");
        let [key] = &why.keys[..] else { panic!("{why}") };
        assert_eq!(key.queue, "device-taint-eviction-controller");
        let expected = " (DeviceTaintRule rule, taint example.com/broken of device gpu.example.com/worker/gpu-0 in \
                        ResourceSlice slice, due 2026-01-01T12:01:00Z)";
        let text = &key.now[0].text;
        assert!(text.starts_with("wait ") && text.ends_with(expected), "{text}");
        assert!(key.standing.timer.as_ref().is_some_and(|timer| timer.purpose == "the end of its toleration"), "{why}");

        let why = running.why("/api/v1/namespaces/default/pods/goes");
        assert_eq!(why.keys[0].now[0].reason, json!("beingDeleted"));
        let evicted = why.keys[0].last.iter().find(|decision| !decision.wrote.is_empty());
        let evicted = evicted.map(|decision| decision.stages[0].text.as_str()).unwrap_or_default();
        assert!(evicted.starts_with("evict (DeviceTaintRule rule, "), "{why}");

        let why = running.why("/apis/resource.k8s.io/v1beta2/devicetaintrules/rule");
        assert_eq!(why.keys[0].now[0].reason, json!("writtenJustNow"), "{why}");
        assert_eq!(running.why("/api/v1/namespaces/default/pods/unknown").keys[0].now, []);
    });
}
