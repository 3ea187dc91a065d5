//! The result for an event: a new Event, one more count of an earlier one, part of a combined one, or nothing.
//!
//! Left out: posting. This is a function of the events and their times.
//!
//! Upstream: staging/src/k8s.io/client-go/tools/record/events_cache.go.

use std::hash::{BuildHasher, Hash, RandomState};
use std::time::Duration;

use jiff::Timestamp;

use super::lru::Lru;
use super::{EventType, ObjectReference, Occurrence};
use crate::api::time::Time;

/// `maxLruCacheEntries`.
const REMEMBERED_MAX: usize = 4096;
/// `defaultAggregateMaxEvents`: so many different messages within the interval are combined.
const COMBINE_FROM: usize = 10;
/// `defaultAggregateIntervalInSeconds`.
const COMBINE_WITHIN: Duration = Duration::from_secs(600);
/// `defaultSpamBurst` and `defaultSpamQPS`.
const SPAM_BURST: i64 = 25;
const SPAM_REFILL_MILLIS: i64 = 300_000;

const COMBINED_PREFIX: &str = "(combined from similar events): ";

/// An Event to post: created if its count is 1, else the earlier one of its name is patched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) about: ObjectReference,
    pub(super) kind: EventType,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) component: &'static str,
    /// Upstream sets it on all Events but the combined ones.
    pub(super) reporting_component: &'static str,
    pub(super) first: Time,
    pub(super) last: Time,
    pub(super) count: u32,
}

pub(super) struct Correlator {
    hasher: RandomState,
    similar: Lru<Similar>,
    posted: Lru<Option<Posted>>,
    spam: Lru<Bucket>,
}

/// Events that differ in their messages only.
struct Similar {
    /// Hashes of the messages, the oldest first.
    messages: Vec<u64>,
    last: Timestamp,
}

struct Posted {
    name: Box<str>,
    first: Time,
    count: u32,
}

/// A token bucket: when it will be full again, in milliseconds since the epoch.
struct Bucket {
    full_at: i64,
}

impl Bucket {
    fn take(&mut self, now: Timestamp) -> bool {
        let now = now.as_millisecond();
        // Never longer than an empty bucket takes, even if the clock was set back.
        let full_at = self.full_at.clamp(now, now + SPAM_BURST * SPAM_REFILL_MILLIS);
        let has_token = full_at - now <= (SPAM_BURST - 1) * SPAM_REFILL_MILLIS;
        self.full_at = full_at + if has_token { SPAM_REFILL_MILLIS } else { 0 };
        has_token
    }
}

impl Correlator {
    pub(super) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            similar: Lru::new(REMEMBERED_MAX),
            posted: Lru::new(REMEMBERED_MAX),
            spam: Lru::new(REMEMBERED_MAX),
        }
    }

    /// The request to post for this occurrence; none if its object has had too many.
    ///
    /// Upstream: `EventCorrelate`. As there, what is filtered is counted all the same, so a later count includes it.
    pub(super) fn correlate(&mut self, occurrence: &Occurrence) -> Option<Event> {
        let (event, key) = self.aggregate(occurrence);
        let event = self.observe(event, key);
        let spam_key = self.hash(&("spam", about(occurrence)));
        self.spam.entry(spam_key, || Bucket { full_at: 0 }).take(occurrence.at).then_some(event)
    }

    /// Upstream: `EventAggregate`.
    fn aggregate(&mut self, occurrence: &Occurrence) -> (Event, u64) {
        let now = occurrence.at;
        let event = Event {
            name: self.event_name(occurrence),
            about: occurrence.about.clone(),
            kind: occurrence.kind,
            reason: occurrence.reason.clone(),
            message: occurrence.message.clone(),
            component: occurrence.component,
            reporting_component: occurrence.component,
            first: Time::of(now),
            last: Time::of(now),
            count: 1,
        };
        let similar_key = self.hash(&("similar", source(occurrence), &occurrence.reason));
        let message = self.hash(&occurrence.message);
        let similar = self.similar.entry(similar_key, || Similar { messages: Vec::new(), last: now });
        if now.duration_since(similar.last).unsigned_abs() > COMBINE_WITHIN {
            similar.messages.clear();
        }
        similar.last = now;
        if !similar.messages.contains(&message) {
            similar.messages.push(message);
        }
        if similar.messages.len() < COMBINE_FROM {
            let key = self.hash(&("event", source(occurrence), &occurrence.reason, &occurrence.message));
            return (event, key);
        }
        similar.messages.remove(0);
        let message = format!("{COMBINED_PREFIX}{}", event.message);
        (Event { message, reporting_component: "", ..event }, similar_key)
    }

    fn observe(&mut self, event: Event, key: u64) -> Event {
        let known = self.posted.entry(key, || None);
        let event = match known {
            Some(known) => Event {
                name: known.name.to_string(),
                first: known.first,
                count: known.count.saturating_add(1),
                ..event
            },
            None => event,
        };
        *known = Some(Posted { name: event.name.as_str().into(), first: event.first, count: event.count });
        event
    }

    fn hash(&self, key: &impl Hash) -> u64 {
        self.hasher.hash_one(key)
    }

    /// `<object>.<nanoseconds in hex>`, or where the object's name cannot be part of an Event's, something unique.
    ///
    /// Upstream: `GenerateEventName`, staging/src/k8s.io/client-go/tools/record/util/util.go.
    fn event_name(&self, occurrence: &Occurrence) -> String {
        let nanos = occurrence.at.as_nanosecond();
        let name = format!("{}.{nanos:x}", occurrence.about.key.name());
        if is_dns_subdomain(&name) { name } else { format!("{:016x}.{nanos:x}", self.hash(&name)) }
    }
}

/// The identity of an event's source, object and type.
fn source(occurrence: &Occurrence) -> impl Hash {
    (about(occurrence), occurrence.kind)
}

/// The identity of an event's source and object.
///
/// Upstream: `getSpamKey`, staging/src/k8s.io/client-go/tools/record/events_cache.go.
fn about(occurrence: &Occurrence) -> impl Hash {
    let ObjectReference { resource, key, uid, resource_version: _ } = &occurrence.about;
    (occurrence.component, resource, key, uid)
}

/// Upstream: `IsDNS1123Subdomain`, staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go.
fn is_dns_subdomain(name: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &[u8]| match (label.first(), label.last()) {
        (Some(first), Some(last)) => {
            is_alphanumeric(*first)
                && is_alphanumeric(*last)
                && label.iter().all(|byte| is_alphanumeric(*byte) || *byte == b'-')
        }
        _ => false,
    };
    name.len() <= 253 && name.as_bytes().split(|byte| *byte == b'.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::object::{Key, ResourceVersion, Uid};
    use crate::api::resource::{PODS, REPLICA_SETS};

    const START: i64 = 1_700_000_000;

    fn occurrence(second: i64, name: &str, reason: &str, message: &str) -> Occurrence {
        Occurrence {
            component: "replicaset-controller",
            about: ObjectReference {
                resource: REPLICA_SETS,
                key: Key::new("ns", name),
                uid: Uid::parse("0b6cd1a8-9b7e-4a0e-9a53-0c7a3e1f2d4b"),
                resource_version: ResourceVersion(7),
            },
            kind: EventType::Normal,
            reason: reason.to_owned(),
            message: message.to_owned(),
            at: Timestamp::from_second(START + second).unwrap(),
        }
    }

    fn shown(event: Option<Event>) -> String {
        event.map_or("-".to_owned(), |event| format!("{}x {} {}", event.count, event.reason, event.message))
    }

    /// Correlates events of one object, given as (second, reason, message), and shows what is posted for each.
    #[track_caller]
    fn check(events: &[(i64, &str, &str)], expected: &[&str]) {
        let mut correlator = Correlator::new();
        let posted: Vec<String> = events
            .iter()
            .map(|(second, reason, message)| shown(correlator.correlate(&occurrence(*second, "web", reason, message))))
            .collect();
        assert_eq!(posted, expected);
    }

    /// Posts this many events about one object, a second apart, each with its own message.
    fn different(count: i64, first_second: i64) -> Vec<Occurrence> {
        (0..count).map(|index| occurrence(first_second + index, "web", "Created", &format!("{index}"))).collect()
    }

    // Upstream: `TestEventCorrelator`, staging/src/k8s.io/client-go/tools/record/events_cache_test.go:
    // "create-a-single- event", "the-same-event-should-just-count",
    // "the-same-event-should-just-count-even-if-more-than-aggregate".
    #[test]
    fn equal_events_are_counted_and_never_combined() {
        check(&[(0, "A", "m"), (1, "B", "m"), (2, "A", "n")], &["1x A m", "1x B m", "1x A n"]);
        let same = [(0, "A", "m"); 12];
        let expected: Vec<String> = (1..=12).map(|count| format!("{count}x A m")).collect();
        check(&same, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    }

    // Upstream: "create-many-unique-events", "similar-events-should-aggregate-event",
    // "similar-events-many-times-should-count-the-aggregate".
    #[test]
    fn the_tenth_similar_event_starts_a_combined_one() {
        let mut correlator = Correlator::new();
        let posted: Vec<String> =
            different(12, 0).iter().map(|occurrence| shown(correlator.correlate(occurrence))).collect();
        assert_eq!(posted[8], "1x Created 8");
        assert_eq!(
            posted[9..],
            [
                "1x Created (combined from similar events): 9",
                "2x Created (combined from similar events): 10",
                "3x Created (combined from similar events): 11",
            ]
        );
        assert_eq!(shown(correlator.correlate(&occurrence(12, "web", "Deleted", "0"))), "1x Deleted 0");
        assert_eq!(shown(correlator.correlate(&occurrence(12, "other", "Created", "0"))), "1x Created 0");
        // A message among the latest is counted for itself again.
        assert_eq!(shown(correlator.correlate(&occurrence(13, "web", "Created", "11"))), "1x Created 11");
    }

    // Upstream: "similar-events-whose-interval-is-greater-than-aggregate-interval-do-not-aggregate".
    #[test]
    fn events_far_apart_are_not_similar() {
        let mut correlator = Correlator::new();
        for occurrence in different(9, 0) {
            correlator.correlate(&occurrence);
        }
        assert_eq!(shown(correlator.correlate(&occurrence(8 + 601, "web", "Created", "late"))), "1x Created late");
        let mut correlator = Correlator::new();
        for occurrence in different(9, 0) {
            correlator.correlate(&occurrence);
        }
        let last = correlator.correlate(&occurrence(8 + 600, "web", "Created", "late"));
        assert_eq!(shown(last), "1x Created (combined from similar events): late");
    }

    // Upstream: "the-same-event-is-spam-if-happens-too-frequently", `TestEventSpamFilter`.
    #[test]
    fn an_object_gets_25_events_and_then_one_every_5_minutes() {
        let mut correlator = Correlator::new();
        let mut at = |second: i64| shown(correlator.correlate(&occurrence(second, "web", "A", "m")));
        for count in 1..=25 {
            assert_eq!(at(0), format!("{count}x A m"));
        }
        assert_eq!(at(0), "-");
        assert_eq!(at(299), "-");
        assert_eq!(at(300), "28x A m");
        assert_eq!(at(300), "-");
        assert_eq!(at(300 + 2 * 300), "30x A m");
        assert_eq!(at(300 + 2 * 300), "31x A m");
        assert_eq!(at(300 + 2 * 300), "-");
        let mut warning = occurrence(900, "web", "B", "n");
        warning.kind = EventType::Warning;
        assert_eq!(shown(correlator.correlate(&warning)), "-", "it is about the same object");
        assert_eq!(shown(correlator.correlate(&occurrence(900, "other", "A", "m"))), "1x A m");
    }

    #[test]
    fn a_repeated_event_keeps_name_and_first_time() {
        let mut correlator = Correlator::new();
        let first = correlator.correlate(&occurrence(0, "web", "A", "m")).unwrap();
        assert_eq!(first.name, "web.17979cfe362a0000");
        assert_eq!((first.first, first.last), (Time::from_second(START), Time::from_second(START)));
        let second = correlator.correlate(&occurrence(60, "web", "A", "m")).unwrap();
        assert_eq!(second, Event { last: Time::from_second(START + 60), count: 2, ..first });
    }

    #[test]
    fn only_a_combined_event_has_no_reporting_component() {
        let mut correlator = Correlator::new();
        let events: Vec<Event> =
            different(10, 0).iter().filter_map(|occurrence| correlator.correlate(occurrence)).collect();
        assert_eq!(
            (events[8].component, events[8].reporting_component),
            ("replicaset-controller", "replicaset-controller")
        );
        assert_eq!((events[9].component, events[9].reporting_component), ("replicaset-controller", ""));
        assert_eq!(events[9].first, Time::from_second(START + 9));
    }

    #[test]
    fn a_clock_that_jumps_back_silences_an_object_for_5_minutes_at_most() {
        let mut correlator = Correlator::new();
        for second in [1_000_000, 0, 1, 2] {
            correlator.correlate(&occurrence(second, "web", "A", "m"));
        }
        assert_eq!(shown(correlator.correlate(&occurrence(3, "web", "A", "m"))), "-");
        assert_eq!(shown(correlator.correlate(&occurrence(300, "web", "A", "m"))), "6x A m");
    }

    #[test]
    fn names_that_are_no_part_of_an_events_name_are_replaced() {
        let correlator = Correlator::new();
        let mut odd = occurrence(0, "system:node", "A", "m");
        odd.about.resource = PODS;
        let name = correlator.event_name(&odd);
        assert!(is_dns_subdomain(&name) && name.ends_with(".17979cfe362a0000"), "{name}");
        assert_ne!(name, correlator.event_name(&occurrence(0, "system:other", "A", "m")));
        for (name, expected) in
            [("a.b-c.1", true), ("a..b", false), ("-a", false), ("a-", false), ("A", false), ("", false)]
        {
            assert_eq!(is_dns_subdomain(name), expected, "{name}");
        }
        assert!(!is_dns_subdomain(&"a".repeat(254)));
    }
}
