use super::*;
use crate::api::resource::PODS;

/// A test's decision: a text, and the same as its reason.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Why {
    Says { text: &'static str },
}

struct Plan(&'static str);

impl Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Says { text } = self;
        f.write_str(text)
    }
}

impl Reason for Why {}

impl Reasoned for Plan {
    fn reason(&self) -> impl Reason {
        Why::Says { text: self.0 }
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn key(name: &str) -> Key {
    Key::new("ns", name)
}

/// One sync that decides this, stage by stage.
fn sync(decisions: &Decisions, second: i64, name: &str, stages: &[&'static str], error: Option<&str>) {
    decisions.begin(at(second), &key(name), None);
    for stage in stages {
        decisions.record(at(second), &key(name), &Plan(stage));
    }
    match &error {
        Some(error) => decisions.finish(&key(name), Err(error)),
        None => decisions.finish(&key(name), Ok(())),
    }
}

/// Of a key, the newest first: `create 2 x3: failed (quota)`.
fn told(decisions: &Decisions, name: &str) -> Vec<String> {
    let told = |decision: Decision| {
        let stages: Vec<String> = decision.stages.into_iter().map(|stage| stage.text).collect();
        let error = decision.error.map(|error| format!(" ({error})")).unwrap_or_default();
        format!("{} x{}: {:?}{error}", stages.join(", "), decision.count, decision.outcome)
    };
    decisions.of_key(&key(name)).into_iter().map(told).collect()
}

#[test]
fn the_newest_comes_first_and_repetitions_are_counted() {
    let decisions = Decisions::default().of_queue("replicaset");
    sync(&decisions, 0, "a", &["create 2"], Some("exceeded quota"));
    sync(&decisions, 1, "b", &["nothing"], None);
    sync(&decisions, 2, "a", &["create 2"], None);
    decisions.record(at(3), &key("a"), &Plan("nothing"));
    assert_eq!(
        decisions.to_json_lines(None),
        concat!(
            r#"{"queue":"replicaset","key":"ns/a","time":"1970-01-01T00:00:03Z","first":"1970-01-01T00:00:03Z","count":1,"#,
            r#""stages":[{"text":"nothing","reason":{"says":{"text":"nothing"}}}],"outcome":"applying"}"#,
            "\n",
            r#"{"queue":"replicaset","key":"ns/a","time":"1970-01-01T00:00:02Z","first":"1970-01-01T00:00:00Z","count":2,"#,
            r#""stages":[{"text":"create 2","reason":{"says":{"text":"create 2"}}}],"outcome":"done"}"#,
            "\n",
            r#"{"queue":"replicaset","key":"ns/b","time":"1970-01-01T00:00:01Z","first":"1970-01-01T00:00:01Z","count":1,"#,
            r#""stages":[{"text":"nothing","reason":{"says":{"text":"nothing"}}}],"outcome":"done"}"#,
            "\n",
        )
    );
    assert_eq!(told(&decisions, "a"), ["nothing x1: Applying", "create 2 x2: Done"]);
}

#[test]
fn a_sync_of_several_stages_is_one_record_with_one_outcome() {
    let decisions = Decisions::default();
    for second in 0..3 {
        sync(&decisions, second, "a", &["create 2", "count 1 succeeded"], Some("conflict"));
    }
    assert_eq!(told(&decisions, "a"), ["create 2, count 1 succeeded x3: Failed (conflict)"]);
}

#[test]
fn a_failure_says_why_and_another_decision_starts_anew() {
    let decisions = Decisions::default().of_queue("replicaset");
    assert_eq!(decisions.last_error(), None);
    sync(&decisions, 0, "a", &["create 2"], Some("exceeded quota"));
    sync(&decisions, 0, "gone", &[], None);
    sync(&decisions, 1, "a", &["create 1"], None);
    sync(&decisions, 2, "a", &["create 2"], None);
    sync(&decisions, 3, "unread", &[], Some("no answer"));
    let expected = ["create 2 x1: Done", "create 1 x1: Done", "create 2 x1: Failed (exceeded quota)"];
    assert_eq!(told(&decisions, "a"), expected);
    assert_eq!(told(&decisions, "gone"), [""; 0]);
    assert_eq!(told(&decisions, "unread"), [" x1: Failed (no answer)"]);
    let failure = Failure { key: "ns/unread".to_owned(), time: at(3), error: "no answer".to_owned() };
    assert_eq!(decisions.last_error(), Some(failure));
    assert_eq!(decisions.of_queue("other").last_error(), None);
}

#[test]
fn a_record_says_what_led_to_it_and_what_it_wrote() {
    const RESOURCE: &Resource = &PODS;
    let decisions = Decisions::default();
    let cause = Trigger { resource: RESOURCE, object: key("web-a"), version: ResourceVersion(7), seen: Instant::now() };
    decisions.begin(at(0), &key("web"), Some(cause));
    decisions.record(at(0), &key("web"), &Plan("create 6"));
    for version in 8..14 {
        decisions.wrote(&key("web"), &PODS, &key("web-b"), ResourceVersion(version));
    }
    decisions.finish(&key("web"), Ok(()));
    decisions.wrote(&key("web"), &PODS, &key("web-c"), ResourceVersion(14));
    let [decision] = &decisions.of_key(&key("web"))[..] else { panic!("one sync is one record") };
    let version = |object: &str, version| Version { resource: "pods".to_owned(), object: object.to_owned(), version };
    assert_eq!(decision.cause, Some(version("ns/web-a", 7)));
    assert_eq!(decision.wrote, (8..12).map(|number| version("ns/web-b", number)).collect::<Vec<_>>());
    assert_eq!(decision.more_written, 2);
}

#[test]
fn what_wrote_to_others_stays_longer_than_what_did_not() {
    let decisions = Decisions::default();
    let wrote = |second, stage: &'static str, object: &str| {
        decisions.begin(at(second), &key("web"), None);
        decisions.record(at(second), &key("web"), &Plan(stage));
        decisions.wrote(&key("web"), &PODS, &key(object), ResourceVersion(1));
        decisions.finish(&key("web"), Ok(()));
    };
    wrote(0, "create", "web-a");
    for (second, stage) in ["status 1", "status 2", "status 3", "status 4"].into_iter().enumerate() {
        wrote(i64::try_from(second).unwrap() + 1, stage, "web");
    }
    let expected = ["status 4 x1: Done", "status 3 x1: Done", "status 2 x1: Done", "create x1: Done"];
    assert_eq!(told(&decisions, "web"), expected);
    for (second, stage) in ["create b", "create c", "create d", "create e"].into_iter().enumerate() {
        wrote(i64::try_from(second).unwrap() + 9, stage, "web-b");
    }
    let newest = ["create e x1: Done", "create d x1: Done", "create c x1: Done", "create b x1: Done"];
    assert_eq!(told(&decisions, "web"), newest, "of several such the newest");
}

#[test]
fn queues_do_not_mix() {
    let decisions = Decisions::default();
    let (pods, nodes) = (decisions.of_queue("pods"), decisions.of_queue("nodes"));
    pods.record(at(0), &key("a"), &Plan("same"));
    nodes.record(at(0), &key("a"), &Plan("same"));
    pods.finish(&key("a"), Ok(()));
    assert_eq!(told(&pods, "a"), ["same x1: Done"]);
    assert_eq!(told(&nodes, "a"), ["same x1: Applying"]);
}

/// Texts that last as long as the test does.
fn text(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

#[test]
fn a_busy_key_pushes_out_its_own_records_only() {
    let decisions = Decisions::default();
    sync(&decisions, 0, "quiet", &["nothing"], None);
    for second in 1..10_000 {
        sync(&decisions, second, "busy", &[text(format!("update {second}"))], None);
    }
    let busy = ["update 9999 x1: Done", "update 9998 x1: Done", "update 9997 x1: Done", "update 9996 x1: Done"];
    assert_eq!(told(&decisions, "busy"), busy);
    assert_eq!(told(&decisions, "quiet"), ["nothing x1: Done"]);
}

#[test]
fn all_records_together_are_bounded() {
    let decisions = Decisions::default();
    let (syncs, long) = (2 * BYTES_MAX / TEXT_BYTES_MAX, text("ü".repeat(TEXT_BYTES_MAX)));
    for index in 0..syncs {
        let name = text(index.to_string());
        sync(&decisions, 0, name, &[long, long], Some(long));
        sync(&decisions, 1, "busy", &[name], None);
    }
    let lines = decisions.to_json_lines(None);
    let records = lines.lines().count();
    assert!((100..BYTES_MAX / (3 * TEXT_BYTES_MAX)).contains(&records), "{records}");
    assert!(lines.lines().filter(|line| !line.contains("busy")).all(|line| line.matches("ü…\"").count() == 3));
    assert_eq!(told(&decisions, "0"), [""; 0], "it was decided on longest ago");
    let newest = decisions.of_key(&key(&(syncs - 1).to_string()));
    assert_eq!(newest[0].stages[0].reason, Value::Null, "a reason that is too long is not cut into broken JSON");
    let records = decisions.records();
    let bytes: usize = records.closed.values().map(History::bytes).sum();
    assert!(records.bytes == bytes && bytes <= BYTES_MAX, "{bytes} {}", records.bytes);
    assert_eq!(records.by_change.len(), records.closed.len());
    assert!(records.open.is_empty());
}
