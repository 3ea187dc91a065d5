//! When a request goes: upstream's cases, upstream's rules one by one as the reference, and the moment of the end.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use certificatesigningrequest_cleaner_operator::objects::{Certificate, CertificateSigningRequest, Condition};
use certificatesigningrequest_cleaner_operator::observe::Observed;
use certificatesigningrequest_cleaner_operator::plan::{Plan, plan};
use data_encoding::BASE64;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::object::ResourceVersion;
use shared::api::resource::CERTIFICATE_SIGNING_REQUESTS;
use shared::api::time::Time;
use shared::controllers::certificates::{APPROVED, DENIED, FAILED};
use shared::testing::{NOW, ObjectBuilder, ago, object, uid};
use shared::working::control::Preconditions;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

fn request(name: &str) -> ObjectBuilder {
    let api_version = CERTIFICATE_SIGNING_REQUESTS.api_version();
    object(&api_version, &CERTIFICATE_SIGNING_REQUESTS.kind, name).namespace("")
}

/// A request with these conditions, each with its age in seconds.
fn decided(conditions: &[(&str, i64)]) -> ObjectBuilder {
    let condition = |(type_, age): &(&str, i64)| {
        let time = ago(*age).to_string();
        json!({ "type": type_, "status": "True", "lastUpdateTime": time })
    };
    let conditions: Vec<Value> = conditions.iter().map(condition).collect();
    request("a").created(ago(MINUTE)).set(&["status", "conditions"], conditions)
}

fn issued(request: ObjectBuilder, certificate: &str) -> ObjectBuilder {
    request.set(&["status", "certificate"], BASE64.encode(certificate.as_bytes()))
}

/// A certificate that ends at midnight, as this day begins.
fn until(year: i32, month: u8, day: u8) -> String {
    let mut params = rcgen::CertificateParams::default();
    params.not_before = rcgen::date_time_ymd(2017, 10, 4);
    params.not_after = rcgen::date_time_ymd(year, month, day);
    params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem()
}

fn observed(request: &ObjectBuilder) -> Observed {
    Observed { request: request.build() }
}

fn check(request: &ObjectBuilder, expected: &str) {
    assert_eq!(plan(&observed(request), NOW).to_string(), expected);
}

/// Upstream: `TestCleanerWithApprovedExpiredCSR`, whose clock is the system's.
#[test]
fn a_request_goes_once_its_state_has_lasted_for_too_long() {
    let (unexpired, expired) = (until(2117, 9, 10), until(2017, 10, 3));
    let row = |name: &str, request: ObjectBuilder, is_deleted: bool| {
        let plan = plan(&observed(&request), NOW);
        assert_eq!(matches!(plan, Plan::Delete { .. }), is_deleted, "{name}: {plan}");
    };
    let approved = |age| decided(&[(APPROVED, age)]);
    let of_age = |age| request("a").created(ago(age)).set(&["status", "conditions"], json!([]));
    row("no delete approved not passed deadline", issued(approved(50 * MINUTE), &unexpired), false);
    row("no delete approved passed deadline not issued", approved(50 * MINUTE), false);
    row("delete approved passed deadline", issued(approved(2 * HOUR), &unexpired), true);
    row("no delete denied not passed deadline", decided(&[(DENIED, 50 * MINUTE)]), false);
    row("delete denied passed deadline", decided(&[(DENIED, 2 * HOUR)]), true);
    row("no delete failed not passed deadline", decided(&[(APPROVED, 2 * HOUR), (FAILED, 50 * MINUTE)]), false);
    row("delete failed passed deadline", decided(&[(APPROVED, 2 * HOUR), (FAILED, 2 * HOUR)]), true);
    row("no delete pending not passed deadline", of_age(5 * HOUR), false);
    row("delete pending passed deadline", of_age(25 * HOUR), true);
    row("delete approved unissued past deadline", approved(25 * HOUR), true);
    row("no delete approved unissued not past deadline", approved(5 * HOUR), false);
    row("delete approved not passed deadline expired", issued(approved(50 * MINUTE), &expired), true);
    row("delete approved passed deadline unparseable", issued(approved(2 * HOUR), "garbage"), true);
}

#[test]
fn the_plan_says_which_state_ends_and_when() {
    let good = until(2026, 1, 1);
    check(&request("a"), "wait 24h0m0s (no decision; kept until 2026-01-02T12:00:00Z)");
    check(&decided(&[(APPROVED, MINUTE)]), "wait 23h59m0s (approved, no certificate; kept until 2026-01-02T11:59:00Z)");
    check(
        &issued(decided(&[(APPROVED, MINUTE)]), &until(2027, 1, 1)),
        "wait 59m0s (certificate issued; kept until 2026-01-01T12:59:00Z)",
    );
    check(
        &issued(decided(&[(APPROVED, MINUTE)]), &good),
        "delete (certificate valid; kept until 2026-01-01T00:00:00Z)",
    );
    check(&decided(&[(DENIED, HOUR)]), "delete (denied; kept until 2026-01-01T12:00:00Z)");
    check(&decided(&[(FAILED, HOUR - 1)]), "wait 1s (failed; kept until 2026-01-01T12:00:01Z)");
    check(&request("a").created(ago(25 * HOUR)).terminating(), "keep (being deleted)");
}

#[test]
fn only_what_has_a_known_beginning_ends() {
    let timeless = |time: Value| {
        let condition = json!({ "type": DENIED, "status": "True", "lastUpdateTime": time });
        request("a").created(ago(99 * HOUR)).set(&["status", "conditions"], vec![condition])
    };
    check(&timeless(Value::Null), "keep (no condition with a deadline)");
    check(&decided(&[("Reviewed", 99 * HOUR)]).created(ago(99 * HOUR)), "keep (no condition with a deadline)");
    // Neither a certificate alone nor one of a request that was not approved ends anything.
    let expired = until(2017, 10, 3);
    check(&issued(decided(&[("Reviewed", HOUR)]), &expired), "keep (no condition with a deadline)");
    check(&issued(request("a"), &expired), "wait 24h0m0s (no decision; kept until 2026-01-02T12:00:00Z)");
}

#[test]
fn of_a_certificate_only_the_end_is_kept() {
    let read = |certificate: Value| -> Certificate {
        let request: Arc<CertificateSigningRequest> = request("a").set(&["status", "certificate"], certificate).build();
        request.certificate
    };
    let (first, second) = (until(2026, 2, 1), until(2026, 3, 1));
    let end = Certificate::Until(Time::of("2026-02-01T00:00:00Z".parse().unwrap()));
    let encoded = |text: &str| Value::from(BASE64.encode(text.as_bytes()));
    assert_eq!(read(encoded(&first)), end);
    assert_eq!(read(encoded(&format!("# made by hand\n{first}{second}"))), end, "the first one counts");
    for none in [Value::Null, Value::from("")] {
        assert_eq!(read(none), Certificate::Missing);
    }
    let cut = &first[..first.len() / 2];
    for odd in [Value::from("no base64!"), encoded("garbage"), encoded(cut), encoded(&first.replace("MII", "MIJ"))] {
        assert_eq!(read(odd), Certificate::Unreadable);
    }
}

#[test]
fn only_the_request_in_the_state_that_was_decided_on_is_deleted() {
    let denied = decided(&[(DENIED, 2 * HOUR)]).set(&["metadata", "resourceVersion"], "77");
    let Plan::Delete { preconditions, .. } = plan(&observed(&denied), NOW) else { unreachable!("it is over") };
    let expected = Preconditions { uid: uid("a"), resource_version: Some(ResourceVersion(77)) };
    assert_eq!(preconditions, expected);
}

/// Upstream's six rules one by one, for an age in whole seconds.
fn is_past_deadline(request: &CertificateSigningRequest, now: Timestamp) -> bool {
    let CertificateSigningRequest { metadata, conditions, certificate } = request;
    let is_old = |since: Option<Time>, seconds: i64| {
        since.is_some_and(|since| now.duration_since(since.timestamp()).as_secs() >= seconds)
    };
    let is_any = |type_: &str, seconds: i64| {
        conditions.iter().any(|condition| condition.type_ == *type_ && is_old(condition.last_update_time, seconds))
    };
    let is_issued = *certificate != Certificate::Missing;
    let is_expired = match certificate {
        Certificate::Until(at) => at.timestamp() <= now,
        Certificate::Missing | Certificate::Unreadable => false,
    };
    let is_approved = conditions.iter().any(|condition| condition.type_ == *APPROVED);
    is_issued && is_any(APPROVED, HOUR)
        || is_any(DENIED, HOUR)
        || is_any(FAILED, HOUR)
        || conditions.is_empty() && is_old(metadata.creation, 24 * HOUR)
        || is_approved && is_issued && is_expired
        || !is_issued && is_any(APPROVED, 24 * HOUR)
}

fn conditions() -> impl Strategy<Value = Vec<Condition>> {
    let age = proptest::option::of(0..26 * HOUR);
    let type_ = prop::sample::select(vec![APPROVED, DENIED, FAILED, "Reviewed"]);
    let condition = (type_, age).prop_map(|(type_, age)| Condition {
        type_: type_.into(),
        last_update_time: age.map(|age| Time::of(ago(age))),
    });
    proptest::collection::vec(condition, 0..4)
}

fn certificate() -> impl Strategy<Value = Certificate> {
    prop_oneof![
        Just(Certificate::Missing),
        Just(Certificate::Unreadable),
        (-HOUR..HOUR).prop_map(|age| Certificate::Until(Time::of(ago(age)))),
    ]
}

proptest! {
    #[test]
    fn a_request_goes_when_one_of_upstreams_rules_holds_and_not_before(
        conditions in conditions(),
        certificate in certificate(),
        age in 0..26 * HOUR,
    ) {
        let built: Arc<CertificateSigningRequest> = request("a").created(ago(age)).build();
        let metadata = built.metadata.clone();
        let request = CertificateSigningRequest { metadata, conditions: conditions.into(), certificate };
        let observed = Observed { request: Arc::new(request) };
        let is_past = |now| is_past_deadline(&observed.request, now);
        match plan(&observed, NOW) {
            Plan::Delete { .. } => prop_assert!(is_past(NOW)),
            Plan::Wait { left, end } => {
                let woken = NOW + left;
                prop_assert_eq!(end.at.timestamp(), woken);
                prop_assert!(!is_past(NOW) && !is_past(woken - Duration::from_secs(1)) && is_past(woken));
                let is_over = matches!(plan(&observed, woken), Plan::Delete { .. });
                prop_assert!(is_over, "not yet at {}", woken);
            }
            Plan::Keep(_) => prop_assert!(!is_past(NOW) && !is_past(NOW + Duration::from_secs(1_000_000))),
        }
    }

    #[test]
    fn the_order_of_conditions_is_irrelevant(conditions in conditions(), certificate in certificate()) {
        let built: Arc<CertificateSigningRequest> = request("a").build();
        let end = |conditions: Vec<(Option<Time>, String)>| {
            let conditions = conditions.into_iter().map(|(last_update_time, type_)| Condition {
                type_: type_.as_str().into(),
                last_update_time,
            });
            let request = CertificateSigningRequest {
                metadata: built.metadata.clone(),
                conditions: conditions.collect(),
                certificate,
            };
            match plan(&Observed { request: Arc::new(request) }, NOW) {
                Plan::Keep(_) => None,
                Plan::Wait { end, .. } | Plan::Delete { end, .. } => Some(end.at),
            }
        };
        let items: Vec<_> =
            conditions.iter().map(|condition| (condition.last_update_time, condition.type_.to_string())).collect();
        shared::testing::properties::order_is_irrelevant(&items, |items| end(items.to_vec()));
    }
}
