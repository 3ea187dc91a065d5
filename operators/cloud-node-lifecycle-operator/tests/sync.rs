//! The operator as it is, between an apiserver and a cloud in the test's process.

use std::time::Duration;

use cloud::CloudError;
use cloud::testing::{Call, Cloud, Fault, Instance};
use cloud_node_lifecycle_operator::controller::CloudNodeLifecycleOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, object};

const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// A node whose condition Ready has this status.
fn node(name: &str, ready: &str) -> ObjectBuilder {
    let condition = json!({ "type": "Ready", "status": ready });
    object("v1", "Node", name).namespace("").set(&["status", "conditions"], json!([condition]))
}

fn with_id(node: ObjectBuilder, id: &str) -> ObjectBuilder {
    node.set(&["spec", "providerID"], id)
}

fn tainted(node: ObjectBuilder) -> ObjectBuilder {
    node.set(&["spec", "taints"], json!([{ "key": SHUTDOWN, "effect": "NoSchedule" }]))
}

fn set_ready(server: &Server, name: &str, ready: &str) {
    server.change("nodes", name, |node| node["status"]["conditions"][0]["status"] = ready.into());
}

/// Instances that run, named after their nodes.
fn cloud(names: &[&str]) -> Cloud {
    let cloud = Cloud::new();
    cloud.world(|world| names.iter().for_each(|name| drop(world.instances.insert((*name).to_owned(), running()))));
    cloud
}

fn running() -> Instance {
    Instance::default()
}

fn shut_down() -> Instance {
    Instance { is_shutdown: true, ..Instance::default() }
}

fn start(server: &Server, cloud: &Cloud) -> Running {
    Running::start::<CloudNodeLifecycleOperator>(server, &[&cloud.flag()])
}

/// What has become of a node.
fn fate(server: &Server, name: &str) -> &'static str {
    let Some(node) = server.get("nodes", name) else { return "deleted" };
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    if taints == [json!({ "key": SHUTDOWN, "effect": "NoSchedule" })] { "tainted" } else { "kept" }
}

fn fail(call: Call, error: CloudError) -> impl Fn(&Cloud) {
    move |cloud| cloud.on_each(call, Fault::Fail(error.clone()))
}

fn with(instance: Instance) -> impl Fn(&Cloud) {
    move |cloud| cloud.world(|world| drop(world.instances.insert("node0".to_owned(), instance.clone())))
}

fn nothing(_: &Cloud) {}

/// The node is alone, and the provider is asked twice.
async fn row(name: &str, node: &ObjectBuilder, prepare: &dyn Fn(&Cloud), expected: &str) {
    let (server, cloud) = (Server::new(), Cloud::new());
    prepare(&cloud);
    server.add(node);
    let running = start(&server, &cloud);
    running.pass(Duration::from_secs(6)).await;
    assert_eq!(fate(&server, "node0"), expected, "{name}");
}

/// Upstream: `Test_NodesDeleted`. Its rows for Instances and for InstancesV2 are the same calls of a provider.
#[test]
fn a_node_is_deleted_if_it_is_not_ready_and_does_not_exist() {
    test(async {
        let of = |ready| node("node0", ready);
        let with_id = |ready| with_id(node("node0", ready), "node0");
        let failing = fail(Call::InstanceExists, CloudError::Failed("err!".to_owned()));
        let exists = with(Instance { provider_id: "node0".to_owned(), ..running() });
        for kind in ["", "[instancev2] "] {
            let row = async |name: &str, node: &ObjectBuilder, prepare: &dyn Fn(&Cloud), expected: &str| {
                row(&format!("{kind}{name}"), node, prepare, expected).await;
            };
            row("node is not ready and does not exist", &of("False"), &nothing, "deleted").await;
            row("node is not ready and provider returns err", &with_id("False"), &failing, "kept").await;
            row("node is not ready but still exists", &with_id("False"), &exists, "kept").await;
            row("node ready condition is unknown, node doesn't exist", &of("Unknown"), &nothing, "deleted").await;
            row("node ready condition is unknown, node exists", &of("Unknown"), &exists, "kept").await;
            row("node is ready, but provider said it is deleted", &with_id("True"), &nothing, "kept").await;
        }
    });
}

/// Upstream: `Test_NodesShutdown`.
#[test]
fn a_node_is_tainted_if_it_is_not_ready_and_its_instance_is_shut_down() {
    test(async {
        let of = |ready| node("node0", ready);
        let with_id = |ready| with_id(node("node0", ready), "node0");
        let failed = || CloudError::Failed("err!".to_owned());
        let is_shut_down = with(Instance { provider_id: "node0".to_owned(), ..shut_down() });
        let failing = fail(Call::InstanceExists, failed());
        let not_found = fail(Call::InstanceExists, CloudError::InstanceNotFound);
        let shutdown_fails = fail(Call::InstanceIsShutdown, failed());
        row("node is not ready and was shutdown, but exists", &with_id("False"), &is_shut_down, "tainted").await;
        row(
            "node with empty spec providerID is not ready and was shutdown, but exists",
            &of("False"),
            &is_shut_down,
            "tainted",
        )
        .await;
        row(
            "node with non-existing providerID (missing in cloud provider) gets deleted",
            &of("False"),
            &nothing,
            "deleted",
        )
        .await;
        row("node with error when getting providerID does not have shutdown taint", &of("False"), &failing, "kept")
            .await;
        row("node with InstanceID returning InstanceNotFound gets deleted", &of("False"), &not_found, "deleted").await;
        row(
            "node is not ready, but there is error checking if node is shutdown",
            &of("False"),
            &shutdown_fails,
            "deleted",
        )
        .await;
        row("node is not ready and is not shutdown", &of("False"), &nothing, "deleted").await;
        row(
            "node is ready but provider says it's shutdown (maybe a bug by provider)",
            &of("True"),
            &is_shut_down,
            "kept",
        )
        .await;
        row("node is shutdown but provider says it does not exist", &of("Unknown"), &nothing, "deleted").await;
        // Beyond upstream's rows: the same errors for an instance that exists.
        let fails_but_exists = |cloud: &Cloud| {
            with(running())(cloud);
            shutdown_fails(cloud);
        };
        row("error of an existing instance", &of("False"), &fails_but_exists, "kept").await;
        let not_supported = |cloud: &Cloud| {
            with(shut_down())(cloud);
            fail(Call::InstanceIsShutdown, CloudError::NotSupported)(cloud);
        };
        row("a cloud that shuts nothing down", &of("False"), &not_supported, "kept").await;
    });
}

/// Upstream: `Test_GetProviderID`. Here the provider gets the node, and finds its instance by the ID or the name.
#[test]
fn a_provider_finds_a_node_by_its_id_or_else_by_its_name() {
    test(async {
        let of = || node("node0", "False");
        let id = "fake://12345";
        let elsewhere = |cloud: &Cloud| {
            let instance = Instance { provider_id: id.to_owned(), ..running() };
            cloud.world(|world| drop(world.instances.insert("other".to_owned(), instance)));
        };
        let named = with(Instance { provider_id: id.to_owned(), ..running() });
        row("node initialized with provider ID", &with_id(of(), id), &elsewhere, "kept").await;
        row("node initialized with provider ID with InstancesV2", &with_id(of(), id), &elsewhere, "kept").await;
        row("cloud implemented with Instances", &of(), &named, "kept").await;
        row("cloud implemented with InstancesV2", &of(), &named, "kept").await;
        row("cloud implemented with InstancesV2 (without providerID)", &of(), &with(running()), "kept").await;
        let missing = fail(Call::InstanceExists, CloudError::InstanceNotFound);
        row("cloud implemented with Instances with instance missing", &of(), &missing, "deleted").await;
        let unknown = fail(Call::InstanceExists, CloudError::Failed("unknown error".to_owned()));
        row("cloud implemented with Instances with unknown error", &of(), &unknown, "kept").await;
    });
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let cloud = cloud(&["well", "stopped", "started"]);
        cloud.world(|world| drop(world.instances.insert("stopped".to_owned(), shut_down())));
        let life = [
            Do(|server| {
                server.add(&node("well", "True"));
                server.add(&node("stopped", "Unknown"));
                server.add(&tainted(node("started", "True")));
                server.add(&node("gone", "Unknown"));
            }),
            Pass(Duration::from_secs(30)),
            Do(|server| set_ready(server, "stopped", "True")),
            Pass(Duration::from_secs(30)),
        ];
        let server = survives_kills::<CloudNodeLifecycleOperator>(&[&cloud.flag()], &life).await;
        let fates = ["well", "stopped", "started", "gone"].map(|name| fate(&server, name));
        assert_eq!(fates, ["kept", "kept", "kept", "deleted"]);
        let events = server.events();
        let expected = "Normal DeletingNode: Deleting node gone because it does not exist in the cloud provider";
        assert_eq!(events, [expected]);
        let mut writes = server.writes();
        writes.retain(|write| !write.contains("events"));
        writes.sort();
        let patches = ["patch nodes started", "patch nodes stopped", "patch nodes stopped"];
        assert_eq!(writes, [&["delete nodes gone"][..], &patches].concat());
    });
}

#[test]
fn a_provider_that_suddenly_knows_no_node_deletes_none() {
    test(async {
        let (server, cloud) = (Server::new(), cloud(&["a", "b", "c"]));
        for name in ["a", "b", "c"] {
            server.add(&node(name, "Unknown"));
        }
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(60)).await;
        let instances = cloud.world(|world| std::mem::take(&mut world.instances));
        running.pass(Duration::from_secs(600)).await;
        assert_eq!(["a", "b", "c"].map(|name| fate(&server, name)), ["kept"; 3]);
        let last = running.last("/api/v1/nodes/a");
        assert!(last.last().is_some_and(|stage| stage.ends_with("nor any of 2 other nodes)")), "{last:?}");

        // It has its view of the cluster again, in which one node is missing.
        cloud.world(|world| {
            world.instances = instances;
            world.instances.remove("b");
        });
        running.pass(Duration::from_secs(15)).await;
        assert_eq!(["a", "b", "c"].map(|name| fate(&server, name)), ["kept", "deleted", "kept"]);
    });
}

#[test]
fn a_node_that_the_provider_knows_again_when_it_knows_others_stays() {
    test(async {
        let (server, cloud) = (Server::new(), cloud(&["node0", "other"]));
        server.add(&node("other", "True"));
        server.add(&node("node0", "Unknown"));
        for _ in 0..2 {
            cloud.on_next(Call::InstanceExists, Fault::Fail(CloudError::InstanceNotFound));
        }
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(6)).await;
        assert_eq!((cloud.calls().len(), fate(&server, "node0")), (5, "kept"), "{:?}", cloud.calls());
    });
}

#[test]
fn a_ready_node_that_the_provider_does_not_know_shows_that_its_view_is_wrong() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        server.add(&node("ready", "True"));
        server.add(&node("lost", "Unknown"));
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(600)).await;
        assert_eq!(fate(&server, "lost"), "kept");
        // The switch for who knows better.
        drop(running);
        let flag = cloud.flag();
        let flags = [flag.as_str(), "--mass-deletion-share=0"];
        let running = Running::start::<CloudNodeLifecycleOperator>(&server, &flags);
        running.pass(Duration::from_secs(6)).await;
        assert_eq!([fate(&server, "lost"), fate(&server, "ready")], ["deleted", "kept"]);
    });
}

#[test]
fn many_nodes_that_are_gone_go_slowly() {
    test(async {
        let (server, cloud) = (Server::new(), cloud(&["ready"]));
        server.add(&node("ready", "True"));
        for number in 0..30 {
            server.add(&node(&format!("gone-{number:02}"), "Unknown"));
        }
        let flag = cloud.flag();
        let flags = [flag.as_str(), "--mass-deletion-share=0.1"];
        let running = Running::start::<CloudNodeLifecycleOperator>(&server, &flags);
        running.pass(Duration::from_secs(20)).await;
        assert_eq!(server.count("delete nodes"), 10);
        running.pass(Duration::from_secs(300)).await;
        let deleted = server.count("delete nodes");
        assert!((14..=17).contains(&deleted), "{deleted}");
        assert!(server.events().iter().any(|event| event.starts_with("Warning MassDeletionSlowed")));
    });
}

#[test]
fn a_provider_that_dies_deletes_nothing_and_goes_on_where_it_was() {
    test(async {
        let (server, cloud) = (Server::new(), cloud(&["other"]));
        server.add(&node("other", "True"));
        server.add(&node("gone", "Unknown"));
        cloud.die();
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(600)).await;
        assert_eq!(server.writes(), [""; 0]);
        let why = running.why("/api/v1/nodes/gone");
        let error = why.keys.first().and_then(|key| key.last.first()).and_then(|decision| decision.error.clone());
        assert!(error.as_deref().is_some_and(|error| error.starts_with("cannot ask the cloud provider")), "{why}");
        cloud.revive();
        running.pass(Duration::from_secs(60)).await;
        assert_eq!(fate(&server, "gone"), "deleted");
    });
}

#[test]
fn a_lost_answer_is_no_answer() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        server.add(&node("gone", "Unknown"));
        cloud.on_next(Call::InstanceExists, Fault::Lose);
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(8)).await;
        assert_eq!((cloud.calls().len(), fate(&server, "gone")), (2, "kept"));
        running.pass(Duration::from_secs(5)).await;
        assert_eq!(fate(&server, "gone"), "deleted");
    });
}

#[test]
fn a_node_that_is_known_or_ready_in_between_has_to_be_missed_twice_again() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        server.add(&node("node0", "Unknown"));
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(1)).await;
        with(self::running())(&cloud);
        running.pass(Duration::from_secs(5)).await;
        cloud.world(|world| world.instances.clear());
        running.pass(Duration::from_secs(5)).await;
        assert_eq!((cloud.calls().len(), fate(&server, "node0")), (4, "kept"));
        set_ready(&server, "node0", "True");
        running.at_rest().await;
        set_ready(&server, "node0", "False");
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(fate(&server, "node0"), "kept");
        running.pass(Duration::from_secs(5)).await;
        assert_eq!(fate(&server, "node0"), "deleted");
    });
}

#[test]
fn a_node_whose_kubelet_comes_back_at_the_last_moment_stays() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        server.add(&node("node0", "Unknown"));
        let held = server.on("delete", "nodes").once().hold();
        let running = start(&server, &cloud);
        held.arrived().await;
        // Two events of one moment would have one name.
        running.pass(Duration::from_secs(1)).await;
        set_ready(&server, "node0", "True");
        held.release();
        running.pass(Duration::from_secs(60)).await;
        assert_eq!((server.count("delete nodes"), fate(&server, "node0")), (1, "kept"));
        let events = server.events();
        let failed = "Warning DeletingNodeFailed: Failed deleting node node0: ";
        assert!(events.iter().any(|event| event.starts_with(failed)), "{events:?}");
    });
}

#[test]
fn a_node_of_the_same_name_is_another_node() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        server.add(&node("node0", "Unknown"));
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(4)).await;
        server.delete("nodes", "node0");
        server.add(&node("node0", "Unknown").uid_of("another"));
        running.pass(Duration::from_secs(4)).await;
        assert_eq!(fate(&server, "node0"), "kept");
        running.pass(Duration::from_secs(4)).await;
        assert_eq!(fate(&server, "node0"), "deleted");
    });
}

#[test]
fn a_provider_is_asked_when_it_wants_to_be_and_each_minute_if_it_knows_no_instances() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        server.add(&node("node0", "Unknown"));
        let (after, message) = (Duration::from_secs(90), "quota".to_owned());
        cloud.on_next(Call::InstanceExists, Fault::Fail(CloudError::RetryAfter { after, message }));
        cloud.on_next(Call::InstanceExists, Fault::Fail(CloudError::NotSupported));
        let running = start(&server, &cloud);
        for (seconds, calls) in [(89, 1), (2, 2), (58, 2), (2, 3)] {
            running.pass(Duration::from_secs(seconds)).await;
            assert_eq!(cloud.calls().len(), calls);
        }
        assert_eq!(fate(&server, "node0"), "kept");
        running.pass(Duration::from_secs(5)).await;
        assert_eq!(fate(&server, "node0"), "deleted");
    });
}

#[test]
fn heartbeats_of_a_node_that_is_not_ready_lead_to_no_question() {
    test(async {
        let (server, cloud) = (Server::new(), cloud(&["node0"]));
        server.add(&node("node0", "False"));
        let running = start(&server, &cloud);
        for beat in 0..12 {
            server.change("nodes", "node0", |node| node["status"]["beats"] = Value::from(beat));
            running.pass(Duration::from_secs(1)).await;
        }
        assert_eq!(cloud.calls().iter().filter(|call| call.starts_with("InstanceExists")).count(), 3);
    });
}

#[test]
fn why_says_what_the_provider_said() {
    test(async {
        let (server, cloud) = (Server::new(), cloud(&["stopped"]));
        cloud.world(|world| drop(world.instances.insert("stopped".to_owned(), shut_down())));
        server.add(&node("stopped", "Unknown"));
        server.add(&node("well", "True"));
        let running = start(&server, &cloud);
        running.at_rest().await;
        assert_eq!(
            running.last("/api/v1/nodes/stopped"),
            ["ask whether its instance exists (unknown)", "keep (unknown, its instance is shut down)"]
        );
        assert_eq!(running.now("/api/v1/nodes/stopped"), ["ask whether its instance exists (unknown)"]);
        assert_eq!(running.now("/api/v1/nodes/well"), ["keep (ready)"]);
        let why = running.why("/api/v1/nodes/stopped");
        let [key] = &why.keys[..] else { panic!("{why}") };
        assert_eq!(key.now[0].reason, json!({ "notReady": { "ready": "unknown" } }));
    });
}
