//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

#![expect(clippy::unwrap_used, reason = "a fixture that does not hold is a broken test")]

use root_ca_certificate_publisher_operator::controller::RootCaCertificatePublisherOperator;
use shared::testing::apiserver::Server;
use shared::testing::object;
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, survives_kills, test};

const KEY: &str = "a/kube-root-ca.crt";

/// The flag, and the file for as long as this lives.
fn flag() -> (tempfile::NamedTempFile, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap().cert.pem()).unwrap();
    let flag = format!("--root-ca-file={}", file.path().display());
    (file, flag)
}

fn add_namespace(server: &Server) {
    server.add(&object("v1", "Namespace", "a").set(&["status", "phase"], "Active"));
}

fn spoil(server: &Server) {
    server.change("configmaps", KEY, |map| map["data"]["ca.crt"] = "spoilt".into());
}

#[test]
fn survives_a_kill_before_any_write() {
    let (_file, flag) = flag();
    test(async {
        let life = [Do(add_namespace), Do(spoil), Do(|server| server.delete("configmaps", KEY))];
        let server = survives_kills::<RootCaCertificatePublisherOperator>(&[&flag], &life).await;
        let of_key = |verb: &str| format!("{verb} configmaps {KEY}");
        assert_eq!(server.writes(), ["create", "update", "create"].map(of_key));
    });
}

#[test]
fn an_update_that_meets_a_newer_version_is_made_on_that_one() {
    let (_file, flag) = flag();
    test(async {
        let server = Server::new();
        add_namespace(&server);
        let running = Running::start::<RootCaCertificatePublisherOperator>(&server, &[&flag]);
        running.at_rest().await;
        let held = server.on("update", "configmaps").once().hold();
        spoil(&server);
        held.arrived().await;
        server.change("configmaps", KEY, |map| map["metadata"]["labels"]["mine"] = "yes".into());
        held.release();
        running.at_rest().await;
        let map = server.get("configmaps", KEY).unwrap();
        assert_eq!(map["metadata"]["labels"]["mine"], "yes");
        assert_ne!(map["data"]["ca.crt"], "spoilt");
    });
}

#[test]
fn a_config_map_that_somebody_else_creates_first_is_set_right() {
    let (_file, flag) = flag();
    test(async {
        let server = Server::new();
        add_namespace(&server);
        let held = server.on("create", "configmaps").hold();
        let running = Running::start::<RootCaCertificatePublisherOperator>(&server, &[&flag]);
        held.arrived().await;
        server.add(&object("v1", "ConfigMap", "kube-root-ca.crt").namespace("a").set(&["data", "ca.crt"], "theirs"));
        held.release();
        running.at_rest().await;
        assert_ne!(server.get("configmaps", KEY).unwrap()["data"]["ca.crt"], "theirs");
    });
}

#[test]
fn why_says_what_is_wrong_before_it_is_read_anew() {
    let (_file, flag) = flag();
    test(async {
        let server = Server::new();
        add_namespace(&server);
        let running = Running::start::<RootCaCertificatePublisherOperator>(&server, &[&flag]);
        running.at_rest().await;
        assert_eq!(running.now("/api/v1/namespaces/a"), ["nothing (kube-root-ca.crt is right)"]);
        server.on("update", "configmaps").answer(403, "Forbidden", "no");
        spoil(&server);
        running.pass(std::time::Duration::from_millis(5)).await;
        let reading = "reread kube-root-ca.crt (other data)";
        assert_eq!(running.now("/api/v1/namespaces/a/configmaps/kube-root-ca.crt"), [reading]);
        assert_eq!(running.last("/api/v1/namespaces/a"), [reading, "update kube-root-ca.crt (other data)"]);
        assert!(running.now("/api/v1/namespaces/a/configmaps/other").is_empty());
    });
}
