use std::sync::Mutex;

use super::*;
use crate::api::object::{Key, ResourceVersion, Uid};
use crate::api::resource::{LEASES, REPLICA_SETS, Resource};
use crate::process::metrics::Metrics;
use crate::process::serving::loopback;
use crate::transport::client::ClientOptions;

/// A request: method, path, content type and body, in one line.
type Asked = Arc<Mutex<Vec<String>>>;

struct Room {
    asked: Asked,
    client: Client,
    metrics: EventMetrics,
}

impl Room {
    /// `answers` are given in turn, the last one for ever.
    async fn new(answers: &'static [(u16, &'static str)]) -> Self {
        let asked = Asked::default();
        let log = Arc::clone(&asked);
        let address = loopback::serve(move |request| {
            let mut log = log.lock().unwrap();
            let (code, body) = answers.get(log.len()).or(answers.last()).unwrap();
            let content_type = request.headers()["content-type"].to_str().unwrap();
            let text = std::str::from_utf8(request.body()).unwrap();
            log.push(format!("{} {} {content_type} {text}", request.method(), request.uri().path()));
            loopback::answer(*code, *body)
        })
        .await;
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let client =
            Client::new(&config, ClientOptions { user_agent: "test".to_owned(), ..Default::default() }).unwrap();
        Self { asked, client, metrics: Metrics::new("test-operator").events() }
    }

    /// Of a process that works.
    fn events(&self) -> Events {
        let events = self.events_of_standby();
        events.starter()();
        events
    }

    fn events_of_standby(&self) -> Events {
        let at: Timestamp = "2026-11-21T11:12:13.456789Z".parse().unwrap();
        Events::start(self.client.clone(), Clock::new(move || at), self.metrics.clone())
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn counts(&self) -> [u64; 4] {
        let EventMetrics { posted, filtered, dropped, failed } = &self.metrics;
        [posted.get(), filtered.get(), dropped.get(), failed.get()]
    }
}

fn replica_set() -> ObjectReference {
    ObjectReference {
        resource: REPLICA_SETS,
        key: Key::new("ns", "web"),
        uid: Uid::parse("0b6cd1a8-9b7e-4a0e-9a53-0c7a3e1f2d4b"),
        resource_version: ResourceVersion(7),
    }
}

const CREATED: &str = r#"POST /api/v1/namespaces/ns/events application/json {"apiVersion":"v1","kind":"Event","metadata":{"name":"web.18ea0b08b3534e08","namespace":"ns"},"involvedObject":{"apiVersion":"apps/v1","kind":"ReplicaSet","namespace":"ns","name":"web","uid":"0b6cd1a8-9b7e-4a0e-9a53-0c7a3e1f2d4b","resourceVersion":"7"},"reason":"SuccessfulCreate","message":"Created pod: web-a","source":{"component":"replicaset-controller"},"firstTimestamp":"2026-11-21T11:12:13Z","lastTimestamp":"2026-11-21T11:12:13Z","count":1,"type":"Normal","reportingComponent":"replicaset-controller"}"#;
const PATCHED: &str = r#"PATCH /api/v1/namespaces/ns/events/web.18ea0b08b3534e08 application/strategic-merge-patch+json {"count":2,"lastTimestamp":"2026-11-21T11:12:13Z","message":"Created pod: web-a"}"#;

const FOUND: (u16, &str) = (200, "{}");
const MISSING: (u16, &str) = (404, r#"{"kind":"Status","code":404,"reason":"NotFound","message":"gone"}"#);
const FORBIDDEN: (u16, &str) = (403, r#"{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}"#);
const NONSENSE: (u16, &str) = (200, "nonsense");

const LIMIT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn an_event_is_created_and_its_repetition_patches_it() {
    let room = Room::new(&[FOUND]).await;
    let events = room.events();
    let recorder = events.recorder("replicaset-controller");
    for _ in 0..2 {
        recorder.event(&replica_set(), EventType::Normal, "SuccessfulCreate", "Created pod: web-a".to_owned());
    }
    events.stop(LIMIT).await;
    assert_eq!(room.asked(), [CREATED, PATCHED]);
    assert_eq!(room.counts(), [2, 0, 0, 0]);
}

#[tokio::test]
async fn a_process_that_does_not_work_tells_of_its_election_only() {
    let room = Room::new(&[FOUND]).await;
    let events = room.events_of_standby();
    let recorder = events.recorder("replicaset-controller");
    let tell = |recorder: &Recorder, reason: &str| {
        recorder.event(&replica_set(), EventType::Normal, reason, "Created pod: web-a".to_owned());
    };
    tell(&recorder, "TooEarly");
    tell(&recorder.clone().at_any_time(), "LeaderElection");
    events.starter()();
    tell(&recorder, "SuccessfulCreate");
    events.stop(LIMIT).await;
    assert_eq!(room.asked(), [CREATED.replace("SuccessfulCreate", "LeaderElection"), CREATED.to_owned()]);
}

#[tokio::test]
async fn an_event_that_is_gone_is_created_again_with_its_count() {
    let room = Room::new(&[FOUND, MISSING, FOUND]).await;
    let events = room.events();
    let recorder = events.recorder("replicaset-controller");
    for _ in 0..2 {
        recorder.event(&replica_set(), EventType::Normal, "SuccessfulCreate", "Created pod: web-a".to_owned());
    }
    events.stop(LIMIT).await;
    assert_eq!(room.asked(), [CREATED, PATCHED, &*CREATED.replace(r#""count":1"#, r#""count":2"#)]);
}

#[tokio::test]
async fn events_without_a_namespace_live_in_default() {
    let room = Room::new(&[FOUND]).await;
    let events = room.events();
    let about = ObjectReference {
        resource: Resource::cluster_scoped("", "v1", "Node", "nodes"),
        key: Key::new("", "node-1"),
        uid: Uid::default(),
        resource_version: ResourceVersion(0),
    };
    events.recorder("x").event(&about, EventType::Warning, "R", "m".to_owned());
    events.stop(LIMIT).await;
    let asked = room.asked();
    assert!(asked[0].starts_with("POST /api/v1/namespaces/default/events "), "{asked:?}");
    assert!(asked[0].contains(r#""involvedObject":{"apiVersion":"v1","kind":"Node","name":"node-1"}"#), "{asked:?}");
    assert!(asked[0].contains(r#""namespace":"default"},"#) && asked[0].contains(r#""type":"Warning""#), "{asked:?}");
}

#[tokio::test]
async fn what_the_server_refuses_is_not_tried_again() {
    let room = Room::new(&[FORBIDDEN, FOUND]).await;
    let events = room.events();
    let recorder = events.recorder("x");
    recorder.event(&replica_set(), EventType::Normal, "A", "m".to_owned());
    let about = ObjectReference { resource: LEASES, ..replica_set() };
    recorder.event(&about, EventType::Normal, "B", "m".to_owned());
    events.stop(LIMIT).await;
    assert_eq!(room.asked().len(), 2);
    assert_eq!(room.counts(), [1, 0, 0, 1]);
}

/// The only one that there will be.
fn one_occurrence() -> mpsc::Receiver<Box<Occurrence>> {
    let (sender, occurrences) = mpsc::channel(1);
    let occurrence = Occurrence {
        component: "x",
        about: replica_set(),
        kind: EventType::Normal,
        reason: "A".to_owned(),
        message: "m".to_owned(),
        at: Timestamp::UNIX_EPOCH,
    };
    sender.try_send(Box::new(occurrence)).unwrap();
    occurrences
}

#[tokio::test]
async fn an_answer_that_nobody_understands_is_tried_again_and_given_up_after_12_times() {
    let room = Room::new(&[NONSENSE, NONSENSE, FOUND]).await;
    let stop = CancellationToken::new();
    let poster = Poster::new(room.client.clone(), room.metrics.clone(), stop.clone()).with_retry_delay(Duration::ZERO);
    poster.run(one_occurrence()).await;
    assert_eq!((room.asked().len(), room.counts()), (3, [1, 0, 0, 0]));

    let room = Room::new(&[NONSENSE]).await;
    let poster = Poster::new(room.client.clone(), room.metrics.clone(), stop).with_retry_delay(Duration::ZERO);
    poster.run(one_occurrence()).await;
    assert_eq!((room.asked().len(), room.counts()), (12, [0, 0, 0, 1]));
}

#[tokio::test]
async fn what_could_not_be_posted_is_tried_again_once_the_server_is_back() {
    let room = Room::new(&[NONSENSE, FOUND]).await;
    let poster = Poster::new(room.client.clone(), room.metrics.clone(), CancellationToken::new())
        .with_retry_delay(Duration::from_secs(24 * 60 * 60));
    let posting = tokio::spawn(poster.run(one_occurrence()));
    let back = async {
        // A return before the first try has failed ends no wait.
        while room.counts() == [0; 4] {
            room.client.note_return();
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, back).await.expect("it is posted");
    posting.await.unwrap();
    assert_eq!((room.asked().len(), room.counts()), (2, [1, 0, 0, 0]));
}

#[tokio::test]
async fn once_stopped_each_event_is_tried_once() {
    let room = Room::new(&[NONSENSE]).await;
    let events = room.events();
    let recorder = events.recorder("x");
    for reason in ["A", "B"] {
        recorder.event(&replica_set(), EventType::Normal, reason, "m".to_owned());
    }
    events.stop(LIMIT).await;
    assert_eq!((room.asked().len(), room.counts()), (2, [0, 0, 0, 2]));
    recorder.event(&replica_set(), EventType::Normal, "C", "m".to_owned());
    assert_eq!(room.counts(), [0, 0, 1, 2]);
}

#[tokio::test]
async fn a_full_queue_drops_and_counts_and_blocks_nobody() {
    let room = Room::new(&[FOUND]).await;
    let events = room.events();
    let recorder = events.recorder("x");
    for index in 0..QUEUED_MAX + 10 {
        let about = ObjectReference { key: Key::new("ns", &format!("web-{index}")), ..replica_set() };
        recorder.event(&about, EventType::Normal, "A", "m".to_owned());
    }
    assert_eq!(room.counts(), [0, 0, 10, 0]);
    events.stop(LIMIT).await;
    assert_eq!(room.counts(), [1000, 0, 10, 0]);
}
