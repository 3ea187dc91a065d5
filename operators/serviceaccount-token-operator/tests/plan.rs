//! The fate of a token's Secret, and of its name in its account's list: upstream's cases, and properties.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};
use serviceaccount_token_operator::objects::{ACCOUNT_UID, AccountName, Listing, Token};
use serviceaccount_token_operator::observe::{Account, Observed, ObservedReference};
use serviceaccount_token_operator::plan::reference::{Unlisting, plan_read, plan_unlisting};
use serviceaccount_token_operator::plan::{Lacks, Plan, plan, plan_live_read};
use shared::api::intern::Text;
use shared::api::object::{Key, ResourceVersion, Uid};
use shared::testing::{ObjectBuilder, object, uid};
use shared::working::control::Preconditions;

const NAME: &str = "token-secret-1";
const CA: &str = "CA Data";

/// A Secret of the account `default` with this data, whose values are written in plain text here.
fn token(data: &[(&str, &str)]) -> ObjectBuilder {
    let secret = object("v1", "Secret", NAME).set(&["type"], "kubernetes.io/service-account-token");
    let secret = secret.annotation("kubernetes.io/service-account.name", "default");
    let secret = secret.annotation(ACCOUNT_UID, &uid("default").to_string());
    data.iter().fold(secret, |secret, &(key, value)| secret.set(&["data", key], STANDARD.encode(value)))
}

/// Upstream: `serviceAccountTokenSecret`.
fn whole() -> ObjectBuilder {
    token(&[("token", "ABC"), ("ca.crt", CA), ("namespace", "default")])
}

fn ca() -> Text {
    Text::new(&STANDARD.encode(CA))
}

/// While its account is there.
fn observed(token: &ObjectBuilder) -> Observed {
    Observed { token: token.build(), account: Account::Exists(uid("default")), ca: Some(ca()) }
}

#[track_caller]
fn check(observed: &Observed, expected: &str) {
    assert_eq!(plan(observed).to_string(), expected);
}

/// Upstream: `TestTokenCreation`, each case for a Secret that was added and for one that was updated.
#[test]
fn a_secret_gets_what_it_lacks() {
    // "added secret with serviceaccount", "updated secret with serviceaccount"
    check(&observed(&whole()), "keep (complete)");
    // "… token secret without token data"
    check(&observed(&token(&[("ca.crt", CA), ("namespace", "default")])), "fill in (no token)");
    // "… token secret without ca data"
    check(&observed(&token(&[("token", "ABC"), ("namespace", "default")])), "fill in (no current ca.crt)");
    // "… token secret with mismatched ca data"
    let other = token(&[("token", "ABC"), ("ca.crt", "mismatched"), ("namespace", "default")]);
    check(&observed(&other), "fill in (no current ca.crt)");
    // "… token secret without namespace data"
    check(&observed(&token(&[("token", "ABC"), ("ca.crt", CA)])), "fill in (no namespace)");
    // "… token secret with custom namespace data"
    let custom = token(&[("token", "ABC"), ("ca.crt", CA), ("namespace", "custom")]);
    check(&observed(&custom), "keep (complete)");
    for nothing in [json!({}), Value::Null, json!({ "token": "", "namespace": null, "ca.crt": null })] {
        let empty = whole().set(&["data"], nothing);
        check(&observed(&empty), "fill in (no token, no namespace, no current ca.crt)");
    }
}

/// Upstream: `secretUpdateNeeded`.
#[test]
fn without_a_ca_none_is_missed() {
    let without = |token: &ObjectBuilder| Observed { ca: None, ..observed(token) };
    check(&without(&token(&[])), "fill in (no token, no namespace)");
    check(&without(&token(&[("token", "ABC"), ("namespace", "default")])), "keep (complete)");
    check(&without(&whole()), "keep (complete)");
}

/// Upstream: `TestTokenCreation`.
#[test]
fn without_its_account_a_secret_goes_once_the_account_was_looked_for() {
    // "added secret without serviceaccount", "updated secret without serviceaccount"
    let lonely = |account: Account| Observed { account, ..observed(&whole()) };
    let asked = |observed: &Observed| plan_live_read(observed).map(|live_read| live_read.to_string());
    let expected = "read its ServiceAccount (ServiceAccount default is not in the cache)";
    assert_eq!(asked(&lonely(Account::NotSeen)).as_deref(), Some(expected));
    check(&lonely(Account::NotSeen), "keep (ServiceAccount default is not in the cache)");
    check(&lonely(Account::Missing), "delete (ServiceAccount default does not exist)");
    // "deleted serviceaccount with token secrets"
    check(&lonely(Account::Deleted), "delete (ServiceAccount default was deleted)");
    for known in [Account::Exists(uid("default")), Account::Deleted, Account::Missing] {
        assert_eq!(asked(&lonely(known)), None);
    }
    for gone in [Account::Deleted, Account::Missing] {
        let Plan::Delete { reason: _, preconditions } = plan(&lonely(gone)) else { unreachable!("it has no account") };
        let this = Preconditions { uid: uid(NAME), resource_version: Some(ResourceVersion(1)) };
        assert_eq!(preconditions, this);
    }
}

#[test]
fn what_cannot_be_filled_in_or_need_not_go_is_left_alone() {
    let lacking = token(&[]);
    check(&observed(&lacking.clone().terminating()), "keep (being deleted)");
    let immutable = observed(&lacking.set(&["immutable"], true));
    check(&immutable, "keep (no token, no namespace, no current ca.crt, but it is immutable)");
    check(&Observed { account: Account::Missing, ..immutable }, "delete (ServiceAccount default does not exist)");
    let nameless = object("v1", "Secret", NAME).set(&["type"], "kubernetes.io/service-account-token");
    for account in [Account::NotSeen, Account::Deleted, Account::Missing] {
        let nameless = Observed { account, ..observed(&nameless) };
        check(&nameless, "keep (names no ServiceAccount)");
        assert_eq!(plan_live_read(&nameless), None);
    }
}

#[test]
fn nothing_that_is_kept_of_a_secret_is_secret() {
    let secret = token(&[("token", "a token that nobody may see"), ("password", "neither this"), ("ca.crt", CA)]);
    let kept = format!("{:?} {:?}", observed(&secret), plan(&observed(&secret)));
    for hidden in ["a token that nobody may see", "neither this"] {
        assert!(!kept.contains(&STANDARD.encode(hidden)) && !kept.contains(hidden), "{kept}");
    }
}

#[test]
fn a_thousand_secrets_share_one_ca() {
    let (one, other): (Arc<Token>, Arc<Token>) = (whole().build(), whole().namespace("b").build());
    let (one, other) = (one.ca.clone().unwrap(), other.ca.clone().unwrap());
    assert!(std::ptr::eq(one.as_str(), other.as_str()));
}

#[test]
fn an_account_is_meant_by_its_name_and_by_its_uid_if_that_is_said() {
    let means = |said: &str| {
        let token: Arc<Token> = whole().annotation(ACCOUNT_UID, said).build();
        token.metadata.annotations.means(uid("default"))
    };
    assert!(means("") && means(&uid("default").to_string()));
    assert!(!means(&uid("another").to_string()) && !means("12345"));
}

/// A token that is gone, of an account that lists these Secrets; none if the account is gone too.
fn gone(account_uid: Option<Uid>, listed: Option<&[&str]>) -> String {
    let references = |names: &[&str]| names.iter().map(|name| json!({ "name": name })).collect::<Vec<Value>>();
    let account = |names: &[&str]| object("v1", "ServiceAccount", "default").set(&["secrets"], references(names));
    let listing: Option<Arc<Listing>> = listed.map(|names| account(names).build());
    let observed = ObservedReference {
        secret: Key::new("default", NAME),
        account: AccountName { name: Text::new("default"), uid: account_uid },
        is_seen: true,
        listing: listing.map(|listing| Listing::clone(&listing)),
    };
    let asked = plan_read(&observed).map(|live_read| live_read.to_string());
    let expected = "read its ServiceAccount's list (the token of ServiceAccount default was deleted)";
    assert_eq!(asked.as_deref(), Some(expected));
    let not_seen = ObservedReference { is_seen: false, ..observed.clone() };
    assert_eq!(plan_read(&not_seen), None);
    let nothing = "nothing (its ServiceAccount is not in the cache)";
    assert_eq!(plan_unlisting(&not_seen).to_string(), nothing);
    let unlisting = plan_unlisting(&observed);
    let removes = matches!(unlisting, Unlisting::Remove(of) if of == uid("default"));
    assert_eq!(removes, unlisting.to_string().starts_with("remove"));
    unlisting.to_string()
}

/// Upstream: `TestTokenCreation`.
#[test]
fn a_secret_that_is_gone_leaves_its_accounts_list() {
    // "deleted secret without serviceaccount"
    assert_eq!(gone(None, None), "nothing (its ServiceAccount is gone too)");
    // "deleted secret with serviceaccount with reference"
    let removed = "remove it from the list (its ServiceAccount lists it)";
    assert_eq!(gone(None, Some(&["other", NAME])), removed);
    assert_eq!(gone(Some(uid("default")), Some(&[NAME])), removed);
    // "deleted secret with serviceaccount without reference"
    assert_eq!(gone(None, Some(&["other"])), "nothing (its ServiceAccount does not list it)");
    assert_eq!(gone(None, Some(&[])), "nothing (its ServiceAccount does not list it)");
    // Another account of this name lists what is its own.
    assert_eq!(gone(Some(uid("former")), Some(&[NAME])), "nothing (its ServiceAccount is gone too)");
}

fn any_secret() -> impl Strategy<Value = ObjectBuilder> {
    let text = || prop_oneof![Just(CA.to_owned()), Just(String::new()), "[a-z]{1,3}"];
    let key = prop_oneof![Just("token"), Just("namespace"), Just("ca.crt"), Just("other")];
    let data = proptest::collection::vec((key, text()), 0..5);
    (data, any::<bool>(), any::<bool>()).prop_map(|(data, is_immutable, is_going)| {
        let data: Vec<(&str, &str)> = data.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let secret = token(&data).set(&["immutable"], is_immutable);
        if is_going { secret.terminating() } else { secret }
    })
}

proptest! {
    #[test]
    fn after_filling_in_there_is_nothing_left_to_plan(secret in any_secret(), has_ca in any::<bool>()) {
        let seen = Observed { ca: has_ca.then(ca), ..observed(&secret) };
        if let Plan::Fill { lacks: Lacks { token, namespace, ca }, account, preconditions } = plan(&seen) {
            prop_assert!(token || namespace || ca);
            prop_assert_eq!((account, preconditions.uid), (uid("default"), uid(NAME)));
            prop_assert!(has_ca || !ca);
            let values = [(token, "token", "ABC"), (namespace, "namespace", "default"), (ca, "ca.crt", CA)];
            let filled = values.into_iter().filter(|(lacks, _, _)| *lacks);
            let fill = |secret: ObjectBuilder, key, value| secret.set(&["data", key], STANDARD.encode::<&str>(value));
            let filled = filled.fold(secret, |secret, (_, key, value)| fill(secret, key, value));
            let again = Observed { ca: seen.ca.clone(), ..observed(&filled) };
            prop_assert_eq!(plan(&again).to_string(), "keep (complete)");
        }
    }

    #[test]
    fn a_secret_whose_account_is_there_never_goes(secret in any_secret()) {
        let goes = matches!(plan(&observed(&secret)), Plan::Delete { .. });
        prop_assert!(!goes);
    }
}
