//! Which token is marked as invalid, and which token is deleted: upstream's cases, and a property of any token.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use legacy_serviceaccount_token_cleaner_operator::flags::Flags;
use legacy_serviceaccount_token_cleaner_operator::objects::day::Day;
use legacy_serviceaccount_token_cleaner_operator::objects::pod::Pod;
use legacy_serviceaccount_token_cleaner_operator::objects::{
    INVALID_SINCE, LAST_USED, ServiceAccount, Token, Tracking,
};
use legacy_serviceaccount_token_cleaner_operator::observe::Observed;
use legacy_serviceaccount_token_cleaner_operator::plan::{Plan, plan, plan_live_read, plan_round};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::object::ResourceVersion;
use shared::testing::{NOW, ObjectBuilder, object, uid};
use shared::working::control::Preconditions;

fn midnight(day: &str) -> Timestamp {
    format!("{day}T00:00:00Z").parse().unwrap()
}

/// The clean-up period that began on this day. Upstream: `configuredLegacyTokenCleanUpPeriod`.
fn period_from(day: &str) -> Duration {
    NOW.duration_since(midnight(day)).unsigned_abs()
}

fn token(created: &str) -> ObjectBuilder {
    object("v1", "Secret", "token")
        .created(midnight(created))
        .annotation("kubernetes.io/service-account.name", "robot")
        .annotation("kubernetes.io/service-account.uid", &uid("robot").to_string())
}

fn robot(secrets: &[&str]) -> ObjectBuilder {
    let secrets: Vec<Value> = secrets.iter().map(|name| json!({ "name": name })).collect();
    object("v1", "ServiceAccount", "robot").set(&["secrets"], secrets)
}

fn observed(token: &ObjectBuilder, account: Option<&ObjectBuilder>, used_by: Option<&str>) -> Observed {
    let token: Arc<Token> = token.build();
    let account: Option<Arc<ServiceAccount>> = account.map(ObjectBuilder::build);
    Observed { token: (*token).clone(), account: account.as_deref().cloned(), used_by: used_by.map(Text::new) }
}

/// The decision about a token with an account that lists it and that no pod uses.
#[track_caller]
fn check(token: &ObjectBuilder, period: &str, expected: &str) {
    let observed = observed(token, Some(&robot(&["token"])), None);
    let planned = plan(&observed, period_from(period), NOW);
    assert_eq!(planned.to_string(), expected);
    let is_read = plan_live_read(&observed, period_from(period), NOW).is_some();
    assert_eq!(is_read, !matches!(planned, Plan::Keep(_)), "only a token that may have to go is read further");
}

/// Upstream: `TestLegacyServiceAccountTokenCleanUp`, the cases of the ConfigMap.
#[test]
fn a_round_waits_until_uses_are_noted_for_long_enough() {
    let round = |since: Option<&str>, period: &str| {
        let data = since.map_or(json!(null), |since| json!({ "since": since }));
        let tracking: Arc<Tracking> = object("v1", "ConfigMap", "tracking").set(&["data"], data).build();
        plan_round(Some(&tracking), period_from(period), NOW).to_string()
    };
    // "configmap does not exist"
    let none = plan_round(None, period_from("2022-12-28"), NOW).to_string();
    assert_eq!(none, "nothing (the ConfigMap of the apiserver's token tracking is missing)");
    // "configmap exists, but the configmap does not have tracked-since label", "… cannot be parsed"
    let no_day = "nothing (the ConfigMap of the apiserver's token tracking has no date)";
    assert_eq!(round(None, "2022-12-28"), no_day);
    for odd in ["2022-12-27-1", "2022-12-7", "20221227", "2022-12-27T00", "2022-13-01", "2022-02-30", "soon", ""] {
        assert_eq!(round(Some(odd), "2022-12-29"), no_day, "{odd}");
    }
    // "configmap exists, the time period since 'tracked-since' is smaller than the CleanUpPeriod"
    let later = "nothing (uses are not tracked for long enough until 2026-01-02T12:00:00Z)";
    assert_eq!(round(Some("2022-12-29"), "2022-12-29"), later);
    assert_eq!(round(Some("2022-12-28"), "2022-12-29"), "check all tokens (uses are tracked since 2022-12-28)");
    assert_eq!(round(Some("2022-12-27"), "2022-12-29"), "check all tokens (uses are tracked since 2022-12-27)");
    // The last day that can be written has no end.
    assert!(
        round(Some("9999-12-31"), "2022-12-29")
            .starts_with("nothing (uses are not tracked for long enough until 9999-")
    );
}

/// Upstream: `TestLegacyServiceAccountTokenCleanUp`, the cases of the Secret.
#[test]
fn a_token_that_nobody_uses_is_marked_and_later_deleted() {
    let old = || token("2022-12-27");
    // "auto-generated secret has a late creation time"
    check(&token("2022-12-30"), "2022-12-29", "keep (created at 2022-12-30T00:00:00Z)");
    check(&token("2022-12-29"), "2022-12-29", "keep (created at 2022-12-29T00:00:00Z)");
    // "auto-generated secret has a deletion time"
    check(&old().terminating(), "2022-12-30", "keep (being deleted)");
    // "auto-generated secret has a late last-used time"
    check(&old().label(LAST_USED, "2022-12-30"), "2022-12-29", "keep (used on 2022-12-30)");
    check(&old().label(LAST_USED, "2022-12-29"), "2022-12-29", "keep (used on 2022-12-29)");
    // "auto-generated secret has a last-used label, but it can not be parsed"
    let no_day = "keep (the last-used label is not a date)";
    check(&old().label(LAST_USED, "2022-12-27-1"), "2022-12-29", no_day);
    // "… does not have 'last-used' label, has not been marked as invalid"
    let never = "mark as invalid since 2026-01-01 (never used while tracked)";
    check(&old(), "2022-12-30", never);
    // "… has been marked as invalid, invalid_since label can not be parsed"
    check(&old().label(INVALID_SINCE, "2022-12-29-1"), "2022-12-30", never);
    // "… has been marked as invalid, time period since invalid is less than CleanUpPeriod"
    let recently = old().label(INVALID_SINCE, "2023-01-01");
    check(&recently, "2022-12-29", "keep (invalid only since 2023-01-01)");
    check(&recently, "2023-01-01", "keep (invalid only since 2023-01-01)");
    // "… has been marked as invalid, time period since invalid is larger than CleanUpPeriod"
    check(&old().label(INVALID_SINCE, "2022-12-29"), "2023-01-01", "delete (invalid since 2022-12-29)");
    let used = || old().label(LAST_USED, "2022-12-27");
    // "auto-generated secret has 'last-used' label, …, secret has not been marked as invalid"
    check(&used(), "2022-12-30", "mark as invalid since 2026-01-01 (last used on 2022-12-27)");
    // "…, secret has been marked as invalid, time peroid since invalid is less than CleanUpPeriod", "… is larger …"
    let marked = |since: &str| used().label(INVALID_SINCE, since);
    check(&marked("2023-05-01"), "2022-12-30", "keep (invalid only since 2023-05-01)");
    check(&marked("2023-01-05"), "2023-05-01", "delete (invalid since 2023-01-05)");
}

/// Upstream: `TestLegacyServiceAccountTokenCleanUp`, the cases of the ServiceAccount and the pod.
#[test]
fn a_token_that_a_person_made_or_a_pod_uses_stays() {
    let period = period_from("2022-12-29");
    let row = |token: &ObjectBuilder, account: Option<&ObjectBuilder>, used_by: Option<&str>, expected: &str| {
        assert_eq!(plan(&observed(token, account, used_by), period, NOW).to_string(), expected);
    };
    let (old, listing) = (token("2022-12-27"), robot(&["other", "token"]));
    let never = "mark as invalid since 2026-01-01 (never used while tracked)";
    row(&old, Some(&listing), None, never);
    // "secret is not referenced by serviceaccount"
    let by_hand = "keep (its ServiceAccount does not list it, so a person created it)";
    row(&old, Some(&robot(&[])), None, by_hand);
    row(&old, Some(&robot(&["other"])), None, by_hand);
    row(&old, Some(&robot(&[]).set(&["secrets"], json!(null))), None, by_hand);
    // "secret-referenced service account does not exist", "… name is empty"
    let nowhere = "keep (its ServiceAccount does not exist)";
    row(&old, None, None, nowhere);
    // "secret-referenced service account uid does not match"
    row(&old, Some(&listing.clone().uid_of("another")), None, nowhere);
    let of_any = old.clone().annotation("kubernetes.io/service-account.uid", "");
    row(&of_any, Some(&listing.clone().uid_of("another")), None, never);
    // "auto-generated secret is mounted by the pod"
    row(&old, Some(&listing), Some("pod-1"), "keep (pod pod-1 uses it)");
}

#[test]
fn a_write_is_for_the_token_that_was_read_and_a_deletion_for_this_state_of_it() {
    let planned = |token: ObjectBuilder| {
        let token = token.set(&["metadata", "resourceVersion"], "77");
        plan(&observed(&token, Some(&robot(&["token"])), None), period_from("2023-01-01"), NOW)
    };
    let Plan::Mark { uid: of, since, last_used } = planned(token("2022-12-27")) else { unreachable!("it is old") };
    assert_eq!((of, since, last_used), (uid("token"), Day::of(NOW), None));
    let marked = token("2022-12-27").label(INVALID_SINCE, "2022-12-29");
    let Plan::Delete { preconditions, since } = planned(marked) else { unreachable!("it is overdue") };
    let expected = Preconditions { uid: uid("token"), resource_version: Some(ResourceVersion(77)) };
    assert_eq!((preconditions, since), (expected, Day::parse("2022-12-29").unwrap()));
}

/// Upstream: `VisitPodSecretNames`.
#[test]
fn every_place_where_a_pod_names_a_secret_counts() {
    let used = |spec: Value| {
        let pod: Pod = serde_json::from_value(json!({ "metadata": { "name": "a" }, "spec": spec })).unwrap();
        pod.secrets.iter().map(Text::to_string).collect::<Vec<String>>().join(" ")
    };
    let volume = |kind: &str, source: Value| {
        let mut volume = json!({ "name": "v" });
        volume[kind] = source;
        used(json!({ "volumes": [{ "name": "none", "emptyDir": {} }, volume] }))
    };
    for kind in ["cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"] {
        assert_eq!(volume(kind, json!({ "secretRef": { "name": "s" }, "monitors": [] })), "s", "{kind}");
        assert_eq!(volume(kind, json!({})), "", "{kind}");
    }
    for kind in ["secret", "azureFile"] {
        assert_eq!(volume(kind, json!({ "secretName": "s" })), "s", "{kind}");
    }
    assert_eq!(volume("csi", json!({ "driver": "d", "nodePublishSecretRef": { "name": "s" } })), "s");
    let sources =
        json!([{ "secret": { "name": "s" } }, { "configMap": { "name": "c" } }, { "secret": { "name": "t" } }]);
    assert_eq!(volume("projected", json!({ "sources": sources })), "s t");
    assert_eq!(volume("configMap", json!({ "name": "c" })), "");
    for containers in ["containers", "initContainers", "ephemeralContainers"] {
        let from_key = json!({ "name": "A", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } });
        let env = json!([from_key, { "name": "B", "value": "b" }, { "name": "C", "valueFrom": { "fieldRef": {} } }]);
        let env_from = json!([{ "secretRef": { "name": "t" } }, { "configMapRef": { "name": "c" } }]);
        let container = json!({ "name": "main", "env": env, "envFrom": env_from });
        assert_eq!(used(json!({ containers: [container] })), "s t", "{containers}");
    }
    assert_eq!(used(json!({ "imagePullSecrets": [{ "name": "s" }, { "name": "" }, {}] })), "s");
    assert_eq!(used(json!({ "volumes": null, "containers": null, "imagePullSecrets": null })), "");
    assert_eq!(used(json!(null)), "");
}

#[test]
fn the_period_is_a_year_and_never_nothing() {
    let read = |args: &[&str]| {
        let name = "legacy-serviceaccount-token-cleaner-operator";
        let args = std::iter::once(name).chain(args.iter().copied()).map(Into::into);
        let flags = shared::process::flags::parse::<Flags>(name, args).map_err(|exit| exit.text)?;
        Ok::<_, String>(flags.own.legacy_service_account_token_clean_up_period.to_string())
    };
    assert_eq!(read(&[]), Ok("8760h0m0s".to_owned()));
    assert_eq!(read(&["--legacy-service-account-token-clean-up-period=24h"]), Ok("24h0m0s".to_owned()));
    for wrong in ["0", "0s", "-1s", "1d"] {
        assert!(read(&[&format!("--legacy-service-account-token-clean-up-period={wrong}")]).is_err(), "{wrong}");
    }
}

/// The day so many days ago.
fn day(days_ago: u64) -> Day {
    Day::of(NOW - Duration::from_hours(24 * days_ago))
}

/// A token that was created, used and marked so many days ago.
fn aged(created: u64, last_used: Option<u64>, invalid_since: Option<u64>) -> ObjectBuilder {
    let mut token = token(&day(created).to_string());
    for (label, days_ago) in [(LAST_USED, last_used), (INVALID_SINCE, invalid_since)] {
        if let Some(days_ago) = days_ago {
            token = token.label(label, &day(days_ago).to_string());
        }
    }
    token
}

proptest! {
    #[test]
    fn a_token_is_touched_only_when_all_its_days_are_before_the_period_and_deleted_only_if_it_was_marked(
        created in 0..20_u64,
        last_used in prop::option::of(0..20_u64),
        invalid_since in prop::option::of(0..20_u64),
        period in 1..20_u64,
    ) {
        let token = aged(created, last_used, invalid_since);
        let period_of = Duration::from_hours(24 * period);
        let planned = plan(&observed(&token, Some(&robot(&["token"])), None), period_of, NOW);
        let is_before = |days_ago: u64| days_ago > period;
        // A token is created at midnight, and now is noon.
        let is_old = created >= period && last_used.is_none_or(is_before);
        match &planned {
            Plan::Keep(_) => prop_assert!(!is_old || invalid_since.is_some_and(|since| !is_before(since))),
            Plan::Mark { .. } => prop_assert!(is_old && invalid_since.is_none()),
            Plan::Delete { .. } => prop_assert!(is_old && invalid_since.is_some_and(is_before)),
        }
        if let Plan::Mark { since, .. } = planned {
            let marked = token.label(INVALID_SINCE, &since.to_string());
            let again = plan(&observed(&marked, Some(&robot(&["token"])), None), period_of, NOW);
            prop_assert!(matches!(again, Plan::Keep(_)), "{}", again);
        }
    }

    #[test]
    fn a_day_is_read_as_it_is_written(days in 0..1_000_000_i64) {
        let day = Day::of(Timestamp::from_second(days * 24 * 3600).unwrap());
        prop_assert_eq!(Day::parse(&day.to_string()), Some(day));
        prop_assert!(day.end().map(Day::of) > Some(day));
    }
}
