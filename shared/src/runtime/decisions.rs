//! The latest decisions, for `/debug/decisions`: what was decided for which key, why, how often, and how it went.
//!
//! Left out: history beyond one ring (logs at `--v=2` and traces have it), and anything that reads decisions back to
//! decide: this is for people only.

use std::collections::VecDeque;
use std::fmt::{self, Display, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::Serialize;

use crate::api::object::Key;

/// So many decisions are kept, each with a text of at most so many bytes: a quarter of a MiB at the very most.
const KEPT_MAX: usize = 512;
const TEXT_BYTES_MAX: usize = 512;

/// A ring of the latest decisions; cheap to clone.
#[derive(Clone, Default)]
pub struct Decisions {
    queue: &'static str,
    ring: Arc<Mutex<VecDeque<Decision>>>,
}

/// What was decided for one key, one or several times in a row.
#[derive(Serialize)]
struct Decision {
    time: Timestamp,
    #[serde(skip_serializing_if = "str::is_empty")]
    queue: &'static str,
    #[serde(serialize_with = "as_text")]
    key: Key,
    plan: Box<str>,
    /// How often in a row, since `first`.
    count: u64,
    first: Timestamp,
    outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    Applying,
    Done,
    Failed,
}

impl Decisions {
    /// The same ring, for the keys of the queue of this name.
    #[must_use]
    pub fn of_queue(&self, queue: &'static str) -> Self {
        Self { queue, ring: Arc::clone(&self.ring) }
    }

    fn ring(&self) -> MutexGuard<'_, VecDeque<Decision>> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what was decided for a key, its reasons included; it is logged too. The same decision again for the same
    /// key is counted, not listed twice.
    pub fn record(&self, now: Timestamp, key: &Key, plan: &dyn Display) {
        let plan = shortened(plan);
        tracing::debug!(queue = self.queue, %key, plan, "decided");
        let mut ring = self.ring();
        let again = latest(&ring, self.queue, key).filter(|at| *ring[*at].plan == *plan).and_then(|at| ring.remove(at));
        let (count, first) = again.map_or((1, now), |known| (known.count.saturating_add(1), known.first));
        if ring.len() == KEPT_MAX {
            ring.pop_front();
        }
        ring.push_back(Decision {
            time: now,
            queue: self.queue,
            key: key.clone(),
            plan: plan.into(),
            count,
            first,
            outcome: Outcome::Applying,
            error: None,
        });
    }

    /// Notes how applying the key's latest decision went.
    pub fn finish(&self, key: &Key, outcome: Result<(), &dyn Display>) {
        let mut ring = self.ring();
        let Some(decision) = latest(&ring, self.queue, key).and_then(|at| ring.get_mut(at)) else { return };
        (decision.outcome, decision.error) = match outcome {
            Ok(()) => (Outcome::Done, None),
            Err(error) => (Outcome::Failed, Some(shortened(error).into())),
        };
    }

    /// All decisions, or those for one key (`namespace/name`), the newest first: one JSON object a line.
    pub fn to_json_lines(&self, key: Option<&str>) -> String {
        let mut lines = String::new();
        for decision in self.ring().iter().rev().filter(|decision| key.is_none_or(|key| decision.key.as_str() == key)) {
            // A decision is made of texts, numbers and times: JSON has a form for each.
            lines.push_str(&serde_json::to_string(decision).unwrap_or_default());
            lines.push('\n');
        }
        lines
    }
}

fn as_text<S: serde::Serializer>(key: &Key, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(key.as_str())
}

fn latest(ring: &VecDeque<Decision>, queue: &str, key: &Key) -> Option<usize> {
    ring.iter().rposition(|decision| decision.key == *key && decision.queue == queue)
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

    #[test]
    fn the_newest_comes_first_and_repetitions_are_counted() {
        let decisions = Decisions::default().of_queue("replicaset");
        decisions.record(at(0), &key("a"), &"create 2 (0 of 2)");
        decisions.finish(&key("a"), Err(&"exceeded quota"));
        decisions.record(at(1), &key("b"), &"nothing (2 of 2)");
        decisions.finish(&key("b"), Ok(()));
        decisions.record(at(2), &key("a"), &"create 2 (0 of 2)");
        assert_eq!(
            decisions.to_json_lines(None),
            concat!(
                r#"{"time":"1970-01-01T00:00:02Z","queue":"replicaset","key":"ns/a","plan":"create 2 (0 of 2)","#,
                r#""count":2,"first":"1970-01-01T00:00:00Z","outcome":"applying"}"#,
                "\n",
                r#"{"time":"1970-01-01T00:00:01Z","queue":"replicaset","key":"ns/b","plan":"nothing (2 of 2)","#,
                r#""count":1,"first":"1970-01-01T00:00:01Z","outcome":"done"}"#,
                "\n",
            )
        );
    }

    #[test]
    fn a_failure_says_why_and_another_decision_starts_anew() {
        let decisions = Decisions::default();
        decisions.record(at(0), &key("a"), &"create 2");
        decisions.finish(&key("a"), Err(&"exceeded quota"));
        decisions.finish(&key("unknown"), Ok(()));
        decisions.record(at(1), &key("a"), &"create 1");
        decisions.record(at(2), &key("a"), &"create 2");
        let lines = decisions.to_json_lines(Some("ns/a"));
        let counts: Vec<&str> = lines.matches(r#""count":1"#).collect();
        assert_eq!(counts.len(), 3, "{lines}");
        assert!(lines.ends_with("\"outcome\":\"failed\",\"error\":\"exceeded quota\"}\n"), "{lines}");
        assert_eq!(decisions.to_json_lines(Some("ns/b")), "");
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
    fn the_ring_and_its_texts_are_bounded() {
        let decisions = Decisions::default();
        for index in 0..2 * KEPT_MAX {
            decisions.record(at(0), &key(&index.to_string()), &"ü".repeat(TEXT_BYTES_MAX));
        }
        let lines = decisions.to_json_lines(None);
        assert_eq!(lines.lines().count(), KEPT_MAX);
        assert!(lines.lines().all(|line| line.contains("ü…\"")));
        assert!(decisions.ring().iter().all(|decision| decision.plan.len() <= TEXT_BYTES_MAX + "…".len()));
        assert_eq!(decisions.to_json_lines(Some("ns/0")), "");
        assert_ne!(decisions.to_json_lines(Some(&format!("ns/{}", 2 * KEPT_MAX - 1))), "");
    }
}
