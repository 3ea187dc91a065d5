//! Which CIDRs Nodes get: upstream's cases, and that no CIDR is given twice if patches are lost, late or repeated.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use node_ipam_operator::apply::cidrs_patch;
use node_ipam_operator::memory::Pool;
use node_ipam_operator::metrics::CidrSetMetrics;
use node_ipam_operator::objects::Node;
use node_ipam_operator::objects::cidr_set::CidrSet;
use node_ipam_operator::observe::Caches;
use node_ipam_operator::plan::{Plan, plan};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::cidr::Cidr;
use shared::api::object::Key;
use shared::following::cache::Change;
use shared::process::metrics::Metrics;
use shared::testing::{ObjectBuilder, forget, object, store};
use shared::working::effect::Effect;
use shared::working::queue::Cause;

fn node(name: &str) -> ObjectBuilder {
    object("v1", "Node", name).namespace("")
}

fn with_cidrs(name: &str, cidrs: &[&str]) -> ObjectBuilder {
    node(name).set(&["spec", "podCIDRs"], json!(cidrs)).set(&["spec", "podCIDR"], json!(cidrs.first()))
}

fn cidr(text: &str) -> Cidr {
    text.parse().unwrap()
}

/// The operator's knowledge of a cluster, and the metrics that it shows.
struct World {
    caches: Caches,
    registry: Metrics,
}

/// Ranges with the mask sizes of their blocks, and the ranges of Services.
fn world(ranges: &[(&str, i32)], services: &[&str]) -> World {
    let registry = Metrics::new("node-ipam-operator");
    let set = |(cluster_cidr, mask_size): &(&str, i32)| {
        let mut set = CidrSet::new(cidr(cluster_cidr), *mask_size).unwrap();
        for service in services {
            set.occupy(cidr(service));
        }
        set
    };
    let pool = Pool::new(ranges.iter().map(set).collect(), &CidrSetMetrics::register(&registry));
    let (caches, _) = Caches::new(Arc::new(pool));
    World { caches, registry }
}

impl World {
    /// The watch shows a state of a Node.
    fn see(&self, node: &ObjectBuilder) -> Vec<Effect> {
        let new: Arc<Node> = node.build();
        let old = self.caches.nodes.get(&new.metadata.key);
        store(&self.caches.nodes, &new);
        self.noted(match &old {
            Some(old) if old.metadata.uid == new.metadata.uid => Change::Updated { old, new: &new },
            Some(_) | None => Change::Added(&new),
        })
    }

    /// The watch shows that a Node has gone.
    fn lose(&self, name: &str) -> Vec<Effect> {
        let last = self.caches.nodes.get(&Key::new("", name)).unwrap();
        forget(&self.caches.nodes, &last);
        self.noted(Change::Deleted(&last))
    }

    fn noted(&self, change: Change<'_, Node>) -> Vec<Effect> {
        self.caches.pool.note(&change);
        self.caches.node_changed(change)
    }

    /// A sync up to its write.
    fn sync(&self, name: &str) -> Plan {
        let observed = self.caches.observe(&Key::new("", name)).unwrap();
        let plan = plan(&observed);
        if let Plan::Assign { cidrs, uid, .. } = &plan {
            self.caches.pool.assign(&Key::new("", name), *uid, cidrs);
        }
        plan
    }

    /// The end of a sync: the apiserver has refused the patch, or may have stored it.
    fn settle(&self, name: &str, is_refused: bool) {
        let node = self.caches.nodes.get(&Key::new("", name)).unwrap();
        let (pool, metadata) = (&self.caches.pool, &node.metadata);
        if is_refused {
            pool.refuse(&metadata.key, metadata.uid);
        } else {
            pool.keep(&metadata.key, metadata.uid);
        }
    }

    /// The decision about a new Node, and that nothing is changed by asking for it.
    #[track_caller]
    fn check(&self, node: &ObjectBuilder, expected: &str) {
        self.see(node);
        let name = node.build::<Node>().metadata.key.clone();
        for _ in 0..2 {
            assert_eq!(plan(&self.caches.observe(&name).unwrap()).to_string(), expected);
        }
    }

    /// The metrics of one range.
    fn metrics(&self, cluster_cidr: &str) -> Vec<String> {
        let (text, label) = (self.registry.to_text(), format!("clusterCIDR=\"{cluster_cidr}\""));
        let own = text.lines().filter_map(|line| line.strip_prefix("node_ipam_controller_"));
        let own = own.filter(|line| line.contains(&label) && !line.contains("_bucket"));
        let mut own: Vec<String> = own.map(|line| line.replace(&label, "")).collect();
        own.sort();
        own
    }
}

/// The first decision about `node0`, beside these Nodes.
#[track_caller]
fn check(ranges: &[(&str, i32)], services: &[&str], taken: &[&str], expected: &str) {
    let world = world(ranges, services);
    for (number, taken) in taken.iter().enumerate() {
        world.see(&with_cidrs(&format!("other-{number}"), &[*taken]));
    }
    world.check(&node("node0"), expected);
}

/// Upstream: `TestAllocateOrOccupyCIDRSuccess`.
#[test]
fn a_node_gets_the_next_free_block_of_each_range() {
    let range = [("127.123.234.0/24", 30)];
    check(&range, &[], &[], "assign 127.123.234.0/30 (has none, free: 64)");
    let services = ["127.123.234.0/26"];
    check(&range, &services, &[], "assign 127.123.234.64/30 (has none, free: 48)");
    let taken = ["127.123.234.64/30", "127.123.234.68/30", "127.123.234.72/30", "127.123.234.80/30"];
    check(&range, &services, &taken, "assign 127.123.234.76/30 (has none, free: 44)");
    let (v4, v6) = (("127.123.234.0/8", 24), ("ace:cab:deca::/84", 98));
    check(&[v4, v6], &services, &[], "assign 127.0.0.0/24, ace:cab:deca::/98 (has none, free: 16384)");
    check(&[v6, v4], &services, &[], "assign ace:cab:deca::/98, 127.0.0.0/24 (has none, free: 16384)");
    let three = "assign 127.0.0.0/24, ace:cab:deca::/98, 10.0.0.0/24 (has none, free: 16384)";
    check(&[v4, v6, ("10.0.0.0/8", 24)], &services, &[], three);
    let taken = ["10.10.0.0/24", "10.10.2.0/24"];
    check(&[("10.10.0.0/22", 24)], &[], &taken, "assign 10.10.1.0/24 (has none, free: 2)");
}

/// Upstream: `TestAllocateOrOccupyCIDRFailure`.
#[test]
fn a_node_gets_nothing_where_a_range_is_full() {
    let taken = ["127.123.234.0/30", "127.123.234.4/30", "127.123.234.8/30", "127.123.234.12/30"];
    let full = "wait (has none, and 127.123.234.0/28 is full)";
    check(&[("127.123.234.0/28", 30)], &[], &taken, full);
    // Nothing is taken of the range that is not full.
    let dual = world(&[("fd00::/64", 66), ("127.123.234.0/28", 30)], &["127.123.234.0/28"]);
    dual.check(&node("a"), full);
    assert!(matches!(dual.sync("a"), Plan::Wait { index: 1, reason: _ }));
    assert_eq!(dual.caches.pool.ranges()[0].free, 4);
}

/// Upstream: `TestOccupyPreExistingCIDR`. There an existing Node with another CIDR ends the process.
#[test]
fn a_node_keeps_the_cidrs_that_it_has() {
    let (v4, v6) = (("10.10.0.0/16", 24), ("ace:cab:deca::/8", 24));
    let check = |ranges: &[(&str, i32)], cidrs: &[&str], expected: &str| {
        world(ranges, &[]).check(&with_cidrs("node0", cidrs), expected);
    };
    world(&[v4], &[]).check(&node("node0"), "assign 10.10.0.0/24 (has none, free: 256)");
    world(&[v4, v6], &[]).check(&node("node0"), "assign 10.10.0.0/24, a00::/24 (has none, free: 256)");
    check(&[v4], &["10.10.0.1/24"], "keep (has 10.10.0.0/24)");
    check(&[v4, v6], &["10.10.0.1/24", "a00::/86"], "keep (has 10.10.0.0/24, a00::/86)");
    let outside = |cidr: &str| format!("keep (has {cidr}, which is not in --cluster-cidr)");
    check(&[v4], &["172.10.0.1/24"], &outside("172.10.0.0/24"));
    check(&[v4], &["10.10.0.1/24", "a00::/86"], &outside("a00::/86"));
    check(&[v4, v6], &["172.10.0.1/24", "a00::/86"], &outside("172.10.0.0/24"));
    check(&[v4, v6], &["10.10.0.1/24", "cdd::/86"], &outside("cdd::/86"));
    check(&[v4], &["10.10.0.0"], &outside("10.10.0.0"));
    // Whatever the order of the ranges was when it got them.
    check(&[v6, v4], &["10.10.0.1/24", "a00::/86"], "keep (has 10.10.0.0/24, a00::/86)");
    let null = node("node0").set(&["spec", "podCIDRs"], json!(null));
    world(&[v4], &[]).check(&null, "assign 10.10.0.0/24 (has none, free: 256)");
    let bare = node("node0").set(&["spec"], json!(null));
    world(&[v4], &[]).check(&bare, "assign 10.10.0.0/24 (has none, free: 256)");
}

/// Upstream: `TestReleaseCIDRSuccess`.
#[test]
fn what_a_node_that_has_gone_had_is_given_again() {
    let world = world(&[("127.123.234.0/28", 30)], &[]);
    for (name, cidr) in [("a", "127.123.234.4/30"), ("b", "127.123.234.8/30"), ("c", "127.123.234.12/30")] {
        world.see(&with_cidrs(name, &[cidr]));
    }
    world.check(&node("d"), "assign 127.123.234.0/30 (has none, free: 1)");
    world.sync("d");
    world.check(&node("e"), "wait (has none, and 127.123.234.0/28 is full)");
    // Also before the cache shows that it has any.
    world.lose("d");
    world.check(&node("e"), "assign 127.123.234.0/30 (has none, free: 1)");
    world.sync("e");
    world.see(&with_cidrs("e", &["127.123.234.0/30"]));
    world.lose("a");
    world.check(&node("f"), "assign 127.123.234.4/30 (has none, free: 1)");
}

/// Upstream: `TestNodeDeletionReleaseCIDR`.
#[test]
fn a_node_has_its_cidrs_until_it_has_gone() {
    let world = world(&[("10.10.0.0/16", 24)], &[]);
    world.see(&with_cidrs("node0", &["10.10.0.0/24"]));
    world.check(&node("next"), "assign 10.10.1.0/24 (has none, free: 255)");
    world.check(&with_cidrs("node0", &["10.10.0.0/24"]).terminating(), "keep (has 10.10.0.0/24)");
    world.check(&node("next"), "assign 10.10.1.0/24 (has none, free: 255)");
    world.lose("node0");
    world.check(&node("next"), "assign 10.10.0.0/24 (has none, free: 256)");
    world.check(&node("going").terminating(), "keep (is being deleted)");
}

#[test]
fn blocks_are_given_round_robin() {
    let world = world(&[("10.0.0.0/22", 24)], &[]);
    for (name, expected) in [("a", "10.0.0.0/24"), ("b", "10.0.1.0/24"), ("c", "10.0.2.0/24")] {
        world.see(&node(name));
        assert!(world.sync(name).to_string().starts_with(&format!("assign {expected} ")));
        world.see(&with_cidrs(name, &[expected]));
        if name == "a" {
            world.lose("a");
        }
    }
    world.check(&node("d"), "assign 10.0.3.0/24 (has none, free: 2)");
    world.sync("d");
    world.check(&node("e"), "assign 10.0.0.0/24 (has none, free: 1)");
}

#[test]
fn a_replica_goes_on_where_another_one_has_stopped() {
    let standby = world(&[("10.0.0.0/22", 24)], &[]);
    standby.see(&node("a"));
    standby.see(&with_cidrs("a", &["10.0.2.0/24"]));
    standby.lose("a");
    standby.check(&node("b"), "assign 10.0.3.0/24 (has none, free: 4)");
    // A Node that comes with CIDRs was given them by nobody.
    standby.see(&with_cidrs("c", &["10.0.0.0/24"]));
    standby.check(&node("b"), "assign 10.0.3.0/24 (has none, free: 3)");
}

#[test]
fn cidrs_that_overlap_are_told() {
    let world = world(&[("10.0.0.0/16", 24)], &["10.0.128.0/17"]);
    let shared =
        |cidr: &str| format!("keep (has {cidr}, which overlaps with another Node or --service-cluster-ip-range)");
    world.see(&with_cidrs("a", &["10.0.1.0/24"]));
    world.check(&with_cidrs("b", &["10.0.1.0/24"]), &shared("10.0.1.0/24"));
    world.check(&with_cidrs("c", &["10.0.200.0/24"]), &shared("10.0.200.0/24"));
    // Two in one block need not overlap, and the block is taken while one of them is there.
    world.see(&with_cidrs("d", &["10.0.0.0/25"]));
    world.check(&with_cidrs("e", &["10.0.0.128/25"]), "keep (has 10.0.0.128/25)");
    world.lose("d");
    world.lose("b");
    world.check(&node("f"), "assign 10.0.2.0/24 (has none, free: 126)");
    world.check(&with_cidrs("a", &["10.0.1.0/24"]), "keep (has 10.0.1.0/24)");
}

#[test]
fn what_a_node_was_given_is_its_own_until_it_is_refused() {
    let world = world(&[("10.0.0.0/22", 24)], &[]);
    world.check(&node("a"), "assign 10.0.0.0/24 (has none, free: 4)");
    world.sync("a");
    world.check(&node("a"), "assign 10.0.0.0/24 (has none, and these were assigned before)");
    world.check(&node("b"), "assign 10.0.1.0/24 (has none, free: 3)");
    // As upstream, the next try is another block.
    world.settle("a", true);
    world.check(&node("a"), "assign 10.0.1.0/24 (has none, free: 4)");
    world.sync("a");
    world.settle("a", false);
    world.settle("a", true);
    world.check(&node("a"), "assign 10.0.1.0/24 (has none, and these were assigned before)");
    // What was stored is in use, whatever is refused before the cache shows it.
    world.check(&node("c"), "assign 10.0.2.0/24 (has none, free: 3)");
    world.sync("c");
    world.settle("c", false);
    world.settle("c", true);
    world.check(&node("c"), "assign 10.0.2.0/24 (has none, and these were assigned before)");
    // Another Node of the same name was given nothing.
    world.lose("a");
    world.check(&node("a").uid_of("another"), "assign 10.0.3.0/24 (has none, free: 3)");
}

#[test]
fn a_node_that_loses_its_cidrs_gets_the_same_again() {
    let world = world(&[("10.0.0.0/22", 24)], &[]);
    world.see(&with_cidrs("a", &["10.0.2.0/24"]));
    assert_eq!(world.see(&node("a")), enqueued(&["a"]));
    world.check(&node("a"), "assign 10.0.2.0/24 (has none, and these were assigned before)");
    world.check(&node("b"), "assign 10.0.0.0/24 (has none, free: 3)");
}

fn enqueued(names: &[&str]) -> Vec<Effect> {
    names.iter().map(|name| Effect::Enqueue(Key::new("", name), Cause::Event)).collect()
}

#[test]
fn a_node_is_synced_when_it_comes_without_cidrs_and_its_heartbeats_are_no_work() {
    let world = world(&[("10.0.0.0/22", 24)], &[]);
    let heartbeat = |node: ObjectBuilder| node.set(&["status", "beats"], 1).label("a", "b");
    assert_eq!(world.see(&node("a")), enqueued(&["a"]));
    assert_eq!(world.see(&heartbeat(node("a"))), []);
    assert_eq!(world.see(&with_cidrs("a", &["10.0.0.0/24"])), []);
    assert_eq!(world.see(&heartbeat(with_cidrs("a", &["10.0.0.0/24"]))), []);
    assert_eq!(world.see(&with_cidrs("b", &["10.0.1.0/24"])), []);
    assert_eq!(world.see(&node("going").terminating()), []);
    // To say that something is wrong, once.
    assert_eq!(world.see(&with_cidrs("c", &["10.9.0.0/24"])), enqueued(&["c"]));
    assert_eq!(world.see(&heartbeat(with_cidrs("c", &["10.9.0.0/24"]))), []);
    assert_eq!(world.see(&with_cidrs("d", &["10.0.1.0/24"])), enqueued(&["d"]));
    assert_eq!(world.lose("a"), []);
}

#[test]
fn as_many_nodes_as_there_are_free_blocks_are_woken_when_one_goes() {
    let world = world(&[("10.0.0.0/22", 24)], &[]);
    world.see(&with_cidrs("all", &["10.0.0.0/23"]));
    world.see(&with_cidrs("half", &["10.0.2.0/23"]));
    for name in ["c", "b", "a"] {
        world.see(&node(name));
    }
    world.see(&node("d").terminating());
    assert_eq!(world.lose("half"), enqueued(&["a", "b"]));
    // Those that were given something wait for nothing.
    world.sync("a");
    assert_eq!(world.lose("all"), enqueued(&["b", "c"]));
}

#[test]
fn the_patch_is_of_both_fields() {
    let cidrs = ["10.0.0.0/24", "fd00::/64"].map(cidr);
    let expected = json!({ "spec": { "podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24", "fd00::/64"] } });
    assert_eq!(cidrs_patch(&cidrs), expected);
}

/// Upstream: `TestCidrSetMetrics` and `TestCidrSetMetricsHistogram`.
#[test]
fn blocks_are_counted_as_upstream_counts_them() {
    let range = "10.0.0.0/16";
    let counted = |max: u64, usage: &str, allocations: u64, releases: u64, tries: &[&str]| -> Vec<String> {
        let lines = [
            format!("cidrset_cidrs_allocations_total{{}} {allocations}"),
            format!("cidrset_cidrs_releases_total{{}} {releases}"),
            format!("cidrset_usage_cidrs{{}} {usage}"),
            format!("cirdset_max_cidrs{{}} {max}"),
        ];
        let tries = tries.iter().map(|tries| format!("cidrset_allocation_tries_per_request_{tries}"));
        let mut lines: Vec<String> = lines.into_iter().chain(tries).collect();
        lines.sort();
        lines
    };
    let world = world(&[(range, 24)], &[]);
    let none = ["count{} 0", "sum{} 0.0"];
    assert_eq!(world.metrics(range), counted(256, "0.0", 0, 0, &none));
    // Half of them, and then the next one.
    world.see(&with_cidrs("half", &["10.0.0.0/17"]));
    assert_eq!(world.metrics(range), counted(256, "0.5", 128, 0, &none));
    world.see(&node("a"));
    world.sync("a");
    let one = ["count{} 1", "sum{} 128.0"];
    assert_eq!(world.metrics(range), counted(256, "0.50390625", 129, 0, &one));
    // The same block, whose holder is the Node now.
    world.see(&with_cidrs("a", &["10.0.128.0/24"]));
    assert_eq!(world.metrics(range), counted(256, "0.50390625", 129, 0, &one));
    world.lose("half");
    world.lose("a");
    assert_eq!(world.metrics(range), counted(256, "0.0", 129, 129, &one));
    world.see(&with_cidrs("all", &[range]));
    assert_eq!(world.metrics(range), counted(256, "1.0", 385, 129, &one));
}

/// Upstream: `TestCidrSetMetricsDual`, and `filterOutServiceRange`.
#[test]
fn each_range_has_its_metrics() {
    let world = world(&[("10.0.0.0/16", 24), ("2001:db8::/48", 64)], &["10.0.0.0/17"]);
    let has = |cluster_cidr: &str, line: &str| {
        let metrics = world.metrics(cluster_cidr);
        assert!(metrics.contains(&line.to_owned()), "{line} in {metrics:?}");
    };
    has("10.0.0.0/16", "cidrset_cidrs_allocations_total{} 128");
    has("10.0.0.0/16", "cidrset_usage_cidrs{} 0.5");
    has("2001:db8::/48", "cirdset_max_cidrs{} 65536");
    world.see(&with_cidrs("a", &["10.0.200.0/24", "2001:db8::/48"]));
    has("10.0.0.0/16", "cidrset_cidrs_allocations_total{} 129");
    has("2001:db8::/48", "cidrset_cidrs_allocations_total{} 65536");
    world.lose("a");
    has("10.0.0.0/16", "cidrset_cidrs_releases_total{} 1");
    has("2001:db8::/48", "cidrset_cidrs_releases_total{} 65536");
    has("2001:db8::/48", "cidrset_usage_cidrs{} 0.0");
}

/// One thing that happens to one of a few Nodes.
#[derive(Clone, Copy, Debug)]
enum Happens {
    /// Somebody makes it anew.
    Created,
    /// Somebody deletes it.
    Deleted,
    /// It is synced, and the patch is answered.
    Synced,
    /// It is synced, and the patch is refused by a webhook.
    Refused,
    /// It is synced, and the answer is lost.
    AnswerLost,
    /// It is synced, and the patch is under way when it is given up; it arrives later, or never.
    Late,
    /// The oldest patch that was given up arrives.
    Arrives,
    /// The watch brings the next change.
    Watched,
}

/// The apiserver, a watch that is behind, and the operator.
struct Cluster {
    world: World,
    /// Each Node with the number of its creation and its CIDRs.
    nodes: BTreeMap<u8, (u32, Option<String>)>,
    created: u32,
    version: u32,
    /// A state of a Node, or none for its deletion.
    watch: VecDeque<(u8, Option<ObjectBuilder>)>,
    late: VecDeque<(u8, u32, String)>,
}

impl Cluster {
    fn new() -> Self {
        let world = world(&[("10.0.0.0/22", 24)], &[]);
        let (watch, late) = (VecDeque::new(), VecDeque::new());
        Self { world, nodes: BTreeMap::new(), created: 0, version: 0, watch, late }
    }

    fn name(number: u8) -> String {
        format!("node-{number}")
    }

    fn changed(&mut self, number: u8) {
        self.version += 1;
        let name = Self::name(number);
        let state = self.nodes.get(&number).map(|(creation, cidr)| {
            let cidrs: Vec<&str> = cidr.as_deref().into_iter().collect();
            let node = if cidrs.is_empty() { node(&name) } else { with_cidrs(&name, &cidrs) };
            let version = Value::from(self.version.to_string());
            node.uid_of(&format!("{name}-{creation}")).set(&["metadata", "resourceVersion"], version)
        });
        self.watch.push_back((number, state));
    }

    fn watched(&mut self) {
        match self.watch.pop_front() {
            Some((_, Some(state))) => drop(self.world.see(&state)),
            Some((number, None)) => drop(self.world.lose(&Self::name(number))),
            None => {}
        }
    }

    /// A patch arrives: whether it is stored, or was before.
    fn patch(&mut self, number: u8, creation: u32, cidr: &str) -> bool {
        let Some((known, has)) = self.nodes.get_mut(&number) else { return false };
        if *known != creation || has.as_deref().is_some_and(|has| has != cidr) {
            return false;
        }
        if has.is_none() {
            *has = Some(cidr.to_owned());
            self.changed(number);
        }
        true
    }

    /// The number of the creation of the Node that the cache has, and the CIDR that a sync sends for it.
    fn sync(&self, number: u8) -> Option<(u32, String)> {
        let name = Self::name(number);
        let cached = self.world.caches.nodes.get(&Key::new("", &name))?;
        let is_it = |creation: &u32| shared::testing::uid(&format!("{name}-{creation}")) == cached.metadata.uid;
        let creation = (1..=self.created).find(is_it)?;
        match self.world.sync(&name) {
            Plan::Assign { cidrs, .. } => Some((creation, cidrs[0].to_string())),
            Plan::Keep(_) | Plan::Wait { .. } => None,
        }
    }

    fn happens(&mut self, what: Happens, number: u8) {
        match what {
            Happens::Created if !self.nodes.contains_key(&number) => {
                self.created += 1;
                self.nodes.insert(number, (self.created, None));
                self.changed(number);
            }
            Happens::Deleted if self.nodes.remove(&number).is_some() => self.changed(number),
            Happens::Arrives => {
                if let Some((number, creation, cidr)) = self.late.pop_front() {
                    self.patch(number, creation, &cidr);
                }
            }
            Happens::Watched => self.watched(),
            Happens::Synced | Happens::Refused | Happens::AnswerLost | Happens::Late => {
                let Some((creation, cidr)) = self.sync(number) else { return };
                let is_refused = match what {
                    Happens::Refused => true,
                    Happens::Late => {
                        self.late.push_back((number, creation, cidr));
                        false
                    }
                    Happens::AnswerLost => {
                        self.patch(number, creation, &cidr);
                        false
                    }
                    Happens::Synced | Happens::Created | Happens::Deleted | Happens::Arrives | Happens::Watched => {
                        !self.patch(number, creation, &cidr)
                    }
                };
                self.world.settle(&Self::name(number), is_refused);
            }
            Happens::Created | Happens::Deleted => {}
        }
    }

    /// The CIDRs that Nodes have, in their order.
    fn cidrs(&self) -> Vec<&str> {
        let mut cidrs: Vec<&str> = self.nodes.values().filter_map(|(_, cidr)| cidr.as_deref()).collect();
        cidrs.sort_unstable();
        cidrs
    }
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        3 => Just(Happens::Created),
        1 => Just(Happens::Deleted),
        3 => Just(Happens::Synced),
        1 => Just(Happens::Refused),
        1 => Just(Happens::AnswerLost),
        1 => Just(Happens::Late),
        1 => Just(Happens::Arrives),
        4 => Just(Happens::Watched),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_cidr_is_given_twice_and_none_is_lost(steps in proptest::collection::vec((happens(), 0..6_u8), 0..60)) {
        let mut cluster = Cluster::new();
        for (what, number) in steps {
            cluster.happens(what, number);
            let cidrs = cluster.cidrs();
            prop_assert!(cidrs.windows(2).all(|pair| pair[0] != pair[1]), "{cidrs:?} after {what:?} {number}");
        }
        let catch_up = |cluster: &mut Cluster| (0..cluster.watch.len()).for_each(|_| cluster.watched());
        // Nothing is lost any more.
        for _ in 0..3 {
            catch_up(&mut cluster);
            (0..6).for_each(|number| cluster.happens(Happens::Synced, number));
        }
        catch_up(&mut cluster);
        prop_assert_eq!(cluster.cidrs().len(), cluster.nodes.len().min(4));
        for (number, (_, cidr)) in &cluster.nodes {
            let plan = cluster.world.sync(&Cluster::name(*number));
            prop_assert_eq!(matches!(plan, Plan::Keep(_)), cidr.is_some(), "{}", plan);
        }
        (0..6).for_each(|number| cluster.happens(Happens::Deleted, number));
        catch_up(&mut cluster);
        prop_assert_eq!(cluster.world.caches.pool.free(), 4);
    }
}
