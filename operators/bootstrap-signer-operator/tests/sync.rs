//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

#![expect(clippy::unwrap_used, reason = "a fixture that does not hold is a broken test")]

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bootstrap_signer_operator::controller::BootstrapSignerOperator;
use bootstrap_signer_operator::objects::SIGNATURE_PREFIX;
use bootstrap_signer_operator::plan::jws::detached_signature;
use serde_json::{Value, json};
use shared::api::bootstrap_token::Data;
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{NOW, ObjectBuilder, object, on_demand};

const KEY: &str = "kube-public/cluster-info";
const PATH: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
const TOKEN: &str = "kube-system/bootstrap-token-abc123";
const MINUTE: Duration = Duration::from_secs(60);

fn encoded(value: &str) -> Value {
    STANDARD.encode(value).into()
}

fn cluster_info() -> ObjectBuilder {
    object("v1", "ConfigMap", "cluster-info").namespace("kube-public").set(&["data", "kubeconfig"], "payload")
}

/// A token that signs for ever.
fn token(id: &str) -> ObjectBuilder {
    let secret = object("v1", "Secret", &format!("bootstrap-token-{id}")).namespace("kube-system");
    secret
        .set(&["type"], "bootstrap.kubernetes.io/token")
        .set(&["data", "token-id"], encoded(id))
        .set(&["data", "token-secret"], encoded(&format!("the secret of {id}")))
        .set(&["data", "usage-bootstrap-signing"], encoded("true"))
}

fn start(server: &Server) -> Running {
    Running::start::<BootstrapSignerOperator>(server, &[])
}

/// The text and the signatures of the ConfigMap.
fn data(server: &Server) -> BTreeMap<String, String> {
    serde_json::from_value(server.get("configmaps", KEY).unwrap()["data"].clone()).unwrap()
}

/// The ConfigMap has the signatures of these tokens, and no others.
#[track_caller]
fn is_signed_by(server: &Server, ids: &[&str]) {
    let mut has = data(server);
    has.retain(|key, _| key.starts_with(SIGNATURE_PREFIX));
    let text = data(server).remove("kubeconfig").unwrap();
    let wanted = ids.iter().map(|id| {
        let secret = server.get("secrets", &format!("kube-system/bootstrap-token-{id}")).unwrap();
        let secret = STANDARD.decode(secret["data"]["token-secret"].as_str().unwrap()).unwrap();
        (format!("{SIGNATURE_PREFIX}{id}"), detached_signature(&text, id, &Data::from(&secret[..])))
    });
    assert_eq!(has, wanted.collect::<BTreeMap<String, String>>());
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                server.add(&cluster_info());
                server.add(&token("abc123"));
                let soon = (NOW + MINUTE).to_string();
                server.add(&token("minute").set(&["data", "expiration"], encoded(&soon)));
                server.add(&token("others").set(&["data", "usage-bootstrap-signing"], encoded("false")));
            }),
            Do(|server| server.change("configmaps", KEY, |map| map["data"]["kubeconfig"] = "another".into())),
            Do(|server| {
                server.change("configmaps", KEY, |map| {
                    map["data"]["jws-kubeconfig-abc123"] = "spoilt".into();
                    map["data"]["jws-kubeconfig-nobody"] = "nobody's".into();
                });
            }),
            Pass(MINUTE + Duration::from_secs(1)),
            Do(|server| server.delete("secrets", "kube-system/bootstrap-token-minute")),
            Do(|server| server.add(&token("def456"))),
            Do(|server| server.delete("secrets", TOKEN)),
        ];
        let server = survives_kills::<BootstrapSignerOperator>(&[], &life).await;
        is_signed_by(&server, &["def456"]);
        let writes = server.writes();
        assert_eq!(writes, vec![format!("patch configmaps {KEY}"); 6], "{writes:?}");
    });
}

#[test]
fn all_else_in_the_config_map_stays() {
    test(async {
        let server = Server::new();
        let others = json!({ "kubeconfig": "payload", "other": "x", "jws-other": "y" });
        let read = cluster_info().set(&["data"], others).set(&["binaryData"], json!({ "b": "AA==" })).label("a", "b");
        server.add(&read);
        server.add(&token("abc123"));
        start(&server).at_rest().await;
        is_signed_by(&server, &["abc123"]);
        let mut now = server.get("configmaps", KEY).unwrap();
        assert!(now["data"].as_object_mut().unwrap().remove("jws-kubeconfig-abc123").is_some());
        now["metadata"]["resourceVersion"] = read.json()["metadata"]["resourceVersion"].clone();
        assert_eq!(now, *read.json());
    });
}

#[test]
fn a_text_that_changes_at_the_last_moment_is_the_one_that_is_signed() {
    test(async {
        let server = Server::new();
        server.add(&cluster_info());
        server.add(&token("abc123"));
        let held = server.on("patch", "configmaps").once().hold();
        let running = start(&server);
        held.arrived().await;
        server.change("configmaps", KEY, |map| map["data"]["kubeconfig"] = "another".into());
        held.release();
        running.at_rest().await;
        is_signed_by(&server, &["abc123"]);
        assert_eq!(server.count("patch configmaps"), 2);
    });
}

#[test]
fn a_change_that_only_the_version_tells_of_costs_one_more_try() {
    test(async {
        let server = Server::new();
        server.add(&cluster_info());
        server.add(&token("abc123"));
        let held = server.on("patch", "configmaps").once().hold();
        let running = start(&server);
        held.arrived().await;
        server.change("configmaps", KEY, |map| map["metadata"]["labels"] = json!({ "a": "b" }));
        held.release();
        running.at_rest().await;
        is_signed_by(&server, &["abc123"]);
    });
}

#[test]
fn a_config_map_that_has_gone_is_not_brought_back_and_a_new_one_is_signed() {
    test(async {
        let server = Server::new();
        server.add(&cluster_info());
        server.add(&token("abc123"));
        let held = server.on("patch", "configmaps").once().hold();
        let running = start(&server);
        held.arrived().await;
        server.delete("configmaps", KEY);
        held.release();
        running.at_rest().await;
        assert_eq!(server.get("configmaps", KEY), None);
        server.add(&cluster_info().uid_of("another"));
        running.at_rest().await;
        is_signed_by(&server, &["abc123"]);
    });
}

#[test]
fn a_write_that_fails_is_tried_again() {
    test(async {
        let server = Server::new();
        server.on("patch", "configmaps").times(3).answer(500, "InternalError", "etcd is down");
        server.add(&cluster_info());
        server.add(&token("abc123"));
        start(&server).at_rest().await;
        is_signed_by(&server, &["abc123"]);
        assert_eq!(server.count("patch configmaps"), 4);
    });
}

#[test]
fn a_start_among_right_signatures_writes_nothing_and_neither_do_changes_that_no_signature_depends_on() {
    test(async {
        let server = Server::new();
        server.add(&cluster_info());
        server.add(&token("abc123"));
        let first = start(&server);
        first.at_rest().await;
        drop(first);
        let running = start(&server);
        running.at_rest().await;
        let synced = || running.why(PATH).keys[0].last[0].count;
        let before = synced();
        server.change("configmaps", KEY, |map| map["data"]["other"] = "x".into());
        server.change("secrets", TOKEN, |secret| secret["data"]["description"] = encoded("for a node"));
        server.add(&token("others").set(&["data", "usage-bootstrap-signing"], encoded("false")));
        server.add(&token("abc124").set(&["type"], "Opaque"));
        server.add(&token("abc125").namespace("default"));
        running.at_rest().await;
        assert_eq!((synced(), server.count("patch configmaps")), (before, 1));
    });
}

#[test]
fn secrets_are_followed_only_while_there_is_something_to_sign() {
    test(async {
        let server = Server::new();
        server.add(&token("abc123"));
        server.add(&object("v1", "ConfigMap", "cluster-info").namespace("default").set(&["data", "kubeconfig"], "x"));
        on_demand::is_followed_only_while_needed::<BootstrapSignerOperator>(
            &server,
            "secrets kube-system/",
            |server| server.add(&cluster_info()),
            |server| server.delete("configmaps", KEY),
        )
        .await;
    });
}

#[test]
fn nothing_is_signed_or_removed_before_the_first_list_of_tokens() {
    test(async {
        on_demand::the_first_one_waits::<BootstrapSignerOperator>(
            &[],
            "secrets",
            |server| {
                server.add(&token("abc123"));
                server.add(&cluster_info().set(&["data", "jws-kubeconfig-abc123"], "an old signature"));
            },
            |server| is_signed_by(server, &["abc123"]),
        )
        .await;
    });
}

#[test]
fn a_config_map_that_comes_again_gets_the_signatures_of_now() {
    test(async {
        let server = Server::new();
        server.add(&token("abc123"));
        server.add(&cluster_info());
        let running = start(&server);
        running.at_rest().await;
        on_demand::it_goes_and_comes_again(
            (&server, &running),
            ("configmaps", KEY),
            |server| {
                let another = encoded(&format!("secret {}", server.requests().len()));
                server.change("secrets", TOKEN, |secret| secret["data"]["token-secret"] = another);
            },
            MINUTE,
            |server, _| is_signed_by(server, &["abc123"]),
        )
        .await;
    });
}

#[test]
fn a_watch_of_tokens_that_stands_still_costs_no_signature() {
    test(async {
        let server = Server::new();
        server.add(&cluster_info());
        server.add(&token("abc123"));
        let running = start(&server);
        running.at_rest().await;
        server.hold_watches("secrets");
        server.add(&token("def456"));
        running.at_rest().await;
        is_signed_by(&server, &["abc123"]);
        server.expire_watches("secrets");
        server.release_watches("secrets");
        running.at_rest().await;
        is_signed_by(&server, &["abc123", "def456"]);
    });
}

#[test]
fn why_says_which_tokens_sign_and_why_others_do_not() {
    test(async {
        let server = Server::new();
        server.add(&cluster_info());
        server.add(&token("abc123"));
        server.add(&token("others").set(&["data", "usage-bootstrap-signing"], encoded("false")));
        let running = start(&server);
        running.at_rest().await;
        let why = running.why(PATH);
        let [key] = &why.keys[..] else { panic!("{why}") };
        let unfit = json!({ "bootstrap-token-others": "notForSigning" });
        assert_eq!(key.now[0].reason, json!({ "signed": { "tokens": 1, "unfit": unfit } }));
        assert_eq!(
            key.now[0].text,
            "nothing (signed by 1 tokens; bootstrap-token-others signs nothing: \
             usage-bootstrap-signing is not true)"
        );
        let of = |name: &str| running.why(&format!("/api/v1/namespaces/{name}")).keys.len();
        assert_eq!(of("kube-system/secrets/bootstrap-token-abc123"), 1);
        assert_eq!(of("kube-system/secrets/bootstrap-token-gone00"), 1);
        for other in ["kube-system/secrets/other", "a/secrets/bootstrap-token-abc123", "a/configmaps/cluster-info"] {
            assert_eq!(of(other), 0, "{other}");
        }
        assert!(!why.to_string().contains("the secret of"));
    });
}
