//! The text of a token, its signature, and the files of keys: those of OpenSSL are used, or refused with the reason.
//!
//! The keys in `keys` were made for these tests, and open nothing.

#![expect(clippy::unwrap_used, reason = "a fixture that does not hold is a broken test")]

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p521::ecdsa::signature::Verifier;
use p521::ecdsa::{Signature, VerifyingKey};
use p521::pkcs8::DecodePublicKey;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    VerificationAlgorithm,
};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use serviceaccount_token_operator::apply::key::TokenKey;
use serviceaccount_token_operator::flags::Flags;
use serviceaccount_token_operator::plan::jwt::{Algorithm, Claims};
use shared::process::flags::parse;
use shared::testing::uid;

fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "keys", name].iter().collect()
}

fn claims() -> Claims<'static> {
    Claims { namespace: "ns", account: "robot", account_uid: uid("robot"), secret: "robot-token" }
}

fn decoded(part: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(part).unwrap()
}

/// A signature of this key is checked by the public key that OpenSSL has made of it; `in_spki` is where that begins.
#[track_caller]
fn check(name: &str, public: &str, header: &Value, algorithm: &'static dyn VerificationAlgorithm, in_spki: usize) {
    let (signed, signature, spki) = signed(name, public, header);
    UnparsedPublicKey::new(algorithm, &spki[in_spki..]).verify(signed.as_bytes(), &signature).unwrap();
}

/// What this key has signed, the signature, and the public key.
#[track_caller]
fn signed(name: &str, public: &str, header: &Value) -> (String, Vec<u8>, SubjectPublicKeyInfoDer<'static>) {
    let token = TokenKey::read(&path(name)).unwrap().sign(&claims()).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let [head, body, signature] = parts[..] else { unreachable!("a token has three parts: {token}") };
    assert_eq!(&serde_json::from_slice::<Value>(&decoded(head)).unwrap(), header);
    let expected = json!({
        "iss": "kubernetes/serviceaccount",
        "sub": "system:serviceaccount:ns:robot",
        "kubernetes.io/serviceaccount/namespace": "ns",
        "kubernetes.io/serviceaccount/secret.name": "robot-token",
        "kubernetes.io/serviceaccount/service-account.name": "robot",
        "kubernetes.io/serviceaccount/service-account.uid": uid("robot").to_string(),
    });
    assert_eq!(serde_json::from_slice::<Value>(&decoded(body)).unwrap(), expected);
    let spki = SubjectPublicKeyInfoDer::from_pem_slice(&std::fs::read(path(public)).unwrap()).unwrap();
    (format!("{head}.{body}"), decoded(signature), spki)
}

/// Upstream: `TestTokenGenerateAndValidate`, `pkg/serviceaccount/jwt_test.go`.
#[test]
fn a_token_is_signed_as_the_keys_kind_says() {
    // The ids are what `openssl pkey -pubin -outform DER | openssl dgst -sha256` says, in base64url.
    let rsa = json!({ "alg": "RS256", "kid": "Q6eFICsBaIeIdQAVT5hx-899pP02piTlwo5gvy8ICwA" });
    for form in ["rsa.pem", "rsa-pkcs8.pem"] {
        check(form, "rsa.pub", &rsa, &RSA_PKCS1_2048_8192_SHA256, 24);
    }
    let p256 = json!({ "alg": "ES256", "kid": "xi8eP6_az9GQNZz9a-oAowFriagdp8Kn2zxnyG1nenU" });
    let p384 = json!({ "alg": "ES384", "kid": "AIFQEmaFkOSkh6rVwLWjNU7oG3-hxZo_DQd8uUA99j0" });
    // Numbers of other lengths than the usual one come with other signatures.
    for _ in 0..100 {
        check("p256.pem", "p256.pub", &p256, &ECDSA_P256_SHA256_FIXED, 26);
        check("p384.pem", "p384.pub", &p384, &ECDSA_P384_SHA384_FIXED, 23);
    }
}

/// ring knows nothing of this curve.
#[test]
fn a_token_is_signed_by_a_key_on_p521() {
    let header = json!({ "alg": "ES512", "kid": "NRwt7VBEbXtxgQySkULHnKFD7KdtHhQpS3qH_SomfAw" });
    for form in ["p521.pem", "p521-sec1.pem"] {
        let (signed, signature, spki) = signed(form, "p521.pub", &header);
        let public = VerifyingKey::from_public_key_der(&spki).unwrap();
        public.verify(signed.as_bytes(), &Signature::from_slice(&signature).unwrap()).unwrap();
        assert!(public.verify(b"something else", &Signature::from_slice(&signature).unwrap()).is_err());
        assert_eq!(signature.len(), 132, "as RFC 7518 has it");
    }
}

#[test]
fn each_number_of_a_signature_has_its_full_length() {
    let token = |signature: &[u8]| Algorithm::Es256.token("a.b", signature);
    // 1, and 128, which has a zero before it.
    let mut expected = [0_u8; 64];
    (expected[31], expected[63]) = (1, 128);
    let signature = [0x30_u8, 7, 0x02, 1, 1, 0x02, 2, 0, 128];
    assert_eq!(token(&signature), Some(format!("a.b.{}", URL_SAFE_NO_PAD.encode(expected))));
    let too_long: Vec<u8> = [0x30_u8, 38, 0x02, 33].into_iter().chain([1; 33]).chain([0x02, 1, 1]).collect();
    let more = [0x30_u8, 6, 0x02, 1, 1, 0x02, 1, 1, 0];
    for broken in [&signature[..5], &signature[1..], &signature[..0], &more[..], &too_long[..]] {
        assert_eq!(token(broken), None, "{broken:?}");
    }
}

/// The file that the flag gives, or why it cannot be used.
fn given(path: &str) -> Result<Option<PathBuf>, String> {
    let flag = format!("--service-account-private-key-file={path}");
    let flags = parse::<Flags>("serviceaccount-token-operator", ["operator", flag.as_str()].map(Into::into));
    Ok(flags.map_err(|exit| exit.text)?.own.service_account_private_key_file.0)
}

#[test]
fn a_key_that_cannot_sign_ends_the_process_at_its_start() {
    let check = |path: &str, expected: &str| {
        let error = given(path).unwrap_err();
        assert!(error.contains(expected) && error.contains("--service-account-private-key-file"), "{error}");
    };
    let of = |name: &str| path(name).display().to_string();
    check("/not/there", "No such file");
    check(&of("rsa.pub"), "it holds no private key in PEM form");
    let other = "its private key is neither RSA of 2048 to 4096 bits nor on the curve P-256, P-384 or P-521";
    check(&of("rsa-1024.pem"), other);
    check(&of("ed25519.pem"), other);
    // On P-521, with another number of bytes than that curve's keys have.
    let half =
        "-----BEGIN EC PRIVATE KEY-----\nMBECAQEEA///AKAHBgUrgQQAIw==\n-----END EC PRIVATE KEY-----\n".to_owned();
    let (folder, whole) = (tempfile::tempdir().unwrap(), std::fs::read_to_string(path("p384.pem")).unwrap());
    for (name, contents, expected) in [
        ("empty", String::new(), "it holds no private key in PEM form"),
        ("of-half", half, other),
        ("cut", whole.lines().take(2).collect::<Vec<&str>>().join("\n"), other),
        ("broken", whole.replace('a', "?"), "it holds no private key in PEM form"),
        ("encrypted", whole.replace("PRIVATE", "ENCRYPTED PRIVATE"), "it holds no private key in PEM form"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, contents).unwrap();
        check(&path.display().to_string(), expected);
        // Nothing of a key gets into an error.
        let error = given(&path.display().to_string()).unwrap_err();
        assert!(whole.lines().filter(|line| !line.starts_with('-')).all(|line| !error.contains(line)), "{error}");
    }
}

#[test]
fn the_first_private_key_of_a_file_signs_and_the_flag_may_be_empty() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("several.pem");
    let text = ["rsa.pub", "p384.pem", "rsa.pem"].map(|name| std::fs::read_to_string(path(name)).unwrap()).concat();
    std::fs::write(&file, text.replace('\n', "\r\n")).unwrap();
    let token = TokenKey::read(&file).unwrap().sign(&claims()).unwrap();
    let head = String::from_utf8(decoded(token.split('.').next().unwrap())).unwrap();
    assert!(head.contains("ES384"), "{head}");
    assert_eq!(given(&file.display().to_string()), Ok(Some(file)));
    assert_eq!(given(""), Ok(None));
}
