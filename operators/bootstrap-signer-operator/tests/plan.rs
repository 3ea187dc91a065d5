//! Which signatures `cluster-info` gets and loses: upstream's cases, and properties of any set of tokens.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bootstrap_signer_operator::objects::{BootstrapToken, ClusterInfo, SIGNATURE_PREFIX, Unfit, id_of};
use bootstrap_signer_operator::observe::Observed;
use bootstrap_signer_operator::plan::jws::detached_signature;
use bootstrap_signer_operator::plan::{Plan, Reason, plan};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::bootstrap_token::Data;
use shared::api::object::ResourceVersion;
use shared::testing::properties::order_is_irrelevant;
use shared::testing::{NOW, ObjectBuilder, ago, object, uid};
use shared::working::control::Preconditions;

const ID: &str = "abc123";
const SECRET: &str = "tokenSecret";
/// That of the text `payload` by the token `abc123`.
const SIGNATURE: &str = "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiYzEyMyJ9..QSxpUG7Q542CirTI2ECPSZjvBOJURUW5a7XqFpNI958";

/// The ConfigMap, with these signatures.
fn cluster_info(signatures: &[(&str, &str)]) -> ObjectBuilder {
    let built =
        object("v1", "ConfigMap", "cluster-info").namespace("kube-public").set(&["data", "kubeconfig"], "payload");
    signatures
        .iter()
        .fold(built, |built, (id, signature)| built.set(&["data", &format!("{SIGNATURE_PREFIX}{id}")], *signature))
}

/// A Secret with these values.
fn secret(name: &str, data: &[(&str, &str)]) -> ObjectBuilder {
    let data: BTreeMap<&str, String> = data.iter().map(|(key, value)| (*key, STANDARD.encode(value))).collect();
    let secret = object("v1", "Secret", name).namespace("kube-system");
    secret.set(&["type"], "bootstrap.kubernetes.io/token").set(&["data"], json!(data))
}

/// A token that signs until then; for ever, if that is empty.
fn token(id: &str, expiration: &str) -> ObjectBuilder {
    let values = [("token-id", id), ("token-secret", SECRET), ("usage-bootstrap-signing", "true")];
    let name = format!("bootstrap-token-{id}");
    secret(&name, &[&values[..], &[("expiration", expiration)]].concat())
}

fn observed(cluster_info: &ObjectBuilder, tokens: &[ObjectBuilder]) -> Observed {
    let tokens = tokens.iter().map(ObjectBuilder::build).collect();
    Observed { cluster_info: cluster_info.build(), tokens }
}

#[track_caller]
fn check(cluster_info: &ObjectBuilder, tokens: &[ObjectBuilder], expected: &str) -> Plan {
    let decided = plan(&observed(cluster_info, tokens), NOW);
    assert_eq!(decided.to_string(), expected);
    decided
}

fn written(signatures: &[(&str, Option<&str>)]) -> BTreeMap<String, Option<String>> {
    signatures.iter().map(|(id, signature)| ((*id).to_owned(), signature.map(str::to_owned))).collect()
}

/// Upstream: `TestSimpleSign`, `TestUpdateSignature`.
#[test]
fn a_token_signs_what_it_has_not_signed() {
    let missing = "sign for abc123 (1 signatures are missing or wrong, 0 are stale)";
    let none: &[(&str, &str)] = &[];
    for has in [none, &[(ID, "old signature")]] {
        let plan = check(&cluster_info(has), &[token(ID, "")], missing);
        assert_eq!(plan.signatures, written(&[(ID, Some(SIGNATURE))]));
    }
}

/// Upstream: `TestNoSignNeeded`.
#[test]
fn a_signature_that_is_right_stays() {
    check(&cluster_info(&[(ID, SIGNATURE)]), &[token(ID, "")], "nothing (signed by 1 tokens)");
    check(&cluster_info(&[]), &[], "nothing (signed by 0 tokens)");
}

/// Upstream: `TestRemoveSignature`.
#[test]
fn a_signature_of_no_token_goes() {
    let stale = "remove abc123 (0 signatures are missing or wrong, 1 are stale)";
    let plan = check(&cluster_info(&[(ID, "old signature")]), &[], stale);
    assert_eq!(plan.signatures, written(&[(ID, None)]));
    // Whatever comes after the prefix.
    check(
        &cluster_info(&[("", "x"), ("not-an-id", "x")]),
        &[],
        "remove , remove not-an-id (0 signatures are missing or wrong, 2 are stale)",
    );
}

#[test]
fn without_a_text_nothing_is_signed_and_nothing_removed() {
    for data in [Value::Null, json!({}), json!({ "jws-kubeconfig-abc123": "old signature", "other": "x" })] {
        let empty = cluster_info(&[]).set(&["data"], data);
        check(&empty, &[token(ID, "")], "nothing (no kubeconfig to sign)");
    }
    // An empty text is one.
    let empty = cluster_info(&[]).set(&["data", "kubeconfig"], "");
    let missing = "sign for abc123 (1 signatures are missing or wrong, 0 are stale)";
    check(&empty, &[token(ID, "")], missing);
}

#[test]
fn only_the_text_that_was_signed_gets_the_signatures() {
    let read = cluster_info(&[]).set(&["metadata", "resourceVersion"], "77");
    let plan = plan(&observed(&read, &[token(ID, "")]), NOW);
    let expected = Preconditions { uid: uid("cluster-info"), resource_version: Some(ResourceVersion(77)) };
    assert_eq!(plan.preconditions, expected);
}

/// The fault of the only token, if it signs nothing.
fn fault(token: &ObjectBuilder) -> Option<Unfit> {
    match plan(&observed(&cluster_info(&[]), std::slice::from_ref(token)), NOW).reason {
        Reason::Signed { tokens: 0, unfit } => unfit.into_values().next(),
        Reason::NoKubeconfig | Reason::Signed { .. } | Reason::Different { .. } => None,
    }
}

/// Upstream: `TestValidateSecretForSigning`, `TestValidateSecret`, `TestBadSecretName`, `TestMismatchSecretName`.
#[test]
fn a_secret_signs_if_it_is_a_token_for_that_and_good() {
    let row = |name: &str, id: &str, secret_part: &str, usage: &str, expiration: &str, expected: Option<Unfit>| {
        let values = [
            ("token-id", id),
            ("token-secret", secret_part),
            ("usage-bootstrap-signing", usage),
            ("expiration", expiration),
        ];
        assert_eq!(fault(&secret(name, &values)), expected, "{name} {values:?}");
    };
    let name = "bootstrap-token-abc123";
    let (past, future) = (ago(3600).to_string(), ago(-3600).to_string());
    row(name, ID, SECRET, "true", "", None);
    row(name, ID, SECRET, "true", &future, None);
    row(name, ID, SECRET, "true", &past, Some(Unfit::Expired));
    row(name, ID, SECRET, "true", &NOW.to_string(), Some(Unfit::Expired));
    row(name, ID, SECRET, "true", "garbage", Some(Unfit::Expired));
    row(name, ID, SECRET, "", "garbage", Some(Unfit::NotForSigning));
    row(name, ID, SECRET, "", "", Some(Unfit::NotForSigning));
    row(name, ID, SECRET, "TRUE", "", Some(Unfit::NotForSigning));
    row(name, "", SECRET, "true", "", Some(Unfit::NoId));
    row(name, ID, "", "true", "", Some(Unfit::NoSecret));
    row("abc123", ID, SECRET, "true", "", Some(Unfit::Name));
    row("bootstrap-token-def456", ID, SECRET, "true", "", Some(Unfit::OtherId));
    assert_eq!(fault(&secret(name, &[])), Some(Unfit::NoId));
    assert_eq!(fault(&secret(name, &[]).set(&["data"], json!({ "token-id": null }))), Some(Unfit::NoId));
}

/// Upstream: `TestParseSecretName`, staging/src/k8s.io/cluster-bootstrap/util/secrets/secrets_test.go.
#[test]
fn a_name_has_an_id_of_six() {
    assert_eq!(id_of("bootstrap-token-abc123"), Some("abc123"));
    for wrong in [
        "",
        "abc123",
        "bootstrap-token-",
        "bootstrap-token-abc",
        "bootstrap-token-abc123ghi",
        "bootstrap-token-ABC123",
        "bootstrap-token-abc12\u{e9}",
        "x-bootstrap-token-abc123",
    ] {
        assert_eq!(id_of(wrong), None, "{wrong}");
    }
}

#[test]
fn a_token_that_expires_is_looked_at_again_then_and_loses_its_signature() {
    let (soon, later) = (ago(-60).to_string(), ago(-600).to_string());
    let tokens = [token(ID, &soon), token("def456", &later), token("000000", ""), token("past00", &NOW.to_string())];
    let signing = plan(&observed(&cluster_info(&[]), &tokens), NOW);
    assert_eq!(signing.next, Some(Duration::from_secs(60)));
    assert_eq!(plan(&observed(&cluster_info(&[]), &tokens[2..]), NOW).next, None);

    let minute_later = plan(&observed(&cluster_info(&[(ID, SIGNATURE)]), &tokens[..1]), NOW + Duration::from_secs(60));
    let expired = "remove abc123 (0 signatures are missing or wrong, 1 are stale; bootstrap-token-abc123 \
                   signs nothing: expired)";
    assert_eq!((minute_later.to_string().as_str(), minute_later.next), (expired, None));
}

#[test]
fn nothing_that_is_printed_has_a_secret() {
    let observed = observed(&cluster_info(&[]), &[token(ID, "")]);
    let printed = format!("{observed:?} {:?}", plan(&observed, NOW));
    assert!(!printed.contains(SECRET) && printed.contains("REDACTED"), "{printed}");
    let odd = token(ID, "").set(&["data", "token-secret"], "hunter2!");
    let error = serde_json::from_value::<BootstrapToken>(odd.json().clone()).unwrap_err().to_string();
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn a_token_that_signs_nothing_leaves_no_secret_in_memory() {
    let unused = secret("bootstrap-token-abc123", &[("token-id", ID), ("token-secret", SECRET)]);
    let observed = observed(&cluster_info(&[]), &[unused]);
    assert_eq!(observed.tokens[0].signing, Err(Unfit::NotForSigning));
}

fn any_tokens() -> impl Strategy<Value = Vec<(u8, bool, i64)>> {
    // Which token, whether it is for signing, and how long ago it expired.
    prop::collection::vec((0..9_u8, any::<bool>(), -5_i64..5), 0..6)
}

fn builders(tokens: &[(u8, bool, i64)]) -> Vec<ObjectBuilder> {
    let built = tokens.iter().map(|(number, signs, since)| {
        let (id, usage) = (format!("token{number}"), if *signs { "true" } else { "false" });
        let expiration = ago(*since).to_string();
        let values = [("token-id", &*id), ("token-secret", SECRET), ("usage-bootstrap-signing", usage)];
        let values = [&values[..], &[("expiration", &*expiration)]].concat();
        (id.clone(), secret(&format!("bootstrap-token-{id}"), &values))
    });
    // A name is there once.
    built.collect::<BTreeMap<String, ObjectBuilder>>().into_values().collect()
}

/// The ConfigMap after this plan.
fn applied(cluster_info: &ObjectBuilder, plan: &Plan) -> ObjectBuilder {
    let mut data = cluster_info.json()["data"].clone();
    for (id, signature) in &plan.signatures {
        let key = format!("{SIGNATURE_PREFIX}{id}");
        match (signature, data.as_object_mut()) {
            (Some(signature), Some(data)) => drop(data.insert(key, signature.clone().into())),
            (None, Some(data)) => drop(data.remove(&key)),
            (_, None) => {}
        }
    }
    cluster_info.clone().set(&["data"], data)
}

proptest! {
    #[test]
    fn afterwards_there_are_the_signatures_of_good_tokens_and_nothing_is_left_to_plan(
        tokens in any_tokens(),
        has in prop::collection::btree_set(0..9_u8, 0..4),
    ) {
        let ids: Vec<String> = has.iter().map(|number| format!("token{number}")).collect();
        let has: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "old signature")).collect();
        let (before, tokens) = (cluster_info(&has).set(&["data", "other"], "x"), builders(&tokens));
        let after = applied(&before, &plan(&observed(&before, &tokens), NOW));
        let again = observed(&after, &tokens);
        let is_quiet = plan(&again, NOW).signatures.is_empty();
        prop_assert!(is_quiet);
        prop_assert_eq!(&after.json()["data"]["other"], "x");
        let good: BTreeSet<&str> = again
            .tokens
            .iter()
            .filter_map(|token| token.signing.as_ref().ok())
            .filter(|signing| !signing.expiration.is_over(NOW))
            .map(|signing| &*signing.id)
            .collect();
        let ClusterInfo { signatures, .. } = &*again.cluster_info;
        prop_assert_eq!(signatures.keys().map(String::as_str).collect::<BTreeSet<&str>>(), good);
        for (id, signature) in signatures {
            prop_assert_eq!(signature, &detached_signature("payload", id, &Data::from(SECRET.as_bytes())));
        }
    }

    #[test]
    fn the_order_of_tokens_is_irrelevant(tokens in any_tokens()) {
        order_is_irrelevant(&builders(&tokens), |tokens| plan(&observed(&cluster_info(&[(ID, "x")]), tokens), NOW));
    }
}
