//! The latest decisions, for `/debug/decisions`: what each sync decided for its key, why, how often, and how it went.
//!
//! A sync of several stages is one record, which ends with the sync. Each key keeps its own last few, however busy others
//! are; where room is wanted, the key goes that was decided on longest ago.
//! Left out: history beyond that (logs at `--v=2` and traces have it), and anything that reads decisions back to decide:
//! this is for people only.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::{self, Display, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::api::object::Key;
use crate::runtime::shadow;

/// So many records of a key are kept.
const OF_KEY_MAX: usize = 4;
/// The text of a stage has at most so many bytes.
const TEXT_BYTES_MAX: usize = 512;
/// All records together have at most so many bytes, with what each takes besides its texts.
const BYTES_MAX: usize = 256 * 1024;
const RECORD_BYTES: usize = 192;

/// The latest decisions; cheap to clone.
#[derive(Clone, Default)]
pub struct Decisions {
    queue: &'static str,
    records: Arc<Mutex<Records>>,
}

/// Which key of which queue.
type Subject = (&'static str, Key);

#[derive(Default)]
struct Records {
    /// Of the syncs that run.
    open: HashMap<Subject, Record>,
    closed: HashMap<Subject, History>,
    /// The keys of closed records, by their last change.
    by_change: BTreeMap<u64, Subject>,
    changes: u64,
    bytes: usize,
}

/// The last records of one key, the oldest first.
struct History {
    records: VecDeque<Record>,
    changed: u64,
}

/// What one sync decided, or several in a row that decided the same.
struct Record {
    /// When the last of them began.
    time: Timestamp,
    stages: Vec<Box<str>>,
    count: u64,
    /// When the first of them began.
    first: Timestamp,
    outcome: Outcome,
    error: Option<Box<str>>,
    /// Its place among all records.
    order: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    Applying,
    Done,
    Failed,
}

impl Decisions {
    /// The same records, for the keys of the queue of this name.
    #[must_use]
    pub fn of_queue(&self, queue: &'static str) -> Self {
        Self { queue, records: Arc::clone(&self.records) }
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what the running sync of a key has decided, its reasons included, and logs it: one more stage, until
    /// [`Self::finish`].
    pub fn record(&self, now: Timestamp, key: &Key, plan: &dyn Display) {
        let plan = shortened(plan);
        tracing::debug!(queue = self.queue, %key, plan, "decided");
        shadow::decided(self.queue, key, &plan);
        let mut records = self.records();
        let order = records.next_change();
        let record = records.open.entry((self.queue, key.clone())).or_insert_with(|| Record::new(now));
        record.order = order;
        record.stages.push(plan.into());
    }

    /// Notes how the sync of a key has ended. If it has decided the same as the one before, that is counted, not listed
    /// twice.
    pub fn finish(&self, key: &Key, outcome: Result<(), &dyn Display>) {
        let subject = (self.queue, key.clone());
        let mut records = self.records();
        let Some(mut record) = records.open.remove(&subject) else { return };
        (record.outcome, record.error) = match outcome {
            Ok(()) => (Outcome::Done, None),
            Err(error) => (Outcome::Failed, Some(shortened(error).into())),
        };
        records.close(subject, record);
    }

    /// All records, or those of one key (`namespace/name`), the newest first: one JSON object a line.
    pub fn to_json_lines(&self, key: Option<&str>) -> String {
        let records = self.records();
        let open = records.open.iter();
        let closed = records.closed.iter();
        let closed = closed.flat_map(|(subject, history)| history.records.iter().map(move |record| (subject, record)));
        let mut wanted: Vec<(&Subject, &Record)> =
            open.chain(closed).filter(|((_, known), _)| key.is_none_or(|key| known.as_str() == key)).collect();
        wanted.sort_unstable_by_key(|(_, record)| std::cmp::Reverse(record.order));
        let mut lines = String::new();
        for (subject, record) in wanted {
            // A record is made of texts, numbers and times: JSON has a form for each.
            lines.push_str(&serde_json::to_string(&Line(subject, record)).unwrap_or_default());
            lines.push('\n');
        }
        lines
    }
}

impl Records {
    fn next_change(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }

    fn close(&mut self, subject: Subject, mut record: Record) {
        let changed = self.next_change();
        record.order = changed;
        let mut history = self.closed.remove(&subject).unwrap_or_else(History::new);
        self.by_change.remove(&history.changed);
        self.bytes -= history.bytes();
        history.push(record);
        history.changed = changed;
        self.bytes += history.bytes();
        self.closed.insert(subject.clone(), history);
        self.by_change.insert(changed, subject);
        while self.bytes > BYTES_MAX
            && let Some((_, oldest)) = self.by_change.pop_first()
        {
            self.bytes -= self.closed.remove(&oldest).map_or(0, |history| history.bytes());
        }
    }
}

impl History {
    fn new() -> Self {
        Self { records: VecDeque::new(), changed: 0 }
    }

    fn push(&mut self, record: Record) {
        let again = self.records.pop_back_if(|last| last.stages == record.stages);
        let (count, first) = again.map_or((1, record.first), |last| (last.count.saturating_add(1), last.first));
        if self.records.len() == OF_KEY_MAX {
            self.records.pop_front();
        }
        self.records.push_back(Record { count, first, ..record });
    }

    fn bytes(&self) -> usize {
        self.records.iter().map(Record::bytes).sum()
    }
}

impl Record {
    fn new(now: Timestamp) -> Self {
        Self { time: now, stages: Vec::new(), count: 1, first: now, outcome: Outcome::Applying, error: None, order: 0 }
    }

    fn bytes(&self) -> usize {
        let texts = self.stages.iter().chain(&self.error).map(|text| text.len());
        RECORD_BYTES + texts.sum::<usize>()
    }
}

/// A record as people read it: its first stage is its plan, and where there are more, all of them are listed.
struct Line<'a>(&'a Subject, &'a Record);

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self((queue, key), Record { time, stages, count, first, outcome, error, order: _ }) = self;
        let mut line = serializer.serialize_struct("Decision", 9)?;
        line.serialize_field("time", time)?;
        if !queue.is_empty() {
            line.serialize_field("queue", queue)?;
        }
        line.serialize_field("key", key.as_str())?;
        line.serialize_field("plan", stages.first().map_or("", |plan| plan))?;
        if stages.len() > 1 {
            line.serialize_field("stages", stages)?;
        }
        line.serialize_field("count", count)?;
        line.serialize_field("first", first)?;
        line.serialize_field("outcome", outcome)?;
        if let Some(error) = error {
            line.serialize_field("error", error)?;
        }
        line.end()
    }
}

/// The text as far as it fits; what follows is not even formatted.
fn shortened(text: &dyn Display) -> String {
    struct Limited(String);
    impl Write for Limited {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            let room = TEXT_BYTES_MAX - self.0.len();
            if part.len() <= room {
                self.0.push_str(part);
                return Ok(());
            }
            self.0.push_str(&part[..part.floor_char_boundary(room)]);
            Err(fmt::Error)
        }
    }
    let mut limited = Limited(String::new());
    let is_whole = write!(limited, "{text}").is_ok();
    if is_whole { limited.0 } else { limited.0 + "…" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn key(name: &str) -> Key {
        Key::new("ns", name)
    }

    /// One sync that decides this, stage by stage.
    fn sync(decisions: &Decisions, second: i64, name: &str, stages: &[&str], error: Option<&str>) {
        for stage in stages {
            decisions.record(at(second), &key(name), stage);
        }
        match &error {
            Some(error) => decisions.finish(&key(name), Err(error)),
            None => decisions.finish(&key(name), Ok(())),
        }
    }

    #[test]
    fn the_newest_comes_first_and_repetitions_are_counted() {
        let decisions = Decisions::default().of_queue("replicaset");
        sync(&decisions, 0, "a", &["create 2 (0 of 2)"], Some("exceeded quota"));
        sync(&decisions, 1, "b", &["nothing (2 of 2)"], None);
        sync(&decisions, 2, "a", &["create 2 (0 of 2)"], None);
        decisions.record(at(3), &key("a"), &"nothing (2 of 2)");
        assert_eq!(
            decisions.to_json_lines(None),
            concat!(
                r#"{"time":"1970-01-01T00:00:03Z","queue":"replicaset","key":"ns/a","plan":"nothing (2 of 2)","#,
                r#""count":1,"first":"1970-01-01T00:00:03Z","outcome":"applying"}"#,
                "\n",
                r#"{"time":"1970-01-01T00:00:02Z","queue":"replicaset","key":"ns/a","plan":"create 2 (0 of 2)","#,
                r#""count":2,"first":"1970-01-01T00:00:00Z","outcome":"done"}"#,
                "\n",
                r#"{"time":"1970-01-01T00:00:01Z","queue":"replicaset","key":"ns/b","plan":"nothing (2 of 2)","#,
                r#""count":1,"first":"1970-01-01T00:00:01Z","outcome":"done"}"#,
                "\n",
            )
        );
    }

    #[test]
    fn a_sync_of_several_stages_is_one_record_with_one_outcome() {
        let decisions = Decisions::default();
        for second in 0..3 {
            sync(&decisions, second, "a", &["create 2", "count 1 succeeded"], Some("conflict"));
        }
        assert_eq!(
            decisions.to_json_lines(None),
            concat!(
                r#"{"time":"1970-01-01T00:00:02Z","key":"ns/a","plan":"create 2","#,
                r#""stages":["create 2","count 1 succeeded"],"count":3,"first":"1970-01-01T00:00:00Z","#,
                r#""outcome":"failed","error":"conflict"}"#,
                "\n",
            )
        );
    }

    #[test]
    fn a_failure_says_why_and_another_decision_starts_anew() {
        let decisions = Decisions::default();
        sync(&decisions, 0, "a", &["create 2"], Some("exceeded quota"));
        sync(&decisions, 0, "unknown", &[], None);
        sync(&decisions, 1, "a", &["create 1"], None);
        sync(&decisions, 2, "a", &["create 2"], None);
        let lines = decisions.to_json_lines(Some("ns/a"));
        let counts: Vec<&str> = lines.matches(r#""count":1"#).collect();
        assert_eq!(counts.len(), 3, "{lines}");
        assert!(lines.ends_with("\"outcome\":\"failed\",\"error\":\"exceeded quota\"}\n"), "{lines}");
        assert_eq!(decisions.to_json_lines(Some("ns/unknown")), "");
    }

    #[test]
    fn queues_do_not_mix() {
        let decisions = Decisions::default();
        let (pods, nodes) = (decisions.of_queue("pods"), decisions.of_queue("nodes"));
        pods.record(at(0), &key("a"), &"same");
        nodes.record(at(0), &key("a"), &"same");
        pods.finish(&key("a"), Ok(()));
        let lines = decisions.to_json_lines(None);
        assert!(lines.contains(
            r#""queue":"pods","key":"ns/a","plan":"same","count":1,"first":"1970-01-01T00:00:00Z","outcome":"done""#
        ));
        assert!(lines.contains(r#""queue":"nodes","key":"ns/a","plan":"same","count":1,"first":"1970-01-01T00:00:00Z","outcome":"applying""#));
    }

    #[test]
    fn a_busy_key_pushes_out_its_own_records_only() {
        let decisions = Decisions::default();
        sync(&decisions, 0, "quiet", &["nothing"], None);
        for second in 1..10_000 {
            sync(&decisions, second, "busy", &[&format!("update {second}")], None);
        }
        let lines = decisions.to_json_lines(None);
        let plans = [r#""plan":"update 9999""#, "update 9998", "update 9997", "update 9996", r#""plan":"nothing""#];
        assert_eq!(lines.lines().count(), plans.len());
        for (line, plan) in lines.lines().zip(plans) {
            assert!(line.contains(plan), "{line} has no {plan}");
        }
    }

    #[test]
    fn all_records_together_are_bounded() {
        let decisions = Decisions::default();
        let syncs = 2 * BYTES_MAX / TEXT_BYTES_MAX;
        for index in 0..syncs {
            let (name, text) = (index.to_string(), "ü".repeat(TEXT_BYTES_MAX));
            sync(&decisions, 0, &name, &[&text, &text], Some(&text));
            sync(&decisions, 1, "busy", &[&name], None);
        }
        let lines = decisions.to_json_lines(None);
        let records = lines.lines().count();
        assert!((100..BYTES_MAX / (3 * TEXT_BYTES_MAX)).contains(&records), "{records}");
        assert!(lines.lines().filter(|line| !line.contains("busy")).all(|line| line.matches("ü…\"").count() == 4));
        assert_eq!(decisions.to_json_lines(Some("ns/0")), "", "it was decided on longest ago");
        assert_ne!(decisions.to_json_lines(Some(&format!("ns/{}", syncs - 1))), "");
        let records = decisions.records();
        let bytes: usize = records.closed.values().map(History::bytes).sum();
        assert!(records.bytes == bytes && bytes <= BYTES_MAX, "{bytes} {}", records.bytes);
        assert_eq!(records.by_change.len(), records.closed.len());
        assert!(records.open.is_empty());
    }
}
