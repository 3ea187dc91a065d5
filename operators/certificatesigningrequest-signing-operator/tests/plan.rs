//! Which requests are signed, for what and for how long: upstream's cases, and what holds for any request.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use certificatesigningrequest_signing_operator::apply::certificate::to_be_signed;
use certificatesigningrequest_signing_operator::objects::Signer;
use certificatesigningrequest_signing_operator::observe::Observed;
use certificatesigningrequest_signing_operator::observe::pair::Pair;
use certificatesigningrequest_signing_operator::plan::policies::{
    Expiry, ExtendedKeyUsage, KeyUsage, Validity, usages, validity,
};
use certificatesigningrequest_signing_operator::plan::verification::Invalid;
use certificatesigningrequest_signing_operator::plan::{Plan, plan};
use certificatesigningrequest_signing_operator::status::{self, Status};
use data_encoding::BASE64;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::time::Time;
use shared::testing::{NOW, ObjectBuilder, object};

const HOUR: Duration = Duration::from_hours(1);
const RSA: (&str, &str) = (include_str!("upstream/rsa.crt"), include_str!("upstream/rsa-pkcs1.key"));

static PAIR: LazyLock<Arc<Pair>> = LazyLock::new(|| Arc::new(Pair::read(RSA.0.as_bytes(), RSA.1.as_bytes()).unwrap()));

/// A request that is made in a test.
#[derive(Clone)]
struct Asked {
    signer: &'static str,
    common_name: &'static str,
    organization: Option<&'static str>,
    alt_names: Vec<SanType>,
    usages: Vec<&'static str>,
}

impl Asked {
    /// Of somebody who is to reach the apiserver.
    fn by_client() -> Self {
        Self {
            signer: Signer::KubeApiserverClient.name(),
            common_name: "hello-world",
            organization: Some("some-org"),
            alt_names: Vec::new(),
            usages: vec!["client auth", "digital signature", "key encipherment"],
        }
    }

    /// Of a kubelet for its client certificate.
    fn by_kubelet() -> Self {
        let (common_name, organization) = ("system:node:hello-world", Some("system:nodes"));
        Self { signer: Signer::KubeletClient.name(), common_name, organization, ..Self::by_client() }
    }

    /// Of a kubelet for its serving certificate.
    fn by_server() -> Self {
        Self {
            signer: Signer::KubeletServing.name(),
            alt_names: vec![SanType::DnsName("example.com".try_into().unwrap())],
            usages: vec!["server auth", "digital signature", "key encipherment"],
            ..Self::by_kubelet()
        }
    }

    fn approved(self) -> ObjectBuilder {
        let Self { signer, common_name, organization, alt_names, usages } = self;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        if !common_name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, common_name);
        }
        if let Some(organization) = organization {
            params.distinguished_name.push(DnType::OrganizationName, organization);
        }
        params.subject_alt_names = alt_names;
        let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
        let spec = json!({ "request": BASE64.encode(pem.as_bytes()), "signerName": signer, "usages": usages });
        let request = object("certificates.k8s.io/v1", "CertificateSigningRequest", "a").namespace("");
        request.set(&["spec"], spec).set(&["status", "conditions"], json!([{ "type": "Approved" }]))
    }
}

fn observed(request: &ObjectBuilder) -> Observed {
    Observed { request: request.build(), pair: Some(Arc::clone(&PAIR)) }
}

fn decided(request: &ObjectBuilder) -> String {
    plan(&observed(request), HOUR, NOW).to_string()
}

/// Upstream: `TestHandle`.
#[test]
fn each_signer_signs_the_requests_that_are_for_it() {
    let signed = |asked: Asked| {
        let expected = format!("sign (valid for {}, until 2026-01-01T13:00:00Z)", asked.signer);
        assert_eq!(decided(&asked.approved()), expected);
    };
    let without = |asked: Asked| {
        let usages = asked.usages.iter().copied().filter(|usage| *usage != "key encipherment").collect();
        Asked { usages, ..asked }
    };
    for asked in [Asked::by_client(), Asked::by_kubelet(), Asked::by_server()] {
        signed(asked.clone());
        signed(without(asked));
    }
    let anything = Asked { common_name: "", organization: None, usages: Vec::new(), ..Asked::by_client() };
    signed(Asked { signer: Signer::LegacyUnknown.name(), ..anything });
}

/// Upstream: `TestHandle`.
#[test]
fn nothing_is_written_where_there_is_nothing_to_sign() {
    let check = |status: Value, expected: &str| {
        let request = Asked::by_server().approved().set(&["status"], status);
        assert_eq!(decided(&request), format!("nothing ({expected})"));
    };
    check(json!({}), "not approved");
    let approved = json!({ "type": "Approved" });
    check(json!({ "conditions": [approved, { "type": "Failed" }] }), "failed before");
    check(json!({ "conditions": [approved, { "type": "Failed", "status": "True" }] }), "failed before");
    check(json!({ "conditions": [approved, { "type": "Denied" }] }), "denied");
    check(json!({ "conditions": [approved], "certificate": "c2lnbmVk" }), "has its certificate");
    let failed_not = json!({ "conditions": [approved, { "type": "Failed", "status": "False" }] });
    let request = Asked::by_server().approved().set(&["status"], failed_not);
    assert!(decided(&request).starts_with("sign ("));
    for signer in ["kubernetes.io/not-recognised", "example.com/sample-name", ""] {
        let request = Asked { signer, ..Asked::by_server() }.approved();
        assert_eq!(decided(&request), "nothing (for another signer)");
    }
    let request = Asked::by_server().approved();
    let without_files = Observed { pair: None, ..observed(&request) };
    assert_eq!(plan(&without_files, HOUR, NOW).to_string(), "nothing (no files for kubernetes.io/kubelet-serving)");
}

/// Upstream: `ValidateKubeletServingCSR`, `ValidateKubeletClientCSR` and `validAPIServerClientUsages`.
#[test]
fn a_request_that_its_signer_does_not_sign_fails() {
    let check = |asked: Asked, expected: &str| assert_eq!(decided(&asked.approved()), format!("fail ({expected})"));
    let email = || SanType::Rfc822Name("a@example.com".try_into().unwrap());
    let uri = || SanType::URI("spiffe://a/b".try_into().unwrap());
    let ip = || SanType::IpAddress(Ipv4Addr::LOCALHOST.into());
    let organization = "subject organization is not system:nodes";
    let common_name = "subject common name does not begin with system:node:";
    for asked in [Asked::by_kubelet(), Asked::by_server()] {
        check(Asked { organization: None, ..asked.clone() }, organization);
        check(Asked { organization: Some("system:masters"), ..asked.clone() }, organization);
        check(Asked { common_name: "hello-world", ..asked.clone() }, common_name);
        check(Asked { common_name: "", ..asked }, common_name);
    }
    let with = |asked: Asked, alt_names: Vec<SanType>| Asked { alt_names, ..asked };
    check(with(Asked::by_server(), Vec::new()), "DNS or IP subjectAltName is required");
    check(with(Asked::by_server(), vec![uri(), email(), ip()]), "Email subjectAltNames are not allowed");
    check(with(Asked::by_server(), vec![uri(), ip()]), "URI subjectAltNames are not allowed");
    check(with(Asked::by_kubelet(), vec![uri(), ip()]), "IP subjectAltNames are not allowed");
    let usages = vec!["client auth", "server auth", "digital signature", "key encipherment"];
    check(
        Asked { usages: usages.clone(), ..Asked::by_server() },
        "usages did not match [digital signature key encipherment server auth]",
    );
    check(
        Asked { usages: usages.clone(), ..Asked::by_kubelet() },
        "usages did not match [client auth digital signature key encipherment]",
    );
    check(Asked { usages, ..Asked::by_client() }, "invalid usage for client certificate: server auth");
    let missing = "missing required usage for client certificate: client auth";
    check(Asked { usages: vec!["digital signature"], ..Asked::by_client() }, missing);
}

#[test]
fn a_failure_keeps_all_other_conditions() {
    let approved = json!({ "type": "Approved", "status": "True", "new": { "a": 1 } });
    let request = Asked { usages: Vec::new(), ..Asked::by_client() }.approved();
    let observed = observed(&request.set(&["status", "conditions"], vec![approved.clone()]));
    let Plan::Fail { conditions, invalid } = plan(&observed, HOUR, NOW) else { panic!("it does not fail") };
    assert_eq!(invalid, Invalid::NoClientAuth);
    let failure = json!({
        "type": "Failed", "status": "True", "reason": "SignerValidationFailure",
        "message": "missing required usage for client certificate: client auth",
        "lastUpdateTime": "2026-01-01T12:00:00Z",
    });
    let expected = Status::Conditions(vec![approved, failure]);
    assert_eq!(status::failed(&conditions, &invalid, NOW), expected);
    assert_eq!(status::issued("pem"), Status::Certificate("cGVt".to_owned()));
}

#[test]
fn a_request_that_cannot_be_read_is_left_to_somebody_else() {
    let check = |request: &[u8], expected: &str| {
        let request = Asked::by_client().approved().set(&["spec", "request"], BASE64.encode(request));
        assert_eq!(decided(&request), expected);
    };
    let pem = include_str!("upstream/client.csr");
    let signed = "sign (valid for kubernetes.io/kube-apiserver-client, until 2026-01-01T13:00:00Z)";
    check(pem.as_bytes(), signed);
    check(format!("Certificate Request:\n    Data:\n{pem}\nthe end").as_bytes(), signed);
    let not_one = "nothing (cannot be read: not one PEM block of type CERTIFICATE REQUEST and nothing else)";
    check(b"odd", not_one);
    check(format!("{pem}{pem}").as_bytes(), not_one);
    check(format!("{pem}{}", RSA.0).as_bytes(), not_one);
    // The signature is of another subject.
    let base64: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let mut der = BASE64.decode(base64.as_bytes()).unwrap();
    let at = der.windows(4).position(|bytes| bytes == b"jane").unwrap();
    der[at] = b'J';
    let forged = BASE64.encode(&der);
    let forged = format!("-----BEGIN CERTIFICATE REQUEST-----\n{forged}\n-----END CERTIFICATE REQUEST-----\n");
    check(forged.as_bytes(), "nothing (cannot be read: no signature with its own key that can be checked)");
}

/// Upstream: `TestKeyUsagesFromStrings`.
#[test]
fn usages_are_read_by_their_names() {
    let check = |asked: &[&str], key: &[KeyUsage], extended: &[ExtendedKeyUsage]| {
        let asked: Vec<Text> = asked.iter().map(|usage| Text::new(usage)).collect();
        let usages = usages(&asked).unwrap();
        assert_eq!(usages.key.into_iter().collect::<Vec<_>>(), key);
        assert_eq!(usages.extended.into_iter().collect::<Vec<_>>(), extended);
    };
    check(&["signing"], &[KeyUsage::DigitalSignature], &[]);
    check(&["client auth"], &[], &[ExtendedKeyUsage::ClientAuth]);
    check(&["client auth", "client auth"], &[], &[ExtendedKeyUsage::ClientAuth]);
    check(&["cert sign", "encipher only"], &[KeyUsage::CertSign, KeyUsage::EncipherOnly], &[]);
    check(
        &["ocsp signing", "crl sign", "s/mime", "content commitment"],
        &[KeyUsage::ContentCommitment, KeyUsage::CrlSign],
        &[ExtendedKeyUsage::EmailProtection, ExtendedKeyUsage::OcspSigning],
    );
    let unknown = usages(&["unsupported string".into(), "any".into()]).unwrap_err();
    assert_eq!(unknown, ["unsupported string"]);
    let signer = Signer::LegacyUnknown.name();
    let request = Asked { usages: vec!["signing", "odd", "b"], signer, ..Asked::by_client() };
    assert_eq!(decided(&request.approved()), r#"nothing (unrecognized usage values: ["odd" "b"])"#);
}

fn after(seconds: i64) -> Time {
    Time::from_second(NOW.as_second() + seconds)
}

/// Upstream: `Test_signer_duration`, and the times of `TestCertificateAuthority`.
#[test]
fn a_certificate_is_valid_for_as_long_as_was_asked_for_within_bounds() {
    let ca_ends = after(24 * 3600);
    let check = |asked: Option<i32>, longest: Duration, expected: i64| {
        let validity = validity(asked, longest, ca_ends, NOW).unwrap();
        assert_eq!(validity, Validity { not_before: after(-300), not_after: after(expected) }, "{asked:?}");
    };
    check(Some(1800), HOUR, 1800);
    check(Some(3 * 3600), HOUR, 3600);
    check(Some(-60), HOUR, 600);
    check(Some(599), HOUR, 600);
    check(Some(600), HOUR, 600);
    check(Some(3600), HOUR, 3600);
    check(None, HOUR, 3600);
    // From eight hours on, the time before now counts.
    check(None, Duration::from_hours(8) - Duration::from_secs(1), 8 * 3600 - 1);
    check(None, Duration::from_hours(8), 8 * 3600 - 300);
    check(None, Duration::from_hours(24), 24 * 3600 - 300);
    check(None, Duration::from_hours(48), 24 * 3600);
    check(None, Duration::from_secs(60), 60);
    check(None, Duration::MAX, 24 * 3600);
}

/// Upstream: `TestCertificateAuthority`.
#[test]
fn a_ca_that_has_expired_signs_nothing_until_it_is_replaced() {
    let check = |ca_ends: i64, expected: &str| {
        let expiry = validity(None, HOUR, after(ca_ends), NOW).unwrap_err();
        assert_eq!(expiry, Expiry { not_after: after(ca_ends), for_long: ca_ends <= -300 });
        assert_eq!(expiry.to_string(), expected);
    };
    check(0, "refusing to sign a certificate that expired in the past: NotAfter=2026-01-01 12:00:00 +0000 UTC");
    check(-299, "refusing to sign a certificate that expired in the past: NotAfter=2026-01-01 11:55:01 +0000 UTC");
    check(-300, "the signer has expired: NotAfter=2026-01-01 11:55:00 +0000 UTC");
    let much_later: Timestamp = "2060-01-02T00:00:00Z".parse().unwrap();
    let decided = plan(&observed(&Asked::by_client().approved()), HOUR, much_later).to_string();
    assert_eq!(decided, "try again (the signer has expired: NotAfter=2060-01-01 00:00:00 +0000 UTC)");
}

static REQUEST: LazyLock<ObjectBuilder> = LazyLock::new(|| Asked::by_client().approved());

proptest! {
    #[test]
    fn no_certificate_outlives_its_ca_or_the_longest_time(
        asked in proptest::option::of(any::<i32>()), longest in 0_u64..1_000_000_000, ca_ends in -10_000_000_i64..10_000_000
    ) {
        let ca_ends = after(ca_ends);
        let longest = Duration::from_secs(longest);
        if let Ok(Validity { not_before, not_after }) = validity(asked, longest, ca_ends, NOW) {
            prop_assert!(not_after <= ca_ends && not_before == after(-300));
            let most = SignedDuration::try_from(longest).unwrap().max(SignedDuration::from_mins(10));
            prop_assert!(not_after.second() <= NOW.as_second() + most.as_secs());
        } else {
            prop_assert!(ca_ends <= after(0));
        }
    }

    /// A plan is a function of the request: two plans of one request give the same bytes.
    #[test]
    fn one_request_has_one_certificate(seconds in 600_i32..10_000, serial_number in any::<[u8; 16]>()) {
        let request = REQUEST.clone().set(&["spec", "expirationSeconds"], seconds);
        let planned = || match plan(&observed(&request), HOUR, NOW) {
            Plan::Sign { signer: _, certificate } => to_be_signed(&certificate, serial_number),
            Plan::Nothing(_) | Plan::TryAgain { .. } | Plan::Fail { .. } => Vec::new(),
        };
        prop_assert!(!planned().is_empty());
        prop_assert_eq!(planned(), planned());
    }
}
