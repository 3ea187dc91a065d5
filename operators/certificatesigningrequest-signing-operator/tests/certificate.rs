//! A certificate is, byte for byte, the one that Go's `x509.CreateCertificate` makes of the same request; and the keys
//! and certificates of CAs that are read.
//!
//! The files in `upstream` were written by a program in Go that fills in the template as upstream's `Sign` does. Their
//! keys are for nothing else.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use certificatesigningrequest_signing_operator::apply::certificate::{SerialNumber, to_be_signed, whole};
use certificatesigningrequest_signing_operator::observe::pair::{Pair, PairError};
use certificatesigningrequest_signing_operator::plan::Certificate;
use certificatesigningrequest_signing_operator::plan::policies::{Validity, usages};
use data_encoding::{BASE64, HEXLOWER};
use jiff::Timestamp;
use proptest::prelude::*;
use shared::api::intern::Text;
use shared::api::time::Time;
use shared::controllers::certificates::request::Request;
use x509_parser::certificate::X509Certificate;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;

const SERIAL_NUMBER: SerialNumber = [0, 0x85, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const NOT_BEFORE: &str = "2026-11-23T11:55:00Z";

const RSA: (&str, &str) = (include_str!("upstream/rsa.crt"), include_str!("upstream/rsa-pkcs1.key"));
const P256: (&str, &str) = (include_str!("upstream/p256.crt"), include_str!("upstream/p256-sec1.key"));
const P384: (&str, &str) = (include_str!("upstream/p384.crt"), include_str!("upstream/p384-sec1.key"));
const P521: (&str, &str) = (include_str!("upstream/p521.crt"), include_str!("upstream/p521-sec1.key"));

fn pair((certificate, key): (&str, &str)) -> Result<Pair, PairError> {
    Pair::read(certificate.as_bytes(), key.as_bytes())
}

fn time(text: &str) -> Time {
    Time::of(text.parse::<Timestamp>().unwrap())
}

/// The request with these usages gives this certificate, until then.
#[track_caller]
fn check(request: &str, asked: &[&str], not_after: &str, expected: &str) {
    let asked: Vec<Text> = asked.iter().map(|usage| Text::new(usage)).collect();
    let certificate = Certificate {
        pair: Arc::new(pair(RSA).unwrap()),
        request: Request::read_signed(&BASE64.encode(request.as_bytes())).unwrap(),
        usages: usages(&asked).unwrap(),
        validity: Validity { not_before: time(NOT_BEFORE), not_after: time(not_after) },
    };
    let (_, expected) = parse_x509_pem(expected.as_bytes()).unwrap();
    let (_, upstreams) = X509Certificate::from_der(&expected.contents).unwrap();
    let signed = to_be_signed(&certificate, SERIAL_NUMBER);
    assert_eq!(HEXLOWER.encode(&signed), HEXLOWER.encode(upstreams.tbs_certificate.as_ref()));
    assert_eq!(whole(&certificate, &signed, &upstreams.signature_value.data), expected.contents);
}

#[test]
fn a_serving_certificate_is_upstreams() {
    check(
        include_str!("upstream/serving.csr"),
        &["key encipherment", "server auth", "digital signature"],
        "2027-11-23T11:55:00Z",
        include_str!("upstream/serving.crt"),
    );
}

#[test]
fn a_client_certificate_of_several_groups_is_upstreams() {
    check(
        include_str!("upstream/client.csr"),
        &["digital signature", "client auth"],
        "2026-11-23T12:10:00Z",
        include_str!("upstream/client.crt"),
    );
}

/// Each attribute of a subject, some of them twice, and some that are dropped; each sort of alternative names; many
/// usages; and an end after 2050.
#[test]
fn an_odd_certificate_is_upstreams() {
    let usages = [
        "netscape sgc",
        "microsoft sgc",
        "ocsp signing",
        "ipsec user",
        "s/mime",
        "email protection",
        "any",
        "content commitment",
        "crl sign",
        "decipher only",
    ];
    let end = "2055-01-02T03:04:05Z";
    check(include_str!("upstream/odd.csr"), &usages, end, include_str!("upstream/odd.crt"));
}

#[test]
fn a_certificate_without_a_subject_is_upstreams() {
    check(
        include_str!("upstream/nameless.csr"),
        &["decipher only"],
        "2026-11-23T13:00:00Z",
        include_str!("upstream/nameless.crt"),
    );
}

#[test]
fn keys_are_read_in_each_of_their_forms() {
    let pkcs8 = [include_str!("upstream/rsa-pkcs8.key"), include_str!("upstream/p256-pkcs8.key")];
    for files in [RSA, P256, P384, P521, (RSA.0, pkcs8[0]), (P256.0, pkcs8[1])] {
        assert!(pair(files).is_ok(), "{}", files.1);
    }
    // As `openssl ecparam -genkey` writes it, and with another text around.
    let parameters = "a comment\n-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    assert!(pair((P256.0, &format!("{parameters}{}", P256.1))).is_ok());
    assert!(pair((&format!("CN=kubernetes\n{}", P256.0), P256.1)).is_ok());
}

#[test]
fn files_that_are_no_pair_are_told_apart() {
    for (certificate, key) in [(RSA.0, P256.1), (P256.0, RSA.1), (P256.0, P384.1), (P384.0, P256.1), (P521.0, P384.1)] {
        assert_eq!(pair((certificate, key)), Err(PairError::Mismatch));
    }
    let none = PairError::Key("data does not contain a valid RSA or ECDSA private key".to_owned());
    let half = &RSA.1[..RSA.1.len() / 2];
    for key in ["", "hello", RSA.0, half, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
        assert_eq!(pair((RSA.0, key)), Err(none.clone()), "{key}");
    }
    let count = |count: usize| PairError::Certificate(format!("expected 1 certificate, found {count}"));
    assert_eq!(pair(("", RSA.1)), Err(count(0)));
    assert_eq!(pair((RSA.1, RSA.1)), Err(count(0)));
    assert_eq!(pair((&format!("{}{}", RSA.0, P256.0), RSA.1)), Err(count(2)));
    let odd = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(pair((odd, RSA.1)), Err(PairError::Certificate(_))));
}

#[test]
fn nothing_of_a_key_is_printed() {
    let printed = format!("{:?}", pair(P256).unwrap());
    assert!(printed.starts_with("Pair { issuer: Issuer {") && printed.ends_with(", .. }"), "{printed}");
}

proptest! {
    /// Whatever a key file holds, it is a key or it is none.
    #[test]
    fn broken_keys_do_no_harm(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        for (certificate, key) in [RSA, P256] {
            let mut broken = key.as_bytes().to_vec();
            let at = at.index(broken.len());
            broken[at] = byte;
            let _ = Pair::read(certificate.as_bytes(), &broken);
            let _ = Pair::read(&broken, key.as_bytes());
        }
    }
}
