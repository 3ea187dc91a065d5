//! The operator as it is, between an apiserver and a cloud in the test's process.

use std::collections::BTreeMap;
use std::time::Duration;

use cloud::testing::{Call, Cloud, Fault, Instance};
use cloud::{CloudError, InstanceMetadata, NodeAddress};
use cloud_node_operator::controller::CloudNodeOperator;
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, object};
use tokio::time::Instant;

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const PROVIDED_IP: &str = "alpha.kubernetes.io/provided-node-ip";

const ALL: [&str; 3] = ["Hostname=node0.cloud.internal", "InternalIP=10.0.0.1", "ExternalIP=132.143.154.163"];
const IPS: [&str; 2] = ["InternalIP=10.0.0.1", "ExternalIP=132.143.154.163"];

/// A node without a taint.
fn plain(name: &str) -> ObjectBuilder {
    object("v1", "Node", name).namespace("")
}

/// The taint of a kubelet that leaves the rest to a cloud, after others.
fn tainted(node: ObjectBuilder, others: &[Value]) -> ObjectBuilder {
    let ours = json!({ "key": UNINITIALIZED, "value": "true", "effect": "NoSchedule" });
    node.set(&["spec", "taints"], [others, &[ours]].concat())
}

fn node(name: &str) -> ObjectBuilder {
    tainted(plain(name), &[])
}

fn coverage() -> Value {
    json!({ "key": "ImproveCoverageTaint", "value": "true", "effect": "NoSchedule" })
}

/// `node0` with another taint.
fn covered() -> ObjectBuilder {
    tainted(plain("node0"), &[coverage()])
}

fn with_id(node: ObjectBuilder, id: &str) -> ObjectBuilder {
    node.set(&["spec", "providerID"], id)
}

fn addressed(node: ObjectBuilder, texts: &[&str]) -> ObjectBuilder {
    node.set(&["status", "addresses"], serde_json::to_value(addresses(texts)).unwrap_or_default())
}

/// `InternalIP=10.0.0.1`.
fn addresses(texts: &[&str]) -> Vec<NodeAddress> {
    let pairs = texts.iter().filter_map(|text| text.split_once('='));
    pairs.map(|(type_, address)| NodeAddress { type_: type_.to_owned(), address: address.to_owned() }).collect()
}

/// An instance whose provider ID is told.
fn instance(id: &str, texts: &[&str]) -> Instance {
    let metadata = InstanceMetadata {
        provider_id: id.to_owned(),
        node_addresses: addresses(texts),
        ..InstanceMetadata::default()
    };
    Instance { provider_id: id.to_owned(), is_shutdown: false, metadata: Some(metadata) }
}

fn changed(mut instance: Instance, change: impl FnOnce(&mut InstanceMetadata)) -> Instance {
    instance.metadata = instance.metadata.map(|mut metadata| {
        change(&mut metadata);
        metadata
    });
    instance
}

fn add(cloud: &Cloud, name: &str, instance: Instance) {
    cloud.world(|world| drop(world.instances.insert(name.to_owned(), instance)));
}

fn start(server: &Server, cloud: &Cloud) -> Running {
    Running::start::<CloudNodeOperator>(server, &[&cloud.flag()])
}

/// The addresses of a node, as `InternalIP=10.0.0.1`.
fn addresses_of(server: &Server, name: &str) -> Vec<String> {
    let node = server.get("nodes", name).unwrap_or_default();
    let found: Vec<NodeAddress> = serde_json::from_value(node["status"]["addresses"].clone()).unwrap_or_default();
    found.iter().map(|NodeAddress { type_, address }| format!("{type_}={address}")).collect()
}

fn is_tainted(server: &Server, name: &str) -> bool {
    let node = server.get("nodes", name).unwrap_or_default();
    node["spec"]["taints"].as_array().is_some_and(|taints| taints.iter().any(|taint| taint["key"] == UNINITIALIZED))
}

/// What a node has become, as far as this controller writes it.
fn outcome(server: &Server) -> Value {
    let node = server.get("nodes", "node0").unwrap_or_default();
    let taints: Vec<&Value> =
        node["spec"]["taints"].as_array().into_iter().flatten().map(|taint| &taint["key"]).collect();
    json!({
        "providerID": node["spec"]["providerID"],
        "taints": taints,
        "labels": node["metadata"]["labels"],
        "addresses": addresses_of(server, "node0"),
    })
}

/// Starts with a node and its instance, and compares what becomes of the node. Gives the server.
async fn row(name: &str, node: &ObjectBuilder, prepare: &dyn Fn(&Cloud), expected: Value) -> Server {
    let (server, cloud) = (Server::new(), Cloud::new());
    prepare(&cloud);
    server.add(node);
    let running = start(&server, &cloud);
    running.pass(Duration::from_secs(60)).await;
    assert_eq!(outcome(&server), expected, "{name}");
    let is_synced = server.events().iter().any(|event| event == "Normal Synced: Node synced successfully");
    let is_changed = server.writes().iter().any(|write| write.starts_with("patch nodes node0"));
    assert_eq!(is_synced, is_changed, "{name}");
    server
}

fn with(instance: Instance) -> impl Fn(&Cloud) {
    move |cloud| add(cloud, "node0", instance.clone())
}

fn done(id: &str, taints: &[&str], labels: &Value, addresses: &[&str]) -> Value {
    json!({ "providerID": id, "taints": taints, "labels": labels, "addresses": addresses })
}

fn zone_labels() -> Value {
    json!({
        "failure-domain.beta.kubernetes.io/region": "us-west",
        "failure-domain.beta.kubernetes.io/zone": "us-west-1a",
        "topology.kubernetes.io/region": "us-west",
        "topology.kubernetes.io/zone": "us-west-1a",
    })
}

fn in_zone(instance: Instance) -> Instance {
    changed(instance, |metadata| {
        "us-west-1a".clone_into(&mut metadata.zone);
        "us-west".clone_into(&mut metadata.region);
    })
}

fn labelled(instance: Instance, labels: &[(&str, &str)]) -> Instance {
    let labels: BTreeMap<String, String> =
        labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect();
    changed(instance, |metadata| metadata.additional_labels = labels)
}

/// Upstream: the rows of `Test_syncNode` that are there for Instances and for InstancesV2, which are one here.
#[test]
fn a_node_is_initialized_by_what_the_cloud_knows_about_its_instance() {
    test(async {
        let (fake, none) = ("fake://12345", Value::Null);
        let fake_instance = || with(instance(fake, &ALL));
        let own = || addressed(node("node0"), &["Hostname=nodeoverriden"]);
        let cover: &[&str] = &["ImproveCoverageTaint"];
        row("node initialized with hostname", &own(), &fake_instance(), done(fake, &[], &none, &ALL)).await;
        let kept = [&IPS[..], &["Hostname=nodeoverriden"]].concat();
        let nameless = with(instance(fake, &IPS));
        row(
            "node initialized with hostname and cloud provider missing hostname",
            &own(),
            &nameless,
            done(fake, &[], &none, &kept),
        )
        .await;
        for kind in ["", "[instanceV2] "] {
            let named = |name: &str| format!("{kind}{name}");
            let expected = done(fake, &[], &none, &ALL);
            row(&named("node initialized with provider ID"), &node("node0"), &fake_instance(), expected).await;
            let ignored = json!({ "providerID": null, "taints": [], "labels": null, "addresses": ALL });
            let writes = row(&named("node ignored"), &plain("node0"), &fake_instance(), ignored).await.writes();
            // Only its addresses, which is no part of upstream's row.
            assert_eq!(writes, ["patch nodes/status node0"]);
            let zoned = with(in_zone(instance("aws://12345", &ALL)));
            let expected = done("aws://12345", &[], &zone_labels(), &ALL);
            row(&named("zone/region topology labels added"), &node("node0"), &zoned, expected).await;
            let expected = done(fake, cover, &none, &ALL);
            row(&named("node addresses"), &covered(), &fake_instance(), expected).await;
            let id = "node0.aws.12345";
            let provided = addressed(with_id(covered(), id), &["Hostname=node0.cloud.internal"])
                .annotation(PROVIDED_IP, "10.0.0.1");
            let expected = done(id, cover, &none, &[&IPS[..], &["Hostname=node0.cloud.internal"]].concat());
            row(&named("provided node IP address"), &provided, &with(instance(id, &IPS)), expected).await;
            let id = "test-provider-id";
            let expected = done(id, cover, &none, &ALL);
            row(&named("provider ID already set"), &with_id(covered(), id), &with(instance(id, &ALL)), expected).await;
        }
        let typed = with(changed(instance(fake, &[]), |metadata| metadata.instance_type = "t1.micro".to_owned()));
        let labels =
            json!({ "beta.kubernetes.io/instance-type": "t1.micro", "node.kubernetes.io/instance-type": "t1.micro" });
        row("an instance type, beyond upstream's rows", &node("node0"), &typed, done(fake, &[], &labels, &[])).await;
    });
}

/// Upstream: the rows of `Test_syncNode` about additional labels.
#[test]
fn a_node_gets_the_labels_of_its_provider() {
    test(async {
        let id = "node0.cp.12345";
        let existing = || {
            addressed(with_id(covered(), id), &["Hostname=node0.cloud.internal"]).annotation(PROVIDED_IP, "10.0.0.1")
        };
        let expected = |labels: &[(&str, &str)]| {
            let mut all = zone_labels();
            for (label, value) in labels {
                all[*label] = (*value).into();
            }
            done(id, &["ImproveCoverageTaint"], &all, &[&IPS[..], &["Hostname=node0.cloud.internal"]].concat())
        };
        let added = [("topology.k8s.cp/zone-id", "az1"), ("my.custom.label/foo", "bar")];
        let labels = with(labelled(in_zone(instance(id, &IPS)), &added));
        row("[instanceV2] provided additional labels", &existing(), &labels, expected(&added)).await;
        let offered = [
            ("topology.kubernetes.io/region", "us-other-west"),
            ("topology.k8s.io/region", "us-other-west"),
            ("kubernetes.io/region", "us-other-west"),
            ("k8s.io/region", "us-other-west"),
            ("my.custom.label/foo", "bar"),
            ("my.custom.label/bar", "foo"),
            ("app.k8snio/bar", "foo"),
            ("k8snio/bar", "foo"),
        ];
        let discarding = with(labelled(in_zone(instance(id, &IPS)), &offered));
        let labelled = existing().label("my.custom.label/foo", "fizz").label("my.custom.label/bar", "foo");
        let kept = [
            ("my.custom.label/foo", "fizz"),
            ("my.custom.label/bar", "foo"),
            ("app.k8snio/bar", "foo"),
            ("k8snio/bar", "foo"),
        ];
        let name = "[instanceV2] provided additional labels with labels to discard";
        row(name, &labelled, &discarding, expected(&kept)).await;
    });
}

/// Upstream: the rows of `Test_syncNode` that fail, or do nothing. Without a provider ID a node stays as it is here also
/// where upstream's Instances initialize it.
#[test]
fn a_node_that_cannot_be_initialized_stays_tainted() {
    test(async {
        let id = "node0.aws.12345";
        let existing = |ip: &str| {
            addressed(with_id(covered(), id), &["Hostname=node0.cloud.internal"]).annotation(PROVIDED_IP, ip)
        };
        let both: &[&str] = &["ImproveCoverageTaint", UNINITIALIZED];
        let unchanged = || done(id, both, &Value::Null, &["Hostname=node0.cloud.internal"]);
        let unsaid = with(Instance { metadata: None, ..instance(id, &[]) });
        row("nil instanceMetadata provided by InstanceV2", &existing("10.0.0.1"), &unsaid, unchanged()).await;
        let known = with(instance(id, &IPS));
        row("provided node IP address is not valid", &existing("invalid-ip"), &known, unchanged()).await;
        row("provided node IP address is not present", &existing("10.0.0.2"), &known, unchanged()).await;
        let untouched = || json!({ "providerID": null, "taints": [UNINITIALIZED], "labels": null, "addresses": [] });
        let without_id = with(instance("", &ALL));
        for name in ["provider ID not implemented", "[instanceV2] provider ID not implemented"] {
            row(name, &node("node0"), &without_id, untouched()).await;
        }
        let failing = |cloud: &Cloud| {
            cloud.on_each(Call::InstanceMetadata, Fault::Fail(CloudError::Failed("metadata error".to_owned())));
        };
        row("[instanceV2] error getting InstanceMetadata", &node("node0"), &failing, untouched()).await;
        row("an instance that does not exist", &node("node0"), &|_: &Cloud| {}, untouched()).await;
    });
}

/// Upstream: `TestUpdateNodeStatus`.
#[test]
fn addresses_are_asked_for_by_so_many_workers() {
    test(async {
        for (name, workers) in [("single thread", 1), ("5 workers", 5), ("10 workers", 10), ("30 workers", 30)] {
            let (server, cloud) = (Server::new(), Cloud::new());
            cloud.on_each(Call::InstanceMetadata, Fault::Delay(Duration::from_millis(10)));
            for number in 0..100 {
                let name = format!("node0{number}");
                add(&cloud, &name, instance("", &ALL));
                server.add(&plain(&name));
            }
            let workers_flag = format!("--concurrent-node-status-updates={workers}");
            let started = Instant::now();
            let running = Running::start::<CloudNodeOperator>(&server, &[&cloud.flag(), &workers_flag]);
            while cloud.calls().len() < 100 || server.count("patch nodes/status") < 100 {
                running.pass(Duration::from_millis(1)).await;
            }
            let (took, ideal) = (started.elapsed(), Duration::from_millis(1000 / workers));
            assert!(took >= ideal && took < ideal + Duration::from_millis(200), "{name}: {took:?}");
            assert_eq!(cloud.calls().len(), 100, "{name}");
            assert_eq!(addresses_of(&server, "node042"), ALL, "{name}");
        }
    });
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let cloud = Cloud::new();
        add(&cloud, "new", in_zone(instance("fake://1", &ALL)));
        add(&cloud, "known", instance("fake://2", &IPS));
        let life = [
            Do(|server| {
                server.add(&addressed(node("new"), &["Hostname=own"]));
                server.add(&with_id(plain("known"), "fake://2"));
            }),
            Do(|server| {
                server.change("nodes", "known", |node| {
                    node["metadata"]["labels"] = json!({ "beta.kubernetes.io/instance-type": "large" });
                });
            }),
            Pass(Duration::from_secs(400)),
        ];
        let server = survives_kills::<CloudNodeOperator>(&[&cloud.flag()], &life).await;
        assert_eq!(addresses_of(&server, "new"), ALL);
        assert_eq!(addresses_of(&server, "known"), IPS);
        assert!(!is_tainted(&server, "new"));
        let labels = |name: &str| server.get("nodes", name).map(|node| node["metadata"]["labels"].clone());
        assert_eq!(labels("new"), Some(zone_labels()));
        let both = json!({ "beta.kubernetes.io/instance-type": "large", "node.kubernetes.io/instance-type": "large" });
        assert_eq!(labels("known"), Some(both));
        let writes = server.writes();
        let of_new: Vec<&String> = writes.iter().filter(|write| write.ends_with(" new")).collect();
        assert_eq!(of_new, ["patch nodes/status new", "patch nodes new"], "the addresses come first: {writes:?}");
    });
}

#[test]
fn addresses_follow_the_cloud_at_each_look() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        add(&cloud, "node0", instance("fake://1", &ALL));
        server.add(&node("node0"));
        let flag = cloud.flag();
        let flags = [flag.as_str(), "--node-status-update-frequency=1m"];
        let running = Running::start::<CloudNodeOperator>(&server, &flags);
        running.pass(Duration::from_secs(50)).await;
        assert_eq!((cloud.calls().len(), addresses_of(&server, "node0")), (1, ALL.map(str::to_owned).to_vec()));
        add(&cloud, "node0", instance("fake://1", &["InternalIP=10.0.0.2"]));
        running.pass(Duration::from_secs(20)).await;
        assert_eq!(addresses_of(&server, "node0"), ["InternalIP=10.0.0.2", ALL[0]]);
        let writes = server.writes().len();
        running.pass(Duration::from_secs(600)).await;
        assert_eq!((server.writes().len(), cloud.calls().len()), (writes, 12));
        // The cloud has forgotten them all.
        add(&cloud, "node0", instance("fake://1", &[]));
        running.pass(Duration::from_secs(120)).await;
        assert_eq!(server.writes().len(), writes);
    });
}

#[test]
fn heartbeats_of_a_node_that_is_initialized_lead_to_no_question() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        add(&cloud, "node0", instance("fake://1", &ALL));
        server.add(&addressed(with_id(plain("node0"), "fake://1"), &ALL));
        let running = start(&server, &cloud);
        for beat in 0..20 {
            server.change("nodes", "node0", |node| node["status"]["beats"] = Value::from(beat));
            running.pass(Duration::from_secs(10)).await;
        }
        assert_eq!((cloud.calls().len(), server.writes()), (1, vec![]));
    });
}

#[test]
fn a_provider_that_dies_in_the_middle_is_asked_again() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        add(&cloud, "node0", instance("fake://1", &ALL));
        server.add(&node("node0"));
        cloud.on_next(Call::InstanceMetadata, Fault::Lose);
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(1)).await;
        assert!(!is_tainted(&server, "node0"));
        cloud.die();
        server.add(&node("node1"));
        running.pass(Duration::from_secs(120)).await;
        assert!(is_tainted(&server, "node1"));
        add(&cloud, "node1", instance("fake://2", &ALL));
        cloud.revive();
        running.pass(Duration::from_secs(35)).await;
        assert!(!is_tainted(&server, "node1"));
    });
}

#[test]
fn a_provider_is_asked_when_it_wants_to_be_and_each_minute_if_it_knows_no_instances() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        add(&cloud, "node0", instance("fake://1", &ALL));
        let (after, message) = (Duration::from_secs(90), "quota".to_owned());
        cloud.on_next(Call::InstanceMetadata, Fault::Fail(CloudError::RetryAfter { after, message }));
        cloud.on_next(Call::InstanceMetadata, Fault::Fail(CloudError::NotSupported));
        server.add(&node("node0"));
        let running = start(&server, &cloud);
        for (seconds, calls) in [(89, 1), (2, 2), (58, 2), (2, 3)] {
            running.pass(Duration::from_secs(seconds)).await;
            assert_eq!(cloud.calls().len(), calls);
        }
        assert!(!is_tainted(&server, "node0"));
    });
}

#[test]
fn a_write_of_somebody_else_in_between_is_not_overwritten() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        add(&cloud, "node0", instance("fake://1", &ALL));
        server.add(&node("node0"));
        let held = server.on("patch", "nodes").once().hold();
        let running = start(&server, &cloud);
        held.arrived().await;
        server.change("nodes", "node0", |node| {
            if let Some(taints) = node["spec"]["taints"].as_array_mut() {
                taints.push(coverage());
            }
        });
        held.release();
        running.pass(Duration::from_secs(60)).await;
        assert_eq!(outcome(&server)["taints"], json!(["ImproveCoverageTaint"]));
    });
}

#[test]
fn why_says_why_a_node_is_still_tainted() {
    test(async {
        let (server, cloud) = (Server::new(), Cloud::new());
        add(&cloud, "node0", instance("", &ALL));
        add(&cloud, "known", instance("fake://2", &ALL));
        server.add(&node("node0"));
        server.add(&addressed(with_id(plain("known"), "fake://2"), &ALL));
        let running = start(&server, &cloud);
        running.pass(Duration::from_secs(5)).await;
        let why = running.why("/api/v1/nodes/node0");
        let [nodes, addresses] = &why.keys[..] else { panic!("{why}") };
        let last: Option<Vec<&str>> =
            nodes.last.first().map(|decision| decision.stages.iter().map(|stage| stage.text.as_str()).collect());
        let failed: Vec<&str> = vec![
            "ask about its instance (not initialized)",
            "wait for the next try (the provider sets no provider ID)",
        ];
        assert_eq!(last, Some(failed));
        assert_eq!(addresses.now[0].text, "keep addresses (not initialized)");
        assert_eq!(
            running.now("/api/v1/nodes/known"),
            ["keep (initialized)", "ask about its instance (its addresses may have changed)",]
        );
        assert_eq!(
            running.last("/api/v1/nodes/known").last().map(String::as_str),
            Some("keep addresses (they are the cloud's)")
        );
    });
}
