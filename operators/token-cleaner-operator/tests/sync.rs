//! The operator as it is, against an apiserver in the test's process: its informer, its sync, its writes.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use shared::api::explain::{KeyState, Standing};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::{Do, Pass};
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{NOW, ObjectBuilder, object};
use token_cleaner_operator::controller::TokenCleanerOperator;

const KEY: &str = "kube-system/bootstrap-token-abc123";
const MINUTE: Duration = Duration::from_secs(60);

fn in_time(left: Duration) -> Value {
    STANDARD.encode((NOW + left).to_string()).into()
}

/// A token that is good for so long from the start of the test.
fn token(id: &str, left: Duration) -> ObjectBuilder {
    let secret = object("v1", "Secret", &format!("bootstrap-token-{id}")).namespace("kube-system");
    secret.set(&["type"], "bootstrap.kubernetes.io/token").set(&["data", "expiration"], in_time(left))
}

fn start(server: &Server) -> Running {
    Running::start::<TokenCleanerOperator>(server, &[])
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(|server| {
                server.add(&token("000000", Duration::ZERO));
                server.add(&token("000001", MINUTE));
                server.add(&token("000010", 10 * MINUTE));
                server.add(&token("always", MINUTE).set(&["data"], json!({})));
            }),
            Pass(MINUTE + Duration::from_secs(1)),
            Do(|server| {
                server.change("secrets", "kube-system/bootstrap-token-000010", |secret| {
                    secret["data"]["expiration"] = in_time(2 * MINUTE);
                });
            }),
            Pass(MINUTE),
        ];
        let server = survives_kills::<TokenCleanerOperator>(&[], &life).await;
        let deleted =
            ["000000", "000001", "000010"].map(|id| format!("delete secrets kube-system/bootstrap-token-{id}"));
        assert_eq!(server.writes(), deleted);
    });
}

/// Upstream: `TestCleanerExpiredAt`.
#[test]
fn a_token_goes_to_the_second() {
    test(async {
        let server = Server::new();
        server.add(&token("abc123", Duration::from_secs(2)));
        let running = start(&server);
        running.at_rest().await;
        running.pass(Duration::from_secs(1)).await;
        assert!(server.get("secrets", KEY).is_some());
        running.pass(Duration::from_millis(1_010)).await;
        assert_eq!(server.get("secrets", KEY), None);
    });
}

#[test]
fn other_secrets_are_not_even_read() {
    test(async {
        let server = Server::new();
        server.add(&token("abc123", Duration::ZERO).namespace("default"));
        server.add(&token("abc123", Duration::ZERO).set(&["type"], "Opaque"));
        let running = start(&server);
        running.at_rest().await;
        assert_eq!(server.writes(), [""; 0]);
        let of_others = |line: &String| line.contains(" secrets") && !line.ends_with(" secrets kube-system/");
        let asked = server.requests();
        assert!(!asked.is_empty() && !asked.iter().any(of_others), "{asked:?}");
        assert!(running.why("/api/v1/namespaces/default/secrets/bootstrap-token-abc123").keys.is_empty());
    });
}

#[test]
fn a_deletion_whose_answer_is_lost_is_not_made_twice() {
    test(async {
        let server = Server::new();
        server.on("delete", "secrets").once().lose();
        server.add(&token("abc123", Duration::ZERO));
        start(&server).at_rest().await;
        assert_eq!((server.get("secrets", KEY), server.count("delete secrets")), (None, 1));
    });
}

#[test]
fn a_deletion_that_fails_is_tried_again() {
    test(async {
        let server = Server::new();
        server.on("delete", "secrets").times(3).answer(500, "InternalError", "etcd is down");
        server.add(&token("abc123", Duration::ZERO));
        start(&server).at_rest().await;
        assert_eq!((server.get("secrets", KEY), server.count("delete secrets")), (None, 4));
    });
}

#[test]
fn a_token_that_is_given_more_time_at_the_last_moment_stays() {
    test(async {
        let server = Server::new();
        server.add(&token("abc123", Duration::ZERO));
        let held = server.on("delete", "secrets").once().hold();
        let running = start(&server);
        held.arrived().await;
        server.change("secrets", KEY, |secret| secret["data"]["expiration"] = in_time(MINUTE));
        held.release();
        running.at_rest().await;
        assert!(server.get("secrets", KEY).is_some());
        running.pass(MINUTE + Duration::from_secs(1)).await;
        assert_eq!(server.get("secrets", KEY), None);
    });
}

#[test]
fn a_token_of_the_same_name_is_another_token() {
    test(async {
        let server = Server::new();
        server.add(&token("abc123", Duration::ZERO));
        let held = server.on("delete", "secrets").once().hold();
        let running = start(&server);
        held.arrived().await;
        server.delete("secrets", KEY);
        server.add(&token("abc123", MINUTE).uid_of("another"));
        held.release();
        running.at_rest().await;
        assert!(server.get("secrets", KEY).is_some());
    });
}

#[test]
fn a_token_that_a_finalizer_holds_is_deleted_once() {
    test(async {
        let server = Server::new();
        server.add(&token("abc123", Duration::ZERO).set(&["metadata", "finalizers"], json!(["e.example/hold"])));
        let running = start(&server);
        running.at_rest().await;
        server.change("secrets", KEY, |secret| secret["metadata"]["labels"] = json!({ "a": "b" }));
        running.at_rest().await;
        assert_eq!(server.count("delete secrets"), 1);
        server.change("secrets", KEY, |secret| secret["metadata"]["finalizers"] = json!([]));
        assert_eq!(server.get("secrets", KEY), None);
    });
}

#[test]
fn a_time_that_passes_while_the_watch_stands_still_is_kept() {
    test(async {
        let server = Server::new();
        server.add(&token("abc123", MINUTE));
        let running = start(&server);
        running.at_rest().await;
        server.hold_watches("secrets");
        running.pass(MINUTE + Duration::from_secs(1)).await;
        assert_eq!(server.get("secrets", KEY), None);
        server.expire_watches("secrets");
        server.release_watches("secrets");
        running.at_rest().await;
        assert_eq!(server.count("delete secrets"), 1);
    });
}

#[test]
fn why_says_when_a_token_goes() {
    test(async {
        let server = Server::new();
        server.add(&token("abc123", MINUTE));
        let running = start(&server);
        running.at_rest().await;
        let why = running.why("/api/v1/namespaces/kube-system/secrets/bootstrap-token-abc123");
        let [KeyState { now, standing: Standing { timer: Some(timer), .. }, .. }] = &why.keys[..] else {
            panic!("{why}")
        };
        let expires = (NOW + MINUTE).to_string();
        assert_eq!(now[0].reason, json!({ "notExpired": { "expires": expires } }));
        assert!(timer.due >= NOW + MINUTE && timer.purpose == "its expiration", "{why}");
    });
}
