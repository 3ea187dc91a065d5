use super::*;
use crate::api::object::{Kind, Object};
use crate::controllers::replicas::fixtures::{Set, selecting};
use crate::controllers::replicas::observe::Observed;
use crate::controllers::replicas::plan::plan;
use crate::controllers::replicas::pod::Pod;
use crate::controllers::replicas::status::next_status;
use crate::controllers::status_writer::Retry;
use crate::following::informer::InformerBuilder;
use crate::process::serving::loopback::{self, Body};
use crate::testing::{NOW, ObjectBuilder, pod};
use crate::transport::client::{Client, ClientOptions};
use crate::transport::clock::Clock;
use crate::working::consistency::{Consistency, Watched};
use crate::working::control::Control;
use crate::working::decisions::Decisions;
use crate::working::events::Recorder;
use http::{Request, Response};
use serde_json::{Value, json};
use std::sync::Mutex;

/// One owner, and a server that answers as a test says.
struct Room {
    writer: Writer,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Room {
    /// `answer` gets the method, the path's last part, how many of these there were, and the body.
    async fn new(answer: impl Fn(&str, &str, usize, &Value) -> Response<Body> + Send + Sync + 'static) -> Self {
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&requests);
        let address = loopback::serve(move |request: Request<Bytes>| {
            let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
            let last = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
            let line = format!("{} {last}", request.method());
            let mut log = log.lock().unwrap();
            let earlier = log.iter().filter(|known| **known == line).count();
            log.push(line);
            answer(request.method().as_str(), &last, earlier, &body)
        })
        .await;
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let client =
            Client::new(&config, ClientOptions { user_agent: "test".to_owned(), ..Default::default() }).unwrap();
        let followed = Watched::default();
        followed.add(InformerBuilder::<Pod>::new().build().follow());
        followed.add(InformerBuilder::<Set>::new().build().follow());
        let control = Control::new(client.clone(), Arc::new(Consistency::new(client, followed)), Decisions::default());
        let (clock, recorder) = (Clock::new(|| NOW), Recorder::default());
        let ctx = ControllerContext::new(control.clone(), clock, recorder.clone(), Decisions::default());
        let writer = Writer {
            pods: PodControl::new(control, recorder),
            statuses: StatusWriter::new(Set::RESOURCE, Retry::OnError, ctx.clone()),
            ctx,
            expectations: Arc::default(),
            drops_terminating: AtomicBool::default(),
        };
        Self { writer, requests }
    }

    /// Plans and applies for these pods.
    async fn apply(&self, owner: &ObjectBuilder, pods: &[ObjectBuilder]) -> Outcome {
        let observed = observed(owner, pods);
        self.writer.apply(&observed, plan(&observed, NOW)).await
    }

    /// The outstanding expectations, and whether the key must wait for a cache.
    fn waits(&self) -> (Option<String>, bool) {
        let key = Key::new("default", "web");
        let outstanding = self.writer.expectations.outstanding(&key, NOW);
        (outstanding.map(|outstanding| outstanding.to_string()), self.writer.ctx.consistency().behind(&key).is_some())
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn observed(owner: &ObjectBuilder, pods: &[ObjectBuilder]) -> Observed<Set> {
    let pods = pods.iter().map(ObjectBuilder::build).collect();
    let (rejections, ended) = Default::default();
    Observed { owner: owner.build(), pods, related: Vec::new(), outstanding: None, rejections, ended }
}

fn web(replicas: i32) -> ObjectBuilder {
    let template = json!({ "metadata": { "labels": { "app": "web" } }, "spec": {} });
    selecting("web", "web").set(&["spec", "replicas"], replicas).set(&["spec", "template"], template)
}

fn orphan(name: &str) -> ObjectBuilder {
    pod(name).label("app", "web")
}

fn own(name: &str) -> ObjectBuilder {
    orphan(name).owned_by(&*web(0).build::<Set>())
}

fn stored(version: &str) -> Response<Body> {
    loopback::answer(200, json!({ "metadata": { "name": "web-x", "resourceVersion": version } }).to_string())
}

fn refused(code: u16, reason: &str, cause: &str) -> Response<Body> {
    let details = json!({ "causes": [{ "reason": cause }] });
    let status = json!({ "kind": "Status", "code": code, "reason": reason, "message": "no", "details": details });
    loopback::answer(code, status.to_string())
}

/// The failure as the status tells it.
fn said(outcome: &Outcome) -> String {
    outcome.failure.as_ref().map(|failure| format!("{failure:#}")).unwrap_or_default()
}

/// Upstream: `TestSyncReplicaSetCreateFailures`.
#[tokio::test]
async fn creations_stop_after_the_first_batch_with_a_failure() {
    let room =
        Room::new(|_, _, earlier, _| if earlier < 10 { stored("7") } else { refused(403, "Forbidden", "") }).await;
    let outcome = room.apply(&web(100), &[]).await;
    let failure = outcome.failure.unwrap();
    assert_eq!(failure.to_string(), "no");
    assert!(failure.downcast::<ApiError>().unwrap().is_forbidden(), "the reason of a failed sync is the apiserver's");
    assert_eq!(room.requests().len(), 15);
    assert_eq!(room.waits(), (Some("10 creations".to_owned()), true));
}

#[tokio::test]
async fn a_terminating_namespace_is_no_failure_and_nothing_is_expected_of_it() {
    let room = Room::new(|_, _, _, _| refused(403, "Forbidden", "NamespaceTerminating")).await;
    assert!(room.apply(&web(2), &[]).await.failure.is_none());
    assert_eq!(room.waits(), (None, false));
}

#[tokio::test]
async fn after_an_answer_that_was_lost_the_key_waits_for_a_new_list() {
    let room = Room::new(|_, _, _, _| loopback::answer(504, "")).await;
    assert_eq!(said(&room.apply(&web(1), &[]).await), "the server answered 504");
    assert_eq!(room.waits(), (None, true));
}

#[tokio::test]
async fn a_template_without_labels_makes_no_request() {
    let room = Room::new(|_, _, _, _| stored("7")).await;
    let outcome = room.apply(&web(1).set(&["spec", "template"], json!({})), &[]).await;
    assert_eq!(said(&outcome), "unable to create pods, no labels");
    assert_eq!((room.requests(), room.waits()), (Vec::new(), (None, false)));
}

#[tokio::test]
async fn a_deletion_is_expected_unless_it_failed_or_the_pod_was_gone() {
    for (code, reason) in [(403, "Forbidden"), (409, "Conflict")] {
        let room = Room::new(move |_, pod, _, options| {
            assert_eq!(options["preconditions"]["uid"], crate::testing::uid(pod).to_string());
            match pod {
                "gone" => refused(404, "NotFound", ""),
                "kept" => refused(code, reason, ""),
                _ => stored("7"),
            }
        })
        .await;
        let outcome = room.apply(&web(0), &["gone", "kept", "deleted"].map(own)).await;
        assert_eq!(said(&outcome), "unable to delete pods: no", "{reason}");
        assert_eq!(outcome.claimed.len(), 3);
        assert_eq!(room.waits(), (Some("1 deletion".to_owned()), true));
    }
}

/// Upstream: `TestPatchPodFails`.
#[tokio::test]
async fn every_adoption_is_tried_and_a_failure_leaves_the_rest_undone() {
    let room = Room::new(|method, last, _, _| match (method, last) {
        ("GET", "web") => loopback::answer(200, web(0).json().to_string()),
        ("PATCH", "b") => stored("7"),
        _ => refused(500, "InternalError", ""),
    })
    .await;
    let error = room.apply(&web(3), &[orphan("a"), orphan("b")]).await.error.unwrap();
    assert_eq!(error.to_string(), "no");
    assert_eq!(room.requests(), ["GET web", "PATCH a", "PATCH b"]);
    assert_eq!(room.waits(), (None, true), "the adoption that succeeded must be seen first");
}

/// Upstream: `TestDoNotAdoptOrCreateIfBeingDeletedRace`.
#[tokio::test]
async fn an_owner_that_is_being_deleted_by_now_adopts_and_creates_nothing() {
    let room = Room::new(|_, _, _, _| loopback::answer(200, web(0).terminating().json().to_string())).await;
    let error = room.apply(&web(3), &[orphan("a")]).await.error.unwrap();
    assert!(error.to_string().contains("default/web has just been deleted at 2026-01-01T12:00:00Z"), "{error:#}");
    assert_eq!(room.requests(), ["GET web"]);
}

#[tokio::test]
async fn an_orphan_that_went_away_calls_for_another_count() {
    let room = Room::new(|method, _, _, _| match method {
        "GET" => loopback::answer(200, web(0).json().to_string()),
        _ => refused(404, "NotFound", ""),
    })
    .await;
    let observed = observed(&web(2), &[orphan("a")]);
    let outcome = room.writer.apply(&observed, plan(&observed, NOW)).await;
    assert_eq!(next_status(&observed, &outcome, NOW), None, "nothing was counted");
    let error = outcome.error.unwrap();
    assert_eq!(error.to_string(), "a pod went away while it was adopted");
    assert_eq!(room.requests(), ["GET web", "PATCH a"]);
}

async fn write_status(room: &Room, owner: &ObjectBuilder) -> anyhow::Result<()> {
    let observed = observed(owner, &[]);
    let outcome = Outcome { claimed: vec![own("a").build()], ..Outcome::default() };
    room.writer.write_status(&observed, &next_status(&observed, &outcome, NOW).unwrap(), false).await.map(drop)
}

/// Upstream: `TestControllerUpdateStatusWithFailure`.
#[tokio::test]
async fn a_status_that_is_refused_is_written_once_more_on_the_live_state() {
    let bodies: Arc<Mutex<Vec<Value>>> = Arc::default();
    let seen = Arc::clone(&bodies);
    let live = web(5).set(&["metadata", "resourceVersion"], "9").set(&["status", "replicas"], 3);
    let room = Room::new(move |method, _, earlier, body| {
        if method == "GET" {
            return loopback::answer(200, live.json().to_string());
        }
        seen.lock().unwrap().push(body.clone());
        if earlier == 0 { refused(409, "Conflict", "") } else { stored("10") }
    })
    .await;
    write_status(&room, &web(1)).await.unwrap();
    assert_eq!(room.requests(), ["PATCH status", "GET web", "PATCH status"]);
    let bodies = bodies.lock().unwrap();
    let uid = web(1).build::<Set>().meta().uid.to_string();
    assert_eq!(bodies[0]["metadata"], json!({ "uid": uid, "resourceVersion": "1" }));
    assert_eq!(bodies[1]["metadata"], json!({ "uid": uid, "resourceVersion": "9" }));
    assert_eq!(bodies[0]["status"]["replicas"], 1);
    assert_eq!(bodies[0]["status"], bodies[1]["status"], "not the counts of what was just read");
    assert_eq!(room.waits(), (None, true));
}

#[tokio::test]
async fn a_status_that_is_refused_twice_fails_and_one_of_nobody_does_not() {
    let refusing = Room::new(|method, _, _, _| match method {
        "GET" => stored("9"),
        _ => refused(403, "Forbidden", ""),
    })
    .await;
    assert_eq!(format!("{:#}", write_status(&refusing, &web(1)).await.unwrap_err()), "cannot write the status: no");
    let gone = Room::new(|_, _, _, _| refused(404, "NotFound", "")).await;
    write_status(&gone, &web(1)).await.unwrap();
    assert_eq!(gone.requests(), ["PATCH status"]);
}

#[tokio::test]
async fn a_settled_status_makes_no_request() {
    let room = Room::new(|_, _, _, _| stored("7")).await;
    let observed = observed(&web(1), &[]);
    room.writer.write_status(&observed, &observed.owner.status().clone(), false).await.unwrap();
    assert!(room.requests().is_empty());
}

#[tokio::test]
async fn a_server_that_drops_terminating_replicas_is_not_told_of_them_again() {
    // Nothing that it keeps has changed, so the version stays.
    let room = Room::new(|_, _, _, _| stored("1")).await;
    let kept = json!({ "replicas": 1, "fullyLabeledReplicas": 1, "observedGeneration": 1 });
    let settled = web(1).set(&["status"], kept);
    for (owner, requests) in [(&settled, 1), (&settled, 1), (&web(1), 2), (&settled, 2)] {
        write_status(&room, owner).await.unwrap();
        assert_eq!(room.requests().len(), requests);
    }
}

#[tokio::test]
async fn a_key_whose_object_is_gone_waits_for_nothing() {
    let room = Room::new(|_, _, _, _| stored("7")).await;
    room.apply(&web(1), &[]).await;
    assert_eq!(room.waits(), (Some("1 creation".to_owned()), true));
    room.writer.forget(&Key::new("default", "web"));
    assert_eq!(room.waits(), (None, false));
}
