//! The latest decisions, for `/debug/decisions` and `/why`: for each sync of a key its cause, stages, reasons, writes
//! and outcome.
//!
//! A sync of several stages is one record. Each key keeps its last few records, however busy other keys are. Records
//! that wrote to other objects stay longest, because people look at such an object and ask why it was written. When all
//! records together need too much memory, the key that was synced longest ago loses its records.
//! Left out: older history, which logs at `--v=2` and traces have. No code reads decisions back to decide; they are for
//! people only.

mod reason;

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::api::explain::{Decision, Failure, Outcome, Stage, Version};
use crate::api::intern::Text;
use crate::api::object::{Key, Kind, ResourceVersion};
use crate::api::resource::Resource;

pub use self::reason::{LiveRead, Next, Reason, Reasoned};

/// A key keeps this many records.
const OF_KEY_MAX: usize = 4;
/// The text of a stage has at most this many bytes, and so has the JSON of its reason.
const TEXT_BYTES_MAX: usize = 512;
/// A record names this many of its writes; the others are counted.
const WRITES_MAX: usize = 4;
/// All records together have at most about this many bytes.
const BYTES_MAX: usize = 256 * 1024;
/// What a key needs in the maps.
const KEY_BYTES: usize = 192;
/// What an allocation needs beside its content.
const ALLOCATION_BYTES: usize = 16;

/// A stage as `preview` shows it.
pub fn stage(plan: &impl Reasoned) -> Stage {
    Noted::new(plan).into()
}

/// The first stage of a sync: the live read if there is one, else the plan.
pub fn first_stage<P: Reasoned>(live_read: Option<LiveRead<impl Reason>>, plan: impl FnOnce() -> P) -> Stage {
    live_read.map_or_else(|| stage(&plan()), |live_read| stage(&live_read))
}

/// A change of an object that led to a sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    pub resource: &'static Resource,
    pub object: Key,
    /// Its version after the change.
    pub version: ResourceVersion,
    pub seen: Instant,
}

impl Trigger {
    /// The change that made this state of an object.
    pub(crate) fn of<T: Kind>(object: &T) -> Self {
        let meta = object.meta();
        Self {
            resource: T::STATIC_RESOURCE,
            object: meta.key.clone(),
            version: meta.resource_version,
            seen: Instant::now(),
        }
    }
}

impl From<&Trigger> for Version {
    fn from(Trigger { resource, object, version, seen: _ }: &Trigger) -> Self {
        Self { resource: resource.to_string(), object: object.to_string(), version: version.0 }
    }
}

/// Told of each stage that is decided: the queue, the key, and a way to read the stage.
pub(crate) type Observer = fn(&'static str, &Key, &dyn Fn() -> Stage);

/// The latest decisions; cheap to clone.
#[derive(Clone, Default)]
pub struct Decisions {
    queue: &'static str,
    records: Arc<Mutex<Records>>,
    observer: Option<Observer>,
}

type Subject = (&'static str, Key);

#[derive(Default)]
struct Records {
    open: HashMap<Subject, Record>,
    closed: HashMap<Subject, History>,
    /// The keys of closed records, by their last change.
    by_change: BTreeMap<u64, Subject>,
    changes: u64,
    bytes: usize,
    last_errors: BTreeMap<&'static str, Failure>,
}

/// The last records of one key, the oldest first.
struct History {
    records: Vec<Record>,
    changed: u64,
}

/// One stage, with its reason as JSON; `""` if the JSON is too long to keep.
#[derive(PartialEq, Eq)]
struct Noted {
    text: Box<str>,
    reason: Box<str>,
}

/// The decision of one sync, or of several syncs in a row that decided the same.
struct Record {
    /// When the last of them began.
    time: Timestamp,
    stages: Vec<Noted>,
    count: u64,
    /// When the first of them began.
    first: Timestamp,
    outcome: Outcome,
    error: Option<Box<str>>,
    cause: Option<Trigger>,
    wrote: Vec<Written>,
    more_written: u64,
    order: u64,
}

/// One write: the resource as upstream prints it, the object, and its version after the write.
struct Written {
    resource: Text,
    object: Key,
    version: ResourceVersion,
}

impl Decisions {
    /// Decisions of which this is told, too.
    pub(crate) fn observed(observer: Observer) -> Self {
        Self { observer: Some(observer), ..Self::default() }
    }

    /// A handle on the same records that notes decisions of the queue of this name.
    #[must_use]
    pub fn of_queue(&self, queue: &'static str) -> Self {
        Self { queue, ..self.clone() }
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a sync of a key begins, and the change that led to it.
    pub(crate) fn begin(&self, now: Timestamp, key: &Key, cause: Option<Trigger>) {
        self.records().open.insert((self.queue, key.clone()), Record::new(now, cause));
    }

    /// Adds a stage with its reason to the record of the running sync of a key, and logs it.
    pub fn record(&self, now: Timestamp, key: &Key, plan: &impl Reasoned) {
        let noted = Noted::new(plan);
        tracing::debug!(queue = self.queue, %key, plan = &*noted.text, "decided");
        if let Some(decided) = self.observer {
            decided(self.queue, key, &|| Stage::from(&noted));
        }
        let mut records = self.records();
        let order = records.next_change();
        let record = records.open.entry((self.queue, key.clone())).or_insert_with(|| Record::new(now, None));
        record.order = order;
        record.stages.push(noted);
    }

    /// Adds a write to the record of the running sync of a key.
    pub(crate) fn wrote(&self, key: &Key, resource: &Resource, object: &Key, version: ResourceVersion) {
        // A write outside a sync has no decision.
        let subject = (self.queue, key.clone());
        let mut records = self.records();
        let Some(record) = records.open.get_mut(&subject) else { return };
        if record.wrote.len() < WRITES_MAX {
            let resource = Text::new(&resource.to_string());
            record.wrote.push(Written { resource, object: object.clone(), version });
        } else {
            record.more_written += 1;
        }
    }

    /// Notes how the sync of a key has ended. The queue's workers call it; a sync that decides about another key than
    /// its own calls it for that key. A decision equal to the one before is counted, not listed twice.
    pub fn finish(&self, key: &Key, outcome: Result<(), &dyn Display>) {
        let subject = (self.queue, key.clone());
        let mut records = self.records();
        let Some(mut record) = records.open.remove(&subject) else { return };
        (record.outcome, record.error) = match outcome {
            Ok(()) => (Outcome::Done, None),
            Err(error) => (Outcome::Failed, Some(shortened(error).into())),
        };
        if let Some(error) = &record.error {
            let failure = Failure { key: key.to_string(), time: record.time, error: error.to_string() };
            records.last_errors.insert(self.queue, failure);
        }
        // The sync of an object that is gone decides nothing.
        if !record.stages.is_empty() || record.error.is_some() {
            records.close(subject, record);
        }
    }

    /// The last failure of any key of the queue.
    pub(crate) fn last_error(&self) -> Option<Failure> {
        self.records().last_errors.get(self.queue).cloned()
    }

    /// The decisions for one key of the queue, the newest first.
    pub(crate) fn of_key(&self, key: &Key) -> Vec<Decision> {
        let subject = (self.queue, key.clone());
        let records = self.records();
        let open = records.open.get(&subject).filter(|record| !record.stages.is_empty());
        let closed = records.closed.get(&subject).into_iter().flat_map(|history| history.records.iter().rev());
        open.into_iter().chain(closed).map(Decision::from).collect()
    }

    /// All records, or those of one key (`namespace/name`), the newest first: one JSON object a line.
    pub fn to_json_lines(&self, key: Option<&str>) -> String {
        let records = self.records();
        let open = records.open.iter().filter(|(_, record)| !record.stages.is_empty());
        let closed = records.closed.iter();
        let closed = closed.flat_map(|(subject, history)| history.records.iter().map(move |record| (subject, record)));
        let mut wanted: Vec<(&Subject, &Record)> =
            open.chain(closed).filter(|((_, known), _)| key.is_none_or(|key| known.as_str() == key)).collect();
        wanted.sort_unstable_by_key(|(_, record)| std::cmp::Reverse(record.order));
        let mut lines = String::new();
        for ((queue, key), record) in wanted {
            let line = Line { queue, key: key.as_str(), decision: record.into() };
            // A record is made of texts, numbers and times: JSON has a form for each.
            lines.push_str(&serde_json::to_string(&line).unwrap_or_default());
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
        record.stages.shrink_to_fit();
        record.wrote.shrink_to_fit();
        let mut history = self.closed.remove(&subject).unwrap_or_else(History::new);
        self.by_change.remove(&history.changed);
        self.bytes -= history.bytes();
        history.push(&subject.1, record);
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
        Self { records: Vec::new(), changed: 0 }
    }

    fn push(&mut self, key: &Key, mut record: Record) {
        if let Some(last) = self.records.pop_if(|last| last.stages == record.stages) {
            (record.count, record.first) = (last.count.saturating_add(1), last.first);
            record.cause = record.cause.or(last.cause);
        }
        if self.records.len() == OF_KEY_MAX {
            let kept_to_itself = self.records.iter().position(|record| !record.wrote_to_others(key));
            self.records.remove(kept_to_itself.unwrap_or_default());
        }
        // Most keys have one record for long.
        self.records.reserve_exact(1);
        self.records.push(record);
    }

    fn bytes(&self) -> usize {
        match &self.records[..] {
            [] => 0,
            records => KEY_BYTES + records.iter().map(Record::bytes).sum::<usize>(),
        }
    }
}

impl Record {
    fn new(now: Timestamp, cause: Option<Trigger>) -> Self {
        Self {
            time: now,
            stages: Vec::new(),
            count: 1,
            first: now,
            outcome: Outcome::Applying,
            error: None,
            cause,
            wrote: Vec::new(),
            more_written: 0,
            order: 0,
        }
    }

    fn wrote_to_others(&self, key: &Key) -> bool {
        self.more_written > 0 || self.wrote.iter().any(|written| written.object != *key)
    }

    fn bytes(&self) -> usize {
        let texts = self.stages.iter().flat_map(|Noted { text, reason }| [text.len(), reason.len()]);
        let texts = texts.chain(self.error.as_ref().map(|error| error.len())).map(|text| text + ALLOCATION_BYTES);
        let objects = self.wrote.iter().map(|written| written.object.as_str().len());
        size_of::<Self>()
            + size_of_val(&self.stages[..])
            + size_of_val(&self.wrote[..])
            + texts.chain(objects).sum::<usize>()
    }
}

impl From<&Written> for Version {
    fn from(Written { resource, object, version: ResourceVersion(version) }: &Written) -> Self {
        Self { resource: resource.to_string(), object: object.to_string(), version: *version }
    }
}

impl From<&Record> for Decision {
    fn from(record: &Record) -> Self {
        let Record { time, stages, count, first, outcome, error, cause, wrote, more_written, order: _ } = record;
        Self {
            time: *time,
            first: *first,
            count: *count,
            stages: stages.iter().map(Stage::from).collect(),
            outcome: *outcome,
            error: error.as_deref().map(str::to_owned),
            cause: cause.as_ref().map(Version::from),
            wrote: wrote.iter().map(Version::from).collect(),
            more_written: *more_written,
        }
    }
}

impl Noted {
    fn new(plan: &impl Reasoned) -> Self {
        let reason = serde_json::to_string(&plan.reason()).ok().filter(|json| json.len() <= TEXT_BYTES_MAX);
        Self { text: shortened(plan).into(), reason: reason.unwrap_or_default().into() }
    }
}

impl From<Noted> for Stage {
    fn from(noted: Noted) -> Self {
        Self::from(&noted)
    }
}

impl From<&Noted> for Stage {
    fn from(Noted { text, reason }: &Noted) -> Self {
        Self { text: text.to_string(), reason: serde_json::from_str(reason).unwrap_or(Value::Null) }
    }
}

/// One line of `/debug/decisions`.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    queue: &'a str,
    key: &'a str,
    #[serde(flatten)]
    decision: Decision,
}

/// The first part of the text that fits; the rest is not formatted at all.
fn shortened(text: &(impl Display + ?Sized)) -> String {
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
mod tests;
