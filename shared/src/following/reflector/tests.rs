//! The reflector against everything that a server may send: lines of a watch, in any pieces, with any faults.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{StreamExt, stream};
use http::{Request, Response};

use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{Body, EVENT_BYTES_MAX};
use super::watches::Events;
use super::*;
use crate::api::object::{Meta, NoAnnotations, Object};
use crate::api::resource::PODS;
use crate::following::cache::{Change, Progress};
use crate::following::informer::{InformerBuilder, PartStore};
use crate::process::serving::loopback;
use crate::testing::protobuf;
use crate::transport::client::{Client, ClientOptions, RETURN_SPREAD};

#[derive(Deserialize)]
struct Thing {
    metadata: Meta,
    /// Required, so that a test can leave it out.
    #[expect(dead_code, reason = "only its presence matters")]
    #[serde(deserialize_with = "spec")]
    spec: String,
}

fn spec<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let spec = String::deserialize(deserializer)?;
    assert_ne!(spec, "panics");
    Ok(spec)
}

impl Object for Thing {
    type Annotations = NoAnnotations;
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

struct Scene {
    reflector: Reflector<Thing, PartStore<Thing>>,
    listing: Option<Listed<Thing>>,
    changes: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    /// A reflector whose streamed list has just begun; nothing is ever sent to its client.
    fn new() -> Self {
        Self::of("127.0.0.1:1")
    }

    /// A reflector of what this answers.
    async fn served(answer: impl Fn(Request<Bytes>) -> Response<loopback::Body> + Send + Sync + 'static) -> Self {
        Self::of(&loopback::serve(answer).await.to_string())
    }

    fn of(host: &str) -> Self {
        let config = kube::Config::new(format!("http://{host}").parse().unwrap());
        let client = Client::new(&config, ClientOptions::default()).unwrap();
        let mut informer = InformerBuilder::<Thing>::of(PODS).build();
        let changes = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&changes);
        informer.on_change(move |change| {
            let mark = match change {
                Change::Added(_) => "+",
                Change::Updated { .. } => "~",
                Change::Deleted(_) => "-",
            };
            let meta = &change.latest().metadata;
            seen.lock().unwrap().push(format!("{mark}{}@{}", meta.name(), meta.resource_version));
        });
        let (mut source, store) = informer.asleep();
        source.streams_list = true;
        store.cached.start(&store.health);
        Self { reflector: Reflector::new(source, store, client.into()), listing: Some(Listed::new()), changes }
    }

    fn send(&mut self, line: &str) -> Result<(), Stop> {
        self.reflector.event(line.as_bytes(), &mut self.listing)
    }

    fn object(&mut self, kind: &str, name: &str, version: u64, spec: &str) {
        let line = format!(
            r#"{{"type":"{kind}","object":{{"metadata":{{"namespace":"ns","name":"{name}","uid":"{name}","resourceVersion":"{version}"}}{spec}}}}}"#
        );
        assert!(self.send(&line).is_ok());
    }

    fn bookmark(&mut self, version: u64, ends_list: bool) {
        let end = if ends_list { r#","annotations":{"k8s.io/initial-events-end":"true"}"# } else { "" };
        let line = format!(
            r#"{{"type":"BOOKMARK","object":{{"kind":"Pod","metadata":{{"resourceVersion":"{version}"{end}}}}}}}"#
        );
        assert!(self.send(&line).is_ok());
    }

    #[track_caller]
    fn check(&mut self, changes: &[&str], version: u64) {
        assert_eq!(std::mem::take(&mut *self.changes.lock().unwrap()), changes);
        assert_eq!(self.reflector.store.cached.cache.progress().resource_version, ResourceVersion(version));
    }
}

/// The lines of a streamed list of one object.
fn listed() -> impl Stream<Item = Bytes> + Send + 'static {
    let object = r#"{"type":"ADDED","object":{"metadata":{"name":"a","uid":"a","resourceVersion":"2"},"spec":"x"}}"#;
    let end = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"3","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
    stream::iter([object, "\n", end, "\n"].map(|text| Bytes::from_static(text.as_bytes())))
}

/// A watch that begins now and sends this.
fn watch<S: Stream<Item = Result<Bytes, ApiError>> + Unpin>(stream: S) -> Watch<S> {
    Watch { events: Events::of(stream), begun: Instant::now(), limit: Duration::from_mins(5) }
}

async fn soon(future: impl Future) {
    tokio::time::timeout(Duration::from_secs(10), future).await.expect("it comes in time");
}

const OK: &str = r#","spec":"x""#;

#[tokio::test]
async fn a_streamed_list_is_one_reset_when_its_end_is_marked() {
    let mut scene = Scene::new();
    scene.object("ADDED", "a", 3, OK);
    scene.object("ADDED", "b", 2, OK);
    scene.bookmark(4, false);
    scene.check(&[], 0);
    scene.bookmark(9, true);
    scene.check(&["+a@3", "+b@2"], 9);
    assert_eq!(
        scene.reflector.store.cached.cache.progress(),
        Progress { synced: true, resource_version: ResourceVersion(9), list: 0 }
    );
}

#[tokio::test]
async fn events_and_bookmarks_move_the_version_on() {
    let mut scene = Scene::new();
    scene.bookmark(1, true);
    scene.object("ADDED", "a", 2, OK);
    scene.object("MODIFIED", "a", 5, OK);
    scene.check(&["+a@2", "~a@5"], 5);
    scene.bookmark(8, false);
    scene.check(&[], 8);
    scene.object("DELETED", "a", 9, OK);
    scene.check(&["-a@9"], 9);
    assert_eq!(scene.reflector.version, Some(ResourceVersion(9)));
}

#[tokio::test]
async fn an_object_that_does_not_decode_is_named_and_stops_nobody() {
    let mut scene = Scene::new();
    scene.bookmark(1, true);
    scene.object("ADDED", "a", 2, OK);
    scene.object("MODIFIED", "a", 3, r#","spec":17"#);
    scene.object("ADDED", "b", 4, OK);
    scene.check(&["+a@2", "+b@4"], 4);
    let health = Arc::clone(&scene.reflector.source.health);
    assert_eq!(health.decode_errors(), 1);
    let unreadable = health.unreadable();
    assert!(unreadable[&Key::new("ns", "a")].contains("expected a string"), "{unreadable:?}");
    scene.object("MODIFIED", "a", 5, OK);
    assert!(health.unreadable().is_empty(), "its next state can be read");
    scene.check(&["~a@5"], 5);
    scene.object("DELETED", "a", 6, "");
    scene.check(&["-a@5"], 6);
}

#[tokio::test]
async fn an_object_whose_reader_panics_is_named_and_stops_nobody() {
    let mut scene = Scene::new();
    scene.object("ADDED", "a", 1, r#","spec":"panics""#);
    scene.bookmark(1, true);
    scene.object("MODIFIED", "a", 2, r#","spec":"panics""#);
    scene.object("ADDED", "b", 3, OK);
    scene.check(&["+b@3"], 3);
    let unreadable = scene.reflector.source.health.unreadable();
    assert_eq!(unreadable[&Key::new("ns", "a")], "its reader panicked");
}

#[tokio::test]
async fn what_cannot_be_read_in_a_list_is_not_taken_for_deleted() {
    let mut scene = Scene::new();
    scene.object("ADDED", "a", 2, OK);
    scene.object("ADDED", "b", 2, OK);
    scene.bookmark(3, true);
    scene.check(&["+a@2", "+b@2"], 3);
    scene.listing = Some(Listed::new());
    scene.object("ADDED", "a", 7, "");
    scene.bookmark(8, true);
    scene.check(&["-b@2"], 8);
    assert!(scene.reflector.store.cached.cache.get(&Key::new("ns", "a")).is_some());
}

#[tokio::test]
async fn what_happens_while_a_list_is_streamed_is_part_of_it() {
    let mut scene = Scene::new();
    for name in ["a", "b", "c"] {
        scene.object("ADDED", name, 2, OK);
    }
    scene.object("DELETED", "a", 3, OK);
    scene.object("MODIFIED", "b", 4, OK);
    scene.object("MODIFIED", "c", 5, "");
    scene.object("DELETED", "c", 6, "");
    scene.bookmark(7, true);
    scene.check(&["+b@4"], 7);
    assert!(scene.reflector.source.health.unreadable().is_empty(), "what is gone need not be read");
}

#[tokio::test]
async fn an_expired_version_asks_for_a_new_list_and_other_errors_do_not() {
    let mut scene = Scene::new();
    scene.bookmark(1, true);
    let gone = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
    assert!(matches!(scene.send(gone), Err(Stop::Expired)));
    assert_eq!(scene.reflector.failure(Stop::Expired), None);
    assert_eq!(scene.reflector.version, None);
    assert!(scene.reflector.failure(Stop::Expired).is_some(), "where a new list doesn't help, the next one waits");
    let other = r#"{"type":"ERROR","object":{"kind":"Status","code":500,"reason":"InternalError","message":"m"}}"#;
    assert!(matches!(scene.send(other), Err(Stop::Failed(_))));
    assert!(matches!(scene.send("<html>"), Err(Stop::Failed(_))));
}

#[tokio::test]
async fn a_list_that_has_begun_is_not_cut_short_by_who_waits_for_it() {
    let mut scene = Scene::served(|_| loopback::stream(listed().chain(stream::pending()))).await;
    scene.reflector.source.health.reconnect();
    assert!(matches!(scene.reflector.step(&mut BACKOFF_FIRST.clone()).await, Stop::Ended));
    scene.check(&["+a@2"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_end_is_never_marked_is_asked_for_in_pages() {
    for lines in [0, 2] {
        let mut scene = Scene::new();
        let stream = listed().take(lines).map(Ok).chain(stream::pending());
        let watch = watch(Box::pin(stream));
        let Err(stop) = scene.reflector.events(watch, true, &mut BACKOFF_FIRST.clone()).await;
        assert!(matches!(stop, Stop::NoStreamingList));
        assert_eq!(scene.reflector.failure(stop), None);
        assert!(!scene.reflector.streaming);
        scene.check(&[], 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_never_ends_is_asked_for_in_pages() {
    let bookmark = |_| r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"3"}}}"#.to_owned();
    let change = |at: u64| {
        format!(r#"{{"type":"MODIFIED","object":{{"metadata":{{"name":"a","resourceVersion":"{at}"}},"spec":"x"}}}}"#)
    };
    let addition = |at: u64| {
        format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"a{at}","resourceVersion":"3"}},"spec":"x"}}}}"#)
    };
    let lines: [(&dyn Fn(u64) -> String, Duration); 3] =
        [(&bookmark, LIST_PATIENCE), (&change, LIST_PATIENCE), (&addition, LIST_MAX)];
    for (line, longest) in lines {
        let mut scene = Scene::new();
        let stream = stream::iter(1..).then(async |at| {
            sleep(Duration::from_secs(5)).await;
            Ok(Bytes::from(line(at) + "\n"))
        });
        let (watch, started) = (watch(Box::pin(stream)), Instant::now());
        let Err(stop) = scene.reflector.events(watch, true, &mut BACKOFF_FIRST.clone()).await;
        assert!(matches!(stop, Stop::NoStreamingList));
        assert!(started.elapsed() <= longest + Duration::from_secs(5), "{:?}", started.elapsed());
        scene.check(&[], 0);
    }
}

#[tokio::test]
async fn an_event_without_end_is_a_failure() {
    let piece = Bytes::from(vec![b' '; EVENT_BYTES_MAX / 4]);
    let mut events = Body::of(stream::repeat_with(|| Ok(piece.clone())));
    let Err(Stop::Failed(error)) = events.next().await else { panic!("it has no end") };
    assert!(error.starts_with("the watch sent an event of more than"), "{error}");
    let head = u32::try_from(EVENT_BYTES_MAX).unwrap().to_be_bytes().to_vec();
    let mut events = Body::of(stream::iter([Ok(Bytes::from(head))]));
    let Err(Stop::Failed(error)) = events.next().await else { panic!("it is too long") };
    assert!(error.starts_with("the watch sent an event of more than"), "{error}");
}

#[tokio::test]
async fn a_request_for_a_list_that_meets_a_failure_is_fulfilled() {
    let requests = AtomicUsize::new(0);
    let scene = Scene::served(move |request| {
        let is_list = request.uri().query().is_some_and(|query| query.contains("sendInitialEvents"));
        match requests.fetch_add(1, Ordering::Relaxed) {
            0 => loopback::stream(listed()),
            1 => loopback::answer(500, "sick"),
            _ if is_list => loopback::stream(listed().chain(stream::pending())),
            _ => loopback::stream(stream::pending()),
        }
    })
    .await;
    let Scene { reflector, .. } = scene;
    let (health, mut progress) = (Arc::clone(&reflector.source.health), reflector.store.cached.cache.subscribe());
    tokio::spawn(run(reflector.source, reflector.store, reflector.watches));
    soon(async {
        while health.failing().is_none() {
            tokio::task::yield_now().await;
        }
        let wanted = health.relist();
        progress.wait_for(|progress| progress.list == wanted).await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_back_off_ends_within_a_second_once_the_server_is_back_and_for_no_ordinary_request() {
    let scene = Scene::new();
    let (client, health) = (&scene.reflector.watches.client, &scene.reflector.source.health);
    let mut came_back = client.came_back();
    let begun = Instant::now();
    health.reconnect();
    health.relist();
    assert_eq!(wait_out(BACKOFF_MAX / 2, health, &mut came_back).await, BACKOFF_MAX);
    assert!(begun.elapsed() >= BACKOFF_MAX / 2, "who waits for a write does not shorten it");

    let begun = Instant::now();
    client.note_return();
    assert_eq!(wait_out(BACKOFF_MAX, health, &mut came_back).await, BACKOFF_FIRST);
    assert!(begun.elapsed() <= RETURN_SPREAD + Duration::from_millis(1), "{:?}", begun.elapsed());

    let begun = Instant::now();
    health.relist_now();
    assert_eq!(wait_out(BACKOFF_MAX, health, &mut came_back).await, BACKOFF_MAX);
    assert!(begun.elapsed().is_zero(), "all work waits for this list");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_waits_for_a_cache_does_not_cut_its_back_off() {
    let Scene { reflector, .. } = Scene::new();
    let health = Arc::clone(&reflector.source.health);
    tokio::spawn(run(reflector.source, reflector.store, reflector.watches));
    while health.failing().is_none() {
        tokio::task::yield_now().await;
    }
    let failed = Instant::now();
    for _ in 0..200 {
        health.reconnect();
        health.relist();
        tokio::task::yield_now().await;
    }
    assert_eq!((health.lists(), failed.elapsed()), (1, Duration::ZERO), "the back-off goes on");
    while health.lists() == 1 {
        sleep(Duration::from_millis(100)).await;
    }
    assert!(failed.elapsed() >= BACKOFF_FIRST);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_watch_works_once_it_has_been_open_for_a_second_though_nothing_changes() {
    let Scene { mut reflector, .. } = Scene::new();
    let (health, mut backoff) = (Arc::clone(&reflector.source.health), BACKOFF_FIRST);
    health.fails("the watch was cut");
    let watching = reflector.events(watch(stream::pending()), false, &mut backoff);
    tokio::pin!(watching);
    for works in [false, true] {
        assert!(tokio::time::timeout(SHORT_WATCH * 3 / 4, &mut watching).await.is_err());
        assert_eq!(health.failing().is_none(), works);
    }
}

#[tokio::test]
async fn a_watch_that_ends_as_soon_as_it_began_is_a_failure_and_an_unfinished_list_too() {
    let mut scene = Scene::served(|_| loopback::stream(stream::empty())).await;
    assert!(matches!(scene.reflector.step(&mut BACKOFF_FIRST.clone()).await, Stop::Failed(_)));
    scene.reflector.version = Some(ResourceVersion(3));
    assert!(matches!(scene.reflector.step(&mut BACKOFF_FIRST.clone()).await, Stop::Failed(_)));
    let mut scene = Scene::served(|_| loopback::stream(listed())).await;
    assert!(matches!(scene.reflector.step(&mut BACKOFF_FIRST.clone()).await, Stop::Ended));
    let mut scene = Scene::served(|_| loopback::stream(listed().take(2))).await;
    assert!(matches!(scene.reflector.step(&mut BACKOFF_FIRST.clone()).await, Stop::Failed(_)));
}

#[tokio::test]
async fn paths_carry_selectors_in_the_form_of_a_query() {
    let mut scene = Scene::new();
    scene.reflector.source.field_selector = "spec.nodeName=a b,status.phase!=Failed".into();
    assert_eq!(
        scene.reflector.source.path(&PODS, &[("watch", "1"), ("continue", "")]),
        "/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Da%20b%2Cstatus.phase%21%3DFailed"
    );
}

#[tokio::test]
async fn lines_and_frames_come_whole_however_the_body_is_cut() {
    let body = b"first\nsecond line\n\0\0\0\x02a\n\n\0\0\0\0\0\x01last";
    for size in 1..body.len() {
        let pieces: Vec<Result<Bytes, ApiError>> =
            body.chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let mut events = Body::of(stream::iter(pieces));
        let mut read = Vec::new();
        while let Ok(Some(event)) = events.next().await {
            read.push(event.to_vec());
        }
        let expected: [&[u8]; 5] = [b"first\n", b"second line\n", b"\0\0\0\x02a\n", b"\n", b"\0\0\0\0"];
        assert_eq!(read, expected, "in pieces of {size}");
    }
}

/// Of a pod what can be left out on the wire.
#[derive(Deserialize)]
struct Phased {
    metadata: Meta,
    #[expect(dead_code, reason = "only its presence matters")]
    status: PhasedStatus,
}

#[derive(Deserialize)]
struct PhasedStatus {
    #[expect(dead_code, reason = "only its presence matters")]
    phase: String,
}

crate::view!(Phased, PODS);

type Answer = Response<loopback::Body>;

/// A reflector of pods, whose lists come from this.
async fn listing(
    answer: impl Fn(&str, &str) -> Answer + Send + Sync + 'static,
) -> Reflector<Phased, PartStore<Phased>> {
    let address = loopback::serve(move |request| {
        let accept = request.headers()[http::header::ACCEPT].to_str().unwrap();
        answer(accept, request.uri().query().unwrap_or_default())
    })
    .await;
    let config = kube::Config::new(format!("http://{address}").parse().unwrap());
    let (source, store) = InformerBuilder::<Phased>::new().build().asleep();
    Reflector::new(source, store, Client::new(&config, ClientOptions::default()).unwrap().into())
}

fn phased(name: &str, phase: Option<&str>) -> Value {
    let metadata = json!({ "namespace": "ns", "name": name, "uid": name, "resourceVersion": "2" });
    json!({ "metadata": metadata, "status": { "phase": phase } })
}

fn page(token: &str, items: &[Value]) -> Value {
    json!({ "kind": "PodList", "metadata": { "resourceVersion": "9", "continue": token }, "items": items })
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf,application/json";

/// The names of the pods in the cache.
fn names(reflector: &Reflector<Phased, PartStore<Phased>>) -> Vec<String> {
    let mut names: Vec<String> =
        reflector.store.cached.cache.all().iter().map(|pod| pod.metadata.key.to_string()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn pods_are_listed_as_one_answer_of_protobuf_and_one_that_cannot_be_read_stops_nobody() {
    let all = [phased("a", Some("Running")), phased("b", None), phased("c", Some("Running"))];
    let all = protobuf::list(&page("", &all)).unwrap();
    let mut reflector = listing(move |accept, query| match (accept, query) {
        (PROTOBUF, "") => loopback::answer(200, all.clone()),
        _ => loopback::answer(400, "no such list"),
    })
    .await;
    assert!(matches!(reflector.step(&mut BACKOFF_FIRST.clone()).await, Stop::Ended));
    assert_eq!(names(&reflector), ["ns/a", "ns/c"]);
    assert_eq!(reflector.store.cached.cache.progress().resource_version, ResourceVersion(9));
    let unreadable = reflector.source.health.unreadable();
    assert!(unreadable[&Key::new("ns", "b")].contains("missing field `phase`"), "{unreadable:?}");
}

#[tokio::test]
async fn a_list_that_does_not_come_whole_is_asked_for_in_pages() {
    let pods = ["a", "b"].map(|name| phased(name, Some("Running")));
    let whole = protobuf::list(&page("", &pods)).unwrap();
    let cut = whole.slice(..whole.len() - 3);
    let of_its_own = protobuf::list(&page("t", &pods[..1])).unwrap();
    for first in [Bytes::from(page("", &pods).to_string()), cut, of_its_own, Bytes::new()] {
        let pages = [("t", &pods[..1]), ("", &pods[1..])].map(|(token, pods)| page(token, pods));
        let [one, two] = pages.map(|page| protobuf::list(&page).unwrap());
        let mut reflector = listing(move |accept, query| match (accept, query) {
            (PROTOBUF, "") => loopback::answer(200, first.clone()),
            (PROTOBUF, "limit=500") => loopback::answer(200, one.clone()),
            (PROTOBUF, "limit=500&continue=t") => loopback::answer(200, two.clone()),
            _ => loopback::answer(400, "no such page"),
        })
        .await;
        let stop = reflector.step(&mut BACKOFF_FIRST.clone()).await;
        assert!(matches!(stop, Stop::NoListInOne));
        assert_eq!((reflector.failure(stop), names(&reflector).len()), (None, 0), "nothing is taken of half a list");
        assert!(matches!(reflector.step(&mut BACKOFF_FIRST.clone()).await, Stop::Ended));
        assert_eq!(names(&reflector), ["ns/a", "ns/b"]);
    }
}

#[tokio::test]
async fn a_server_without_protobuf_is_listed_as_json() {
    let status = json!({ "code": 406, "reason": "NotAcceptable", "message": "only JSON" });
    for refuses in [true, false] {
        let status = protobuf::status(&status);
        let mut reflector = listing(move |accept, _| match accept {
            PROTOBUF if refuses => loopback::answer(406, status.clone()),
            _ => loopback::answer(200, page("", &[phased("a", Some("Running"))]).to_string()),
        })
        .await;
        let stop = reflector.step(&mut BACKOFF_FIRST.clone()).await;
        assert_eq!(reflector.failure(stop), None);
        assert!(matches!(reflector.step(&mut BACKOFF_FIRST.clone()).await, Stop::Ended));
        assert_eq!(names(&reflector), ["ns/a"], "refuses: {refuses}");
    }
}

#[tokio::test]
async fn a_server_without_protobuf_is_watched_as_json() {
    let status = json!({ "code": 406, "reason": "NotAcceptable", "message": "only JSON" });
    for refuses in [true, false] {
        let status = protobuf::status(&status);
        let event = json!({ "type": "ADDED", "object": phased("a", Some("Running")) }).to_string() + "\n";
        let mut reflector = listing(move |accept, _| match accept {
            PROTOBUF if refuses => loopback::answer(406, status.clone()),
            _ => loopback::answer(200, event.clone()),
        })
        .await;
        reflector.version = Some(ResourceVersion(1));
        assert!(matches!(reflector.step(&mut BACKOFF_FIRST.clone()).await, Stop::Ended));
        assert_eq!(names(&reflector), ["ns/a"], "refuses: {refuses}");
    }
}

#[tokio::test]
async fn pods_are_watched_as_protobuf_and_one_that_cannot_be_read_stops_nobody() {
    let event = |kind, name, phase| protobuf::event(kind, ("v1", "Pod"), &phased(name, phase)).unwrap();
    let gone = json!({ "code": 410, "reason": "Expired", "message": "too old" });
    let body = [
        event("ADDED", "a", Some("Running")),
        event("ADDED", "b", Some("Running")),
        event("MODIFIED", "b", None),
        event("ADDED", "c", Some("Running")),
        event("DELETED", "a", Some("Running")),
        protobuf::event("ERROR", ("v1", "Status"), &gone).unwrap(),
    ]
    .concat();
    let mut reflector = listing(move |accept, _| match accept {
        PROTOBUF => loopback::answer(200, Bytes::from(body.clone())),
        _ => loopback::answer(400, "no such watch"),
    })
    .await;
    reflector.version = Some(ResourceVersion(1));
    assert!(matches!(reflector.step(&mut BACKOFF_FIRST.clone()).await, Stop::Expired));
    assert_eq!(names(&reflector), ["ns/b", "ns/c"], "the last state that was read stays");
    let unreadable = reflector.source.health.unreadable();
    assert!(unreadable[&Key::new("ns", "b")].contains("missing field `phase`"), "{unreadable:?}");
}

#[tokio::test]
async fn a_refusal_is_read_in_the_form_that_was_asked_for() {
    let stop = async |code: u16| {
        let status = protobuf::status(&json!({ "code": code, "reason": "Odd", "message": "told in protobuf" }));
        listing(move |_, _| loopback::answer(code, status.clone())).await.step(&mut BACKOFF_FIRST.clone()).await
    };
    assert!(matches!(stop(410).await, Stop::Expired));
    assert!(matches!(stop(500).await, Stop::Failed(error) if error == "told in protobuf"));
}
