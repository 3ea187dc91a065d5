//! Waiting of keys, and the requests that it costs.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use http::{Request, Response};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::*;
use crate::api::intern::Text;
use crate::api::resource::PODS;
use crate::following::health::Health;
use crate::process::serving::loopback::{self, Body, answer};
use crate::transport::client::ClientOptions;

/// One followed resource, and how far its cache is.
struct Scene {
    consistency: Arc<Consistency>,
    progress: watch::Sender<Progress>,
    health: Arc<Health>,
    /// The versions of what the cache has.
    cache: Arc<Mutex<HashMap<Key, ResourceVersion>>>,
}

impl Scene {
    /// Nothing is ever sent to its client.
    fn new(label_selector: &'static str) -> Self {
        Self::of("127.0.0.1:1", label_selector)
    }

    /// The server answers as the closure says.
    async fn served(answer: impl Fn(Request<bytes::Bytes>) -> Response<Body> + Send + Sync + 'static) -> Self {
        Self::of(&loopback::serve(answer).await.to_string(), "")
    }

    fn of(host: &str, label_selector: &'static str) -> Self {
        let config = kube::Config::new(format!("http://{host}").parse().unwrap());
        let client = Client::new(&config, ClientOptions::default()).unwrap();
        let (progress, health) = (watch::Sender::default(), Arc::new(Health::new("pods".to_owned())));
        let cache = Arc::<Mutex<HashMap<Key, ResourceVersion>>>::default();
        let cached = Arc::clone(&cache);
        let followed = Watched::default();
        let consistency = Arc::new(Consistency::new(client, followed.clone()));
        followed.add(Follow {
            resource: PODS,
            namespace: Text::default(),
            field_selector: "".into(),
            label_selector: label_selector.into(),
            progress: progress.subscribe(),
            health: Arc::clone(&health),
            version_of: Arc::new(move |key| cached.lock().unwrap().get(key).copied()),
        });
        Self { consistency, progress, health, cache }
    }

    /// A pod was made for this key.
    fn wrote(&self, name: &str, owner: &str, version: u64) {
        self.created(name, owner, version, &Labels::default());
    }

    fn created(&self, name: &str, owner: &str, version: u64, labels: &Labels) {
        let (object, version) = (&key("pod"), ResourceVersion(version));
        let write = Write { object, version, created_with: Some(labels) };
        self.consistency.record(&key(name), Uid::parse(owner), &PODS, write);
    }

    /// A pod was changed for `web`.
    fn changed(&self, pod: &str, version: u64) {
        let write = Write { object: &key(pod), version: ResourceVersion(version), created_with: None };
        self.consistency.record(&key("web"), Uid::parse(A), &PODS, write);
    }

    fn has(&self, pod: &str, version: u64) {
        self.cache.lock().unwrap().insert(key(pod), ResourceVersion(version));
    }

    fn lost(&self, name: &str, owner: &str) {
        self.consistency.lost(&key(name), Uid::parse(owner), &PODS);
    }

    fn sees(&self, version: u64) {
        self.progress.send_modify(|progress| progress.resource_version = ResourceVersion(version));
    }

    fn is_listed(&self) {
        self.progress.send_modify(|progress| progress.synced = true);
    }

    fn lists(&self, list: u64) {
        self.progress.send_modify(|progress| progress.list = list);
    }

    /// The outstanding versions and lists of the key; empty for none.
    fn waits(&self, name: &str) -> String {
        let Some(behind) = self.consistency.behind(&key(name)) else { return String::new() };
        behind.writes().map(|(resource, what)| format!("{resource} {what}")).collect::<Vec<_>>().join(", ")
    }

    fn waiting(&self, name: &str) -> impl Future<Output = ()> + Send + use<> {
        self.consistency.behind(&key(name)).expect("it waits").caught_up()
    }
}

fn key(name: &str) -> Key {
    Key::new("ns", name)
}

const A: &str = "0b6cd1a8-9b7e-4a0e-9a53-0c7a3e1f2d4b";
const B: &str = "11111111-2222-4333-8444-555555555555";

#[tokio::test]
async fn a_key_waits_for_the_newest_of_its_writes() {
    let scene = Scene::new("");
    assert_eq!(scene.waits("web"), "", "nothing was written");
    scene.wrote("web", A, 7);
    scene.wrote("web", A, 5);
    assert_eq!(scene.waits("web"), "pods version 7");
    let mut wait = Box::pin(scene.waiting("web"));
    scene.sees(6);
    assert!((&mut wait).now_or_never().is_none());
    scene.sees(7);
    wait.await;
    assert_eq!(scene.waits("web"), "");
}

#[tokio::test]
async fn what_nobody_follows_is_waited_for_by_nobody() {
    let scene = Scene::new("");
    let write = Write { object: &key("job"), version: ResourceVersion(7), created_with: None };
    scene.consistency.record(&key("web"), Uid::parse(A), &crate::api::resource::JOBS, write);
    scene.consistency.lost(&key("web"), Uid::parse(A), &crate::api::resource::JOBS);
    assert_eq!(scene.waits("web"), "");
}

#[tokio::test]
async fn another_object_of_the_same_name_waits_for_nothing() {
    let scene = Scene::new("");
    scene.wrote("web", A, 7);
    scene.consistency.forget(&key("web"), Some(Uid::parse(B)));
    assert_eq!(scene.waits("web"), "pods version 7", "forgotten for another uid");
    scene.wrote("web", B, 3);
    assert_eq!(scene.waits("web"), "pods version 3");
}

#[tokio::test(start_paused = true)]
async fn a_stalled_watch_is_broken_by_a_list_that_began_later() {
    let scene = Scene::new("");
    scene.wrote("web", A, 7);
    let wait = tokio::spawn(scene.waiting("web"));
    tokio::time::sleep(STALL + Duration::from_secs(4)).await;
    assert_eq!(scene.health.wanted_list(), 0, "a new watch comes first");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(scene.health.wanted_list(), 1, "a list was asked for");
    assert!(!wait.is_finished());
    scene.lists(1);
    wait.await.unwrap();
    // The version is not reached and may not be for long: an etcd that was restored counts from a lower one.
    assert_eq!(scene.waits("web"), "", "the list has seen the write");
}

#[tokio::test(start_paused = true)]
async fn many_stalled_keys_request_one_list_and_lists_take_a_tenth_of_the_time() {
    let scene = Scene::new("");
    assert_eq!(scene.health.begins_list(), 1);
    tokio::time::sleep(Duration::from_secs(10)).await;
    scene.health.ends_list();
    let listed = tokio::time::Instant::now();
    for name in ["a", "b", "c"] {
        scene.wrote(name, A, 7);
        tokio::spawn(scene.waiting(name));
    }
    while scene.health.wanted_list() == 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(listed.elapsed().as_secs(), 90);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(scene.health.wanted_list(), 2, "the same list for all");
}

#[tokio::test]
async fn a_change_of_what_has_left_the_selector_is_waited_for_no_longer() {
    let scene = Scene::new("app=web");
    scene.is_listed();
    scene.has("a", 5);
    scene.has("b", 5);
    scene.changed("a", 7);
    scene.changed("b", 8);
    assert_eq!(scene.waits("web"), "pods version 8");
    scene.cache.lock().unwrap().remove(&key("a"));
    assert_eq!(scene.waits("web"), "pods version 8", "b may be older than what was written");
    scene.has("b", 8);
    assert_eq!(scene.waits("web"), "");
}

#[tokio::test]
async fn what_another_informer_has_put_into_the_cache_says_nothing_of_one_that_has_not_listed_yet() {
    let scene = Scene::new("app=web");
    scene.has("a", 7);
    scene.changed("a", 7);
    assert_eq!(scene.waits("web"), "pods version 7");
    scene.is_listed();
    assert_eq!(scene.waits("web"), "");
}

#[tokio::test]
async fn the_writes_of_keys_that_nobody_syncs_again_are_forgotten_once_they_are_seen() {
    let scene = Scene::new("");
    scene.lost("lost", A);
    for version in 1..10_000 {
        scene.wrote(&format!("web-{version}"), A, version);
        scene.sees(version);
    }
    scene.wrote("web", A, 10_000);
    assert!(scene.consistency.written().by_key.len() <= SWEEP_MIN + 1);
    assert_eq!(scene.waits("lost"), "pods a lost creation");
    assert_eq!(scene.waits("web"), "pods version 10000");
}

#[tokio::test]
async fn what_is_created_outside_the_selector_is_waited_for_by_nobody() {
    let scene = Scene::new("app=web");
    scene.created("web", A, 7, &Labels::new([("app", "db")]));
    assert_eq!(scene.waits("web"), "");
    scene.created("web", A, 8, &Labels::new([("app", "web")]));
    scene.changed("a", 9);
    assert_eq!(scene.waits("web"), "pods version 9", "the creation will be seen, and must be");
}

#[tokio::test]
async fn what_is_not_followed_any_more_is_waited_for_no_longer() {
    let Scene { consistency, progress, .. } = Scene::new("");
    let write = Write { object: &key("a"), version: ResourceVersion(7), created_with: None };
    consistency.record(&key("web"), Uid::parse(A), &PODS, write);
    assert!(consistency.behind(&key("web")).is_some());
    drop(progress);
    assert!(consistency.behind(&key("web")).is_none());
}

fn pod(owner: &str, version: u64) -> Value {
    let owner =
        json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner, "controller": true });
    json!({ "metadata": { "name": format!("web-{version}"), "namespace": "ns", "resourceVersion": version.to_string(),
        "ownerReferences": [owner] } })
}

fn page(items: &[Value], token: &str) -> Response<Body> {
    answer(200, json!({ "metadata": { "resourceVersion": "99", "continue": token }, "items": items }).to_string())
}

#[tokio::test]
async fn a_lost_creation_is_looked_for_in_its_namespace_and_waited_for_where_it_is_there() {
    let scene = Scene::served(|request| {
        let path = request.uri().to_string();
        assert!(request.headers()["accept"].to_str().unwrap().contains("as=PartialObjectMetadataList"));
        match path.as_str() {
            "/api/v1/namespaces/ns/pods?limit=500" => page(&[pod(A, 40), pod(B, 60)], "more"),
            "/api/v1/namespaces/ns/pods?limit=500&continue=more" => page(&[pod(A, 50)], ""),
            other => panic!("{other} was asked for"),
        }
    })
    .await;
    scene.sees(45);
    scene.lost("web", A);
    assert_eq!(scene.waits("web"), "pods a lost creation");
    let mut wait = Box::pin(scene.waiting("web"));
    let looked_up = async {
        while scene.waits("web") != "pods version 50" {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, async {
        tokio::select! {
            () = &mut wait => panic!("the cache lacks what was created"),
            () = looked_up => {}
        }
    })
    .await
    .expect("it is found");
    scene.sees(50);
    wait.await;
    assert_eq!(scene.waits("web"), "");
    assert_eq!(scene.health.wanted_list(), 0);
}

#[tokio::test]
async fn many_lost_creations_share_one_lookup_and_nothing_is_waited_for_where_nothing_is_there() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let scene = Scene::served(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        page(&[], "")
    })
    .await;
    for name in ["a", "a", "b", "c"] {
        scene.lost(name, A);
    }
    let waits = futures::future::join_all(["a", "b", "c"].map(|name| scene.waiting(name)));
    timeout(PATIENCE, waits).await.expect("all are answered");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(["a", "b", "c"].map(|name| scene.waits(name)).concat(), "");
}

const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_lookup_that_fails_is_tried_again_after_a_pause() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let scene = Scene::served(move |_| {
        let earlier = counted.fetch_add(1, Ordering::Relaxed);
        if earlier == 0 { answer(503, "") } else { page(&[], "") }
    })
    .await;
    scene.lost("web", A);
    let wait = tokio::spawn(scene.waiting("web"));
    let is_due = async || !scene.consistency.lookups.due.lock().await.is_empty();
    while !is_due().await {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_millis(900)).await;
    tokio::task::yield_now().await;
    assert_eq!(asked.load(Ordering::Relaxed), 1, "not at once");
    tokio::time::advance(Duration::from_millis(200)).await;
    tokio::time::resume();
    timeout(PATIENCE, wait).await.expect("the second one answers").unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}
