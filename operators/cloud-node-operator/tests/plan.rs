//! What a node becomes by what the cloud knows about its instance: labels, addresses, and which changes lead to a sync.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloud::{InstanceMetadata, NodeAddress};
use cloud_node_operator::objects::{LiveNode, Node};
use cloud_node_operator::observe::{Caches, Instance, Observed};
use cloud_node_operator::plan::addresses::{AddressPlan, has_changed, matching, next_addresses};
use cloud_node_operator::plan::labels::{new_labels, stale_labels};
use cloud_node_operator::plan::{Config, Next, Plan, Step, next};
use cloud_node_operator::status::{addresses_patch, initialization_patch, labels_patch};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::following::cache::{Cache, Change, Indices};
use shared::testing::{ObjectBuilder, object, uid};
use shared::working::effect::Effect;
use shared::working::queue::Cause;

const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
const PROVIDED_IP: &str = "alpha.kubernetes.io/provided-node-ip";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";
const BETA_TYPE: &str = "beta.kubernetes.io/instance-type";
const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const TYPE: &str = "node.kubernetes.io/instance-type";

const CONFIG: Config = Config { period: Duration::from_secs(300) };

fn node() -> ObjectBuilder {
    object("v1", "Node", "node0").namespace("")
}

fn uninitialized() -> ObjectBuilder {
    let taint = json!({ "key": UNINITIALIZED, "value": "true", "effect": "NoSchedule" });
    node().set(&["spec", "taints"], json!([taint]))
}

/// `InternalIP=10.0.0.1`.
fn addresses(texts: &[&str]) -> Vec<NodeAddress> {
    let pairs = texts.iter().filter_map(|text| text.split_once('='));
    pairs.map(|(type_, address)| NodeAddress { type_: type_.to_owned(), address: address.to_owned() }).collect()
}

fn texts(addresses: &[NodeAddress]) -> Vec<String> {
    addresses.iter().map(|NodeAddress { type_, address }| format!("{type_}={address}")).collect()
}

fn metadata(id: &str, all: &[&str]) -> InstanceMetadata {
    InstanceMetadata { provider_id: id.to_owned(), node_addresses: addresses(all), ..InstanceMetadata::default() }
}

fn known(node: &ObjectBuilder, metadata: InstanceMetadata) -> Observed {
    Observed { node: node.build(), instance: Instance::Known { node: node.build(), metadata: Arc::new(metadata) } }
}

fn observed(node: &ObjectBuilder, instance: Instance) -> Observed {
    Observed { node: node.build(), instance }
}

#[track_caller]
fn check(observed: &Observed, expected: &str) {
    assert_eq!(next(observed, &CONFIG).to_string(), expected);
}

#[track_caller]
fn check_addresses(observed: &Observed, expected: &str) {
    assert_eq!(next_addresses(observed, &CONFIG).to_string(), expected);
}

#[test]
fn a_node_without_the_taint_is_initialized_and_one_with_it_is_asked_about() {
    check(&observed(&node(), Instance::NotAsked), "keep (initialized)");
    check(&observed(&uninitialized(), Instance::NotAsked), "ask about its instance (not initialized)");
    check_addresses(&observed(&uninitialized(), Instance::NotAsked), "keep addresses (not initialized)");
    check_addresses(&observed(&node(), Instance::NotAsked), "ask about its instance (its addresses may have changed)");
    // Whatever its effect and its value.
    let other = node().set(&["spec", "taints"], json!([{ "key": UNINITIALIZED, "effect": "NoExecute" }]));
    check(&observed(&other, Instance::NotAsked), "ask about its instance (not initialized)");
    // The cache is behind.
    let initialized = Instance::Known { node: node().build(), metadata: Arc::new(metadata("fake://1", &[])) };
    check(&observed(&uninitialized(), initialized), "keep (initialized)");
    check_addresses(
        &known(&uninitialized(), metadata("a", &["InternalIP=10.0.0.1"])),
        "keep addresses (not initialized)",
    );
}

/// Upstream: `TestGetInstanceMetadata`. A provider that knows no provider IDs initializes no node here.
#[test]
fn a_node_is_initialized_with_a_provider_id_of_its_own_or_of_the_cloud() {
    let all = ["Hostname=node0.cloud.internal", "InternalIP=10.0.0.1", "ExternalIP=132.143.154.163"];
    let with_id = |id: &str| uninitialized().set(&["spec", "providerID"], id);
    let set = "set addresses Hostname=node0.cloud.internal, InternalIP=10.0.0.1, ExternalIP=132.143.154.163";
    let end = format!("untaint {UNINITIALIZED} (the cloud has its instance)");
    // With Instances and a provider ID, and with InstancesV2 and a provider ID.
    check(
        &known(&uninitialized(), metadata("fake://12345", &all)),
        &format!("{set}, set providerID fake://12345, {end}"),
    );
    // With Instances that implement no provider IDs, and InstancesV2 without one.
    let none = "wait for the next try (the provider sets no provider ID)";
    check(&known(&uninitialized(), metadata("", &all)), none);
    // The same for a node with a provider ID.
    for id in ["fake://asdasd", "fake://12345"] {
        check(&known(&with_id(id), metadata("", &all)), &format!("{set}, {end}"));
        check(&known(&with_id(id), metadata("fake://other", &all)), &format!("{set}, {end}"));
    }
}

#[test]
fn without_an_answer_of_the_provider_a_node_waits() {
    let later = Instance::Later { after: Duration::from_secs(90), message: "quota".to_owned() };
    for (instance, of_node, of_addresses) in [
        (Instance::Gone, ("keep (the node is gone)", None), ("keep addresses (the node is gone)", None)),
        (
            Instance::Unsaid,
            ("keep (the provider has nothing to say about its instance yet)", Some(300)),
            ("keep addresses (the provider has nothing to say about its instance yet)", Some(300)),
        ),
        (
            Instance::NotFound,
            ("wait for the next try (the provider does not know its instance)", None),
            ("keep addresses (the provider does not know its instance)", Some(300)),
        ),
        (
            later,
            ("keep (the provider asks for patience: quota)", Some(90)),
            ("keep addresses (the provider asks for patience: quota)", Some(90)),
        ),
        (
            Instance::NotSupported,
            ("keep (the provider does not support instances)", Some(60)),
            ("keep addresses (the provider does not support instances)", Some(60)),
        ),
    ] {
        let plan = next(&observed(&uninitialized(), instance.clone()), &CONFIG);
        let Next::Execute(Plan { again, .. }) = &plan else { panic!("{plan}") };
        let seconds = |again: Option<Duration>| again.map(|again| again.as_secs());
        assert_eq!((plan.to_string().as_str(), seconds(*again)), of_node);
        let plan = next_addresses(&observed(&node(), instance), &CONFIG);
        let Next::Execute(AddressPlan { again, .. }) = &plan else { panic!("{plan}") };
        assert_eq!((plan.to_string().as_str(), seconds(*again)), of_addresses);
    }
}

/// Upstream: `Test_reconcileNodeLabels`.
#[test]
fn the_labels_follow_the_deprecated_ones_that_they_replace() {
    let stale = |labels: &[(&str, &str)]| {
        let node = labels.iter().fold(node(), |node, (label, value)| node.label(label, value));
        let node: Arc<Node> = node.build();
        stale_labels(&node).iter().map(|(label, value)| format!("{label}={value}")).collect::<Vec<_>>().join(" ")
    };
    let beta = [(BETA_ZONE, "foo"), (BETA_REGION, "bar"), (BETA_TYPE, "the-best-type")];
    let all = format!("{ZONE}=foo {REGION}=bar {TYPE}=the-best-type");
    // "requires reconcile"
    assert_eq!(stale(&beta), all);
    // "doesn't require reconcile"
    let right = [(ZONE, "foo"), (REGION, "bar"), (TYPE, "the-best-type")];
    assert_eq!(stale(&[beta, right].concat()), "");
    // "require reconcile -- secondary labels are different from primary"
    let wrong = [(ZONE, "wrongfoo"), (REGION, "wrongbar"), (TYPE, "the-wrong-type")];
    assert_eq!(stale(&[beta, wrong].concat()), all);
    assert_eq!(stale(&right), "");
    assert_eq!(stale(&[]), "");
    let node = node().label(BETA_ZONE, "foo");
    check(&observed(&node, Instance::NotAsked), &format!("label {ZONE}=foo (deprecated labels say something else)"));
}

#[test]
fn a_provider_may_add_labels_under_names_that_are_free_and_not_kubernetes_own() {
    let additional = |labels: &[(&str, &str)]| {
        let additional_labels: BTreeMap<String, String> =
            labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect();
        let metadata = InstanceMetadata { zone: "z".to_owned(), additional_labels, ..InstanceMetadata::default() };
        let node: Arc<LiveNode> = uninitialized().label("a", "1").label(ZONE, "z").build();
        new_labels(&node, &metadata).iter().map(|(label, value)| format!("{label}={value}")).collect::<Vec<_>>()
    };
    let zone = format!("{BETA_ZONE}=z");
    assert_eq!(additional(&[]), [zone.as_str()]);
    assert_eq!(additional(&[("a", "1"), ("b", "2"), ("c.d/e", "3")]), [&zone, "b=2", "c.d/e=3"]);
    assert_eq!(additional(&[("a", "2")]), [zone.as_str()]);
    for reserved in ["kubernetes.io/a", "k8s.io/a", "x.kubernetes.io/a", "x.k8s.io/a", "x/y.k8s.io/a"] {
        assert_eq!(additional(&[(reserved, "1")]), [zone.as_str()], "{reserved}");
    }
    for free in ["notkubernetes.io/a", "xk8s.io/a", "k8s.io", "app.k8snio/bar", "k8s.io.x/a", "topology.k8s.cp/zone-id"]
    {
        assert_eq!(additional(&[(free, "1")]).len(), 2, "{free}");
    }
}

/// Upstream: `TestNodeAddressesChangeDetected`.
#[test]
fn addresses_have_changed_if_those_of_a_type_have() {
    for (old, new, expected) in [
        (
            &["InternalIP=10.0.0.1", "ExternalIP=132.143.154.163"][..],
            &["InternalIP=10.0.0.1", "ExternalIP=132.143.154.163"][..],
            false,
        ),
        (
            &["InternalIP=10.0.0.1", "ExternalIP=132.143.154.164"],
            &["InternalIP=10.0.0.1", "ExternalIP=132.143.154.163"],
            true,
        ),
        (
            &["InternalIP=10.0.0.1", "ExternalIP=132.143.154.164", "Hostname=hostname.zone.region.aws.test"],
            &["InternalIP=10.0.0.1", "ExternalIP=132.143.154.164"],
            true,
        ),
        (
            &["InternalIP=10.0.0.1", "ExternalIP=132.143.154.164"],
            &["InternalIP=10.0.0.1", "ExternalIP=132.143.154.164", "Hostname=hostname.zone.region.aws.test"],
            true,
        ),
        (
            &["ExternalIP=10.0.0.1", "InternalIP=132.143.154.163"],
            &["InternalIP=10.0.0.1", "ExternalIP=132.143.154.163"],
            true,
        ),
        // The order of types says nothing. Of one type the first address is the node's own.
        (&["InternalIP=10.0.0.1", "Hostname=a"], &["Hostname=a", "InternalIP=10.0.0.1"], false),
        (&["InternalIP=10.0.0.1", "InternalIP=fd00::1"], &["InternalIP=10.0.0.1", "InternalIP=fd00::1"], false),
        (&["InternalIP=10.0.0.1", "InternalIP=fd00::1"], &["InternalIP=fd00::1", "InternalIP=10.0.0.1"], true),
    ] {
        assert_eq!(has_changed(&addresses(old), &addresses(new)), expected, "{old:?} {new:?}");
    }
}

/// A name, the addresses of the annotation, those of the cloud, and what the node gets; none is an error.
type Given = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const GIVEN: [Given; 14] = [
    (
        "A single InternalIP",
        "10.1.1.1",
        &["InternalIP=10.1.1.1", "Hostname=hostname"],
        &["InternalIP=10.1.1.1", "Hostname=hostname"],
    ),
    (
        "NodeIP is external",
        "55.55.55.55",
        &["InternalIP=10.1.1.1", "ExternalIP=55.55.55.55", "Hostname=hostname"],
        &["ExternalIP=55.55.55.55", "InternalIP=10.1.1.1", "Hostname=hostname"],
    ),
    (
        "InternalIP and ExternalIP are the same",
        "55.55.55.55",
        &[
            "InternalIP=44.44.44.44",
            "ExternalIP=44.44.44.44",
            "InternalIP=55.55.55.55",
            "ExternalIP=55.55.55.55",
            "Hostname=hostname",
        ],
        &["InternalIP=55.55.55.55", "ExternalIP=55.55.55.55", "Hostname=hostname"],
    ),
    (
        "An Internal/ExternalIP, an Internal/ExternalDNS",
        "10.1.1.1",
        &[
            "InternalIP=10.1.1.1",
            "ExternalIP=55.55.55.55",
            "InternalDNS=ip-10-1-1-1.internal",
            "ExternalDNS=ec2.amazonaws.com",
            "Hostname=hostname",
        ],
        &[
            "InternalIP=10.1.1.1",
            "ExternalIP=55.55.55.55",
            "InternalDNS=ip-10-1-1-1.internal",
            "ExternalDNS=ec2.amazonaws.com",
            "Hostname=hostname",
        ],
    ),
    (
        "An Internal with multiple internal IPs",
        "10.1.1.1",
        &[
            "InternalIP=10.1.1.1",
            "InternalIP=10.2.2.2",
            "InternalIP=10.3.3.3",
            "ExternalIP=55.55.55.55",
            "Hostname=hostname",
        ],
        &["InternalIP=10.1.1.1", "ExternalIP=55.55.55.55", "Hostname=hostname"],
    ),
    ("An InternalIP that isn't valid: should error", "10.2.2.2", &["InternalIP=10.1.1.1", "Hostname=hostname"], &[]),
    (
        "Dual-stack cloud, with nodeIP, different IPv6 formats",
        "2600:1f14:1d4:d101::ba3d",
        &["InternalIP=10.1.1.1", "InternalIP=2600:1f14:1d4:d101:0:0:0:ba3d", "Hostname=hostname"],
        &["InternalIP=2600:1f14:1d4:d101:0:0:0:ba3d", "Hostname=hostname"],
    ),
    (
        "Single-stack cloud, dual-stack request",
        "10.1.1.1,fc01:1234::5678",
        &["InternalIP=10.1.1.1", "Hostname=hostname"],
        &[],
    ),
    (
        "Dual-stack cloud, IPv4 first, IPv4-primary request",
        "10.1.1.1,fc01:1234::5678",
        &["InternalIP=10.1.1.1", "InternalIP=fc01:1234::5678", "Hostname=hostname"],
        &["InternalIP=10.1.1.1", "InternalIP=fc01:1234::5678", "Hostname=hostname"],
    ),
    (
        "Dual-stack cloud, IPv6 first, IPv4-primary request",
        "10.1.1.1,fc01:1234::5678",
        &["InternalIP=fc01:1234::5678", "InternalIP=10.1.1.1", "Hostname=hostname"],
        &["InternalIP=10.1.1.1", "InternalIP=fc01:1234::5678", "Hostname=hostname"],
    ),
    (
        "Dual-stack cloud, dual-stack request, multiple IPs",
        "10.1.1.1,fc01:1234::5678",
        &[
            "InternalIP=10.1.1.1",
            "InternalIP=10.1.1.2",
            "InternalIP=fc01:1234::1234",
            "InternalIP=fc01:1234::5678",
            "Hostname=hostname",
        ],
        &["InternalIP=10.1.1.1", "InternalIP=fc01:1234::5678", "Hostname=hostname"],
    ),
    (
        "Dual-stack cloud, dual-stack request, extra ExternalIP",
        "10.1.1.1,fc01:1234::5678",
        &[
            "InternalIP=10.1.1.1",
            "ExternalIP=55.55.55.55",
            "InternalIP=fc01:1234::1234",
            "InternalIP=fc01:1234::5678",
            "Hostname=hostname",
        ],
        &["InternalIP=10.1.1.1", "InternalIP=fc01:1234::5678", "ExternalIP=55.55.55.55", "Hostname=hostname"],
    ),
    (
        "Dual-stack cloud, dual-stack request, multiple ExternalIPs",
        "fc01:1234::5678,10.1.1.1",
        &[
            "InternalIP=10.1.1.1",
            "ExternalIP=55.55.55.55",
            "InternalIP=fc01:1234::5678",
            "ExternalIP=2001:db1::1",
            "Hostname=hostname",
        ],
        &[
            "InternalIP=fc01:1234::5678",
            "InternalIP=10.1.1.1",
            "ExternalIP=55.55.55.55",
            "ExternalIP=2001:db1::1",
            "Hostname=hostname",
        ],
    ),
    (
        "Dual-stack cloud, dual-stack request, mixed InternalIP/ExternalIP match",
        "55.55.55.55,fc01:1234::5678",
        &[
            "InternalIP=10.1.1.1",
            "ExternalIP=55.55.55.55",
            "InternalIP=fc01:1234::5678",
            "ExternalIP=2001:db1::1",
            "Hostname=hostname",
        ],
        &["ExternalIP=55.55.55.55", "InternalIP=fc01:1234::5678", "Hostname=hostname"],
    ),
];

/// Upstream: `TestGetNodeAddressesFromNodeIP`, `staging/src/k8s.io/cloud-provider/node/helpers/address_test.go`.
#[test]
fn the_addresses_that_a_kubelet_was_given_come_first() {
    for (name, ip, cloud, expected) in GIVEN {
        let node: Arc<LiveNode> = node().annotation(PROVIDED_IP, ip).build();
        let matched = matching(&node, &addresses(cloud)).map_or(Vec::new(), |matched| texts(&matched));
        assert_eq!(matched, expected, "{name}");
    }
}

#[test]
fn addresses_that_no_kubelet_can_have_been_given_are_refused_in_words() {
    let pair = "must contain either a single IP or a dual-stack pair of IPs";
    for (ip, expected) in [
        ("10.2.2.2", "failed to get node address from cloud provider that matches ip: 10.2.2.2".to_owned()),
        ("invalid-ip", "failed to parse node IP \"invalid-ip\": could not parse \"invalid-ip\"".to_owned()),
        ("", "failed to parse node IP \"\": could not parse \"\"".to_owned()),
        ("10.0.0.1,10.0.0.2", format!("failed to parse node IP \"10.0.0.1,10.0.0.2\": {pair}")),
        ("10.0.0.1,::1,::2", format!("failed to parse node IP \"10.0.0.1,::1,::2\": {pair}")),
        (
            "0.0.0.0,::1",
            "failed to parse node IP \"0.0.0.0,::1\": dual-stack node IP cannot include '0.0.0.0' or '::'".to_owned(),
        ),
    ] {
        let node = uninitialized().annotation(PROVIDED_IP, ip);
        let built: Arc<LiveNode> = node.build();
        assert_eq!(matching(&built, &addresses(&["InternalIP=10.0.0.1"])), Err(expected.clone()));
        check(
            &known(&node, metadata("fake://1", &["InternalIP=10.0.0.1"])),
            &format!("wait for the next try ({expected})"),
        );
        let initialized = self::node().annotation(PROVIDED_IP, ip);
        let found = known(&initialized, metadata("fake://1", &["InternalIP=10.0.0.1"]));
        check_addresses(&found, &format!("keep addresses ({expected})"));
    }
    // Also where the cloud has no addresses at all.
    let node = uninitialized().annotation(PROVIDED_IP, "10.0.0.1");
    check(
        &known(&node, metadata("fake://1", &[])),
        "wait for the next try (failed to get node address from cloud provider that matches ip: 10.0.0.1)",
    );
}

#[test]
fn a_node_keeps_its_host_name_unless_the_cloud_has_another_one() {
    let own = node().set(&["status", "addresses"], json!([{ "type": "Hostname", "address": "own" }]));
    check_addresses(
        &known(&own, metadata("", &["InternalIP=10.0.0.1"])),
        "set addresses InternalIP=10.0.0.1, Hostname=own (the cloud has others)",
    );
    check_addresses(
        &known(&own, metadata("", &["Hostname=other", "InternalIP=10.0.0.1"])),
        "set addresses Hostname=other, InternalIP=10.0.0.1 (the cloud has others)",
    );
    check_addresses(&known(&own, metadata("", &["Hostname=own"])), "keep addresses (they are the cloud's)");
    check_addresses(&known(&own, metadata("", &[])), "keep addresses (they are the cloud's)");
}

#[test]
fn a_patch_loses_no_field_of_a_taint_and_replaces_all_addresses() {
    let other = json!({ "key": "a", "effect": "NoSchedule", "newer": { "than": "this" } });
    let ours = json!({ "key": UNINITIALIZED, "value": "true", "effect": "NoSchedule" });
    let built = node().set(&["spec", "taints"], json!([ours, other]));
    let found = InstanceMetadata { zone: "z".to_owned(), ..metadata("fake://1", &["InternalIP=10.0.0.1"]) };
    let planned = next(&known(&built, found), &CONFIG);
    let Next::Execute(Plan { step: Step::Initialize(initialization), .. }) = planned else { panic!("{planned}") };
    let patch: Value = serde_json::from_str(initialization_patch(&initialization).get()).unwrap();
    let labels = json!({ BETA_ZONE: "z", ZONE: "z" });
    assert_eq!(
        patch,
        json!({ "metadata": { "labels": labels }, "spec": { "providerID": "fake://1", "taints": [other] } })
    );
    let all = initialization.addresses.unwrap();
    let expected = json!({ "status": { "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }] } });
    assert_eq!(addresses_patch(&all), expected);
    assert_eq!(labels_patch(&[(Text::new("a"), Text::new("b"))]), json!({ "metadata": { "labels": { "a": "b" } } }));
}

#[test]
fn a_change_leads_to_a_sync_of_what_it_concerns() {
    let caches = Caches { nodes: Arc::new(Cache::new(Indices::default())) };
    let key = Key::new("", "node0");
    let now = || vec![Effect::Enqueue(key.clone(), Cause::Event)];
    let build = |node: &ObjectBuilder| -> Arc<Node> { node.build() };
    let (tainted, well, stale) = (build(&uninitialized()), build(&node()), build(&node().label(BETA_ZONE, "a")));
    let added =
        |node| (caches.node_changed(Change::Added(node)), caches.addresses_concerned(Change::Added(node), &CONFIG));
    assert_eq!(added(&tainted), (now(), vec![]));
    assert_eq!(added(&well), (vec![], now()));
    assert_eq!(added(&stale), (now(), now()));
    let updated = |old, new| {
        let change = Change::Updated { old, new };
        (caches.node_changed(change), caches.addresses_concerned(change, &CONFIG))
    };
    assert_eq!(updated(&tainted, &tainted), (now(), vec![]));
    assert_eq!(updated(&well, &well), (vec![], vec![]));
    assert_eq!(updated(&well, &stale), (now(), vec![]));
    let later = vec![Effect::EnqueueAfter(key.clone(), CONFIG.period, "the next question to the cloud provider")];
    assert_eq!(updated(&tainted, &well), (vec![], later));
    assert_eq!(updated(&well, &tainted), (now(), vec![]));
    let forget = || vec![Effect::Forget(key.clone(), uid("node0"))];
    let deleted = Change::Deleted(&well);
    assert_eq!((caches.node_changed(deleted), caches.addresses_concerned(deleted, &CONFIG)), (forget(), forget()));
}

fn any_addresses() -> impl Strategy<Value = Vec<NodeAddress>> {
    let type_ = prop_oneof![Just("InternalIP"), Just("ExternalIP"), Just("Hostname")];
    let address = (type_, 0..4_u8)
        .prop_map(|(type_, last)| NodeAddress { type_: type_.to_owned(), address: format!("10.0.0.{last}") });
    proptest::collection::vec(address, 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn addresses_that_were_written_stay(own in any_addresses(), cloud in any_addresses(), ip in proptest::option::of(0..4_u8)) {
        let mut built = node().set(&["status", "addresses"], serde_json::to_value(&own).unwrap());
        if let Some(last) = ip {
            built = built.annotation(PROVIDED_IP, &format!("10.0.0.{last}"));
        }
        let found = InstanceMetadata { node_addresses: cloud, ..InstanceMetadata::default() };
        let planned = next_addresses(&known(&built, found.clone()), &CONFIG);
        let Next::Execute(AddressPlan { change: Some(change), .. }) = planned else { return Ok(()) };
        let written = built.set(&["status", "addresses"], serde_json::to_value(&change.addresses).unwrap());
        let then = next_addresses(&known(&written, found), &CONFIG).to_string();
        prop_assert_eq!(then, "keep addresses (they are the cloud's)");
    }

    #[test]
    fn whatever_a_kubelet_and_a_provider_say_is_read(ip in ".*", address in ".*", label in "[a-z.é/]*(k8s.io/)?.*") {
        let additional_labels = BTreeMap::from([(label.clone(), "a".to_owned())]);
        let node_addresses = vec![NodeAddress { type_: "InternalIP".to_owned(), address }];
        let found = InstanceMetadata { node_addresses, additional_labels, ..metadata("fake://1", &[]) };
        let planned = next(&known(&uninitialized().annotation(PROVIDED_IP, &ip), found), &CONFIG);
        let is_initialized = matches!(planned, Next::Execute(Plan { step: Step::Initialize(_), .. }));
        prop_assert!(is_initialized || planned.to_string().starts_with("wait for the next try"));
    }

    #[test]
    fn a_node_that_was_initialized_has_no_stale_labels(zone in "[a-z]{0,2}", region in "[a-z]{0,2}", instance_type in "[a-z]{0,2}") {
        let found = InstanceMetadata { zone, region, instance_type, ..metadata("fake://1", &[]) };
        let built = uninitialized();
        let live: Arc<LiveNode> = built.build();
        let labelled = new_labels(&live, &found).iter().fold(built, |node, (label, value)| node.label(label, value));
        let read: Arc<Node> = labelled.build();
        prop_assert!(stale_labels(&read).is_empty());
        let live: Arc<LiveNode> = labelled.build();
        prop_assert!(new_labels(&live, &found).is_empty());
    }
}
