use std::sync::MutexGuard;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::*;
use crate::api::object::Key;
use crate::process::metrics::Metrics;
use crate::process::serving::loopback::{self, Body};
use crate::transport::client::{Limit, connection_of};
use crate::working::consistency::{Consistency, Watched};
use crate::working::control::Control;
use crate::working::decisions::Decisions;

/// One Lease with the apiserver's rules for it: an update of another version conflicts, and watches see each change.
#[derive(Default)]
struct Store {
    lease: Option<Value>,
    version: u64,
    watchers: Vec<UnboundedSender<Bytes>>,
    requests: Vec<String>,
    asked: Vec<Instant>,
    written: Vec<Instant>,
    fault: Option<Fault>,
}

/// A fault of the apiserver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Nobody may write.
    NoWrites,
    /// Nobody may watch.
    NoWatches,
    /// Watches tell nothing.
    SilentWatches,
    /// Answers have no end.
    Stalls,
    /// Nobody listens.
    Away,
}

impl Store {
    fn write(&mut self, lease: Option<Value>) -> Response<Body> {
        self.version += 1;
        self.written.push(Instant::now());
        let event = lease.as_ref().map_or("DELETED", |_| "MODIFIED");
        let mut stored = lease.clone().unwrap_or_default();
        stored["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let line = format!("{}\n", json!({"type": event, "object": stored}));
        if self.fault != Some(Fault::SilentWatches) {
            self.watchers.retain(|watcher| watcher.send(Bytes::from(line.clone())).is_ok());
        }
        self.lease = lease.map(|_| stored.clone());
        loopback::answer(200, stored.to_string())
    }

    fn answer(&mut self, request: &Request<Bytes>) -> Response<Body> {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=1"));
        let verb = if is_watch { "WATCH" } else { request.method().as_str() };
        self.requests.push(verb.to_owned());
        if (self.fault == Some(Fault::NoWrites) && request.method() != Method::GET)
            || (self.fault == Some(Fault::NoWatches) && is_watch)
        {
            return status(403, "Forbidden");
        }
        if is_watch {
            let (sender, mut events) = unbounded_channel();
            self.watchers.push(sender);
            return loopback::stream(futures::stream::poll_fn(move |context| events.poll_recv(context)));
        }
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        match (request.method(), &self.lease) {
            (&Method::GET, Some(lease)) => loopback::answer(200, lease.to_string()),
            (&Method::POST, None) => self.write(Some(body)),
            (&Method::POST, Some(_)) => status(409, "AlreadyExists"),
            (&Method::PUT, Some(lease))
                if lease["metadata"]["resourceVersion"] == body["metadata"]["resourceVersion"] =>
            {
                self.write(Some(body))
            }
            (&Method::PUT, Some(_)) => status(409, "Conflict"),
            _ => status(404, "NotFound"),
        }
    }
}

impl Store {
    fn watches(&self) -> bool {
        self.requests.iter().any(|verb| verb == "WATCH")
    }
}

fn answer(store: &mut Store, request: &Request<Bytes>) -> io::Result<Response<Body>> {
    store.asked.push(Instant::now());
    match store.fault {
        Some(Fault::Away) => Err(io::ErrorKind::ConnectionRefused.into()),
        Some(Fault::Stalls) => Ok(loopback::stream(futures::stream::pending())),
        Some(Fault::NoWrites | Fault::NoWatches | Fault::SilentWatches) | None => Ok(store.answer(request)),
    }
}

fn status(code: u16, reason: &str) -> Response<Body> {
    loopback::answer(code, json!({"kind": "Status", "code": code, "reason": reason, "message": reason}).to_string())
}

/// No socket is between its parts, so that paused time passes as soon as everybody waits.
#[derive(Clone)]
struct Room {
    store: Arc<Mutex<Store>>,
    asked: Sender<()>,
    client: Client,
    metrics: Metrics,
    started: Instant,
}

impl Room {
    fn new() -> Self {
        let store = Arc::new(Mutex::new(Store::default()));
        let asked = Sender::new(());
        let (served, noted) = (Arc::clone(&store), asked.clone());
        let client = Client::of_service(move || {
            let (served, noted) = (Arc::clone(&served), noted.clone());
            let service = tower::service_fn(move |request: Request<kube::client::Body>| {
                let (served, noted) = (Arc::clone(&served), noted.clone());
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await.unwrap_or_else(|error| panic!("{error}")).to_bytes();
                    let answer = answer(&mut served.lock().unwrap(), &Request::from_parts(head, body));
                    noted.send_replace(());
                    answer
                }
            });
            connection_of(service)
        });
        Self { store, asked, client, metrics: Metrics::new("test-operator"), started: Instant::now() }
    }

    /// Lets everything else go on until this holds.
    async fn until(&self, holds: impl Fn(&Store) -> bool) {
        let mut asked = self.asked.subscribe();
        let waiting = async {
            while !holds(&self.store()) {
                asked.changed().await.unwrap();
            }
        };
        timeout(LIMIT, waiting).await.expect("it comes true in time");
    }

    /// A candidate whose Lease lasts as long as a test may take.
    fn elector(&self, identity: &str, retry: Duration) -> Elector {
        self.elector_for(LIMIT, identity, retry)
    }

    fn elector_for(&self, lease_duration: Duration, identity: &str, retry_period: Duration) -> Elector {
        let election = Election {
            lease: Key::new("kube-system", "test-operator"),
            identity: identity.to_owned(),
            lease_duration,
            renew_deadline: lease_duration.mul_f64(0.7),
            retry_period,
        };
        self.elector_of(election)
    }

    fn elector_of(&self, election: Election) -> Elector {
        let metrics = self.metrics.leader("test-operator");
        let started = self.started;
        let clock = Clock::new(move || Timestamp::UNIX_EPOCH + started.elapsed());
        Elector::new(election, self.client.clone(), clock, Recorder::default(), metrics)
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap()
    }

    /// Milliseconds since the room is there.
    fn millis(&self, at: Instant) -> u128 {
        at.duration_since(self.started).as_millis()
    }

    fn spec(&self) -> Value {
        self.store().lease.as_ref().map_or(Value::Null, |lease| lease["spec"].clone())
    }

    fn is_leader(&self) -> bool {
        self.metrics.to_text().contains("leader_election_master_status{name=\"test-operator\"} 1")
    }
}

const SECOND: Duration = Duration::from_secs(1);
const FAST: Duration = Duration::from_millis(50);
const SLOW: Duration = Duration::from_secs(30);
const LIMIT: Duration = Duration::from_secs(20);

#[tokio::test(start_paused = true)]
async fn a_missing_lease_is_created_and_a_released_one_says_so() {
    let room = Room::new();
    let mut elector = room.elector("a", FAST);
    assert!(!room.is_leader());
    elector.acquire().await;
    assert!(room.is_leader());
    let spec = room.spec();
    assert_eq!(
        (&spec["holderIdentity"], &spec["leaseDurationSeconds"], &spec["leaseTransitions"]),
        (&json!("a"), &json!(20), &json!(0))
    );
    elector.release().await;
    assert!(!room.is_leader());
    let spec = room.spec();
    assert_eq!(
        (&spec["holderIdentity"], &spec["leaseDurationSeconds"], &spec["leaseTransitions"]),
        (&json!(""), &json!(1), &json!(0))
    );
}

#[tokio::test(start_paused = true)]
async fn a_release_reaches_the_next_candidate_at_once_by_its_watch() {
    let room = Room::new();
    let mut leader = room.elector("a", FAST);
    leader.acquire().await;
    let mut standby = room.elector("b", SLOW);
    let mut tried = standby.tried();
    let acquired = tokio::spawn(async move {
        standby.acquire().await;
        standby
    });
    timeout(LIMIT, tried.wait_for(|tried| *tried)).await.expect("a standby follows").unwrap();
    // Renewals go on until the other watches; they are what it must tell from a release.
    tokio::select! {
        lost = leader.renew() => panic!("{lost}"),
        () = room.until(Store::watches) => {}
    }
    assert!(!acquired.is_finished());
    let started = Instant::now();
    leader.release().await;
    timeout(LIMIT, acquired).await.unwrap().unwrap();
    assert!(started.elapsed() < SECOND, "{:?}", started.elapsed());
    assert_eq!((&room.spec()["holderIdentity"], &room.spec()["leaseTransitions"]), (&json!("b"), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_killed_leader_is_taken_once_it_has_expired() {
    for fault in [None, Some(Fault::NoWatches)] {
        let room = Room::new();
        room.store().fault = fault;
        let mut leader = room.elector_for(SECOND, "a", FAST);
        leader.acquire().await;
        let killed = Instant::now();
        drop(leader);
        let mut standby = room.elector_for(SECOND, "b", FAST);
        timeout(LIMIT, standby.acquire()).await.unwrap();
        let took = killed.elapsed();
        assert!(took >= SECOND && took < SECOND * 2, "{took:?}");
        assert_eq!(room.spec()["holderIdentity"], "b");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silently_dead_makes_no_second_leader() {
    let room = Room::new();
    room.store().fault = Some(Fault::SilentWatches);
    let mut leader = room.elector_for(SECOND, "a", FAST);
    leader.acquire().await;
    let mut standby = room.elector_for(SECOND, "b", FAST);
    tokio::select! {
        lost = leader.renew() => panic!("{lost}"),
        _ = standby.acquire() => panic!("a second leader"),
        // Each watch is preceded by a read, which shows the renewals that the watch before did not.
        () = room.until(|store| store.requests.iter().filter(|verb| *verb == "WATCH").count() == 3) => {}
    }
    assert_eq!(room.spec()["holderIdentity"], "a");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_created_anew() {
    let room = Room::new();
    let mut leader = room.elector("a", FAST);
    leader.acquire().await;
    let mut standby = room.elector("b", SLOW);
    let acquired = tokio::spawn(async move { standby.acquire().await });
    room.until(Store::watches).await;
    room.store().write(None);
    timeout(LIMIT, acquired).await.unwrap().unwrap();
    assert_eq!(room.spec()["holderIdentity"], "b");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_sees_another_holder_stops_at_once() {
    let room = Room::new();
    let mut leader = room.elector("a", FAST);
    leader.acquire().await;
    let mut taken = room.store().lease.clone().unwrap();
    taken["spec"]["holderIdentity"] = json!("b");
    room.store().write(Some(taken));
    let lost = timeout(LIMIT, leader.renew()).await.unwrap();
    assert_eq!(lost.to_string(), "lease kube-system/test-operator is held by b");
    assert!(!room.is_leader());
    leader.release().await;
    assert_eq!(room.spec()["holderIdentity"], "b");
}

/// Why a leader stops after somebody has done this with its Lease.
async fn lost_after(meddle: impl FnOnce(&mut Store, Value)) -> String {
    let room = Room::new();
    let mut leader = room.elector("a", FAST);
    leader.acquire().await;
    let lease = room.store().lease.clone().unwrap();
    meddle(&mut room.store(), lease);
    let lost = timeout(LIMIT, leader.renew()).await.unwrap();
    assert!(!room.is_leader());
    lost.to_string()
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_did_not_hold_its_lease_all_the_time_does_not_go_on() {
    let interrupted = "lease kube-system/test-operator was not held all the time";
    let deleted = lost_after(|store, _| drop(store.write(None)));
    assert_eq!(deleted.await, interrupted);
    let released = lost_after(|store, mut lease| {
        lease["spec"]["holderIdentity"] = json!("");
        store.write(Some(lease));
    });
    assert_eq!(released.await, interrupted);
    let given_back = lost_after(|store, mut lease| {
        lease["spec"]["leaseTransitions"] = json!(2);
        store.write(Some(lease));
    });
    assert_eq!(given_back.await, interrupted);
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_version_falls_tells_the_leader_and_the_standby_of_a_restored_etcd() {
    let room = Room::new();
    room.store().version = 100;
    let (mut leader, mut standby) = (room.elector("a", FAST), room.elector_for(SECOND, "b", FAST));
    let (mut of_leader, mut of_standby) = (leader.restores(), standby.restores());
    leader.acquire().await;
    let stood_by = tokio::spawn(async move { standby.acquire().await });
    room.until(Store::watches).await;
    assert!(!of_leader.has_changed().unwrap() && !of_standby.has_changed().unwrap());
    {
        let mut store = room.store();
        store.version = 50;
        store.watchers.clear();
        let backup = store.lease.clone();
        store.write(backup);
    }
    tokio::select! {
        lost = leader.renew() => panic!("{lost}"),
        () = async {
            of_leader.changed().await.unwrap();
            timeout(LIMIT, of_standby.changed()).await.unwrap().unwrap();
        } => {}
    }
    assert!(!stood_by.is_finished(), "the leader goes on");
    assert_eq!(room.spec()["holderIdentity"], "a");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_written_again_after_a_failure_shows_that_the_server_is_back() {
    let room = Room::new();
    let mut candidate = room.elector("a", FAST);
    let came_back = room.client.came_back();
    room.store().fault = Some(Fault::NoWrites);
    assert!(timeout(FAST, candidate.acquire()).await.is_err());
    room.store().fault = None;
    assert!(!came_back.has_changed().unwrap());
    timeout(LIMIT, candidate.acquire()).await.unwrap();
    assert!(came_back.has_changed().unwrap());
}

/// Candidates with the default times of the flags.
fn upstreams_times() -> Election {
    Election {
        lease: Key::new("kube-system", "test-operator"),
        identity: "a".to_owned(),
        lease_duration: SECOND * 15,
        renew_deadline: SECOND * 10,
        retry_period: SECOND * 2,
    }
}

/// Milliseconds since the room is there, at which the Lease was asked for or written.
struct Requests {
    asked: Vec<u128>,
    written: Vec<u128>,
}

/// Runs a leader that acquires at a full minute of the wall clock: see [`lead_from`].
async fn lead_through(fault: Fault, from: u64, to: u64) -> (Requests, Option<(u128, String)>) {
    lead_from(0, fault, from, to).await
}

/// Runs a leader that acquires at a millisecond, and applies the fault to the apiserver from one millisecond to another.
/// Gives the leader's requests and, if it loses the lead within a minute, the time and the reason.
async fn lead_from(acquired: u64, fault: Fault, from: u64, to: u64) -> (Requests, Option<(u128, String)>) {
    let room = Room::new();
    let mut leader = room.elector_of(upstreams_times());
    let at = |millis| room.started + Duration::from_millis(millis);
    sleep_until(at(acquired)).await;
    leader.acquire().await;
    let trouble = async {
        sleep_until(at(from)).await;
        room.store().fault = Some(fault);
        sleep_until(at(to)).await;
        room.store().fault = None;
        std::future::pending::<()>().await;
    };
    let lost = tokio::select! {
        biased;
        // The end is polled first: otherwise chance would decide whether a renewal that is due with it is still sent.
        () = sleep_until(at(60_000)) => None,
        () = trouble => None,
        lost = leader.renew() => Some((room.millis(Instant::now()), lost.to_string())),
    };
    let store = room.store();
    let since = |times: &[Instant]| times.iter().map(|time| room.millis(*time)).collect();
    (Requests { asked: since(&store.asked), written: since(&store.written) }, lost)
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_renewals_succeed_writes_every_five_seconds() {
    let (times, lost) = lead_through(Fault::Away, 100_000, 100_000).await;
    assert_eq!(times.written, (0..12).map(|at| at * 5000).collect::<Vec<_>>());
    assert_eq!(lost, None);
}

#[tokio::test(start_paused = true)]
async fn leaders_renew_together_whenever_they_have_acquired_their_leases() {
    for acquired in [1, 1700, 4999] {
        let (times, lost) = lead_from(acquired, Fault::Away, 100_000, 100_000).await;
        assert_eq!(times.written[..4], [u128::from(acquired), 5000, 10_000, 15_000]);
        assert_eq!(lost, None);
    }
    let (times, lost) = lead_from(4000, Fault::Away, 4100, 60_000).await;
    assert_eq!(times.written, [4000]);
    assert_eq!(lost.map(|(at, _)| at), Some(19_000), "as late as one that acquired at full seconds");
}

#[tokio::test(start_paused = true)]
async fn a_leader_survives_what_is_over_at_its_last_try() {
    let (times, lost) = lead_through(Fault::Away, 4900, 12_900).await;
    assert_eq!(times.written[..3], [0, 13_000, 15_000]);
    assert_eq!(lost, None);
    // The answers to the first try do not come, and those to the second do.
    let (times, lost) = lead_through(Fault::Stalls, 4900, 9900).await;
    assert_eq!(times.written[..3], [0, 10_000, 15_000]);
    assert_eq!(lost, None);
}

#[tokio::test(start_paused = true)]
async fn a_leader_gives_up_fifteen_seconds_after_its_last_renewal_when_its_lease_is_anybodys() {
    let expired = "lease kube-system/test-operator could not be renewed within 10s";
    for (fault, tries) in [(Fault::Away, 5), (Fault::NoWrites, 5), (Fault::Stalls, 2)] {
        let (times, lost) = lead_through(fault, 5100, 60_000).await;
        assert_eq!(times.written, [0, 5000], "{fault:?}");
        let mut begun = times.asked;
        begun.retain(|at| *at > 5000);
        begun.dedup();
        assert_eq!((begun.len(), begun[0]), (tries, 10_000), "{fault:?} {begun:?}");
        assert_eq!(lost, Some((20_000, expired.to_owned())), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_slept_past_its_deadline_goes_on_where_nobody_has_taken_its_lease() {
    let room = Room::new();
    let mut leader = room.elector_of(upstreams_times());
    leader.acquire().await;
    let term = leader.term();
    tokio::time::advance(SECOND * 20).await;
    assert!(term.is_over());
    tokio::select! {
        lost = leader.renew() => panic!("{lost}"),
        () = room.until(|store| store.written.len() == 2) => {}
    }
    assert!(!term.is_over());
}

#[tokio::test(start_paused = true)]
async fn a_leader_goes_on_over_a_foreign_change_of_its_lease() {
    let room = Room::new();
    let mut leader = room.elector("a", FAST);
    leader.acquire().await;
    let mut labelled = room.store().lease.clone().unwrap();
    labelled["metadata"]["labels"] = json!({"x": "y"});
    room.store().write(Some(labelled));
    let version = room.store().version;
    tokio::select! {
        lost = leader.renew() => panic!("{lost}"),
        () = room.until(|store| store.version > version) => {}
    }
    assert_eq!(room.store().lease.as_ref().unwrap()["metadata"]["labels"]["x"], "y");
    assert!(room.metrics.to_text().contains("leader_election_slowpath_total{name=\"test-operator\"} 1"));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_in_time_is_lost() {
    for fault in [Fault::NoWrites, Fault::Stalls] {
        let room = Room::new();
        let mut leader = room.elector_for(SECOND, "a", FAST);
        leader.acquire().await;
        room.store().fault = Some(fault);
        let lost = timeout(LIMIT, leader.renew()).await.unwrap();
        assert_eq!(lost.to_string(), "lease kube-system/test-operator could not be renewed within 700ms");
        assert!(!room.is_leader());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_written_is_tried_again_and_its_problem_noted_once() {
    let room = Room::new();
    room.store().fault = Some(Fault::NoWrites);
    let mut candidate = room.elector("a", FAST);
    assert!(timeout(FAST * 10, candidate.acquire()).await.is_err());
    assert_eq!(candidate.problem.as_deref(), Some("Forbidden"));
    let tries = room.store().requests.iter().filter(|verb| *verb == "POST").count();
    assert!((2..=20).contains(&tries), "{tries}");
    room.store().fault = None;
    timeout(LIMIT, candidate.acquire()).await.unwrap();
    assert_eq!(candidate.problem, None);
}

#[tokio::test(start_paused = true)]
async fn of_many_candidates_one_leads() {
    let room = Room::new();
    let (leads, mut led) = unbounded_channel();
    for index in 0..5 {
        let (mut elector, leads) = (room.elector(&format!("candidate-{index}"), FAST), leads.clone());
        tokio::spawn(async move {
            elector.acquire().await;
            leads.send(elector).unwrap();
        });
    }
    let mut elector = timeout(LIMIT, led.recv()).await.unwrap().unwrap();
    let version = room.store().version;
    tokio::select! {
        lost = elector.renew() => panic!("{lost}"),
        () = room.until(|store| store.version > version + 2) => {}
    }
    assert!(led.try_recv().is_err(), "a second leader");
    elector.release().await;
    timeout(LIMIT, led.recv()).await.unwrap().unwrap();
}

// Upstream: `TestHealthzAdaptor...`, healthzadaptor_test.go.
#[tokio::test(start_paused = true)]
async fn the_watchdog_barks_at_a_leader_that_is_stuck_only() {
    let watchdog = Watchdog {
        lease: Key::new("kube-system", "test-operator"),
        limit: SECOND * 15 + WATCHDOG_GRACE,
        renewed: Arc::default(),
    };
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert_eq!(watchdog.check(), Ok(()));
    watchdog.set(Some(Instant::now()));
    tokio::time::advance(Duration::from_secs(35)).await;
    assert_eq!(watchdog.check(), Ok(()));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(watchdog.check().unwrap_err(), "failed election to renew leadership on lease test-operator");
    watchdog.set(None);
    assert_eq!(watchdog.check(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_term_is_over_when_the_lease_has_expired_and_goes_on_with_the_next_renewal() {
    let renewed = Arc::new(Mutex::new(None));
    let term = Term { lease_duration: SECOND * 15, renewed: Arc::clone(&renewed) };
    assert!(term.is_over(), "a candidate has none");
    *renewed.lock().unwrap() = Some(Instant::now());
    tokio::time::advance(Duration::from_secs(14)).await;
    assert!(!term.is_over());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(term.is_over());
    *renewed.lock().unwrap() = Some(Instant::now());
    assert!(!term.is_over());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_any_more_once_the_release_has_begun() {
    let room = Room::new();
    let mut leader = room.elector("a", FAST);
    leader.acquire().await;
    let term = leader.term();
    room.store().fault = Some(Fault::Stalls);
    tokio::select! {
        () = leader.release() => panic!("the lease cannot be released"),
        () = room.until(|_| term.is_over()) => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_term_lasts_as_long_as_the_lease_says_to_others() {
    let room = Room::new();
    let mut leader = room.elector_for(Duration::from_millis(1900), "a", FAST);
    let term = leader.term();
    leader.acquire().await;
    assert_eq!((&room.spec()["leaseDurationSeconds"], term.is_over()), (&json!(1), false));
    tokio::time::advance(SECOND).await;
    assert!(term.is_over());
}

#[tokio::test(start_paused = true)]
async fn only_a_leader_writes() {
    let room = Room::new();
    let mut elector = room.elector("a", LIMIT);
    let consistency = Consistency::new(room.client.clone(), Watched::default());
    let control = Control::new(room.client.behind(elector.term()), Arc::new(consistency), Decisions::default());
    let key = Key::new("kube-system", "web");
    let write = async || control.for_name(&key).create(&LEASES, "kube-system", Bytes::from_static(b"{}")).await;
    assert!(matches!(write().await, Err(ApiError::NotLeading)));
    assert!(room.store.lock().unwrap().requests.is_empty());
    elector.acquire().await;
    assert!(write().await.is_err_and(|error| error.is_already_exists()), "it asks the apiserver");
    elector.stop_leading();
    assert!(matches!(write().await, Err(ApiError::NotLeading)));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_had_to_wait_is_not_sent_once_the_term_is_over() {
    let room = Room::new();
    let mut elector = room.elector("a", FAST);
    elector.acquire().await;
    let limited = room.client.beside(Some(Limit { qps: 5.0, burst: 1 })).unwrap();
    let consistency = Consistency::new(limited.clone(), Watched::default());
    let control = Control::new(limited.behind(elector.term()), Arc::new(consistency), Decisions::default());
    let key = Key::new("kube-system", "web");
    let write = async || control.for_name(&key).create(&LEASES, "kube-system", Bytes::from_static(b"{}")).await;
    assert!(write().await.is_err_and(|error| error.is_already_exists()), "the first one has a token");
    let requests = room.store().requests.len();
    let mut waits = Box::pin(write());
    assert!(futures::poll!(&mut waits).is_pending());
    elector.stop_leading();
    assert!(matches!(waits.await, Err(ApiError::NotLeading)));
    assert_eq!(room.store().requests.len(), requests);
    // The leader's requests for its Lease wait for no other.
    limited.get_bytes("/first", Accept::Object).await.unwrap();
    let ahead = limited.ahead();
    let answer = ahead.get_bytes("/second", Accept::Object);
    assert!(timeout(Duration::from_millis(150), answer).await.is_ok());
}
