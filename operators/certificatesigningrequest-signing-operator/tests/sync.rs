//! The operator as it is, against an apiserver in the test's process: its informer, its sync, its writes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use certificatesigningrequest_signing_operator::controller::CertificateSigningRequestSigningOperator;
use data_encoding::BASE64;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, object};
use x509_parser::certificate::X509Certificate;
use x509_parser::pem::{Pem, parse_x509_pem};
use x509_parser::prelude::FromDer;

const REQUESTS: &str = "certificatesigningrequests";
const PATCH: &str = "patch certificatesigningrequests/status";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const SERVING: &str = "kubernetes.io/kubelet-serving";
const RSA: (&str, &str) = (include_str!("upstream/rsa.crt"), include_str!("upstream/rsa-pkcs1.key"));
const P256: (&str, &str) = (include_str!("upstream/p256.crt"), include_str!("upstream/p256-sec1.key"));
const P384: (&str, &str) = (include_str!("upstream/p384.crt"), include_str!("upstream/p384-sec1.key"));
const P521: (&str, &str) = (include_str!("upstream/p521.crt"), include_str!("upstream/p521-sec1.key"));

/// The files of a CA, and the flags that name them.
struct Files {
    folder: tempfile::TempDir,
    flags: [String; 2],
}

/// Those of the lives that are compared.
static FILES: LazyLock<Files> = LazyLock::new(|| Files::new(RSA));

impl Files {
    fn new(pair: (&str, &str)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let flag = |name: &str, file: &str| format!("--cluster-signing-{name}-file={}/{file}", folder.path().display());
        let files = Self { flags: [flag("cert", "ca.crt"), flag("key", "ca.key")], folder };
        files.replace(pair);
        files
    }

    fn replace(&self, (certificate, key): (&str, &str)) {
        fs::write(self.folder.path().join("ca.crt"), certificate).unwrap();
        fs::write(self.folder.path().join("ca.key"), key).unwrap();
    }

    fn flags(&self) -> [&str; 2] {
        self.flags.each_ref().map(String::as_str)
    }

    fn start(&self, server: &Server) -> Running {
        Running::start::<CertificateSigningRequestSigningOperator>(server, &self.flags())
    }
}

/// Jane's request for a client certificate, which somebody has approved.
fn request(name: &str) -> ObjectBuilder {
    let spec = json!({
        "request": BASE64.encode(include_bytes!("upstream/client.csr")), "signerName": CLIENT, "username": "jane",
        "usages": ["digital signature", "client auth"],
    });
    let request = object("certificates.k8s.io/v1", "CertificateSigningRequest", name).namespace("");
    request.set(&["spec"], spec).set(&["status", "conditions"], json!([{ "type": "Approved", "status": "True" }]))
}

fn status(server: &Server, name: &str) -> Value {
    server.get(REQUESTS, name).map_or(Value::Null, |request| request["status"].clone())
}

/// The certificate in the status.
fn issued(server: &Server, name: &str) -> Option<Pem> {
    let status = status(server, name);
    let pem = BASE64.decode(status["certificate"].as_str()?.as_bytes()).unwrap();
    Some(parse_x509_pem(&pem).unwrap().1)
}

/// Whether it has a certificate that this CA has signed.
#[track_caller]
fn is_signed_by(server: &Server, name: &str, (ca, _): (&str, &str)) -> bool {
    let (certificate, ca) = (issued(server, name).unwrap(), parse_x509_pem(ca.as_bytes()).unwrap().1);
    let (_, certificate) = X509Certificate::from_der(&certificate.contents).unwrap();
    let (_, ca) = X509Certificate::from_der(&ca.contents).unwrap();
    certificate.verify_signature(Some(ca.public_key())).is_ok()
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| server.add(&request("approved"))),
            Do(|server| {
                server.add(&request("failing").set(&["spec", "signerName"], SERVING));
                server.add(&request("later").set(&["status"], json!({})));
                server.add(&request("other").set(&["spec", "signerName"], "example.com/other"));
            }),
            Do(|server| {
                let approved = json!({ "conditions": [{ "type": "Approved", "status": "True" }] });
                server.change(REQUESTS, "later", |request| request["status"] = approved);
            }),
        ];
        let server = survives_kills::<CertificateSigningRequestSigningOperator>(&FILES.flags(), &life).await;
        assert_eq!(server.writes(), ["approved", "failing", "later"].map(|name| format!("{PATCH} {name}")));
        assert!(is_signed_by(&server, "approved", RSA) && is_signed_by(&server, "later", RSA));
        let failing = status(&server, "failing");
        let failure = &failing["conditions"][1];
        assert_eq!([&failure["type"], &failure["reason"]], ["Failed", "SignerValidationFailure"]);
        assert_eq!(failure["message"], "subject organization is not system:nodes");
        assert!(issued(&server, "failing").is_none() && issued(&server, "other").is_none());
    });
}

#[test]
fn each_kind_of_key_signs() {
    test(async {
        for pair in [RSA, P256, P384] {
            let (server, files) = (Server::new(), Files::new(pair));
            server.add(&request("a"));
            files.start(&server).at_rest().await;
            assert!(is_signed_by(&server, "a", pair));
            let pem = issued(&server, "a").unwrap();
            let (_, certificate) = X509Certificate::from_der(&pem.contents).unwrap();
            assert_eq!(certificate.subject().to_string(), "O=admins + O=developers, CN=jane");
            let validity = certificate.validity();
            let lasts = validity.not_after.timestamp() - validity.not_before.timestamp();
            assert_eq!(lasts, 8760 * 3600);
        }
    });
}

/// On a curve that x509-parser does not know.
#[test]
fn openssl_verifies_what_a_key_on_p521_has_signed() {
    test(async {
        let (server, files) = (Server::new(), Files::new(P521));
        server.add(&request("a"));
        files.start(&server).at_rest().await;
        let pem = BASE64.decode(status(&server, "a")["certificate"].as_str().unwrap().as_bytes()).unwrap();
        let [ca, issued] = ["ca.crt", "issued.crt"].map(|name| files.folder.path().join(name));
        fs::write(&issued, pem).unwrap();
        // The time of this test is another one than OpenSSL's.
        let verify = ["verify", "-no_check_time", "-CAfile"].map(Path::new);
        let verified = Command::new("openssl").args(verify).args([&ca, &issued]).output().unwrap();
        assert!(verified.status.success(), "{verified:?}");
    });
}

#[test]
fn a_replaced_ca_signs_what_comes_later() {
    test(async {
        let (server, files) = (Server::new(), Files::new(RSA));
        let running = files.start(&server);
        server.add(&request("a"));
        running.at_rest().await;
        files.replace((P256.0, RSA.1));
        server.add(&request("b"));
        running.at_rest().await;
        files.replace(P256);
        server.add(&request("c"));
        running.at_rest().await;
        assert_eq!(["a", "b", "c"].map(|name| is_signed_by(&server, name, RSA)), [true, true, false]);
        assert!(is_signed_by(&server, "c", P256));
    });
}

#[test]
fn without_files_nothing_is_followed() {
    test(async {
        let server = Server::new();
        server.add(&request("a"));
        let running = Running::start::<CertificateSigningRequestSigningOperator>(&server, &[]);
        running.at_rest().await;
        assert_eq!(server.requests(), Vec::<String>::new());
        let why = running.why("/apis/certificates.k8s.io/v1/certificatesigningrequests/a");
        assert_eq!(why.keys[0].now[0].text, "nothing (no --cluster-signing-cert-file)");
    });
}

#[test]
fn a_signer_without_files_signs_nothing() {
    test(async {
        let (server, files) = (Server::new(), Files::new(RSA));
        server.add(&request("a"));
        let flags = files.flags().map(|flag| flag.replacen("signing-", "signing-kubelet-serving-", 1));
        let flags = flags.each_ref().map(String::as_str);
        let running = Running::start::<CertificateSigningRequestSigningOperator>(&server, &flags);
        running.at_rest().await;
        assert_eq!(server.writes(), Vec::<String>::new());
        let why = running.why("/apis/certificates.k8s.io/v1/certificatesigningrequests/a");
        assert_eq!(why.keys[0].now[0].text, format!("nothing (no files for {CLIENT})"));
    });
}

#[test]
fn a_denial_that_comes_meanwhile_stands() {
    test(async {
        let server = Server::new();
        server.add(&request("a"));
        let held = server.on("patch", "certificatesigningrequests/status").once().hold();
        let running = FILES.start(&server);
        held.arrived().await;
        let denial = json!([{ "type": "Approved", "status": "True" }, { "type": "Denied", "status": "True" }]);
        server.change(REQUESTS, "a", |request| request["status"]["conditions"] = denial.clone());
        held.release();
        running.at_rest().await;
        assert_eq!(status(&server, "a"), json!({ "conditions": denial }));
        assert_eq!(server.count(PATCH), 1);
    });
}

#[test]
fn a_request_that_is_withdrawn_meanwhile_is_done_with() {
    test(async {
        let server = Server::new();
        server.add(&request("a"));
        let held = server.on("patch", "certificatesigningrequests/status").once().hold();
        let running = FILES.start(&server);
        held.arrived().await;
        server.delete(REQUESTS, "a");
        held.release();
        running.at_rest().await;
        assert_eq!(server.count(PATCH), 1);
    });
}

#[test]
fn a_certificate_whose_answer_is_lost_is_not_issued_twice() {
    test(async {
        let server = Server::new();
        server.on("patch", "certificatesigningrequests/status").once().lose();
        server.add(&request("a"));
        FILES.start(&server).at_rest().await;
        assert!(is_signed_by(&server, "a", RSA));
        assert_eq!(server.count(PATCH), 1);
    });
}

#[test]
fn a_watch_that_stands_still_and_a_second_process_issue_no_second_certificate() {
    test(async {
        let server = Server::new();
        server.add(&request("a"));
        let held = server.on("patch", "certificatesigningrequests/status").once().hold();
        let first = FILES.start(&server);
        held.arrived().await;
        // One more, such as after a pause in which the Lease expired: both have seen the request without a certificate.
        server.hold_watches(REQUESTS);
        let second = FILES.start(&server);
        second.at_rest().await;
        let certificate = issued(&server, "a").unwrap();
        held.release();
        first.pass(Duration::from_mins(1)).await;
        server.release_watches(REQUESTS);
        first.at_rest().await;
        second.at_rest().await;
        assert_eq!(issued(&server, "a").unwrap().contents, certificate.contents);
    });
}

#[test]
fn what_fails_is_tried_again_and_an_odd_request_keeps_no_other_waiting() {
    test(async {
        let server = Server::new();
        server.on("patch", "certificatesigningrequests/status").times(2).answer(503, "ServiceUnavailable", "no");
        server.add(&request("a").set(&["spec", "request"], "b2Rk"));
        server.add(&request("b"));
        FILES.start(&server).at_rest().await;
        assert!(is_signed_by(&server, "b", RSA) && issued(&server, "a").is_none());
        assert_eq!(server.count(PATCH), 3);
    });
}

#[test]
fn an_expired_ca_is_tried_again_until_it_is_replaced() {
    test(async {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.not_after = date_time_ymd(2025, 1, 1);
        let (certificate, key) = (params.self_signed(&key).unwrap().pem(), key.serialize_pem());
        let (server, files) = (Server::new(), Files::new((&certificate, &key)));
        server.add(&request("a"));
        let running = files.start(&server);
        running.pass(Duration::from_secs(1)).await;
        let why = running.why("/apis/certificates.k8s.io/v1/certificatesigningrequests/a");
        let expired = "try again (the signer has expired: NotAfter=2025-01-01 00:00:00 +0000 UTC)";
        assert_eq!(why.keys[0].now[0].text, expired);
        assert!(why.keys[0].standing.next_try.is_some(), "{why}");
        assert_eq!(server.writes(), Vec::<String>::new());
        files.replace(RSA);
        running.pass(Duration::from_mins(1)).await;
        assert!(is_signed_by(&server, "a", RSA));
    });
}

#[test]
fn why_says_what_was_signed() {
    test(async {
        let server = Server::new();
        server.add(&request("a"));
        let running = FILES.start(&server);
        running.at_rest().await;
        let requests = server.requests();
        let why = running.why("/apis/certificates.k8s.io/v1/certificatesigningrequests/a");
        assert_eq!(server.requests(), requests, "an answer changes nothing");
        let [key] = &why.keys[..] else { panic!("{why}") };
        assert_eq!(key.now[0].text, "nothing (has its certificate)");
        let signed = key.last.iter().find(|decision| decision.stages[0].text.starts_with("sign ("));
        let signer = signed.map(|decision| &decision.stages[0].reason["valid"]["signer"]);
        assert_eq!(signer, Some(&json!("kubeApiserverClient")));
    });
}
