//! Rolling updates, step by step: upstream's `update_test.go`.

use std::collections::BTreeMap;

use daemonset_operator::objects::DaemonSet;
use daemonset_operator::plan::manage::manage;
use daemonset_operator::plan::places::Places;
use daemonset_operator::plan::update::{Limits, limits, rolling_update};
use daemonset_operator::plan::{Deletion, NewPod, Plan};
use jiff::Timestamp;
use serde_json::json;
use shared::testing::{NOW, ObjectBuilder};

use crate::fixtures::{Case, NEW, OLD, SetBuilder, case, node, pod, set, tainted, unready};

#[derive(Clone)]
struct Daemon {
    node: String,
    hash: String,
    ready: Option<Timestamp>,
}

/// A cluster in which writes take effect at once, as in upstream's tests.
struct Cluster {
    set: ObjectBuilder,
    nodes: Vec<ObjectBuilder>,
    daemons: BTreeMap<String, Daemon>,
    hash: String,
    now: Timestamp,
    made: usize,
}

impl Cluster {
    fn new(set: ObjectBuilder, nodes: usize) -> Self {
        let nodes = (0..nodes).map(|at| node(&format!("n{at:03}"))).collect();
        Self { set, nodes, daemons: BTreeMap::new(), hash: "1".to_owned(), now: NOW, made: 0 }
    }

    fn observed(&self) -> daemonset_operator::observe::Observed {
        let pods = self.daemons.iter().map(|(name, daemon)| {
            let pod = unready(name, &daemon.node, &daemon.hash);
            match daemon.ready {
                Some(since) => pod.ready_since(since),
                None => pod,
            }
        });
        case(self.set.clone(), self.nodes.clone(), pods).observed()
    }

    fn apply(&mut self, plan: Plan) -> (usize, usize) {
        let counts = (plan.create.len(), plan.delete.len());
        for Deletion { key, .. } in plan.delete {
            self.daemons.remove(key.name()).unwrap();
        }
        for NewPod { node, .. } in plan.create {
            self.made += 1;
            let daemon = Daemon { node: node.to_string(), hash: self.hash.clone(), ready: None };
            self.daemons.insert(format!("web-{:04}", self.made), daemon);
        }
        counts
    }

    /// One sync; gives how many pods came and how many went.
    fn sync(&mut self) -> (usize, usize) {
        let observed = self.observed();
        let managed = manage(&observed, &Places::of(&observed), &self.hash, self.now);
        let (came, went) = self.apply(managed);
        let observed = self.observed();
        let updated = rolling_update(&observed, &Places::of(&observed), &self.hash, self.now).unwrap();
        let (also_came, also_went) = self.apply(updated);
        (came + also_came, went + also_went)
    }

    #[track_caller]
    fn syncs(&mut self, expected: &[(usize, usize)]) {
        let found: Vec<_> = expected.iter().map(|_| self.sync()).collect();
        assert_eq!(found, expected);
    }

    fn get_ready(&mut self) {
        let now = self.now;
        for daemon in self.daemons.values_mut() {
            daemon.ready = daemon.ready.or(Some(now));
        }
    }

    /// Makes the first pods, and then rolls out another template.
    fn launched(set: ObjectBuilder, nodes: usize, are_ready: bool) -> Self {
        let mut cluster = Self::new(set, nodes);
        cluster.syncs(&[(nodes, 0)]);
        if are_ready {
            cluster.get_ready();
        }
        "2".clone_into(&mut cluster.hash);
        cluster
    }

    fn names_of_ready(&self) -> Vec<String> {
        self.daemons.iter().filter(|(_, daemon)| daemon.ready.is_some()).map(|(name, _)| name.clone()).collect()
    }
}

/// Upstream: `TestDaemonSetUpdatesPods`.
#[test]
fn without_a_surge_pods_go_first_and_come_then() {
    let mut cluster = Cluster::launched(set().unavailable(2), 5, true);
    for _ in 0..2 {
        cluster.syncs(&[(0, 2), (2, 0)]);
        cluster.get_ready();
    }
    cluster.syncs(&[(0, 1), (1, 0)]);
    cluster.get_ready();
    cluster.syncs(&[(0, 0)]);
}

/// Upstream: `TestDaemonSetUpdatesPodsWithMaxSurge`.
#[test]
fn with_a_surge_pods_come_first_and_go_then() {
    let mut cluster = Cluster::launched(set().surge(2), 5, true);
    for step in [(2, 0), (2, 2), (1, 2), (0, 1)] {
        cluster.syncs(&[step, (0, 0)]);
        cluster.get_ready();
    }
}

/// Upstream: `TestDaemonSetUpdatesWhenNewPodIsNotReady`.
#[test]
fn new_pods_that_do_not_get_ready_stop_an_update() {
    Cluster::launched(set().unavailable(3), 5, true).syncs(&[(0, 3), (3, 0), (0, 0)]);
}

/// Upstream: `TestDaemonSetUpdatesSomeOldPodsNotReady`.
#[test]
fn old_pods_that_are_not_ready_go_before_those_that_are() {
    let mut cluster = Cluster::launched(set().unavailable(2), 5, true);
    cluster.syncs(&[(0, 2), (2, 0), (0, 0)]);
    "3".clone_into(&mut cluster.hash);
    cluster.syncs(&[(0, 2), (2, 0), (0, 0)]);
    assert_eq!(cluster.names_of_ready().len(), 3);
}

/// Upstream: `TestDaemonSetUpdatesSaveOldHealthyPods`.
#[test]
fn old_pods_that_are_available_are_saved_whatever_becomes_of_the_others() {
    let mut cluster = Cluster::launched(set().unavailable(10), 20, true);
    cluster.syncs(&[(0, 10), (10, 0), (0, 0)]);
    let saved = cluster.names_of_ready();
    for max in 0..10 {
        cluster.set = set().unavailable(max);
        cluster.hash = format!("3-{max}");
        cluster.syncs(&[(0, 10), (10, 0), (0, 0)]);
        assert_eq!(cluster.names_of_ready(), saved);
    }
    cluster.set = set().unavailable(11);
    "4".clone_into(&mut cluster.hash);
    cluster.syncs(&[(0, 11), (11, 0), (0, 0)]);
    assert_eq!(cluster.names_of_ready().len(), 9);
}

/// Upstream: `TestDaemonSetUpdatesAllOldNotReadyPodsAndNewNotReadyPods`.
#[test]
fn old_pods_that_are_not_ready_go_though_too_many_new_ones_are_not() {
    let mut cluster = Cluster::launched(set().unavailable(10), 100, true);
    for _ in 0..10 {
        cluster.syncs(&[(0, 10), (10, 0)]);
        cluster.get_ready();
    }
    cluster.syncs(&[(0, 0)]);
    for (at, daemon) in cluster.daemons.values_mut().enumerate() {
        if at >= 10 {
            daemon.ready = None;
        }
        if at < 12 {
            "1".clone_into(&mut daemon.hash);
        }
    }
    cluster.syncs(&[(0, 2), (2, 0), (0, 0)]);
}

/// Upstream: `TestDaemonSetUpdatesAllOldPodsNotReady`.
#[test]
fn old_pods_that_are_not_ready_all_go_at_once() {
    Cluster::launched(set().unavailable(3), 5, false).syncs(&[(0, 5), (5, 0), (0, 0)]);
}

/// Upstream: `TestDaemonSetUpdatesAllOldPodsNotReadyMaxSurge`.
#[test]
fn with_a_surge_old_pods_that_are_not_ready_all_get_a_new_one_at_once() {
    let at = |seconds: i64| Timestamp::from_second(NOW.as_second() + seconds).unwrap();
    let mut cluster = Cluster::launched(set().surge(3), 5, false);
    cluster.syncs(&[(5, 0)]);
    cluster.now = at(100);
    cluster.syncs(&[(0, 5)]);
    cluster.get_ready();
    cluster.set = set().surge(3).with("minReadySeconds", 15);
    "3".clone_into(&mut cluster.hash);
    cluster.now = at(200);
    cluster.syncs(&[(3, 0)]);
    let new: Vec<String> = cluster.daemons.values().filter(|of| of.hash == "3").map(|of| of.node.clone()).collect();
    for daemon in cluster.daemons.values_mut().filter(|daemon| daemon.hash == "3").take(2) {
        daemon.ready = Some(at(200));
    }
    let alone = cluster.daemons.values_mut().find(|daemon| !new.contains(&daemon.node));
    alone.unwrap().ready = None;
    cluster.now = at(210);
    cluster.syncs(&[(1, 0)]);
    cluster.now = at(220);
    cluster.syncs(&[(1, 3)]);
    cluster.get_ready();
    cluster.now = at(240);
    cluster.syncs(&[(0, 2)]);
    cluster.now = at(250);
    cluster.syncs(&[(0, 0)]);
}

/// Upstream: `TestDaemonSetUpdatesNoTemplateChanged`.
#[test]
fn a_template_that_has_not_changed_replaces_nothing() {
    let mut cluster = Cluster::launched(set().unavailable(3), 5, true);
    "1".clone_into(&mut cluster.hash);
    cluster.syncs(&[(0, 0)]);
}

/// Upstream: `TestDaemonSetUpdatesPodsNotMatchTainstWithMaxSurge`.
#[test]
fn with_a_surge_a_node_that_it_is_for_no_more_waits_until_enough_others_are_available() {
    let tolerant = json!([{ "key": "k", "operator": "Exists" }]);
    let mut cluster = Cluster::new(set().surge(1).with_pod("tolerations", tolerant), 5);
    cluster.nodes[0] = tainted("n000", "k", "NoSchedule");
    cluster.syncs(&[(5, 0)]);
    cluster.get_ready();
    cluster.set = set().surge(1);
    "2".clone_into(&mut cluster.hash);
    for step in [(1, 1), (1, 1), (1, 1), (1, 1), (0, 1)] {
        cluster.syncs(&[step, (0, 0)]);
        cluster.get_ready();
    }
}

/// Upstream: `TestGetUnavailableNumbers`.
#[test]
fn limits_are_shares_of_the_nodes_rounded_up() {
    let of = |set: ObjectBuilder, desired| limits(&set.build::<DaemonSet>(), desired);
    let limits = |surge, unavailable| Ok(Limits { surge, unavailable });
    assert_eq!(of(set().unavailable(0), 0), limits(0, 0), "no nodes");
    assert_eq!(of(set().unavailable(1), 2), limits(0, 1));
    assert_eq!(of(set().unavailable(0), 2), limits(0, 1), "one of them must be allowed");
    assert_eq!(of(set().surge(0), 2), limits(0, 1));
    assert_eq!(of(set().unavailable("50%"), 2), limits(0, 1));
    assert_eq!(of(set().surge("50%"), 2), limits(1, 0));
    assert_eq!(of(set().surge("100%"), 2), limits(2, 0));
    assert_eq!(of(set().unavailable("50%"), 3), limits(0, 2));
    assert_eq!(of(set().with("updateStrategy", json!({ "type": "RollingUpdate" })), 2), limits(0, 1));
    let nothing = json!({ "type": "RollingUpdate", "rollingUpdate": {} });
    assert!(of(set().with("updateStrategy", nothing), 2).is_err());
    assert!(of(set().surge("odd"), 2).is_err());
}

fn check(case: &Case, expected: &str) {
    case.check(expected);
}

#[test]
fn a_node_with_too_many_or_none_counts_as_unavailable() {
    let nodes = || [node("a"), node("b")];
    let both = [pod("web-1", "a", OLD), pod("web-2", "b", OLD)];
    check(&case(set(), nodes(), both.clone()), "delete web-1 [outdated]");
    let leaving = [pod("web-1", "a", OLD), pod("web-2", "b", OLD).terminating()];
    check(&case(set(), nodes(), leaving.clone()), "nothing");
    check(&case(set().unavailable(2), nodes(), leaving), "delete web-1 [outdated]");
    check(&case(set().on_delete(), nodes(), both.clone()), "nothing");
    check(&case(set().with("updateStrategy", json!({ "type": "Odd" })), nodes(), both), "nothing");
}

/// Upstream: `TestIsPodUpdated`.
#[test]
fn a_pod_of_the_generation_of_now_is_updated_whatever_its_hash() {
    let generation = "deprecated.daemonset.template.generation";
    let updated = |set: ObjectBuilder, label: &str| {
        case(set, [node("a")], [pod("web-1", "a", OLD).label("pod-template-generation", label)]).plan().is_empty()
    };
    assert!(updated(set().annotation(generation, "3"), "3"));
    assert!(!updated(set().annotation(generation, "3"), "2"));
    assert!(!updated(set().annotation(generation, "odd"), "odd"));
    assert!(!updated(set(), "3"));
    assert!(case(set(), [node("a")], [pod("web-1", "a", NEW)]).plan().is_empty());
}

#[test]
fn with_a_surge_a_node_that_is_gone_is_passed_over() {
    let pods = [pod("web-1", "a", OLD), pod("web-2", "gone", OLD)];
    check(&case(set().surge(1), [node("a")], pods), "create on a [surge]");
    // Nor does its pod make room for the end of one that has to leave.
    let pods = [pod("web-1", "a", OLD), pod("web-2", "gone", OLD), unready("web-3", "b", NEW)];
    check(&case(set().surge(1), [tainted("a", "k", "NoSchedule"), node("b")], pods), "nothing");
}
