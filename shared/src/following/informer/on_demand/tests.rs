//! Resources are followed while something needs them, and keys wait for them, on the scripted apiserver and in paused
//! time.

use std::ops::Deref;
use std::sync::Mutex;
use std::time::Duration;

use futures::FutureExt;
use serde::Deserialize;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::*;
use crate::api::intern::Text;
use crate::api::object::{Key, Meta};
use crate::api::resource::PODS;
use crate::following::cache::{Cache, Change};
use crate::following::demand::{Extent, Need, Needed};
use crate::following::informer::{Informer, InformerBuilder};
use crate::testing::apiserver::{Connection, Server};
use crate::testing::running::test;
use crate::testing::{ObjectBuilder, pod};
use crate::working::consistency::Consistency;

#[derive(Debug, Deserialize)]
struct Pod {
    metadata: Meta,
}

crate::view!(Pod, PODS);

const LINGER: Duration = Duration::from_mins(5);

/// An informer of pods that follows on demand, and the changes that it told.
struct Following {
    server: Server,
    cache: Arc<Cache<Pod>>,
    changes: Arc<Mutex<Vec<String>>>,
    consistency: Arc<Consistency>,
    task: AbortHandle,
}

impl Following {
    fn start(mut informer: Informer<Pod>, demands: Vec<Demand>) -> Self {
        let (server, watched) = (Server::new(), Watched::default());
        let (changes, cache) = (noting(&mut informer), informer.cache());
        for demand in &demands {
            watched.add_demand(demand.clone());
        }
        let client = server.client(&Connection::default());
        let consistency = Arc::new(Consistency::new(client.clone(), watched.clone()));
        let (run, start) = informer.run_on_demand(demands, &Watches::from(client.clone()), &watched);
        start();
        let task = tokio::spawn(async move { run.await.expect("nothing panics") }).abort_handle();
        Self { server, cache, changes, consistency, task }
    }

    fn pods(&self) -> Vec<String> {
        self.cache.all().iter().map(|pod| pod.metadata.key.to_string()).collect()
    }

    fn changes(&self) -> Vec<String> {
        std::mem::take(&mut *self.changes.lock().unwrap())
    }

    fn waits(&self, namespace: &str) -> bool {
        self.consistency.behind(&Key::new(namespace, "web")).is_some()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Pods, followed while something needs them.
struct Scene {
    following: Following,
    need: Need,
    demand: Demand,
}

impl Deref for Scene {
    type Target = Following;
    fn deref(&self) -> &Following {
        &self.following
    }
}

impl Scene {
    fn new(extent: Extent) -> Self {
        let need = Need::default();
        let demand = Demand::new("pods".to_owned(), &need, extent);
        let following = Following::start(InformerBuilder::new().build(), vec![demand.clone()]);
        for name in ["a/1", "b/1", "b/2"] {
            following.server.add(&pod_at(name));
        }
        Self { following, need, demand }
    }

    /// The requests for pods since the last look, once all is quiet.
    async fn asked(&self, before: &mut usize) -> Vec<String> {
        sleep(Duration::from_millis(10)).await;
        let requests = self.server.requests();
        let new = requests[*before..].to_vec();
        *before = requests.len();
        new
    }

    /// Ends when a key of this namespace may be synced.
    async fn ready(&self, namespace: &str) {
        let Some(behind) = self.consistency.behind(&Key::new(namespace, "web")) else { return };
        timeout(Duration::from_mins(1), behind.caught_up()).await.expect("it is listed in time");
    }
}

/// The changes that its handlers are told of.
fn noting(informer: &mut Informer<Pod>) -> Arc<Mutex<Vec<String>>> {
    let changes = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&changes);
    informer.on_change(move |change| {
        let mark = match change {
            Change::Added(_) => "+",
            Change::Updated { .. } => "~",
            Change::Deleted(_) => "-",
        };
        seen.lock().unwrap().push(format!("{mark}{}", change.latest().metadata.key));
    });
    changes
}

fn pod_at(key: &str) -> ObjectBuilder {
    let (namespace, name) = key.split_once('/').expect("a namespace and a name");
    pod(name).namespace(namespace)
}

#[test]
fn nothing_is_followed_that_nobody_needs_and_what_is_needed_is_listed_in_pages_once() {
    test(async {
        let (scene, mut asked) = (Scene::new(Extent::Cluster), 0);
        assert_eq!(scene.asked(&mut asked).await, [""; 0]);
        assert!(!scene.waits("a"), "its sync reads no pods");
        let first = scene.need.hold("a");
        assert!(scene.waits("a"), "nothing is listed yet");
        scene.ready("a").await;
        assert_eq!(scene.pods(), ["a/1", "b/1", "b/2"]);
        assert_eq!(scene.changes(), ["+a/1", "+b/1", "+b/2"]);
        let second = scene.need.hold("b");
        drop(first);
        assert!(!scene.waits("b"));
        assert_eq!(scene.asked(&mut asked).await, ["list pods", "watch pods"]);
        drop(second);
        sleep(LINGER.saturating_sub(Duration::from_secs(1))).await;
        assert_eq!(scene.pods().len(), 3);
        sleep(Duration::from_secs(2)).await;
        assert_eq!((scene.pods().len(), scene.changes().len()), (0, 0), "they are not gone, only unknown");
        assert_eq!(scene.demand.collections().len(), 0);
    });
}

#[test]
fn each_namespace_is_followed_for_itself_and_keeps_no_other_waiting() {
    test(async {
        let (scene, mut asked) = (Scene::new(Extent::Namespaces), 0);
        let refused = scene.server.on("list", "pods").answer(500, "InternalError", "no").once();
        let _a = scene.need.hold("a");
        assert_eq!(scene.asked(&mut asked).await, ["list pods a/"]);
        assert_eq!(refused.count(), 1);
        assert!(scene.demand.check().unwrap_err().contains("no"));
        let _b = scene.need.hold("b");
        scene.ready("b").await;
        assert!(scene.waits("a") && !scene.waits("b") && !scene.waits("c") && scene.waits(""));
        assert_eq!(scene.asked(&mut asked).await, ["list pods b/", "watch pods b/"]);
        scene.ready("a").await;
        assert!(!scene.waits("") && scene.demand.check().is_ok());
        scene.server.add(&pod_at("c/1"));
        scene.server.add(&pod_at("a/2"));
        sleep(Duration::from_millis(10)).await;
        assert_eq!(scene.pods(), ["a/1", "a/2", "b/1", "b/2"]);
    });
}

#[test]
fn many_namespaces_are_followed_by_one_watch_and_few_again_by_their_own() {
    test(async {
        let (scene, mut asked) = (Scene::new(Extent::Namespaces), 0);
        let mut held: Vec<Needed> = (0..16).map(|n| scene.need.hold(&format!("n{n}"))).collect();
        held.push(scene.need.hold("a"));
        scene.ready("").await;
        assert_eq!(scene.asked(&mut asked).await, ["list pods", "watch pods"]);
        held.drain(..9);
        sleep(Duration::from_millis(10)).await;
        assert_eq!(scene.asked(&mut asked).await.len(), 16, "eight namespaces, each listed and watched");
        assert_eq!(scene.changes(), ["+a/1", "+b/1", "+b/2"], "what is known already is no news");
        sleep(LINGER + Duration::from_secs(1)).await;
        assert_eq!(scene.pods(), ["a/1"], "nobody follows the others any more");
        assert!(!scene.waits(""));
        let more: Vec<Needed> = (0..9).map(|n| scene.need.hold(&format!("m{n}"))).collect();
        scene.ready("").await;
        assert_eq!(scene.demand.collections().len(), 1, "one watch has taken over from the others");
        drop(more);
    });
}

/// More needs than have a watch each.
fn many(scene: &Scene) -> Vec<Needed> {
    (0..16).map(|n| scene.need.hold(&format!("n{n}"))).collect()
}

#[test]
fn a_deletion_that_one_watch_has_yet_to_see_is_told_though_a_watch_of_all_takes_over() {
    test(async {
        let scene = Scene::new(Extent::Namespaces);
        let _a = scene.need.hold("a");
        scene.ready("a").await;
        assert_eq!(scene.changes(), ["+a/1"]);
        scene.server.hold_watches("pods");
        scene.server.delete("pods", "a/1");
        let _many = many(&scene);
        scene.ready("").await;
        sleep(LINGER * 2).await;
        assert_eq!(scene.changes(), ["+b/1", "+b/2"], "neither watch has told of it");
        scene.server.release_watches("pods");
        sleep(LINGER / 20).await;
        assert_eq!(scene.changes(), ["-a/1"]);
        assert_eq!(scene.demand.collections().len(), 1, "the watch of all has taken over");
    });
}

#[test]
fn what_is_needed_is_followed_until_another_watch_has_listed_it() {
    test(async {
        let scene = Scene::new(Extent::Namespaces);
        let _a = scene.need.hold("a");
        scene.ready("a").await;
        let held = scene.server.on("list", "pods").hold();
        let many = many(&scene);
        sleep(LINGER * 2).await;
        assert_eq!(scene.changes(), ["+a/1"]);
        scene.server.delete("pods", "a/1");
        sleep(Duration::from_millis(10)).await;
        assert_eq!(scene.changes(), ["-a/1"], "the watch of all is not there yet");
        held.release();
        scene.ready("").await;

        let held = scene.server.on("list", "pods").hold();
        let _b = scene.need.hold("b");
        drop(many);
        sleep(LINGER * 2).await;
        assert_eq!(scene.changes(), ["+b/1", "+b/2"]);
        scene.server.delete("pods", "b/1");
        sleep(Duration::from_millis(10)).await;
        assert_eq!(scene.changes(), ["-b/1"], "those of the namespaces are not there yet");
        held.release();
        scene.ready("").await;
        sleep(LINGER / 20).await;
        assert_eq!(scene.demand.collections().len(), 2);
    });
}

#[test]
fn a_watch_hands_over_by_another_list_where_a_restored_etcd_has_older_versions() {
    test(async {
        let scene = Scene::new(Extent::Namespaces);
        let backup = scene.server.back_up();
        let _a = scene.need.hold("a");
        scene.ready("a").await;
        scene.server.hold_watches("pods");
        scene.server.delete("pods", "a/1");
        let _many = many(&scene);
        scene.ready("").await;
        scene.server.restore(backup);
        scene.server.release_watches("pods");
        for collection in scene.demand.collections() {
            collection.relist().await;
        }
        sleep(LINGER / 20).await;
        assert_eq!(scene.demand.collections().len(), 1, "the watch of all has taken over");
        assert_eq!(scene.pods(), ["a/1", "b/1", "b/2"]);
    });
}

#[test]
fn namespaces_that_come_and_go_one_after_the_other_wait_for_none_before_them() {
    test(async {
        let scene = Scene::new(Extent::Namespaces);
        for n in 0..50 {
            let namespace = format!("n{n}");
            let _need = scene.need.hold(&namespace);
            scene.ready(&namespace).await;
            assert!(scene.demand.collections().len() <= 18, "{n}");
        }
        sleep(LINGER * 3).await;
        assert_eq!(scene.demand.collections().len(), 0);
    });
}

#[test]
fn the_pods_of_single_nodes_are_followed_and_of_many_nodes_all_that_have_one() {
    test(async {
        let (scene, mut asked) = (Scene::new(Extent::Nodes), 0);
        for (name, node) in [("2", "other"), ("3", ""), ("4", "third")] {
            scene.server.add(&pod_at(&format!("a/{name}")).node(node));
        }
        let waits = |key: &Key| scene.consistency.behind(key).is_some();
        let refused = scene.server.on("list", "pods").answer(500, "InternalError", "no").once();
        let other = scene.need.hold("other");
        assert_eq!(scene.asked(&mut asked).await, ["list pods"]);
        assert_eq!(refused.count(), 1);
        let _third = scene.need.hold("third");
        let third = Key::new("", "third");
        let listed = scene.consistency.behind(&third).expect("nothing is listed");
        timeout(Duration::from_mins(1), listed.caught_up()).await.expect("it is listed in time");
        assert!(waits(&Key::new("", "other")) && !waits(&third) && !waits(&Key::new("", "node")));
        assert!(scene.waits("a"), "a pod's key does not say on which node it is");
        scene.ready("a").await;
        assert_eq!(scene.pods(), ["a/2", "a/4"]);

        let many: Vec<Needed> = (0..16).map(|n| scene.need.hold(&format!("n{n}"))).collect();
        scene.ready("a").await;
        sleep(Duration::from_millis(10)).await;
        assert_eq!(scene.pods(), ["a/1", "a/2", "a/4", "b/1", "b/2"], "no node has the other one");
        assert_eq!(scene.demand.collections().len(), 1, "one watch has taken over from the others");
        drop((many, other));
        sleep(LINGER + Duration::from_secs(1)).await;
        assert_eq!(scene.pods(), ["a/4"], "nobody follows the others any more");
    });
}

#[test]
fn what_is_selected_by_a_name_keeps_only_the_key_of_that_name_waiting() {
    test(async {
        let (scene, mut asked) = (Scene::new(Extent::Selected("metadata.name=of-")), 0);
        for key in ["a/of-1", "b/of-2"] {
            scene.server.add(&pod_at(key));
        }
        let waits = |name: &str| scene.consistency.behind(&Key::new("", name)).is_some();
        let refused = scene.server.on("list", "pods").answer(500, "InternalError", "no").once();
        let first = scene.need.hold("1");
        assert_eq!(scene.asked(&mut asked).await, ["list pods"]);
        assert_eq!(refused.count(), 1);
        assert!(waits("1") && !waits("2") && !scene.waits("a"));
        let listed = scene.consistency.behind(&Key::new("", "1")).expect("nothing is listed");
        timeout(Duration::from_mins(1), listed.caught_up()).await.expect("it is listed in time");
        assert_eq!(scene.pods(), ["a/of-1"]);

        let many: Vec<Needed> = (0..16).map(|n| scene.need.hold(&format!("n{n}"))).collect();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(scene.pods(), ["a/1", "a/of-1", "b/1", "b/2", "b/of-2"], "one watch of all has taken over");
        drop((many, first));
        sleep(LINGER + Duration::from_secs(1)).await;
        assert_eq!(scene.demand.collections().len(), 0);
    });
}

#[test]
fn nodes_are_counted_by_their_names() {
    let need = Need::default();
    let pod: Arc<Pod> = pod_at("a/1").build();
    let name = |pod: &Pod| Some(Text::new(pod.metadata.name()));
    need.note(&Change::Added(&pod), name);
    assert!(need.is_of(&Text::new("1")) && !need.is_of(&Text::new("a")));
    need.note(&Change::Deleted(&pod), name);
    assert!(!need.is_there());
}

/// Pods with the label `job`, and in the namespaces of `whole` all.
struct Both {
    following: Following,
    need: Need,
    whole: Need,
}

impl Deref for Both {
    type Target = Following;
    fn deref(&self) -> &Following {
        &self.following
    }
}

impl Both {
    fn new() -> Self {
        let (need, whole) = (Need::default(), Need::default());
        let of = |need, extent| Demand::new("pods".to_owned(), need, extent);
        let both = vec![of(&need, Extent::Cluster), of(&whole, Extent::WholeNamespaces)];
        let following = Following::start(InformerBuilder::new().labels("job").build(), both);
        Self { following, need, whole }
    }

    /// The changes since the last look, once all is quiet, and the pods in the cache.
    async fn seen(&self) -> (String, String) {
        sleep(Duration::from_millis(10)).await;
        let mut changes = self.changes();
        // Of two watches either may be first.
        changes.sort_unstable();
        (changes.join(" "), self.pods().join(" "))
    }

    fn set_label(&self, pod: &str, labels: serde_json::Value) {
        self.server.change("pods", pod, |pod| pod["metadata"]["labels"] = labels);
    }
}

#[test]
fn whole_namespaces_beside_selected_objects_fill_one_cache_and_tell_each_change_once() {
    test(async {
        let both = Both::new();
        for (key, label) in [("a/in", "job"), ("a/out", "app"), ("b/in", "job"), ("b/out", "app")] {
            both.server.add(&pod_at(key).label(label, "x"));
        }
        let _need = both.need.hold("a");
        let seen = |changes: &str, pods: &str| (changes.to_owned(), pods.to_owned());
        assert_eq!(both.seen().await, seen("+a/in +b/in", "a/in b/in"));
        let whole = both.whole.hold("a");
        assert!(both.waits("a") && !both.waits("b"), "of `b` all that is needed is listed");
        assert_eq!(both.seen().await, seen("+a/out", "a/in a/out b/in"));
        assert!(!both.waits("a"));

        both.set_label("a/in", serde_json::json!({}));
        both.set_label("b/in", serde_json::json!({}));
        assert_eq!(both.seen().await, seen("-b/in ~a/in", "a/in a/out"));
        both.set_label("a/in", serde_json::json!({ "job": "x" }));
        both.server.add(&pod_at("a/new").label("job", "x"));
        assert_eq!(both.seen().await, seen("+a/new ~a/in", "a/in a/new a/out"));
        both.server.delete("pods", "a/new");
        assert_eq!(both.seen().await, seen("-a/new", "a/in a/out"));
        drop(whole);
        sleep(LINGER + Duration::from_secs(1)).await;
        assert_eq!(both.seen().await, seen("", "a/in"), "what is selected is followed on");
    });
}

#[test]
fn what_is_forgotten_needs_nothing() {
    test(async {
        let (need, mut informer) = (Need::default(), InformerBuilder::<Pod>::new().build());
        let of_pods = informer.need(|_| true);
        let following = Following::start(informer, vec![Demand::new("pods".to_owned(), &need, Extent::Cluster)]);
        following.server.add(&pod_at("a/1"));
        for _ in 0..2 {
            let held = need.hold("");
            sleep(Duration::from_secs(1)).await;
            assert_eq!((following.pods().len(), of_pods.is_there()), (1, true));
            drop(held);
            sleep(LINGER * 3).await;
            assert_eq!((following.pods().len(), of_pods.is_there()), (0, false));
        }
    });
}

#[test]
fn a_need_that_comes_back_soon_is_kept_for_longer() {
    test(async {
        let scene = Scene::new(Extent::Cluster);
        for linger in [LINGER, LINGER * 2, LINGER * 4] {
            let need = scene.need.hold("a");
            scene.ready("a").await;
            drop(need);
            sleep(linger.saturating_sub(Duration::from_secs(1))).await;
            assert_eq!(scene.demand.collections().len(), 1, "{linger:?}");
            sleep(Duration::from_secs(2)).await;
            assert_eq!(scene.demand.collections().len(), 0, "{linger:?}");
        }
        sleep(LINGER * 5).await;
        let need = scene.need.hold("a");
        scene.ready("a").await;
        drop(need);
        sleep(LINGER + Duration::from_secs(1)).await;
        assert_eq!(scene.demand.collections().len(), 0, "after a long rest it starts over");
    });
}

#[test]
fn what_nobody_needs_is_let_go_once_its_events_are_more_than_a_list_would_be() {
    test(async {
        let scene = Scene::new(Extent::Cluster);
        let churn = async |events: usize| {
            for n in 0..events {
                scene
                    .server
                    .change("pods", "a/1", |pod| pod["metadata"]["labels"] = serde_json::json!({ "n": n.to_string() }));
            }
            sleep(LINGER / 20).await;
        };
        // Twice as many after the need has come back.
        for (few, more) in [(500, 4), (1000, 7)] {
            let need = scene.need.hold("a");
            scene.ready("a").await;
            churn(2000).await;
            assert_eq!(scene.demand.collections().len(), 1, "it is needed");
            drop(need);
            sleep(Duration::from_millis(10)).await;
            churn(few).await;
            assert_eq!(scene.demand.collections().len(), 1, "{few} events");
            churn(more).await;
            assert_eq!(scene.demand.collections().len(), 0, "{more} events more");
        }
    });
}

#[test]
fn a_first_list_that_began_before_a_moment_is_begun_anew() {
    test(async {
        let (scene, mut asked) = (Scene::new(Extent::Cluster), 0);
        let held = scene.server.on("list", "pods").hold().once();
        let _need = scene.need.hold("a");
        let before = Instant::now();
        held.arrived().await;
        scene.demand.restart_first_lists(before);
        assert_eq!(scene.asked(&mut asked).await, ["list pods"], "it has what was written before");
        sleep(Duration::from_millis(1)).await;
        scene.demand.restart_first_lists(Instant::now());
        scene.ready("a").await;
        assert_eq!(scene.asked(&mut asked).await, ["list pods", "watch pods"]);
        sleep(Duration::from_millis(1)).await;
        scene.demand.restart_first_lists(Instant::now());
        assert_eq!(scene.asked(&mut asked).await, [""; 0], "what is listed goes on");
    });
}

#[test]
fn a_need_that_ends_while_a_key_waits_lets_it_go() {
    test(async {
        let scene = Scene::new(Extent::Cluster);
        scene.server.on("list", "pods").answer(403, "Forbidden", "no");
        let need = scene.need.hold("a");
        let behind = scene.consistency.behind(&Key::new("a", "web")).expect("nothing is listed");
        assert_eq!(behind.unlisted().collect::<Vec<_>>(), ["pods"]);
        let mut wait = Box::pin(behind.caught_up());
        sleep(Duration::from_secs(100)).await;
        assert!((&mut wait).now_or_never().is_none());
        drop(need);
        wait.await;
        assert!(!scene.waits("a"));
    });
}

#[test]
fn objects_count_as_long_as_they_are_picked() {
    let need = Need::default();
    let at = |name: &str, phase: &str| {
        let pod: Arc<Pod> = pod_at(name).label("phase", phase).build();
        pod
    };
    let (idle, busy) = (at("a/1", "idle"), at("a/1", "busy"));
    let namespace = |pod: &Pod| {
        let is_busy = pod.metadata.labels.get("phase") == Some("busy");
        is_busy.then(|| Text::new(pod.metadata.namespace()))
    };
    let note = |change| need.note(&change, namespace);
    note(Change::Added(&idle));
    assert!(!need.is_there());
    note(Change::Updated { old: &idle, new: &busy });
    let other = at("a/2", "busy");
    note(Change::Added(&other));
    note(Change::Updated { old: &busy, new: &busy });
    assert!(need.is_of(&Text::new("a")) && !need.is_of(&Text::new("b")));
    note(Change::Deleted(&other));
    assert!(need.is_there());
    note(Change::Updated { old: &busy, new: &idle });
    assert!(!need.is_there());
}

#[test]
fn an_object_that_needs_another_place_is_counted_there() {
    let need = Need::default();
    let at = |place: &str| -> Arc<Pod> { pod_at("a/1").label("place", place).build() };
    let (first, second) = (at("x"), at("y"));
    let note = |change| need.note(&change, |pod: &Pod| pod.metadata.labels.get("place").map(Text::new));
    note(Change::Added(&first));
    assert!(need.is_of(&Text::new("x")));
    note(Change::Updated { old: &first, new: &second });
    assert!(need.is_of(&Text::new("y")) && !need.is_of(&Text::new("x")));
    note(Change::Deleted(&second));
    assert!(!need.is_there());
}
