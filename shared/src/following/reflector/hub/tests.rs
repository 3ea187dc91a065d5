//! Informers that share their watches, on the apiserver in the test's process and in paused time.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use proptest::collection::vec;
use proptest::prelude::*;
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio::time::{Duration, sleep, timeout};

use super::super::Stop;
use super::super::watches::CATCH_UP_LIMIT;
use super::ring::{READ_BYTES_MAX, WAITING_BYTES_MAX};
use super::*;
use crate::api::object::Meta;
use crate::api::resource::PODS;
use crate::following::cache::{Cache, Change};
use crate::following::health::Health;
use crate::following::informer::{InformerBuilder, Watches};
use crate::testing::apiserver::{Connection, Server};
use crate::testing::running::test;
use crate::testing::{ObjectBuilder, object, pod};

/// A pod, of which this view reads a field that a pod may lack.
#[derive(Deserialize)]
struct Pod {
    metadata: Meta,
    #[expect(dead_code, reason = "only its presence matters")]
    status: Status,
}

#[derive(Deserialize)]
struct Status {
    #[expect(dead_code, reason = "only its presence matters")]
    phase: String,
}

crate::view!(Pod, PODS);

struct Room {
    server: Server,
    hub: Hub,
    /// Somebody else who follows all pods.
    _other: Follower,
}

/// One controller's informer of pods.
struct Prepared {
    cache: Arc<Cache<Pod>>,
    health: Arc<Health>,
    changes: Arc<Mutex<Vec<String>>>,
    run: BoxFuture<'static, ()>,
}

/// The same, running until this is dropped.
struct Running {
    cache: Arc<Cache<Pod>>,
    health: Arc<Health>,
    changes: Arc<Mutex<Vec<String>>>,
    _task: JoinSet<()>,
}

impl Room {
    fn new() -> Self {
        let server = Server::new();
        // Only an empty store has no version.
        server.add(&object("v1", "ConfigMap", "any"));
        let hub = Hub::new(Handle::current());
        let other = hub.follow(&InformerBuilder::<Pod>::new().build().asleep().0);
        Self { server, hub, _other: other }
    }

    fn follower(&self, builder: InformerBuilder<Pod>) -> Prepared {
        let watches = Watches::shared(self.server.client(&Connection::default()), self.hub.clone()).unwrap();
        let (mut informer, changes) = (builder.build(), Arc::new(Mutex::new(Vec::new())));
        let seen = Arc::clone(&changes);
        informer.on_change_at_any_time(move |change| {
            let mark = match change {
                Change::Added(_) => '+',
                Change::Updated { .. } => '~',
                Change::Deleted(_) => '-',
            };
            seen.lock().unwrap().push(format!("{mark}{}", change.latest().metadata.name()));
        });
        let (cache, health) = (informer.cache(), informer.health());
        Prepared { cache, health, changes, run: Box::pin(informer.run(watches).0) }
    }

    /// A controller more that follows all pods, once it has listed them.
    async fn follow(&self) -> Running {
        let running = self.follower(InformerBuilder::new()).start();
        self.settled(&[&running.cache]).await;
        running
    }

    /// The versions of all pods.
    fn pods(&self) -> BTreeMap<String, String> {
        let pods = self.server.list("pods");
        let text = |pod: &serde_json::Value, field: &str| pod["metadata"][field].as_str().unwrap().to_owned();
        pods.iter().map(|pod| (text(pod, "name"), text(pod, "resourceVersion"))).collect()
    }

    /// Waits until these caches have what the server has.
    async fn settled(&self, caches: &[&Cache<Pod>]) {
        for cache in caches {
            let same = async {
                while !cache.progress().synced || cached(cache) != self.pods() {
                    sleep(Duration::from_millis(10)).await;
                }
            };
            timeout(Duration::from_mins(3), same).await.expect("the cache has all in time");
        }
    }

    fn requests(&self) -> [usize; 2] {
        ["list pods", "watch pods"].map(|start| self.server.count(start))
    }

    fn touch(&self, name: &str) {
        self.server.change("pods", &format!("default/{name}"), |pod| pod["metadata"]["labels"]["touched"] = "1".into());
    }
}

fn cached(cache: &Cache<Pod>) -> BTreeMap<String, String> {
    let pods = cache.all();
    pods.iter().map(|pod| (pod.metadata.name().to_owned(), pod.metadata.resource_version.to_string())).collect()
}

impl Prepared {
    fn start(self) -> Running {
        let Self { cache, health, changes, run } = self;
        let mut task = JoinSet::new();
        task.spawn(run);
        Running { cache, health, changes, _task: task }
    }
}

impl Running {
    fn changes(&self) -> Vec<String> {
        std::mem::take(&mut *self.changes.lock().unwrap())
    }
}

fn large(name: &str, bytes: usize) -> ObjectBuilder {
    pod(name).set(&["metadata", "annotations", "large"], "x".repeat(bytes))
}

#[test]
fn followers_of_one_form_share_a_watch_and_list_by_themselves() {
    test(async {
        let room = Room::new();
        room.server.add(&pod("a"));
        let (one, two) = (room.follow().await, room.follow().await);
        assert_eq!(room.requests(), [2, 1]);
        room.server.add(&pod("b"));
        room.touch("a");
        room.server.delete("pods", "default/b");
        room.settled(&[&one.cache, &two.cache]).await;
        for controller in [&one, &two] {
            assert_eq!(controller.changes(), ["+a", "+b", "~a", "-b"]);
        }
        let other_forms = [
            InformerBuilder::new().metadata_only(),
            InformerBuilder::new().fields("status.phase=Running"),
            InformerBuilder::new().labels("touched=1"),
            InformerBuilder::new().namespace("default"),
        ];
        let others: Vec<Running> = other_forms.into_iter().map(|form| room.follower(form).start()).collect();
        sleep(Duration::from_secs(1)).await;
        assert_eq!((room.requests(), others.len()), ([6, 5], 4));
    });
}

#[test]
fn the_only_follower_of_a_form_watches_without_the_hub_and_shares_later() {
    test(async {
        let room = Room::new();
        let form = || InformerBuilder::new().labels("app=web");
        let one = room.follower(form()).start();
        sleep(Duration::from_secs(1)).await;
        let are_shared = || room.hub.followed().values().any(|followed| followed.watch.is_some());
        assert_eq!((room.requests(), are_shared()), ([1, 1], false));
        let two = room.follower(form()).start();
        sleep(Duration::from_secs(1)).await;
        assert_eq!((room.requests(), are_shared()), ([2, 2], true));
        // Longer than a watch is asked for.
        sleep(Duration::from_mins(11)).await;
        assert_eq!(room.server.open_watches("pods"), 1);
        room.server.add(&pod("a").label("app", "web"));
        room.settled(&[&one.cache, &two.cache]).await;
        drop((one, two));
        assert_eq!(room.hub.followed().len(), 2, "until they are stopped");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(room.hub.followed().len(), 1);
    });
}

#[test]
fn a_follower_skips_events_from_before_its_list() {
    test(async {
        let room = Room::new();
        let one = room.follow().await;
        room.server.hold_watches("pods");
        room.server.add(&pod("gone"));
        room.server.delete("pods", "default/gone");
        let unreadable = pod("a").set(&["status"], serde_json::Value::Null);
        room.server.add(&unreadable);
        room.server.change("pods", "default/a", |pod| pod["status"] = serde_json::json!({ "phase": "Running" }));
        let two = room.follow().await;
        assert_eq!(room.requests(), [2, 1]);
        room.server.release_watches("pods");
        room.touch("a");
        room.settled(&[&one.cache, &two.cache]).await;
        assert_eq!(one.changes(), ["+gone", "-gone", "+a", "~a"]);
        assert_eq!(two.changes(), ["+a", "~a"]);
        assert_eq!((one.health.decode_errors(), two.health.decode_errors()), (1, 0));
    });
}

#[test]
fn a_watch_ends_with_its_last_reader_and_not_with_the_one_that_opened_it() {
    test(async {
        let room = Room::new();
        let (one, two) = (room.follow().await, room.follow().await);
        drop(one);
        room.server.add(&pod("a"));
        room.settled(&[&two.cache]).await;
        assert_eq!((room.requests(), room.server.open_watches("pods")), ([2, 1], 1));
        drop(two);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(room.server.open_watches("pods"), 0);
        let three = room.follow().await;
        room.server.add(&pod("b"));
        room.settled(&[&three.cache]).await;
        assert_eq!(room.requests(), [3, 2]);
    });
}

/// A controller that is not polled for a while, as in a thread that is busy, beside others; the watches that were asked for
/// once it has caught up, and later.
async fn falls_behind(beside: usize) -> [usize; 2] {
    let room = Room::new();
    let mut slow = room.follower(InformerBuilder::new());
    assert!(timeout(Duration::from_secs(1), &mut slow.run).await.is_err());
    let mut others = Vec::new();
    for _ in 0..beside {
        others.push(room.follow().await);
    }
    let caches: Vec<&Cache<Pod>> = others.iter().map(|other| &*other.cache).collect();
    for at in 0..8 {
        room.server.add(&large(&format!("large-{at}"), WAITING_BYTES_MAX / 6));
        room.settled(&caches).await;
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!((cached(&slow.cache).len(), room.requests()), (0, [1 + beside, 1]));
    let slow = slow.start();
    room.settled(&[&slow.cache]).await;
    let [_, caught_up] = room.requests();
    sleep(CATCH_UP_LIMIT * 2).await;
    room.touch("large-1");
    room.settled(&caches).await;
    room.settled(&[&slow.cache]).await;
    assert_eq!((slow.health.lists(), room.server.open_watches("pods")), (1, 1), "it has its version, and shares again");
    let [_, later] = room.requests();
    [caught_up, later]
}

#[test]
fn who_falls_behind_resumes_alone_and_shares_again_and_the_others_go_on() {
    test(async {
        assert_eq!(falls_behind(2).await, [2, 2]);
        assert_eq!(falls_behind(0).await, [2, 3]);
    });
}

#[test]
fn what_all_have_read_is_kept_only_as_long_as_it_is_little() {
    let (watch, mut first) = SharedWatch::open(ResourceVersion(1), CATCH_UP_LIMIT);
    let reader = Ending::of(&watch);
    let event = |version: u64| {
        let padding = "x".repeat(READ_BYTES_MAX / 8);
        format!(r#"{{"type":"ADDED","object":{{"metadata":{{"resourceVersion":"{version}","x":"{padding}"}}}}}}"#)
    };
    test(async move {
        for version in 2..=20 {
            reader.push(event(version).as_bytes());
            assert!(matches!(first.next().await, Ok(Some(_))));
        }
        let oldest = (1..=20).find(|version| watch.join(ResourceVersion(*version)).is_some()).unwrap();
        assert!((13..20).contains(&oldest), "{oldest}");
        reader.push(b"not an event");
        reader.push(&vec![b' '; READ_BYTES_MAX]);
        for _ in 0..2 {
            assert!(matches!(first.next().await, Ok(Some(_))));
        }
        reader.push(event(21).as_bytes());
        assert!(watch.join(ResourceVersion(20)).is_none(), "nothing is known of the version of what is gone");
    });
}

#[test]
fn a_broken_watch_is_resumed_once_for_all_and_an_expired_version_listed_by_each() {
    test(async {
        let room = Room::new();
        let controllers = [room.follow().await, room.follow().await, room.follow().await];
        let caches = controllers.each_ref().map(|controller| &*controller.cache);
        sleep(Duration::from_secs(5)).await;
        room.server.cut_watches("pods");
        room.server.add(&pod("a"));
        room.settled(&caches).await;
        assert_eq!((room.requests(), room.server.open_watches("pods")), ([3, 2], 1));
        room.server.expire_watches("pods");
        room.server.add(&pod("b"));
        room.settled(&caches).await;
        assert_eq!((room.requests(), room.server.open_watches("pods")), ([6, 3], 1));
        assert_eq!(controllers.map(|controller| controller.changes()), [["+a", "+b"]; 3]);
    });
}

#[test]
fn an_account_that_may_not_watch_keeps_nobody_else_from_it() {
    test(async {
        let room = Room::new();
        let refused = room.server.on("watch", "pods").answer(403, "Forbidden", "no").once();
        let controllers: Vec<Running> = (0..3).map(|_| room.follower(InformerBuilder::new()).start()).collect();
        refused.arrived().await;
        room.server.add(&pod("a"));
        sleep(Duration::from_millis(100)).await;
        let caches: Vec<&Cache<Pod>> = controllers.iter().map(|controller| &*controller.cache).collect();
        let served = caches.iter().filter(|cache| cache.len() == 1).count();
        assert_eq!(served, 2, "one backs off");
        room.settled(&caches).await;
        assert_eq!((room.requests(), room.server.open_watches("pods")), ([3, 2], 1));
    });
}

#[test]
fn who_asks_for_a_new_watch_gets_one_that_the_others_join_later() {
    test(async {
        let room = Room::new();
        let (one, two) = (room.follow().await, room.follow().await);
        sleep(Duration::from_secs(1)).await;
        room.server.hold_watches("pods");
        room.server.add(&pod("a"));
        two.health.reconnect();
        sleep(Duration::from_secs(1)).await;
        assert_eq!((room.requests(), room.server.open_watches("pods")), ([2, 2], 2));
        room.server.release_watches("pods");
        room.settled(&[&one.cache, &two.cache]).await;
        // Longer than a watch is asked for.
        sleep(Duration::from_mins(11)).await;
        room.server.add(&pod("b"));
        room.settled(&[&one.cache, &two.cache]).await;
        assert_eq!(room.server.open_watches("pods"), 1);
    });
}

#[test]
fn a_list_of_a_restored_etcd_is_not_followed_by_a_watch_of_before() {
    test(async {
        let room = Room::new();
        let backup = room.server.back_up();
        room.server.add(&pod("a"));
        let (one, two) = (room.follow().await, room.follow().await);
        sleep(Duration::from_secs(1)).await;
        room.server.restore(backup);
        for controller in [&one, &two] {
            controller.health.relist();
        }
        room.settled(&[&one.cache, &two.cache]).await;
        room.server.add(&pod("b"));
        room.settled(&[&one.cache, &two.cache]).await;
        assert_eq!(one.changes(), ["+a", "-a", "+b"]);
    });
}

#[test]
fn a_reader_that_is_gone_ends_the_watch() {
    test(async {
        let (watch, mut first) = SharedWatch::open(ResourceVersion(1), CATCH_UP_LIMIT);
        let mut second = watch.join(ResourceVersion(1)).unwrap();
        drop(Ending::of(&watch));
        assert!(matches!(first.begun().await, Err(Stop::Ended)) && matches!(second.next().await, Ok(None)));
        assert!(watch.join(ResourceVersion(1)).is_none());
    });
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Touch(u8),
    Delete(u8),
    Large(u8),
    Start,
    Stop(u8),
    Reconnect(u8),
    Relist(u8),
    Cut,
    Expire,
    Hold,
    Release,
    Pass(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let any = || 0..4_u8;
    prop_oneof![
        4 => any().prop_map(Step::Touch),
        3 => any().prop_map(Step::Delete),
        1 => any().prop_map(Step::Large),
        2 => Just(Step::Start),
        1 => any().prop_map(Step::Stop),
        1 => any().prop_map(Step::Reconnect),
        1 => any().prop_map(Step::Relist),
        1 => Just(Step::Cut),
        1 => Just(Step::Expire),
        1 => Just(Step::Hold),
        1 => Just(Step::Release),
        2 => any().prop_map(Step::Pass),
    ]
}

impl Room {
    async fn step(&self, step: Step, controllers: &mut Vec<Running>) {
        let name = |at: u8| format!("pod-{at}");
        let some = |at: u8| usize::from(at) % controllers.len().max(1);
        match step {
            Step::Touch(at) if self.pods().contains_key(&name(at)) => self.touch(&name(at)),
            Step::Touch(at) => self.server.add(&pod(&name(at))),
            Step::Delete(at) if self.pods().contains_key(&name(at)) => {
                self.server.delete("pods", &format!("default/{}", name(at)));
            }
            Step::Large(at) if !self.pods().contains_key(&name(at)) => {
                self.server.add(&large(&name(at), READ_BYTES_MAX));
            }
            Step::Start => controllers.push(self.follower(InformerBuilder::new()).start()),
            Step::Stop(at) if !controllers.is_empty() => drop(controllers.remove(some(at))),
            Step::Reconnect(at) if !controllers.is_empty() => controllers[some(at)].health.reconnect(),
            Step::Relist(at) if !controllers.is_empty() => drop(controllers[some(at)].health.relist()),
            Step::Delete(_) | Step::Large(_) | Step::Stop(_) | Step::Reconnect(_) | Step::Relist(_) => {}
            Step::Cut => self.server.cut_watches("pods"),
            Step::Expire => self.server.expire_watches("pods"),
            Step::Hold => self.server.hold_watches("pods"),
            Step::Release => self.server.release_watches("pods"),
            Step::Pass(seconds) => sleep(Duration::from_secs(seconds.into())).await,
        }
        tokio::task::yield_now().await;
    }
}

/// What the changes that a controller was told of leave.
///
/// # Panics
/// At a change that cannot be.
fn told(changes: &[String]) -> Vec<String> {
    let mut there: Vec<String> = Vec::new();
    for change in changes {
        let (mark, name) = change.split_at(1);
        assert_eq!(there.iter().any(|known| known == name), mark != "+", "{change} of {changes:?}");
        match mark {
            "+" => there.push(name.to_owned()),
            "-" => there.retain(|known| known != name),
            _ => {}
        }
    }
    there.sort();
    there
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_happens_each_cache_has_in_the_end_what_the_server_has(steps in vec(step(), 1..60)) {
        test(async move {
            let (room, mut controllers) = (Room::new(), Vec::new());
            for step in steps {
                room.step(step, &mut controllers).await;
            }
            room.server.release_watches("pods");
            let caches: Vec<&Cache<Pod>> = controllers.iter().map(|controller| &*controller.cache).collect();
            room.settled(&caches).await;
            let there: Vec<String> = room.pods().into_keys().collect();
            for controller in &controllers {
                assert_eq!(told(&controller.changes()), there);
            }
            // Longer than a watch is asked for.
            sleep(Duration::from_mins(12)).await;
            assert_eq!(room.server.open_watches("pods"), controllers.len().min(1), "all share one watch again");
        });
    }
}
