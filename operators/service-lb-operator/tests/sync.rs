//! The operator as it is, against an apiserver in the test's process and a cloud in its memory.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::time::Duration;

use cloud::CloudError;
use cloud::testing::{Call, Cloud, Fault};
use serde_json::{Value, json};
use service_lb_operator::controller::ServiceLbOperator;
use service_lb_operator::objects::FINALIZER;
use shared::testing::apiserver::Server;
use shared::testing::running::{Running, start_at_rest, test};
use shared::testing::{ObjectBuilder, object};

const SERVICES: &str = "services";
const NODES: &str = "nodes";
const WEB: &str = "default/web";
const PATH: &str = "/api/v1/namespaces/default/services/web";
const STATUS: &str = "services/status";

/// A cluster in a cloud.
struct Lab {
    server: Server,
    cloud: Cloud,
}

fn service(type_: &str) -> ObjectBuilder {
    object("v1", "Service", "web")
        .set(&["spec", "type"], type_)
        .set(&["spec", "ports"], json!([{ "port": 80, "protocol": "TCP" }]))
}

fn node(name: &str) -> ObjectBuilder {
    object("v1", "Node", name).namespace("").set(&["spec", "providerID"], format!("cloud://{name}"))
}

impl Lab {
    /// A cluster with two nodes.
    fn new() -> Self {
        let lab = Self { server: Server::new(), cloud: Cloud::new() };
        lab.server.add(&node("a"));
        lab.server.add(&node("b"));
        lab
    }

    /// The same, with a Service that wants a load balancer.
    fn with_service() -> Self {
        let lab = Self::new();
        lab.server.add(&service("LoadBalancer"));
        lab
    }

    fn begin(&self) -> Running {
        Running::start::<ServiceLbOperator>(&self.server, &[&self.cloud.flag()])
    }

    async fn start(&self) -> Running {
        start_at_rest::<ServiceLbOperator>(&self.server, &[&self.cloud.flag()]).await
    }

    fn service(&self) -> Value {
        self.server.get(SERVICES, WEB).unwrap()
    }

    fn ingress(&self) -> Value {
        self.service()["status"]["loadBalancer"]["ingress"].clone()
    }

    fn finalizers(&self) -> Value {
        self.service()["metadata"]["finalizers"].clone()
    }

    /// The load balancers that exist: each Service with the Nodes behind it.
    fn balancers(&self) -> Vec<String> {
        let line = |balancer: &cloud::testing::Balancer| format!("{} {}", balancer.service, balancer.nodes.join(" "));
        self.cloud.world(|world| world.balancers.values().map(line).collect())
    }

    fn created(&self) -> usize {
        self.cloud.world(|world| world.balancers_created)
    }

    fn edit(&self, change: impl FnOnce(&mut Value)) {
        self.server.change(SERVICES, WEB, change);
    }

    fn set_type(&self, type_: &str) {
        self.edit(|service| service["spec"]["type"] = json!(type_));
    }

    #[track_caller]
    fn has_told(&self, event: &str) {
        let events = self.server.events();
        assert!(events.iter().any(|told| told == event), "{events:#?}");
    }

    /// What every life ends with, whatever went wrong: one load balancer, and its address in the Service.
    #[track_caller]
    fn is_well(&self) {
        assert_eq!((self.balancers(), self.created()), (vec!["default/web a b".to_owned()], 1));
        assert_eq!((self.ingress(), self.finalizers()), (json!([{ "ip": "192.0.2.1" }]), json!([FINALIZER])));
    }

    /// What every life ends with after the Service was deleted.
    #[track_caller]
    fn is_empty(&self) {
        assert_eq!((self.server.get(SERVICES, WEB), self.balancers()), (None, Vec::new()));
    }
}

async fn seconds(running: &Running, seconds: u64) {
    running.pass(Duration::from_secs(seconds)).await;
}

#[test]
fn a_service_has_a_load_balancer_from_its_creation_to_its_deletion() {
    test(async {
        let lab = Lab::with_service();
        let running = lab.start().await;
        lab.is_well();
        assert_eq!(lab.server.writes(), ["patch services/status default/web"; 2]);
        lab.server.delete(SERVICES, WEB);
        running.at_rest().await;
        lab.is_empty();
        assert_eq!(
            lab.cloud.calls(),
            ["EnsureLoadBalancer default/web [a b]", "GetLoadBalancer default/web", "DeleteLoadBalancer default/web"]
        );
        seconds(&running, 5).await;
        for event in [
            "Normal EnsuringLoadBalancer: Ensuring load balancer",
            "Normal EnsuredLoadBalancer: Ensured load balancer",
            "Normal DeletingLoadBalancer: Deleting load balancer",
            "Normal DeletedLoadBalancer: Deleted load balancer",
        ] {
            lab.has_told(event);
        }
    });
}

#[test]
fn services_of_other_types_and_classes_are_left_alone() {
    test(async {
        let lab = Lab::new();
        lab.server.add(&service("NodePort"));
        lab.edit(|service| service["metadata"]["finalizers"] = json!(["example.com/other"]));
        let running = lab.start().await;
        lab.edit(|service| {
            service["spec"]["type"] = json!("LoadBalancer");
            service["spec"]["loadBalancerClass"] = json!("example.com/other");
        });
        running.at_rest().await;
        lab.server.change(NODES, "a", |node| node["spec"]["providerID"] = json!("another"));
        running.at_rest().await;
        assert_eq!((lab.cloud.calls(), lab.server.writes()), (Vec::new(), Vec::new()));
    });
}

#[test]
fn a_service_that_wants_no_load_balancer_any_more_is_released() {
    test(async {
        let lab = Lab::with_service();
        let running = lab.start().await;
        lab.edit(|service| service["metadata"]["finalizers"] = json!(["example.com/other", FINALIZER]));
        lab.set_type("ClusterIP");
        running.at_rest().await;
        assert_eq!(lab.balancers(), Vec::<String>::new());
        assert_eq!((lab.ingress(), lab.finalizers()), (Value::Null, json!(["example.com/other"])));
        lab.set_type("LoadBalancer");
        running.at_rest().await;
        assert_eq!((lab.balancers().len(), lab.ingress()), (1, json!([{ "ip": "192.0.2.2" }])));
    });
}

#[test]
fn an_edit_leads_to_an_ensure_and_a_changed_node_to_an_update() {
    test(async {
        let lab = Lab::with_service();
        let running = lab.start().await;
        lab.cloud.take_calls();
        lab.edit(|service| service["metadata"]["annotations"] = json!({ "a": "b" }));
        running.at_rest().await;
        assert_eq!(lab.cloud.take_calls(), ["EnsureLoadBalancer default/web [a b]"]);
        lab.server.add(&node("c"));
        running.at_rest().await;
        assert_eq!(lab.cloud.take_calls(), ["UpdateLoadBalancer default/web [a b c]"]);
        let excluded = "node.kubernetes.io/exclude-from-external-load-balancers";
        lab.server.change(NODES, "c", |node| node["metadata"]["labels"] = json!({ excluded: "" }));
        running.at_rest().await;
        assert_eq!(lab.cloud.take_calls(), ["UpdateLoadBalancer default/web [a b]"]);
        lab.server.change(NODES, "a", |node| node["status"]["conditions"] = json!([{ "type": "Ready" }]));
        running.at_rest().await;
        assert_eq!(lab.cloud.take_calls(), Vec::<String>::new());
        for name in ["a", "b"] {
            lab.server.delete(NODES, name);
        }
        running.at_rest().await;
        seconds(&running, 5).await;
        lab.has_told("Normal UpdatedLoadBalancer: Updated load balancer with new hosts");
        lab.has_told("Warning UnAvailableLoadBalancer: There are no available nodes for LoadBalancer");
    });
}

/// A life in which each kind of write happens.
async fn live(lab: &Lab) -> Running {
    let mut running = lab.start().await;
    let steps: [fn(&Lab); 5] = [
        |lab| lab.server.add(&service("LoadBalancer")),
        |lab| lab.set_type("ClusterIP"),
        |lab| lab.set_type("LoadBalancer"),
        |lab| lab.server.add(&node("c")),
        |lab| lab.edit(|service| service["spec"]["loadBalancerIP"] = json!("192.0.2.7")),
    ];
    for step in steps {
        step(lab);
        running.at_rest().await;
        if running.is_killed() {
            running = lab.start().await;
        }
    }
    running
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let whole = Lab::new();
        drop(live(&whole).await);
        let writes = whole.server.writes().len();
        assert_eq!(writes, 5, "{:?}", whole.server.writes());
        for n in 0..writes {
            let lab = Lab::new();
            lab.server.stop_after_writes(n);
            drop(live(&lab).await);
            assert_eq!(lab.balancers(), whole.balancers(), "killed before write {n}");
            assert_eq!(lab.finalizers(), whole.finalizers(), "killed before write {n}");
            assert_eq!(lab.created(), 2, "killed before write {n}");
        }
    });
}

#[test]
fn a_service_that_is_deleted_while_nobody_works_leaves_no_load_balancer() {
    test(async {
        // Killed before the finalizer, and between it and the addresses, where the load balancer exists.
        for n in 0..2 {
            let lab = Lab::with_service();
            lab.server.stop_after_writes(n);
            drop(lab.start().await);
            lab.server.delete(SERVICES, WEB);
            drop(lab.start().await);
            lab.is_empty();
        }
    });
}

#[test]
fn addresses_that_a_restore_of_etcd_took_are_written_again() {
    test(async {
        let lab = Lab::new();
        lab.server.add(&service("LoadBalancer").set(&["metadata", "finalizers"], json!([FINALIZER])));
        let backup = lab.server.back_up();
        let running = lab.start().await;
        lab.is_well();
        lab.server.restore(backup);
        running.start_over().await;
        running.at_rest().await;
        lab.is_well();
    });
}

#[test]
fn a_provider_that_asks_for_time_before_a_deletion_gets_it() {
    test(async {
        let lab = Lab::with_service();
        let running = lab.start().await;
        // Its Service goes without the finalizer.
        lab.edit(|service| service["metadata"]["finalizers"] = json!([]));
        let busy = CloudError::RetryAfter { after: Duration::from_secs(40), message: "busy".to_owned() };
        lab.cloud.on_next(Call::DeleteLoadBalancer, Fault::Fail(busy));
        lab.server.delete(SERVICES, WEB);
        seconds(&running, 39).await;
        assert_eq!(lab.balancers(), ["default/web a b"]);
        seconds(&running, 2).await;
        lab.is_empty();
    });
}

#[test]
fn a_lost_answer_of_the_provider_makes_no_second_load_balancer() {
    test(async {
        let lab = Lab::with_service();
        lab.cloud.on_next(Call::EnsureLoadBalancer, Fault::Lose);
        let running = lab.start().await;
        seconds(&running, 10).await;
        lab.is_well();
        lab.cloud.on_next(Call::DeleteLoadBalancer, Fault::Lose);
        lab.server.delete(SERVICES, WEB);
        running.at_rest().await;
        seconds(&running, 10).await;
        lab.is_empty();
    });
}

#[test]
fn a_lost_answer_of_the_apiserver_is_made_up_for() {
    test(async {
        for lost in 1..=2 {
            let lab = Lab::with_service();
            if lost == 2 {
                // The finalizer comes through, and the addresses are lost.
                lab.edit(|service| service["metadata"]["finalizers"] = json!([FINALIZER]));
            }
            lab.server.on("patch", STATUS).once().lose();
            let running = lab.start().await;
            seconds(&running, 10).await;
            lab.is_well();
        }
    });
}

#[test]
fn addresses_that_could_not_be_written_are_written_later() {
    test(async {
        let lab = Lab::with_service();
        lab.edit(|service| service["metadata"]["finalizers"] = json!([FINALIZER]));
        lab.server.on("patch", STATUS).once().answer(500, "InternalError", "no");
        let running = lab.start().await;
        seconds(&running, 10).await;
        lab.is_well();
    });
}

#[test]
fn nothing_is_created_before_the_finalizer_is_there() {
    test(async {
        let lab = Lab::with_service();
        lab.server.on("patch", STATUS).answer(403, "Forbidden", "no");
        let running = lab.begin();
        seconds(&running, 60).await;
        assert_eq!((lab.cloud.calls(), lab.created()), (Vec::new(), 0));
    });
}

/// Upstream: `TestProcessServiceCreateOrUpdateK8sError`.
#[test]
fn a_patch_that_meets_another_object_is_told_and_tried_again() {
    test(async {
        let lab = Lab::with_service();
        let patched = lab.server.on("patch", STATUS).once().hold();
        let running = lab.begin();
        patched.arrived().await;
        // Events of one instant would have one name.
        seconds(&running, 1).await;
        lab.server.delete(SERVICES, WEB);
        lab.server.add(&service("LoadBalancer").uid_of("another"));
        patched.release();
        seconds(&running, 20).await;
        lab.is_well();
        let events = lab.server.events();
        let told = "Warning SyncLoadBalancerFailed: Error syncing load balancer: failed to add load balancer cleanup \
                    finalizer: ";
        assert!(events.iter().any(|event| event.starts_with(told)), "{events:#?}");
    });
}

#[test]
fn a_provider_that_dies_in_the_middle_is_waited_for() {
    test(async {
        let lab = Lab::with_service();
        lab.cloud.on_next(Call::EnsureLoadBalancer, Fault::Delay(Duration::from_secs(30)));
        let running = lab.begin();
        seconds(&running, 10).await;
        lab.cloud.die();
        seconds(&running, 60).await;
        assert_eq!((lab.ingress(), lab.finalizers()), (Value::Null, json!([FINALIZER])));
        lab.cloud.revive();
        // The back-off is at most five minutes.
        seconds(&running, 310).await;
        lab.is_well();
        lab.cloud.die();
        lab.server.delete(SERVICES, WEB);
        seconds(&running, 600).await;
        assert_eq!(lab.finalizers(), json!([FINALIZER]));
        lab.cloud.revive();
        seconds(&running, 310).await;
        lab.is_empty();
    });
}

#[test]
fn upstreams_test_service_queue_delay() {
    test(async {
        let lab = Lab::with_service();
        // retry error
        let after = Duration::from_secs(42);
        let later = CloudError::RetryAfter { after, message: "LB create in progress".to_owned() };
        lab.cloud.on_next(Call::EnsureLoadBalancer, Fault::Fail(later));
        // regular error
        lab.cloud.on_next(Call::EnsureLoadBalancer, Fault::Fail(CloudError::Failed("something went wrong".to_owned())));
        let running = lab.start().await;
        let calls = || lab.cloud.calls().len();
        assert_eq!(calls(), 1);
        seconds(&running, 40).await;
        assert_eq!(calls(), 1);
        seconds(&running, 3).await;
        assert_eq!(calls(), 2);
        seconds(&running, 6).await;
        // processing successful
        assert_eq!(calls(), 3);
        lab.is_well();
        let failed = "Warning SyncLoadBalancerFailed: Error syncing load balancer: failed to ensure load balancer: ";
        lab.has_told(&format!("{failed}LB create in progress"));
        lab.has_told(&format!("{failed}something went wrong"));
    });
}

#[test]
fn a_load_balancer_that_cannot_be_updated_is_ensured() {
    test(async {
        let lab = Lab::with_service();
        let running = lab.start().await;
        lab.cloud.take_calls();
        lab.cloud.on_next(Call::UpdateLoadBalancer, Fault::Fail(CloudError::Failed("no".to_owned())));
        lab.server.add(&node("c"));
        seconds(&running, 10).await;
        let calls = ["UpdateLoadBalancer default/web [a b c]", "GetLoadBalancer default/web"];
        assert_eq!(lab.cloud.take_calls(), [&calls[..], &["EnsureLoadBalancer default/web [a b c]"]].concat());
        lab.has_told(
            "Warning UpdateLoadBalancerFailed: Error updating load balancer with new hosts [a b c] [node names limited, \
             total number of nodes: 3], error: no",
        );
    });
}

#[test]
fn a_load_balancer_that_is_missing_at_an_update_is_made_again() {
    test(async {
        let lab = Lab::with_service();
        let running = lab.start().await;
        lab.cloud.world(|world| world.balancers.clear());
        lab.server.add(&node("c"));
        running.at_rest().await;
        assert_eq!(lab.balancers(), ["default/web a b c"]);
    });
}

#[test]
fn what_somebody_else_implements_is_left_to_them() {
    test(async {
        let lab = Lab::with_service();
        for call in [Call::EnsureLoadBalancer, Call::UpdateLoadBalancer, Call::DeleteLoadBalancer] {
            lab.cloud.on_each(call, Fault::Fail(CloudError::ImplementedElsewhere));
        }
        let running = lab.start().await;
        assert_eq!((lab.ingress(), lab.finalizers()), (Value::Null, json!([FINALIZER])));
        lab.server.add(&node("c"));
        running.at_rest().await;
        lab.server.delete(SERVICES, WEB);
        running.at_rest().await;
        lab.is_empty();
        let events = lab.server.events();
        assert!(!events.iter().any(|event| event.starts_with("Warning")), "{events:#?}");
    });
}

#[test]
fn a_provider_without_load_balancers_is_asked_each_minute_and_why_says_so() {
    test(async {
        let lab = Lab::with_service();
        lab.cloud.set_info(|info| info.load_balancers = false);
        let running = lab.start().await;
        assert_eq!((lab.cloud.calls(), lab.server.writes()), (Vec::new(), Vec::new()));
        assert_eq!(running.now(PATH), ["wait (the cloud provider testing has no load balancers)"]);
        lab.cloud.set_info(|info| info.load_balancers = true);
        seconds(&running, 59).await;
        assert_eq!(lab.created(), 0);
        seconds(&running, 2).await;
        lab.is_well();
        assert_eq!(running.now(PATH), ["nothing (its load balancer is up to date)"]);
    });
}

#[test]
fn a_provider_that_answers_yesterdays_state_leaves_no_load_balancer_behind() {
    test(async {
        let lab = Lab::with_service();
        lab.cloud.fall_asleep();
        let running = lab.start().await;
        lab.is_well();
        // It says that there is no load balancer.
        lab.server.delete(SERVICES, WEB);
        running.at_rest().await;
        lab.is_empty();
    });
}

#[test]
fn a_service_that_lost_its_finalizer_and_is_gone_leaves_no_load_balancer() {
    test(async {
        let lab = Lab::with_service();
        let running = lab.start().await;
        let held = lab.server.on("patch", STATUS).hold();
        lab.edit(|service| service["metadata"]["finalizers"] = json!([]));
        held.arrived().await;
        lab.server.delete(SERVICES, WEB);
        held.release();
        running.at_rest().await;
        lab.is_empty();
    });
}

#[test]
fn a_successor_of_the_same_name_gets_a_load_balancer_of_its_own() {
    test(async {
        let lab = Lab::with_service();
        let running = lab.start().await;
        lab.server.hold_watches(SERVICES);
        lab.edit(|service| service["metadata"]["finalizers"] = json!([]));
        lab.server.delete(SERVICES, WEB);
        lab.server.add(&service("LoadBalancer").uid_of("another"));
        lab.server.release_watches(SERVICES);
        running.at_rest().await;
        assert_eq!((lab.balancers(), lab.created()), (vec!["default/web a b".to_owned()], 2));
        assert_eq!(lab.ingress(), json!([{ "ip": "192.0.2.2" }]));
    });
}

/// Upstream's cache, whose other cases are of its own lists, is the memory of what was told here.
#[test]
fn upstreams_test_process_service_deletion() {
    test(async {
        let lab = Lab::with_service();
        let running = lab.start().await;
        // If cloudprovided failed to delete the service
        let error = CloudError::Failed("error Deleting the Loadbalancer".to_owned());
        lab.cloud.on_next(Call::DeleteLoadBalancer, Fault::Fail(error));
        // Its finalizer and itself go at once, so that only the deletion is seen.
        lab.server.hold_watches(SERVICES);
        lab.edit(|service| service["metadata"]["finalizers"] = json!([]));
        lab.server.delete(SERVICES, WEB);
        lab.server.expire_watches(SERVICES);
        lab.server.release_watches(SERVICES);
        running.at_rest().await;
        seconds(&running, 10).await;
        // If delete was successful
        lab.is_empty();
        lab.has_told("Warning DeleteLoadBalancerFailed: Error deleting load balancer: error Deleting the Loadbalancer");
        // If a non-existent service is deleted
        lab.cloud.take_calls();
        lab.server.add(&service("ClusterIP"));
        lab.server.delete(SERVICES, WEB);
        running.at_rest().await;
        assert_eq!(lab.cloud.calls(), Vec::<String>::new());
    });
}

#[test]
fn upstreams_test_slow_node_sync() {
    test(async {
        let lab = Lab::with_service();
        lab.server.add(&object("v1", "Service", "second").set(&["spec", "type"], "LoadBalancer"));
        let running = lab.start().await;
        lab.cloud.take_calls();
        lab.cloud.on_each(Call::UpdateLoadBalancer, Fault::Delay(Duration::from_secs(5)));
        lab.server.add(&node("c"));
        seconds(&running, 1).await;
        // A node comes while the first Service is updated; the second one gets both.
        lab.server.add(&node("d"));
        running.at_rest().await;
        let expected = ["default/second a b c d", "default/web a b c d"].map(str::to_owned);
        assert_eq!(BTreeSet::from_iter(lab.balancers()), BTreeSet::from(expected));
        let calls = lab.cloud.calls();
        let count = |nodes: &str| calls.iter().filter(|call| call.ends_with(nodes)).count();
        assert_eq!((count("[a b c]"), count("[a b c d]")), (1, 2), "{calls:?}");
    });
}

#[test]
fn upstreams_test_node_changes_in_external_load_balancer() {
    test(async {
        let lab = Lab::new();
        for name in ["a", "b"] {
            lab.server.delete(NODES, name);
        }
        for name in ["s0", "s1", "s3", "s4"] {
            lab.server.add(&object("v1", "Service", name).set(&["spec", "type"], "LoadBalancer"));
        }
        let running = lab.start().await;
        // only 1 node; 2 nodes; 4 nodes
        for (more, all) in [(&["1"][..], "1"), (&["2"], "1 2"), (&["3", "4"], "1 2 3 4")] {
            for name in more {
                lab.server.add(&node(name));
            }
            running.at_rest().await;
            let expected = ["s0", "s1", "s3", "s4"].map(|name| format!("default/{name} {all}"));
            assert_eq!(BTreeSet::from_iter(lab.balancers()), BTreeSet::from(expected));
        }
        // error occur during sync
        lab.cloud.on_each(Call::UpdateLoadBalancer, Fault::Fail(CloudError::Failed("random error".to_owned())));
        lab.cloud.take_calls();
        lab.server.delete(NODES, "4");
        seconds(&running, 20).await;
        let ensured = lab.cloud.calls().iter().filter(|call| call.starts_with("Ensure")).count();
        assert_eq!(ensured, 4, "{:?}", lab.cloud.calls());
    });
}

#[test]
fn two_leaders_make_one_load_balancer() {
    test(async {
        let lab = Lab::with_service();
        lab.cloud.on_each(Call::EnsureLoadBalancer, Fault::Delay(Duration::from_secs(3)));
        let (first, second) = (lab.begin(), lab.begin());
        first.at_rest().await;
        second.at_rest().await;
        lab.is_well();
        lab.server.delete(SERVICES, WEB);
        first.at_rest().await;
        second.at_rest().await;
        lab.is_empty();
    });
}

#[test]
fn a_shadow_asks_the_provider_and_changes_nothing() {
    test(async {
        let lab = Lab::with_service();
        let running = lab.start().await;
        drop(running);
        lab.cloud.take_calls();
        let writes = lab.server.writes();
        let shadow = start_at_rest::<ServiceLbOperator>(&lab.server, &[&lab.cloud.flag(), "--mode=shadow"]).await;
        lab.server.add(&node("c"));
        seconds(&shadow, 120).await;
        let report = shadow.shadow_report().unwrap();
        assert!(report.differences.is_empty(), "{:?}", report.differences);
        lab.server.add(&object("v1", "Service", "new").set(&["spec", "type"], "LoadBalancer"));
        seconds(&shadow, 120).await;
        assert_eq!(lab.server.writes(), writes);
        let calls = lab.cloud.calls();
        assert!(calls.iter().all(|call| call.starts_with("Get")), "{calls:?}");
        assert_eq!(shadow.shadow_report().unwrap().differences.len(), 1);
    });
}

#[test]
fn the_flags_are_upstreams_and_the_endpoint_is_required() {
    use clap::{Args, Command, FromArgMatches};
    use service_lb_operator::flags::Flags;
    let parse = |flags: &[&str]| {
        let program = std::iter::once("operator").chain(flags.iter().copied());
        let matches = Flags::augment_args(Command::new("operator")).try_get_matches_from(program).unwrap();
        Flags::from_arg_matches(&matches)
    };
    let error = parse(&[]).unwrap_err().to_string();
    assert!(error.contains("--cloud-provider-endpoint is required"), "{error}");
    let flags = parse(&["--cloud-provider-endpoint=unix:///a.sock"]).unwrap();
    assert_eq!((flags.concurrent_service_syncs, &*flags.cluster.cluster_name), (1, "kubernetes"));
}
