//! Signatures: upstream's vectors, and the check that a joining node makes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bootstrap_signer_operator::plan::jws::detached_signature;
use proptest::prelude::*;
use ring::hmac;
use serde_json::{Value, json};
use shared::api::bootstrap_token::Data;

const TEXT: &str = "Hello from the other side. I must have called a thousand times.";
const SECRET: &str = "my voice is my passcode";
const ID: &str = "joshua";
const SIGNATURE: &str = "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8";

fn sign(text: &str, id: &str, secret: &str) -> String {
    detached_signature(text, id, &Data::from(secret.as_bytes()))
}

/// Upstream: `TestComputeDetachedSignature`, staging/src/k8s.io/cluster-bootstrap/token/jws/jws_test.go.
#[test]
fn a_signature_is_the_one_that_upstream_makes() {
    assert_eq!(sign(TEXT, ID, SECRET), SIGNATURE);
    let of_nothing = "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..7Ui1ALizW4jXphVUB7xUqC9vLYLL9RZeOFfVLoB7Tgk";
    assert_eq!(sign("", ID, SECRET), of_nothing);
    let without_secret = "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..UfkqvDGiIFxrMnFseDj9LYJOLNrvjW8aHhF71mvvAs8";
    assert_eq!(sign(TEXT, ID, ""), without_secret);
}

/// As `kubeadm join` checks the ConfigMap: it makes the signature itself. Upstream: `DetachedTokenIsValid`,
/// staging/src/k8s.io/cluster-bootstrap/token/jws/jws.go.
fn is_valid(signature: &str, text: &str, id: &str, secret: &str) -> bool {
    signature == sign(text, id, secret)
}

/// As any library does that knows RFC 7515: the text goes back between the two points, and the whole is checked.
fn is_valid_jws(signature: &str, text: &str, id: &str, secret: &str) -> bool {
    let Some((header, mac)) = signature.split_once("..") else { return false };
    let Ok(mac) = URL_SAFE_NO_PAD.decode(mac) else { return false };
    let read: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(text));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    read == json!({ "alg": "HS256", "kid": id }) && hmac::verify(&key, signed.as_bytes(), &mac).is_ok()
}

/// Upstream: `TestDetachedTokenIsValid`.
#[test]
fn a_joining_node_takes_the_signature_of_its_token_and_no_other() {
    for check in [is_valid, is_valid_jws] {
        assert!(check(SIGNATURE, TEXT, ID, SECRET));
        assert!(!check(&format!("{SIGNATURE}foo"), TEXT, ID, SECRET));
        assert!(!check(SIGNATURE, "Hello", ID, SECRET));
        assert!(!check(SIGNATURE, TEXT, "falken", SECRET));
        assert!(!check(SIGNATURE, TEXT, ID, "another passcode"));
    }
}

proptest! {
    #[test]
    fn every_signature_is_one_for_any_library(text in any::<String>(), id in "[a-z0-9]{6}", secret in "[a-z0-9]{16}") {
        let signature = sign(&text, &id, &secret);
        prop_assert!(is_valid_jws(&signature, &text, &id, &secret));
        let changed = format!("{text}.");
        prop_assert!(!is_valid_jws(&signature, &changed, &id, &secret));
    }
}
