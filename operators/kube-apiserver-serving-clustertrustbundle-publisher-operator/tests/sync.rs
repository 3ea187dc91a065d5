//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

#![expect(clippy::unwrap_used, reason = "a fixture that does not hold is a broken test")]

use std::time::Duration;

use kube_apiserver_serving_clustertrustbundle_publisher_operator::controller::ClusterTrustBundlePublisherOperator;
use kube_apiserver_serving_clustertrustbundle_publisher_operator::objects::{
    CLUSTER_TRUST_BUNDLES, SIGNER, bundle_name, is_of_signer,
};
use serde_json::{Value, json};
use shared::api::resource::Resource;
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, object};

const BUNDLES: &str = "clustertrustbundles";
/// A bundle of the signer that is not the CA's.
const STRANGER: &str = "kubernetes.io:kube-apiserver-serving:stranger";
/// A bundle of another signer.
const OTHERS: &str = "example.com:signer:a";
const PATH: &str = "/apis/certificates.k8s.io/v1beta1/clustertrustbundles/";
const UNSERVED: &str = "nothing (the apiserver serves no bundles)";
/// Until it is noticed in any case that bundles are served, or are not any more.
const NOTICED: Duration = Duration::from_secs(301);

/// The file of the flag.
struct CaFile {
    file: tempfile::NamedTempFile,
    flag: String,
}

impl CaFile {
    /// With a CA in it, whose bundle has this name.
    fn new() -> (Self, String) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let flag = format!("--root-ca-file={}", file.path().display());
        let ca_file = Self { file, flag };
        let name = ca_file.replace();
        (ca_file, name)
    }

    /// Another CA; gives the name of its bundle.
    fn replace(&self) -> String {
        let ca = rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap().cert.pem();
        std::fs::write(self.file.path(), &ca).unwrap();
        bundle_name(&ca)
    }

    fn start(&self, server: &Server) -> Running {
        Running::start::<ClusterTrustBundlePublisherOperator>(server, &[&self.flag])
    }
}

fn serve(server: &Server) {
    server.serve(CLUSTER_TRUST_BUNDLES);
}

fn in_version(version: &'static str) -> Resource {
    Resource { version: version.into(), ..CLUSTER_TRUST_BUNDLES }
}

fn serving() -> Server {
    let server = Server::new();
    serve(&server);
    server
}

fn bundle(name: &str, signer: &str) -> ObjectBuilder {
    let spec = json!({ "signerName": signer, "trustBundle": "theirs" });
    object("certificates.k8s.io/v1beta1", "ClusterTrustBundle", name).set(&["spec"], spec)
}

/// The bundle of the CA.
fn own(server: &Server) -> String {
    server.keys(BUNDLES).into_iter().find(|name| is_of_signer(name) && name != STRANGER).unwrap()
}

fn spoil(server: &Server) {
    server.change(BUNDLES, &own(server), |bundle| bundle["spec"]["trustBundle"] = "spoilt".into());
}

fn lines(writes: &[(&str, &str)]) -> Vec<String> {
    writes.iter().map(|(verb, name)| format!("{verb} clustertrustbundles {name}")).collect()
}

/// The decision of now about the signer, as asked by one of its bundles.
fn now(running: &Running) -> Option<String> {
    running.now(&format!("{PATH}{STRANGER}")).pop()
}

#[test]
fn survives_a_kill_before_any_write() {
    let (ca_file, name) = CaFile::new();
    test(async {
        let life = [
            Do(serve),
            Pass(NOTICED),
            Do(|server| {
                server.add(&bundle(STRANGER, SIGNER));
                server.add(&bundle(OTHERS, "example.com/signer"));
            }),
            Do(spoil),
            Do(|server| server.delete(BUNDLES, &own(server))),
        ];
        let server = survives_kills::<ClusterTrustBundlePublisherOperator>(&[&ca_file.flag], &life).await;
        assert_eq!(server.keys(BUNDLES), [OTHERS, &name]);
        let writes = lines(&[("create", &name), ("delete", STRANGER), ("update", &name), ("create", &name)]);
        assert_eq!(server.writes(), writes);
    });
}

#[test]
fn where_none_are_served_nothing_is_followed_and_it_asks_again() {
    let (ca_file, name) = CaFile::new();
    test(async {
        let server = Server::new();
        let running = ca_file.start(&server);
        running.at_rest().await;
        assert_eq!((now(&running).as_deref(), server.requests()), (Some(UNSERVED), Vec::new()));
        // Somebody has turned them on, in the version that there was first.
        server.serve(in_version("v1alpha1"));
        running.pass(NOTICED).await;
        let made = server.get(BUNDLES, &name).unwrap();
        assert_eq!(made["apiVersion"], "certificates.k8s.io/v1alpha1");
    });
}

#[test]
fn of_two_versions_the_newer_one_is_used() {
    for (newer, older) in [("v1beta1", "v1alpha1"), ("v1", "v1beta1")] {
        let (ca_file, name) = CaFile::new();
        test(async {
            let server = Server::new();
            server.serve(in_version(newer));
            server.serve(in_version(older));
            ca_file.start(&server).at_rest().await;
            let apis: Vec<Value> = server.list(BUNDLES).iter().map(|bundle| bundle["apiVersion"].clone()).collect();
            let expected = json!(format!("certificates.k8s.io/{newer}"));
            assert_eq!((apis, server.keys(BUNDLES)), (vec![expected], vec![name]));
            assert_eq!(server.count("watch clustertrustbundles"), 1);
        });
    }
}

#[test]
fn what_is_not_served_any_more_is_let_go_and_followed_again_later() {
    let (ca_file, name) = CaFile::new();
    test(async {
        let server = serving();
        let running = ca_file.start(&server);
        running.at_rest().await;
        server.withdraw(BUNDLES);
        running.pass(NOTICED).await;
        assert_eq!(now(&running).as_deref(), Some(UNSERVED));
        serve(&server);
        running.pass(NOTICED).await;
        spoil(&server);
        running.pass(Duration::from_secs(60)).await;
        assert_eq!(server.writes(), lines(&[("create", &name), ("update", &name)]));
    });
}

#[test]
fn an_apiserver_that_does_not_say_what_it_serves_is_asked_again_soon() {
    let (ca_file, name) = CaFile::new();
    test(async {
        let server = serving();
        server.fail_discovery(3);
        let running = ca_file.start(&server);
        running.pass(Duration::from_secs(20)).await;
        assert_eq!(server.keys(BUNDLES), [name]);
    });
}

#[test]
fn nothing_is_written_before_the_first_list_is_in() {
    let (ca_file, name) = CaFile::new();
    test(async {
        let server = serving();
        let refused = server.on("list", BUNDLES).answer(500, "InternalError", "etcd is down");
        server.add(&bundle(STRANGER, SIGNER));
        let running = ca_file.start(&server);
        running.pass(Duration::from_secs(90)).await;
        assert_eq!((refused.count() > 1, server.writes()), (true, Vec::new()));
        refused.times(0);
        running.pass(Duration::from_secs(90)).await;
        assert_eq!(server.keys(BUNDLES), [name]);
    });
}

#[test]
fn another_ca_has_its_bundle_before_the_one_of_the_first_goes() {
    let (ca_file, first) = CaFile::new();
    test(async {
        let server = serving();
        let running = ca_file.start(&server);
        running.at_rest().await;
        let second = ca_file.replace();
        running.pass(Duration::from_secs(6)).await;
        assert_eq!(server.writes(), lines(&[("create", &first), ("create", &second), ("delete", &first)]));
        assert_eq!(server.keys(BUNDLES), [second]);
    });
}

#[test]
fn another_ca_does_not_wait_for_one_that_the_apiserver_refuses() {
    let (ca_file, _) = CaFile::new();
    test(async {
        let server = serving();
        let refused = server.on("create", BUNDLES).answer(422, "Invalid", "entry 0 does not have the CA bit set");
        let running = ca_file.start(&server);
        running.pass(Duration::from_secs(120)).await;
        refused.times(0);
        let name = ca_file.replace();
        running.pass(Duration::from_secs(6)).await;
        assert_eq!(server.keys(BUNDLES), [name]);
    });
}

#[test]
fn a_bundle_that_somebody_else_creates_first_is_set_right_before_others_go() {
    let (ca_file, name) = CaFile::new();
    test(async {
        let server = serving();
        server.add(&bundle(STRANGER, SIGNER));
        let held = server.on("create", BUNDLES).hold();
        let running = ca_file.start(&server);
        held.arrived().await;
        server.add(&bundle(&name, SIGNER));
        held.release();
        running.at_rest().await;
        assert_eq!(server.writes(), lines(&[("create", &name), ("update", &name), ("delete", STRANGER)]));
        assert_ne!(server.get(BUNDLES, &name).unwrap()["spec"]["trustBundle"], "theirs");
    });
}

#[test]
fn an_update_that_meets_a_newer_version_is_made_on_that_one() {
    let (ca_file, name) = CaFile::new();
    test(async {
        let server = serving();
        let running = ca_file.start(&server);
        running.at_rest().await;
        let held = server.on("update", BUNDLES).once().hold();
        spoil(&server);
        held.arrived().await;
        server.change(BUNDLES, &name, |bundle| bundle["metadata"]["labels"]["mine"] = "yes".into());
        held.release();
        running.at_rest().await;
        let bundle = server.get(BUNDLES, &name).unwrap();
        assert_eq!(bundle["metadata"]["labels"]["mine"], "yes");
        assert_ne!(bundle["spec"]["trustBundle"], "spoilt");
    });
}

#[test]
fn a_deletion_that_fails_is_tried_again_and_keeps_no_other_waiting() {
    let (ca_file, name) = CaFile::new();
    test(async {
        let server = serving();
        let second = format!("{STRANGER}-2");
        server.add(&bundle(STRANGER, SIGNER));
        server.add(&bundle(&second, SIGNER));
        server.on("delete", BUNDLES).once().answer(500, "InternalError", "failed calling webhook");
        ca_file.start(&server).at_rest().await;
        assert_eq!(server.keys(BUNDLES), [name]);
        let deletions: Vec<String> = server.writes().into_iter().filter(|line| line.starts_with("delete")).collect();
        assert_eq!(deletions, lines(&[("delete", STRANGER), ("delete", &second), ("delete", STRANGER)]));
    });
}

#[test]
fn a_creation_whose_answer_is_lost_is_not_made_twice() {
    let (ca_file, name) = CaFile::new();
    test(async {
        let server = serving();
        server.add(&bundle(STRANGER, SIGNER));
        server.on("create", BUNDLES).once().lose();
        ca_file.start(&server).at_rest().await;
        assert_eq!(server.writes(), lines(&[("create", &name), ("delete", STRANGER)]));
        assert_eq!(server.keys(BUNDLES), [name]);
    });
}

#[test]
fn why_says_what_is_wrong_before_it_is_read_anew() {
    let (ca_file, name) = CaFile::new();
    test(async {
        let server = serving();
        let running = ca_file.start(&server);
        running.at_rest().await;
        assert_eq!(now(&running).as_deref(), Some("nothing (the CA's bundle is right)"));
        server.on("update", BUNDLES).answer(403, "Forbidden", "not permitted to attest");
        spoil(&server);
        running.pass(Duration::from_millis(5)).await;
        let reading = "reread the CA's bundle (the CA's bundle has other content)";
        assert_eq!(now(&running).as_deref(), Some(reading));
        let decided = running.last(&format!("{PATH}{name}"));
        assert_eq!(decided, [reading, &format!("update {name} (the CA's bundle has other content)")]);
        assert!(running.why(&format!("{PATH}{OTHERS}")).keys.is_empty(), "it is another signer's");
    });
}
