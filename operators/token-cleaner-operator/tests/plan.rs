//! When a bootstrap token is deleted: upstream's cases, and properties of every token.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::object::ResourceVersion;
use shared::testing::{NOW, ObjectBuilder, ago, object, uid};
use shared::working::control::Preconditions;
use token_cleaner_operator::objects::BootstrapToken;
use token_cleaner_operator::observe::Observed;
use token_cleaner_operator::plan::{Plan, is_of_interest, plan};

const NAME: &str = "bootstrap-token-abc123";

fn token(data: Value) -> ObjectBuilder {
    let secret = object("v1", "Secret", NAME).namespace("kube-system");
    secret.set(&["type"], "bootstrap.kubernetes.io/token").set(&["data"], data)
}

fn expiring(expiration: impl AsRef<[u8]>) -> ObjectBuilder {
    token(json!({ "token-id": STANDARD.encode("abc123"), "expiration": STANDARD.encode(expiration) }))
}

fn observed(token: &ObjectBuilder) -> Observed {
    Observed { token: token.build() }
}

#[track_caller]
fn check(token: &ObjectBuilder, expected: &str) {
    let observed = observed(token);
    let decided = plan(&observed, NOW);
    assert_eq!(decided.to_string(), expected);
    // A token that wakes its key must be worth a sync, and the other way round.
    assert_eq!(is_of_interest(&observed.token), !matches!(decided, Plan::Keep(_)), "{expected}");
}

/// Upstream: `TestCleanerNoExpiration`.
#[test]
fn a_token_without_expiration_stays() {
    let never = "keep (never expires)";
    check(&token(json!({ "token-id": STANDARD.encode("abc123") })), never);
    check(&expiring(""), never);
    check(&token(json!({ "expiration": null })), never);
    check(&token(json!({})), never);
    check(&token(Value::Null), never);
}

/// Upstream: `TestCleanerExpired`, `TestCleanerNotExpired`.
#[test]
fn a_token_is_deleted_when_its_time_is_over() {
    check(&expiring(ago(3600).to_string()), "delete (expired 2026-01-01T11:00:00Z)");
    check(&expiring(ago(-3600).to_string()), "wait 1h0m0s (expires 2026-01-01T13:00:00Z)");
    check(&expiring(NOW.to_string()), "delete (expired 2026-01-01T12:00:00Z)");
    check(&expiring(ago(-1).to_string()), "wait 1s (expires 2026-01-01T12:00:01Z)");
    check(&expiring("garbage"), "delete (expiration is not a time)");
    check(&expiring(ago(3600).to_string()).terminating(), "keep (being deleted)");
}

#[test]
fn only_the_token_in_the_state_that_was_seen_is_deleted() {
    let over = expiring(NOW.to_string()).set(&["metadata", "resourceVersion"], "77");
    let Plan::Delete { preconditions, .. } = plan(&observed(&over), NOW) else { unreachable!("it is over") };
    assert_eq!(preconditions, Preconditions { uid: uid(NAME), resource_version: Some(ResourceVersion(77)) });
}

#[test]
fn an_unreadable_object_tells_nothing_of_its_token() {
    let odd = token(json!({ "token-secret": "hunter2", "expiration": "hunter2?" }));
    let error = serde_json::from_value::<BootstrapToken>(odd.json().clone()).unwrap_err().to_string();
    assert!(!error.contains("hunter2"), "{error}");
}

proptest! {
    #[test]
    fn a_token_is_deleted_when_what_was_left_has_passed_and_not_before(
        since in -1_000_000_000_i64..1_000_000_000,
        nanosecond in 0_i32..1_000_000_000,
    ) {
        let token = observed(&expiring(ago(since).to_string()));
        let now = Timestamp::new(NOW.as_second(), nanosecond).unwrap();
        match plan(&token, now) {
            Plan::Wait { left, expires } => {
                prop_assert_eq!(expires.timestamp(), now + left);
                let is_over = matches!(plan(&token, now + left), Plan::Delete { .. });
                prop_assert!(is_over);
                let last = Duration::from_nanos(1);
                prop_assert_eq!(plan(&token, now + left - last), Plan::Wait { left: last, expires });
            }
            Plan::Delete { .. } => prop_assert!(since >= 0),
            Plan::Keep(reason) => prop_assert!(false, "{:?}", reason),
        }
    }

    #[test]
    fn any_text_is_a_time_to_wait_for_or_a_reason_to_delete(text in prop::collection::vec(any::<u8>(), 1..40)) {
        let is_kept = matches!(plan(&observed(&expiring(&text)), NOW), Plan::Keep(_));
        prop_assert!(!is_kept, "{:?}", text);
    }
}
