//! The Lease of an election, and decisions about it. Pure: the candidate, its observation and the time are arguments.
//!
//! Left out: `strategy` and `preferredHolder` of coordinated leader election, which is alpha.
//!
//! Upstream: `tryAcquireOrRenew`, staging/src/k8s.io/client-go/tools/leaderelection/leaderelection.go.

use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::api::json;
use crate::api::object::{Key, Meta, ResourceVersion, Uid, null_as_default};
use crate::api::resource::LEASES;

/// `LeaseSpec` as election uses it. Any change of it means that the holder is alive.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Record {
    #[serde(deserialize_with = "null_as_default")]
    pub(super) holder_identity: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(super) lease_duration_seconds: u64,
    #[serde(serialize_with = "micro_time")]
    pub(super) acquire_time: Option<Timestamp>,
    #[serde(serialize_with = "micro_time")]
    pub(super) renew_time: Option<Timestamp>,
    #[serde(deserialize_with = "null_as_default")]
    pub(super) lease_transitions: i32,
}

/// `metav1.MicroTime`: always six digits after the dot.
#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
fn micro_time<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.collect_str(&time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")),
        None => serializer.serialize_none(),
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Lease {
    /// Sent back unchanged: its resourceVersion makes an update fail if another process was faster.
    metadata: Box<RawValue>,
    #[serde(default)]
    pub(super) spec: Record,
}

impl Lease {
    /// The lean metadata; the apiserver serves none without a name.
    pub(super) fn meta(&self) -> Meta {
        serde_json::from_str(self.metadata.get()).unwrap_or_default()
    }

    /// The body of an update to `record`.
    pub(super) fn update_body(&self, record: &Record) -> Bytes {
        body(&*self.metadata, record)
    }
}

pub(super) fn create_body(key: &Key, record: &Record) -> Bytes {
    #[derive(Serialize)]
    struct Metadata<'a> {
        name: &'a str,
        namespace: &'a str,
    }
    body(&Metadata { name: key.name(), namespace: key.namespace() }, record)
}

fn body<M: Serialize + ?Sized>(metadata: &M, spec: &Record) -> Bytes {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Body<'a, M: ?Sized> {
        api_version: String,
        kind: &'a str,
        metadata: &'a M,
        spec: &'a Record,
    }
    json(&Body { api_version: LEASES.api_version(), kind: &LEASES.kind, metadata, spec })
}

/// A record, and when this process first saw it. Only this process's clock counts: the times in a record come from
/// another clock.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) record: Record,
    pub(super) at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Create,
    /// The Lease is free, or its holder has not renewed it in time.
    Acquire,
    Renew,
    /// Another process holds it, until this moment unless it is renewed.
    Wait(Instant),
}

impl Observed {
    /// Note a record as read now. The time changes only if the record did.
    pub(super) fn update(&mut self, record: &Record, now: Instant) {
        if self.record != *record {
            *self = Self { record: record.clone(), at: now };
        }
    }

    /// The time until which the holder may act.
    pub(super) fn valid_until(&self) -> Instant {
        self.at + Duration::from_secs(self.record.lease_duration_seconds)
    }
}

/// Decide for `identity` about the observed Lease; `None` if there is no Lease.
pub(super) fn decide(observed: Option<&Observed>, identity: &str, now: Instant) -> Decision {
    let Some(observed) = observed else { return Decision::Create };
    match observed.record.holder_identity.as_str() {
        holder if holder == identity => Decision::Renew,
        "" => Decision::Acquire,
        _ if observed.valid_until() <= now => Decision::Acquire,
        _ => Decision::Wait(observed.valid_until()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holding {
    uid: Uid,
    transitions: i32,
}

impl Holding {
    /// The hold of a Lease that was just acquired.
    pub(super) fn of(lease: &Lease) -> Self {
        Self { uid: lease.meta().uid, transitions: lease.spec.lease_transitions }
    }

    /// Whether `identity` has held the Lease ever since. If it was released, deleted or taken in between, another process
    /// may have written.
    pub(super) fn goes_on(self, lease: &Lease, identity: &str) -> bool {
        lease.spec.holder_identity == identity && Self::of(lease) == self
    }
}

/// Whether etcd was restored from a backup: otherwise versions only rise.
pub(super) fn is_restored(newest: ResourceVersion, found: ResourceVersion) -> bool {
    found < newest && found != ResourceVersion::default()
}

/// The record by which `identity` holds the Lease from `now` on, for `seconds`.
pub(super) fn held(known: Option<&Record>, identity: &str, seconds: u64, now: Timestamp) -> Record {
    let (acquire_time, lease_transitions) = match known {
        None => (Some(now), 0),
        Some(known) if known.holder_identity == identity => (known.acquire_time, known.lease_transitions),
        Some(known) => (Some(now), known.lease_transitions.saturating_add(1)),
    };
    Record {
        holder_identity: identity.to_owned(),
        lease_duration_seconds: seconds,
        acquire_time,
        renew_time: Some(now),
        lease_transitions,
    }
}

/// The record of a released Lease. Upstream: `release`.
pub(super) fn released(known: &Record, now: Timestamp) -> Record {
    Record {
        holder_identity: String::new(),
        lease_duration_seconds: 1,
        acquire_time: Some(now),
        renew_time: Some(now),
        lease_transitions: known.lease_transitions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn record(holder: &str, renewed: i64) -> Record {
        Record {
            holder_identity: holder.to_owned(),
            lease_duration_seconds: 15,
            acquire_time: Some(at(0)),
            renew_time: Some(at(renewed)),
            lease_transitions: 3,
        }
    }

    /// The decision of `a` `elapsed` seconds after it first saw this record.
    #[track_caller]
    fn check(holder: &str, elapsed: f64, expected: &str) {
        let start = Instant::now();
        let observed = Observed { record: record(holder, 0), at: start };
        let decision = match decide(Some(&observed), "a", start + Duration::from_secs_f64(elapsed)) {
            Decision::Wait(until) => format!("wait until {}", (until - start).as_secs()),
            Decision::Create => "create".to_owned(),
            Decision::Acquire => "acquire".to_owned(),
            Decision::Renew => "renew".to_owned(),
        };
        assert_eq!(decision, expected, "{holder:?} after {elapsed}");
    }

    // Upstream: `TestTryAcquireOrRenewLeases`, leaderelection_test.go.
    #[test]
    fn a_lease_is_taken_when_it_is_missing_free_or_expired() {
        assert_eq!(decide(None, "a", Instant::now()), Decision::Create);
        check("", 0.0, "acquire");
        check("b", 0.0, "wait until 15");
        check("b", 14.9, "wait until 15");
        check("b", 15.0, "acquire");
        check("a", 0.0, "renew");
        check("a", 100.0, "renew");
    }

    #[test]
    fn a_lease_that_was_not_held_all_the_time_is_no_longer_the_same_holding() {
        let lease = |uid: &str, holder: &str, transitions: i32, version: u32| -> Lease {
            let metadata = serde_json::json!({"name": "x", "uid": uid, "resourceVersion": version.to_string()});
            let spec = serde_json::json!({"holderIdentity": holder, "leaseTransitions": transitions});
            serde_json::from_value(serde_json::json!({"metadata": metadata, "spec": spec})).unwrap()
        };
        let holding = Holding::of(&lease("first", "a", 3, 7));
        assert!(holding.goes_on(&lease("first", "a", 3, 9), "a"), "renewed");
        assert!(!holding.goes_on(&lease("first", "b", 4, 9), "a"), "taken");
        assert!(!holding.goes_on(&lease("first", "", 3, 9), "a"), "released");
        assert!(!holding.goes_on(&lease("first", "a", 5, 9), "a"), "taken and given back");
        assert!(!holding.goes_on(&lease("second", "a", 3, 9), "a"), "deleted and created again");
    }

    #[test]
    fn only_a_version_that_falls_shows_a_restored_etcd() {
        let check = |newest: u64, found: u64| is_restored(ResourceVersion(newest), ResourceVersion(found));
        assert!(check(7, 6));
        assert!(!check(7, 7) && !check(7, 8) && !check(0, 1));
        assert!(!check(7, 0), "no number");
    }

    #[test]
    fn only_a_change_of_the_record_counts_as_a_sign_of_life() {
        let start = Instant::now();
        let mut observed = Observed { record: record("b", 0), at: start };
        observed.update(&record("b", 0), start + Duration::from_secs(10));
        assert_eq!(observed.at, start);
        // A holder whose clock is hours off still renews.
        observed.update(&record("b", -7200), start + Duration::from_secs(10));
        assert_eq!(observed.valid_until(), start + Duration::from_secs(25));
    }

    #[test]
    fn transitions_are_counted_and_a_renewal_keeps_the_time_of_acquisition() {
        let first = held(None, "a", 15, at(0));
        assert_eq!((first.lease_transitions, first.acquire_time), (0, Some(at(0))));
        let renewed = held(Some(&first), "a", 15, at(2));
        assert_eq!(renewed, Record { renew_time: Some(at(2)), ..first });
        let freed = released(&renewed, at(4));
        assert_eq!((freed.holder_identity.as_str(), freed.lease_duration_seconds, freed.lease_transitions), ("", 1, 0));
        let taken = held(Some(&freed), "b", 15, at(5));
        assert_eq!((taken.lease_transitions, taken.acquire_time), (1, Some(at(5))));
    }

    #[test]
    fn the_wire_form_is_upstreams() {
        let body = create_body(&Key::new("kube-system", "x"), &held(None, "a", 15, at(0)));
        assert_eq!(
            std::str::from_utf8(&body).unwrap(),
            concat!(
                r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"x","namespace":"kube-system"},"#,
                r#""spec":{"holderIdentity":"a","leaseDurationSeconds":15,"acquireTime":"2023-11-14T22:13:20.000000Z","#,
                r#""renewTime":"2023-11-14T22:13:20.000000Z","leaseTransitions":0}}"#
            )
        );
        let stored: Lease = serde_json::from_str(
            r#"{"kind":"Lease","metadata":{"name":"x","namespace":"kube-system","resourceVersion":"7","future":{"a":1}},
                "spec":{"holderIdentity":"b","leaseDurationSeconds":15,"acquireTime":"2023-11-14T22:13:20.123456Z",
                "renewTime":null,"leaseTransitions":null,"strategy":"OldestEmulationVersion"}}"#,
        )
        .unwrap();
        assert_eq!(stored.meta().resource_version.0, 7);
        assert_eq!((stored.spec.holder_identity.as_str(), stored.spec.lease_transitions), ("b", 0));
        let update = stored.update_body(&held(Some(&stored.spec), "b", 15, at(1)));
        let text = std::str::from_utf8(&update).unwrap();
        assert!(text.contains(r#""resourceVersion":"7","future":{"a":1}}"#), "{text}");
        assert!(
            text.contains(r#""acquireTime":"2023-11-14T22:13:20.123456Z","renewTime":"2023-11-14T22:13:21.000000Z""#)
        );
        let empty: Lease = serde_json::from_str(r#"{"metadata":{"name":"x"},"spec":{}}"#).unwrap();
        assert_eq!(empty.spec, Record::default());
    }
}
