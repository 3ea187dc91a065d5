//! Controllers in threads of their own, against an apiserver in the test's process. Time is real: threads do not share
//! a clock that could be paused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use anyhow::anyhow;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::*;
use crate::api::explain::{Stage, Subject};
use crate::api::object::{Key, Meta};
use crate::api::resource::CONFIG_MAPS;
use crate::following::cache::{Cache, Progress};
use crate::following::informer::InformerBuilder;
use crate::process::serving::Health;
use crate::testing::apiserver::{Connection, Server as Apiserver};
use crate::testing::object;
use crate::working::control::{Control, Patch, Preconditions};
use crate::working::queue::{Backoff, Cause};
use crate::working::worker::{Controller as Syncs, Requeue};

const LIMIT: Duration = Duration::from_secs(30);
const COMMON: &str = "kube-system/kube-controller-manager";

#[derive(Deserialize)]
struct ConfigMap {
    metadata: Meta,
}

crate::view!(ConfigMap, CONFIG_MAPS);

/// Labels each ConfigMap with its own name.
struct Labeller {
    name: &'static str,
    config_maps: Arc<Cache<ConfigMap>>,
    control: Control,
}

impl Labeller {
    fn declare(name: &'static str, setup: &mut Setup) {
        let queue = setup.queue(name, Backoff::default());
        let mut informer = InformerBuilder::<ConfigMap>::new().build();
        let added = queue.clone();
        informer.on_change(move |change| added.add(&change.latest().metadata.key, Cause::Event));
        let labeller = Self { name, config_maps: informer.cache(), control: setup.control(&queue) };
        setup.watch(informer);
        setup.work(Arc::new(labeller), &queue, 1);
    }
}

impl Syncs for Labeller {
    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&CONFIG_MAPS)
    }

    fn preview(&self, _: &Key) -> Vec<Stage> {
        Vec::new()
    }

    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(object) = self.config_maps.get(key) else { return Ok(Requeue::Done) };
        if object.metadata.labels.get(self.name).is_none() {
            let patch = Patch::merge(&json!({ "metadata": { "labels": { self.name: "yes" } } }));
            let control = self.control.for_key(key, object.metadata.uid);
            control.patch(&CONFIG_MAPS, key, Preconditions::from(object.metadata.uid), patch).await?;
        }
        Ok(Requeue::Done)
    }
}

const ONE: Names = Names { operator: "one-operator", controller: "one-controller", event_source: "one" };
const TWO: Names = Names { operator: "two-operator", controller: "two-controller", event_source: "two" };

#[derive(Debug, clap::Args)]
struct NoFlags {}

fn shared(args: &[&str]) -> SharedFlags {
    let fixed = [
        MANAGER,
        "--leader-elect-lease-duration=3s",
        "--leader-elect-renew-deadline=2s",
        "--leader-elect-retry-period=200ms",
        "--controller-shutdown-timeout=1s",
    ];
    let args = fixed.iter().chain(args).map(OsString::from);
    flags::parse::<NoFlags>(MANAGER, args).unwrap().shared
}

/// A process of several controllers and its apiserver.
struct Room {
    server: Apiserver,
    process: Process,
}

impl Room {
    fn new(args: &[&str]) -> Self {
        Self::on(&Apiserver::new(), args)
    }

    /// A process more of the same cluster.
    fn on(server: &Apiserver, args: &[&str]) -> Self {
        let server = server.clone();
        let (client, clock) = (server.client(&Connection::default()), server.clock());
        let metrics = Metrics::new(MANAGER);
        let events = Events::start(client.clone(), clock.clone(), metrics.events());
        let process = Process::new(shared(args), client, clock, metrics, &events).unwrap();
        Self { server, process }
    }

    fn add(&mut self, names: Names, declare: impl Fn(&mut Setup) + Send + Sync + 'static) -> Arc<Member> {
        let server = self.server.clone();
        let client = move |_| -> LocalBoxFuture<'static, _> {
            let server = server.clone();
            Box::pin(async move { Ok(server.client(&Connection::default())) })
        };
        self.add_over(names, declare, Box::new(client))
    }

    fn add_over(
        &mut self,
        names: Names,
        declare: impl Fn(&mut Setup) + Send + Sync + 'static,
        connect: Connect,
    ) -> Arc<Member> {
        self.process.add(names, Arc::new(declare), connect);
        Arc::clone(self.process.members.last().unwrap())
    }

    /// A controller that labels with its operator's name.
    fn add_labeller(&mut self, names: Names) -> Arc<Member> {
        self.add(names, move |setup| Labeller::declare(names.operator, setup))
    }

    fn start(self) -> Running {
        let Self { server, process } = self;
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let (checks, site) = (process.checks.clone(), process.site(Verbosity::new(0)));
        let working = tokio::spawn(async move { process.work(stopped.cancelled(), LIMIT).await });
        Running { server, checks, site, stop, working }
    }
}

/// A process at work.
struct Running {
    server: Apiserver,
    checks: Checks,
    site: Site,
    stop: CancellationToken,
    working: tokio::task::JoinHandle<anyhow::Result<()>>,
}

impl Running {
    fn add_config_map(&self, name: &str) {
        self.server.add(&object("v1", "ConfigMap", name));
    }

    fn is_labelled(&self, name: &str, by: Names) -> bool {
        let object = self.server.get("configmaps", &format!("default/{name}")).unwrap();
        object["metadata"]["labels"].get(by.operator).is_some()
    }

    async fn labelled(&self, name: &str, by: Names) {
        until(|| self.is_labelled(name, by)).await;
    }

    fn lease(&self, key: &str) -> Value {
        self.server.get("leases", key).unwrap_or_default()
    }

    fn holder(&self, key: &str) -> String {
        self.lease(key)["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }
}

/// Lets the threads go on until this holds.
async fn until(holds: impl Fn() -> bool) {
    let mut looks = interval(Duration::from_millis(5));
    let waiting = async {
        while !holds() {
            looks.tick().await;
        }
    };
    timeout(LIMIT, waiting).await.expect("it comes true in time");
}

async fn reaches(member: &Member, state: impl Fn(&State) -> bool) {
    let mut states = member.state();
    timeout(LIMIT, states.wait_for(state)).await.expect("it comes in time").unwrap();
}

fn lease(server: &Apiserver, name: &str, holder: &str) {
    let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": 3600, "leaseTransitions": 1 });
    let lease = object("coordination.k8s.io/v1", "Lease", name).set(&["metadata", "namespace"], "kube-system");
    server.add(&lease.set(&["spec"], spec));
}

fn release(server: &Apiserver, key: &str) {
    server.change("leases", key, |lease| lease["spec"]["holderIdentity"] = "".into());
}

#[tokio::test]
async fn a_controller_that_panics_is_started_again_while_the_others_go_on() {
    let mut room = Room::new(&[]);
    let one = room.add_labeller(ONE);
    let (panic, told) = watch::channel(false);
    let while_told = move || {
        let mut told = told.clone();
        async move { drop(told.wait_for(|told| *told).await.unwrap()) }
    };
    let two = room.add(TWO, declare_with_panic(TWO, while_told));
    let running = room.start();
    running.add_config_map("first");
    for names in [ONE, TWO] {
        running.labelled("first", names).await;
    }
    assert!(one.is_working() && two.is_working());
    assert_eq!(running.site.get("/healthz/two-controller").await, (200, "ok".to_owned()));

    panic.send_replace(true);
    reaches(&two, |state| matches!(state, State::Failed(reason) if reason.contains("on purpose"))).await;
    assert!(matches!(two.health(Probe::Readyz), Health::Failed(_)));
    assert!(
        matches!(running.checks.health(Probe::Healthz), Health::Degraded(reason) if reason.contains("two-controller: "))
    );
    let (code, told) = running.site.get("/healthz/two-controller").await;
    assert!(code == 200 && told.starts_with("degraded: ") && told.contains("on purpose"), "{code} {told}");
    running.add_config_map("second");
    running.labelled("second", ONE).await;
    panic.send_replace(false);
    running.labelled("second", TWO).await;

    assert_eq!((one.restarts(), two.restarts() > 0), (0, true));
    let (_, text) = running.site.get("/metrics").await;
    let line = r#"running_managed_controllers{name="two-controller",manager="kube-controller-manager"} 1"#;
    assert!(text.contains(line), "{text}");
    assert!(text.contains(r#"controller_restarts_total{name="one-controller"} 0"#), "{text}");
    running.stop.cancel();
    running.working.await.unwrap().unwrap();
}

#[tokio::test]
async fn one_port_answers_for_all() {
    let mut room = Room::new(&[]);
    for names in [ONE, TWO] {
        room.add_labeller(names);
    }
    let page = "/debug/controllers/three-controller/page";
    let three = Names { operator: "three-operator", controller: "three-controller", event_source: "three" };
    room.add(three, move |setup| setup.page(page, JSON, |_| std::iter::once("its own".to_owned())));
    let running = room.start();
    running.add_config_map("first");
    for names in [ONE, TWO] {
        running.labelled("first", names).await;
    }
    until(|| running.checks.health(Probe::Readyz) == Health::Fine).await;
    let read = async |path: &str| -> Value { serde_json::from_str(&running.site.get(path).await.1).unwrap() };
    let status = read("/debug/status").await;
    let of = |at: usize, field: &str| status[at][field].as_str().unwrap_or_default().to_owned();
    assert_eq!([0, 1, 2].map(|at| of(at, "operator")), ["one-operator", "two-operator", "three-operator"]);
    assert_eq!((of(0, "role"), of(0, "identity")), ("leader".to_owned(), COMMON.to_owned()));
    let why = "/why/api/v1/namespaces/default/configmaps/first";
    let acting: Vec<Value> = read(why).await.as_array().unwrap().iter().map(|one| one["operator"].clone()).collect();
    assert_eq!(acting, ["one-operator", "two-operator"]);
    let (_, text) = running.site.get(&format!("{why}?format=text")).await;
    assert!(text.contains("by one-operator") && text.contains("by two-operator"), "{text}");
    let (_, text) = running.site.get("/why/api/v1/nodes/a?format=text").await;
    assert_eq!(text, "No controller of this process acts on it.\n");
    assert_eq!(running.site.get(page).await, (200, "its own".to_owned()));
    assert_eq!(running.site.get("/readyz").await, (200, "ok".to_owned()));
    assert_eq!(running.site.get("/healthz/four-controller").await.0, 404);
    running.stop.cancel();
    running.working.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_controller_that_cannot_start_is_tried_again() {
    let mut room = Room::new(&[]);
    let (server, refused) = (room.server.clone(), AtomicBool::new(true));
    let connect: Connect = Box::new(move |_| {
        let is_refused = refused.swap(false, Ordering::Relaxed);
        let client = server.client(&Connection::default());
        Box::pin(async move { if is_refused { Err(anyhow!("there is no such account")) } else { Ok(client) } })
    });
    let one = room.add_over(ONE, |setup| Labeller::declare(ONE.operator, setup), connect);
    let running = room.start();
    running.add_config_map("first");
    reaches(&one, |state| matches!(state, State::Failed(reason) if reason == "there is no such account")).await;
    running.labelled("first", ONE).await;
    running.stop.cancel();
    running.working.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_blocked_thread_fails_the_probes_and_blocks_no_other() {
    let mut room = Room::new(&[]);
    room.process.pulse = Pulse { period: Duration::from_millis(50), limit: Duration::from_secs(3) };
    room.add_labeller(ONE);
    let (unblock, blocking) = mpsc::channel::<()>();
    let blocking = std::sync::Mutex::new(blocking);
    let two = room.add(TWO, move |_| {
        // As code that waits for a file or a lock does.
        let _ = blocking.lock().unwrap().recv();
    });
    let running = room.start();
    running.add_config_map("first");
    running.labelled("first", ONE).await;
    assert_eq!(running.checks.health(Probe::Livez), Health::Degraded("two-controller: not started yet".to_owned()));
    until(|| two.blocked(instant()).is_some()).await;
    assert!(
        matches!(running.checks.health(Probe::Livez), Health::Failed(reason) if reason.starts_with("two-controller: blocked"))
    );
    running.add_config_map("second");
    running.labelled("second", ONE).await;
    drop(unblock);
    until(|| running.checks.health(Probe::Livez) == Health::Fine).await;
    running.stop.cancel();
    running.working.await.unwrap().unwrap();
}

/// A client that the apiserver gives once this is told, so that the controllers start one after the other.
fn connect_after(server: &Apiserver, told: watch::Receiver<bool>) -> Connect {
    let server = server.clone();
    Box::new(move |_| {
        let (server, mut told) = (server.clone(), told.clone());
        Box::pin(async move {
            told.wait_for(|told| *told).await?;
            Ok(server.client(&Connection::default()))
        })
    })
}

/// A labeller that panics whenever it has started and `told` is done.
fn declare_with_panic<F: Future<Output = ()> + Send + 'static>(
    names: Names,
    told: impl Fn() -> F + Send + Sync,
) -> impl Fn(&mut Setup) + Send + Sync {
    move |setup| {
        Labeller::declare(names.operator, setup);
        let told = told();
        let (ready, synced) = watch::channel(Progress::default());
        ready.send_modify(|progress| progress.synced = true);
        setup.run("panics", synced, async move {
            let _ready = ready;
            told.await;
            panic!("on purpose");
        });
    }
}

#[tokio::test]
async fn controllers_share_a_watch_that_outlives_the_one_that_opened_it() {
    let mut room = Room::new(&[]);
    let [panic_one, panic_two] = [(); 2].map(|()| Arc::new(Notify::new()));
    let once_for_each = |panic: &Arc<Notify>| {
        let panic = Arc::clone(panic);
        move || Arc::clone(&panic).notified_owned()
    };
    let one = room.add(ONE, declare_with_panic(ONE, once_for_each(&panic_one)));
    let (second, starts) = watch::channel(false);
    let connect = connect_after(&room.server, starts);
    let two = room.add_over(TWO, declare_with_panic(TWO, once_for_each(&panic_two)), connect);
    let running = room.start();
    running.add_config_map("first");
    running.labelled("first", ONE).await;
    second.send_replace(true);
    running.labelled("first", TWO).await;
    let requests = || running.server.count("watch configmaps");
    until(|| requests() == 3).await;

    // Each streams a list when it starts. The first one goes on with that watch, because it is alone, and joins the watch of
    // the second one when it is back.
    for (at, (panic, member)) in [(&panic_one, &one), (&panic_two, &two)].into_iter().enumerate() {
        panic.notify_one();
        reaches(member, |state| matches!(state, State::Failed(_))).await;
        running.add_config_map(&format!("map-{at}"));
        for names in [ONE, TWO] {
            running.labelled(&format!("map-{at}"), names).await;
        }
        until(|| running.server.open_watches("configmaps") == 1).await;
        assert_eq!(requests(), 4 + at);
    }
    running.stop.cancel();
    running.working.await.unwrap().unwrap();
    until(|| running.server.open_watches("configmaps") == 0).await;
}

#[tokio::test]
async fn a_thread_that_is_busy_holds_up_no_other_although_it_opened_the_watch() {
    let mut room = Room::new(&[]);
    let (unblock, blocking) = mpsc::channel::<()>();
    let blocking = Arc::new(std::sync::Mutex::new(blocking));
    let (blocked, is_blocked) = watch::channel(false);
    room.add(ONE, move |setup| {
        Labeller::declare(ONE.operator, setup);
        let mut informer = InformerBuilder::<ConfigMap>::new().build();
        let (blocking, blocked) = (Arc::clone(&blocking), blocked.clone());
        informer.on_change_at_any_time(move |change| {
            if change.latest().metadata.name() == "heavy" {
                blocked.send_replace(true);
                let _ = blocking.lock().unwrap().recv();
            }
        });
        setup.watch(informer);
    });
    let (second, starts) = watch::channel(false);
    let connect = connect_after(&room.server, starts);
    room.add_over(TWO, |setup| Labeller::declare(TWO.operator, setup), connect);
    let running = room.start();
    running.add_config_map("first");
    running.labelled("first", ONE).await;
    second.send_replace(true);
    running.labelled("first", TWO).await;

    running.add_config_map("heavy");
    until(|| *is_blocked.borrow()).await;
    for name in ["second", "third"] {
        running.add_config_map(name);
        running.labelled(name, TWO).await;
        assert!(!running.is_labelled(name, ONE));
    }
    drop(unblock);
    running.labelled("third", ONE).await;
    running.stop.cancel();
    running.working.await.unwrap().unwrap();
}

#[tokio::test]
async fn losing_the_common_lease_ends_all() {
    let mut room = Room::new(&[]);
    let members = [room.add_labeller(ONE), room.add_labeller(TWO)];
    let running = room.start();
    running.add_config_map("first");
    for names in [ONE, TWO] {
        running.labelled("first", names).await;
    }
    running.server.change("leases", COMMON, |lease| lease["spec"]["holderIdentity"] = "another".into());
    let error = format!("{:#}", timeout(LIMIT, running.working).await.expect("it ends in time").unwrap().unwrap_err());
    assert_eq!(error, format!("leaderelection lost: lease {COMMON} is held by another"));
    let writes = running.server.writes();
    running.server.add(&object("v1", "ConfigMap", "second"));
    for member in &members {
        reaches(member, |state| matches!(state, State::Ended)).await;
    }
    assert_eq!(running.server.writes(), writes, "nothing is written after it");
}

#[tokio::test]
async fn a_standby_follows_and_works_once_it_leads_and_releases_the_common_lease_last() {
    let mut room = Room::new(&[]);
    let members = [room.add_labeller(ONE), room.add_labeller(TWO)];
    lease(&room.server, "kube-controller-manager", "another");
    let running = room.start();
    running.add_config_map("first");
    for member in &members {
        until(|| member.health(Probe::Readyz) == Health::Fine).await;
        assert!(!member.is_working());
    }
    assert_eq!(running.server.writes(), [""; 0]);

    release(&running.server, COMMON);
    for names in [ONE, TWO] {
        running.labelled("first", names).await;
        assert_eq!(running.holder(&format!("kube-system/{}", names.operator)), COMMON);
    }
    running.stop.cancel();
    running.working.await.unwrap().unwrap();
    let version = |key: &str| -> u64 {
        let lease = running.server.get("leases", key).unwrap();
        assert_eq!(lease["spec"]["holderIdentity"], "", "{key}");
        lease["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    };
    let last = version(COMMON);
    assert!(version("kube-system/one-operator") < last && version("kube-system/two-operator") < last);
}

#[tokio::test]
async fn what_pods_hold_is_left_to_them_until_they_release_it() {
    let mut room = Room::new(&[]);
    let (_, two) = (room.add_labeller(ONE), room.add_labeller(TWO));
    lease(&room.server, "two-operator", "a-pod");
    let running = room.start();
    running.add_config_map("first");
    running.labelled("first", ONE).await;
    until(|| two.health(Probe::Readyz) == Health::Fine).await;
    assert!(!two.is_working() && !running.is_labelled("first", TWO));
    release(&running.server, "kube-system/two-operator");
    running.labelled("first", TWO).await;
    running.stop.cancel();
    running.working.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_next_leader_goes_on_at_once_with_leases_of_a_process_that_crashed() {
    let mut room = Room::new(&[]);
    room.add_labeller(ONE);
    // The crashed process has neither released them nor renewed them to their end.
    lease(&room.server, "one-operator", COMMON);
    let running = room.start();
    running.add_config_map("first");
    running.labelled("first", ONE).await;
    running.stop.cancel();
    running.working.await.unwrap().unwrap();
}

#[tokio::test]
async fn control_planes_take_over_from_each_other_in_the_middle_of_work_and_write_nothing_twice() {
    const EACH: usize = 20;
    let server = Apiserver::new();
    // kube-controller-manager, on a node of its own.
    lease(&server, "kube-controller-manager", "node-1");
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let mut room = Room::on(&server, &[]);
        let member = room.add_labeller(ONE);
        nodes.push((member, room.start()));
    }
    for (member, _) in &nodes {
        until(|| member.health(Probe::Readyz) == Health::Fine).await;
    }
    let add = |round: usize| {
        for at in 0..EACH {
            server.add(&object("v1", "ConfigMap", &format!("map-{round}-{at}")));
        }
    };
    add(0);
    assert_eq!(server.writes(), [""; 0]);

    release(&server, COMMON);
    for round in 1..=3 {
        until(|| nodes.iter().filter(|(member, _)| member.is_working()).count() == 1).await;
        let at = nodes.iter().position(|(member, _)| member.is_working()).unwrap();
        let (_, leader) = nodes.swap_remove(at);
        let before = server.writes().len();
        add(round);
        until(|| server.writes().len() > before).await;
        if nodes.is_empty() {
            until(|| server.writes().len() >= EACH * 4).await;
        }
        leader.stop.cancel();
        leader.working.await.unwrap().unwrap();
    }
    for key in [COMMON, "kube-system/one-operator"] {
        assert_eq!(server.get("leases", key).unwrap()["spec"]["holderIdentity"], "", "free for the way back: {key}");
    }
    let mut writes = server.writes();
    writes.sort();
    writes.dedup();
    assert_eq!((writes.len(), server.writes().len()), (EACH * 4, EACH * 4), "each object once, whoever does it");
}
