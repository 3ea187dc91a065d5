//! The operator as it is, against an apiserver in the test's process: its informers, its sync, its writes.

#![expect(clippy::unwrap_used, reason = "a fixture that does not hold is a broken test")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use serviceaccount_token_operator::controller::ServiceAccountTokenOperator;
use serviceaccount_token_operator::objects::ACCOUNT_UID;
use shared::testing::apiserver::Server;
use shared::testing::on_demand::{it_goes_and_comes_again, the_first_one_waits};
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, object, uid};

const KEY: &str = "default/robot-token";
const PATH: &str = "/api/v1/namespaces/default/secrets/robot-token";
const SECONDS: Duration = Duration::from_secs(11);

fn key(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "keys", name].iter().collect()
}

fn key_flag(path: &Path) -> String {
    format!("--service-account-private-key-file={}", path.display())
}

fn certificate() -> String {
    rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap().cert.pem()
}

/// A folder with a file of the CA, and the flags.
fn set_up() -> (tempfile::TempDir, [String; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.crt");
    std::fs::write(&ca, certificate()).unwrap();
    // RSA signs the same text always in the same way, so that two lives end the same.
    (folder, [key_flag(&key("rsa.pem")), format!("--root-ca-file={}", ca.display())])
}

fn start(server: &Server, flags: &[String; 2]) -> Running {
    Running::start::<ServiceAccountTokenOperator>(server, &flags.each_ref().map(String::as_str))
}

/// The account, and a token of it that is filled in.
async fn start_with_token(name: &str, flags: &[String; 2]) -> (Server, Running) {
    let server = Server::new();
    server.add(&robot(&[]));
    server.add(&secret(name));
    let running = start(&server, flags);
    running.at_rest().await;
    (server, running)
}

/// Another account with its token; what happens to accounts from now on is not seen.
async fn start_behind(flags: &[String; 2]) -> (Server, Running) {
    let server = Server::new();
    server.add(&object("v1", "ServiceAccount", "other"));
    server.add(&secret("of-other").annotation("kubernetes.io/service-account.name", "other"));
    let running = start(&server, flags);
    running.at_rest().await;
    server.hold_watches("serviceaccounts");
    (server, running)
}

fn secret(name: &str) -> ObjectBuilder {
    let secret = object("v1", "Secret", name).set(&["type"], "kubernetes.io/service-account-token");
    secret.annotation("kubernetes.io/service-account.name", "robot")
}

fn robot(secrets: &[&str]) -> ObjectBuilder {
    let secrets: Vec<Value> = secrets.iter().map(|name| json!({ "name": name, "kind": "Secret" })).collect();
    object("v1", "ServiceAccount", "robot").set(&["secrets"], secrets)
}

/// A value of a Secret's data; `""` where there is none.
fn value(server: &Server, key: &str, name: &str) -> String {
    let secret = server.get("secrets", key).unwrap_or_default();
    let decoded = STANDARD.decode(secret["data"][name].as_str().unwrap_or_default()).unwrap();
    String::from_utf8(decoded).unwrap()
}

/// The algorithm in the header of a Secret's token.
fn algorithm(server: &Server, key: &str) -> Value {
    let token = value(server, key, "token");
    let head = URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
    serde_json::from_slice::<Value>(&head).unwrap()["alg"].clone()
}

#[test]
fn survives_a_kill_before_any_write() {
    let (_folder, flags) = set_up();
    test(async {
        let life = [
            Do(|server| {
                server.add(&robot(&[]));
                server.add(&secret("a"));
                server.add(&secret("b").annotation(ACCOUNT_UID, &uid("robot").to_string()));
                server.add(&secret("of-another").annotation(ACCOUNT_UID, &uid("former").to_string()));
                server.add(&secret("opaque").set(&["type"], "Opaque"));
                server.add(&object("v1", "ServiceAccount", "stays"));
                server.add(&secret("c").annotation("kubernetes.io/service-account.name", "stays"));
            }),
            Do(|server| server.change("secrets", "default/a", |secret| secret["data"]["token"] = "".into())),
            Do(|server| server.change("secrets", "default/b", |secret| secret["data"]["ca.crt"] = "eA==".into())),
            Do(|server| server.delete("serviceaccounts", "default/robot")),
        ];
        let flags = flags.each_ref().map(String::as_str);
        let server = survives_kills::<ServiceAccountTokenOperator>(&flags, &life).await;
        assert_eq!(server.keys("secrets"), ["default/c", "default/opaque"]);
        assert_eq!((server.count("patch secrets"), server.count("delete secrets")), (5, 3));
        assert_eq!(server.count("delete secrets default/of-another"), 1);
    });
}

#[test]
fn a_secret_gets_a_token_a_namespace_and_the_ca_and_keeps_everything_else() {
    let (folder, flags) = set_up();
    test(async {
        let server = Server::new();
        server.add(&robot(&[]));
        server.add(&secret("robot-token").label("mine", "yes").set(&["data", "more"], "eA=="));
        start(&server, &flags).at_rest().await;
        assert_eq!(algorithm(&server, KEY), "RS256");
        let ca = std::fs::read_to_string(folder.path().join("ca.crt")).unwrap();
        assert_eq!([value(&server, KEY, "namespace"), value(&server, KEY, "ca.crt")], ["default".to_owned(), ca]);
        let filled = server.get("secrets", KEY).unwrap();
        assert_eq!((&filled["data"]["more"], &filled["metadata"]["labels"]["mine"]), (&json!("eA=="), &json!("yes")));
        assert_eq!(filled["metadata"]["annotations"][ACCOUNT_UID], uid("robot").to_string());
        assert_eq!(server.writes(), ["patch secrets default/robot-token"]);
    });
}

#[test]
fn without_a_key_nothing_is_read_or_written_and_why_says_so() {
    let (_folder, [_, ca]) = set_up();
    test(async {
        let server = Server::new();
        server.add(&secret("robot-token"));
        let running = Running::start::<ServiceAccountTokenOperator>(&server, &[&ca]);
        running.at_rest().await;
        assert_eq!(server.requests(), [""; 0]);
        let why = running.why(PATH);
        assert_eq!(why.keys[0].now[0].text, "keep (--service-account-private-key-file is not set)", "{why}");
    });
}

#[test]
fn an_account_that_only_the_cache_misses_keeps_its_token() {
    let (_folder, flags) = set_up();
    test(async {
        let (server, running) = start_with_token("first", &flags).await;
        server.hold_watches("serviceaccounts");
        server.add(&object("v1", "ServiceAccount", "late"));
        server.add(&secret("robot-token").annotation("kubernetes.io/service-account.name", "late"));
        running.at_rest().await;
        assert!(server.count("get serviceaccounts default/late") > 0);
        assert_eq!((algorithm(&server, KEY), server.count("delete")), (json!("RS256"), 0));
    });
}

#[test]
fn a_write_whose_answer_is_lost_is_not_made_twice() {
    let (_folder, flags) = set_up();
    test(async {
        let server = Server::new();
        server.on("patch", "secrets").once().lose();
        server.on("delete", "secrets").once().lose();
        server.add(&robot(&[]));
        server.add(&secret("robot-token"));
        server.add(&secret("of-another").annotation(ACCOUNT_UID, &uid("former").to_string()));
        let running = start(&server, &flags);
        running.at_rest().await;
        assert_eq!((algorithm(&server, KEY), server.keys("secrets")), (json!("RS256"), vec![KEY.to_owned()]));
        assert_eq!((server.count("patch secrets"), server.count("delete secrets")), (1, 1));
    });
}

/// An account that was deleted and made again while the watch stood still is a live one of another uid.
#[test]
fn a_watch_of_accounts_that_stands_still_deletes_no_token_of_a_live_account() {
    let (_folder, flags) = set_up();
    test(async {
        let (server, running) = start_with_token("first", &flags).await;
        server.hold_watches("serviceaccounts");
        server.delete("serviceaccounts", "default/robot");
        server.add(&robot(&[]).uid_of("its successor"));
        let of_successor = uid("its successor").to_string();
        server.add(&secret("robot-token").annotation(ACCOUNT_UID, &of_successor));
        running.at_rest().await;
        assert_eq!((algorithm(&server, KEY), server.count("delete secrets default/robot-token")), (json!("RS256"), 0));
        server.release_watches("serviceaccounts");
        running.at_rest().await;
        assert_eq!(server.keys("secrets"), [KEY.to_owned()]);
    });
}

/// Fifty tokens of the account, which has this uid as far as they say.
fn add_fifty(server: &Server, account_uid: Option<&str>) {
    for number in 0..50 {
        let token = secret(&format!("token-{number}"));
        server.add(&match account_uid {
            Some(named) => token.annotation(ACCOUNT_UID, &uid(named).to_string()),
            None => token,
        });
    }
}

#[test]
fn the_tokens_of_an_account_that_is_deleted_go_without_a_read() {
    let (_folder, flags) = set_up();
    test(async {
        let server = Server::new();
        server.add(&robot(&["token-7"]));
        add_fifty(&server, None);
        let running = start(&server, &flags);
        running.at_rest().await;
        assert_eq!(server.count("patch secrets"), 50);
        server.delete("serviceaccounts", "default/robot");
        running.at_rest().await;
        assert_eq!(server.keys("secrets"), [""; 0]);
        assert_eq!((server.count("delete secrets"), server.count("get serviceaccounts")), (50, 0));
        let why = running.why("/api/v1/namespaces/default/secrets/token-7");
        let decided = why.keys[0].last.iter().find(|decision| !decision.wrote.is_empty()).unwrap();
        assert_eq!(decided.stages[0].text, "delete (ServiceAccount robot was deleted)", "{why}");
    });
}

/// A list is what etcd holds when it is asked for: whom it lacks has ended.
#[test]
fn the_tokens_of_an_account_that_a_later_list_lacks_go_without_a_read() {
    let (_folder, flags) = set_up();
    test(async {
        let server = Server::new();
        server.add(&robot(&[]));
        add_fifty(&server, None);
        let running = start(&server, &flags);
        running.at_rest().await;
        server.hold_watches("serviceaccounts");
        server.delete("serviceaccounts", "default/robot");
        server.expire_watches("serviceaccounts");
        server.release_watches("serviceaccounts");
        running.pass(SECONDS).await;
        assert_eq!(server.keys("secrets"), [""; 0]);
        assert_eq!((server.count("list serviceaccounts"), server.count("get serviceaccounts")), (2, 0));
    });
}

#[test]
fn one_read_is_for_all_tokens_of_an_account_that_nobody_has_seen() {
    let (_folder, flags) = set_up();
    for named in [None, Some("robot")] {
        test(async {
            let server = Server::new();
            add_fifty(&server, named);
            let running = start(&server, &flags);
            running.at_rest().await;
            assert_eq!(server.keys("secrets"), [""; 0]);
            assert_eq!((server.count("delete secrets"), server.count("get serviceaccounts")), (50, 1));
        });
        // And where only the cache misses it.
        test(async {
            let (server, running) = start_behind(&flags).await;
            server.add(&robot(&[]));
            add_fifty(&server, named);
            running.at_rest().await;
            assert_eq!((server.count("patch secrets"), server.count("delete secrets")), (51, 0));
            // They come, and are filled in, while the first of them are looked at already.
            assert!(server.count("get serviceaccounts") < 5, "{:?}", server.requests());
        });
    }
}

#[test]
fn an_answer_is_not_for_a_token_that_came_later() {
    let (_folder, flags) = set_up();
    test(async {
        let (server, running) = start_behind(&flags).await;
        let held = server.on("delete", "secrets").once().hold();
        server.add(&secret("too-early"));
        held.arrived().await;
        // The answer is no older than a moment, and there is an account since then.
        server.add(&robot(&[]));
        server.add(&secret("robot-token"));
        running.pass(Duration::from_millis(20)).await;
        // One for each, and one for what it is once it is filled in.
        assert_eq!((algorithm(&server, KEY), server.count("get serviceaccounts")), (json!("RS256"), 3));
        held.release();
        running.at_rest().await;
        assert_eq!(server.keys("secrets"), ["default/of-other", KEY]);
    });
}

#[test]
fn a_token_of_a_name_that_no_account_can_have_goes_without_a_read() {
    let (_folder, flags) = set_up();
    test(async {
        let server = Server::new();
        for (secret_name, account) in [("a", "a/token"), ("b", ".."), ("c", "50%")] {
            server.add(&secret(secret_name).annotation("kubernetes.io/service-account.name", account));
        }
        let running = start(&server, &flags);
        running.at_rest().await;
        assert_eq!((server.keys("secrets").len(), server.count("get serviceaccounts")), (0, 0));
    });
}

#[test]
fn a_token_of_an_account_that_has_a_successor_goes_and_the_successors_stays() {
    let (_folder, flags) = set_up();
    test(async {
        let (server, running) = start_with_token("first", &flags).await;
        server.delete("serviceaccounts", "default/robot");
        server.add(&robot(&[]).uid_of("its successor"));
        running.at_rest().await;
        let of_successor = uid("its successor").to_string();
        server.add(&secret("robot-token").annotation(ACCOUNT_UID, &of_successor));
        server.add(&secret("of-any"));
        running.at_rest().await;
        assert_eq!(server.keys("secrets"), ["default/of-any", KEY]);
        let any = server.get("secrets", "default/of-any").unwrap();
        assert_eq!(any["metadata"]["annotations"][ACCOUNT_UID], of_successor);
        assert_eq!((server.count("delete secrets"), server.count("get serviceaccounts")), (1, 0));
    });
}

/// As after a restore of etcd: an account that had ended is there again, with its uid.
#[test]
fn an_end_that_was_seen_counts_for_one_try_only() {
    let (_folder, flags) = set_up();
    test(async {
        let (server, running) = start_with_token("robot-token", &flags).await;
        let refused = server.on("delete", "secrets").once().answer(500, "InternalError", "etcd is down");
        server.delete("serviceaccounts", "default/robot");
        refused.arrived().await;
        server.hold_watches("serviceaccounts");
        server.add(&robot(&[]));
        running.at_rest().await;
        assert_eq!(server.keys("secrets"), [KEY]);
        assert_eq!((server.count("delete secrets"), server.count("get serviceaccounts")), (1, 1));
    });
}

#[test]
fn a_token_stays_while_nobody_can_say_whether_its_account_is_there() {
    let (_folder, flags) = set_up();
    test(async {
        let server = Server::new();
        server.on("get", "serviceaccounts").times(3).answer(500, "InternalError", "etcd is down");
        let held = server.on("delete", "secrets").once().hold();
        server.add(&secret("robot-token"));
        let running = start(&server, &flags);
        held.arrived().await;
        assert_eq!(server.count("get serviceaccounts"), 4);
        // The Secret is given to another account at the last moment.
        server.add(&object("v1", "ServiceAccount", "other"));
        server.change("secrets", KEY, |secret| {
            secret["metadata"]["annotations"]["kubernetes.io/service-account.name"] = "other".into();
        });
        held.release();
        running.at_rest().await;
        assert_eq!(algorithm(&server, KEY), "RS256");
    });
}

#[test]
fn a_secret_that_somebody_changes_meanwhile_is_filled_in_as_it_is_then() {
    let (_folder, flags) = set_up();
    test(async {
        let server = Server::new();
        server.add(&robot(&[]));
        server.add(&secret("robot-token"));
        let held = server.on("patch", "secrets").once().hold();
        let running = start(&server, &flags);
        held.arrived().await;
        server.change("secrets", KEY, |secret| secret["data"]["token"] = STANDARD.encode("theirs").into());
        held.release();
        running.at_rest().await;
        let values = ["token", "namespace"].map(|name| value(&server, KEY, name));
        assert_eq!((values, server.count("patch secrets")), (["theirs", "default"].map(str::to_owned), 2));
    });
}

#[test]
fn a_token_that_is_gone_leaves_its_accounts_list() {
    let (_folder, flags) = set_up();
    test(async {
        let server = Server::new();
        server.add(&robot(&["first", "robot-token", "last"]));
        server.add(&secret("robot-token"));
        let running = start(&server, &flags);
        running.at_rest().await;
        server.on("patch", "serviceaccounts").times(2).answer(500, "InternalError", "etcd is down");
        server.delete("secrets", KEY);
        running.at_rest().await;
        let listed = || server.get("serviceaccounts", "default/robot").unwrap()["secrets"].clone();
        let entry = |name: &str| json!({ "name": name, "kind": "Secret" });
        assert_eq!((listed(), server.count("patch serviceaccounts")), (json!([entry("first"), entry("last")]), 3));
        // One that no list has leads to a look at the list, and to no write.
        server.add(&secret("robot-token"));
        running.at_rest().await;
        server.delete("secrets", KEY);
        running.at_rest().await;
        let counts = ["get serviceaccounts", "patch serviceaccounts"].map(|start| server.count(start));
        assert_eq!(counts, [4, 3]);
    });
}

#[test]
fn a_token_that_comes_again_at_once_stays_in_the_list() {
    let (_folder, flags) = set_up();
    test(async {
        let server = Server::new();
        server.add(&robot(&["robot-token"]));
        server.add(&secret("robot-token"));
        let running = start(&server, &flags);
        running.at_rest().await;
        let held = server.on("get", "serviceaccounts").once().hold();
        server.delete("secrets", KEY);
        held.arrived().await;
        server.add(&secret("robot-token").uid_of("its successor"));
        running.pass(Duration::from_millis(5)).await;
        held.release();
        running.at_rest().await;
        assert_eq!((algorithm(&server, KEY), server.count("patch serviceaccounts")), (json!("RS256"), 0));
    });
}

#[test]
fn a_key_and_a_ca_that_are_replaced_count_without_a_restart() {
    let (folder, [_, ca]) = set_up();
    let file = folder.path().join("sa.key");
    std::fs::copy(key("rsa.pem"), &file).unwrap();
    let flags = [key_flag(&file), ca];
    test(async {
        let (server, running) = start_with_token("old", &flags).await;
        std::fs::copy(key("p256.pem"), &file).unwrap();
        server.add(&secret("new"));
        running.at_rest().await;
        let algorithms = ["default/old", "default/new"].map(|key| algorithm(&server, key));
        assert_eq!(algorithms, ["RS256", "ES256"]);

        let another = certificate();
        std::fs::write(folder.path().join("ca.crt"), &another).unwrap();
        running.pass(SECONDS).await;
        let authorities = ["default/old", "default/new"].map(|key| value(&server, key, "ca.crt"));
        assert_eq!(authorities, [another.clone(), another]);
        assert_eq!(server.count("patch secrets"), 4);
    });
}

#[test]
fn a_key_that_has_become_unusable_fails_the_secrets_that_need_it_until_it_is_mended() {
    let (folder, [_, ca]) = set_up();
    let file = folder.path().join("sa.key");
    std::fs::copy(key("rsa.pem"), &file).unwrap();
    let flags = [key_flag(&file), ca];
    test(async {
        let server = Server::new();
        server.add(&robot(&[]));
        let running = start(&server, &flags);
        running.at_rest().await;
        std::fs::write(&file, "half a key").unwrap();
        server.add(&secret("robot-token"));
        server.add(&secret("signed").set(&["data", "token"], STANDARD.encode("theirs")));
        running.pass(SECONDS).await;
        assert_eq!(server.writes(), ["patch secrets default/signed"]);
        let why = running.why(PATH);
        let error = why.keys[0].last[0].error.clone().unwrap_or_default();
        let expected = ": it holds no private key in PEM form";
        assert!(error.starts_with("cannot sign a token with ") && error.ends_with(expected), "{why}");
        std::fs::copy(key("p384.pem"), &file).unwrap();
        running.pass(Duration::from_secs(60)).await;
        assert_eq!(algorithm(&server, KEY), "ES384");
    });
}

#[test]
fn accounts_are_followed_only_while_there_is_a_token() {
    let (_folder, flags) = set_up();
    test(async {
        let server = Server::new();
        server.add(&robot(&[]));
        server.add(&secret("opaque").set(&["type"], "Opaque"));
        let running = start(&server, &flags);
        running.pass(Duration::from_secs(90)).await;
        let reads = || ["list serviceaccounts", "watch serviceaccounts"].map(|start| server.count(start));
        assert_eq!(reads(), [0, 0]);
        server.add(&secret("robot-token"));
        running.pass(Duration::from_secs(90)).await;
        assert_eq!(reads(), [1, 1]);
    });
}

#[test]
fn nothing_is_filled_in_or_deleted_before_the_first_list_of_accounts() {
    let (_folder, flags) = set_up();
    test(async {
        the_first_one_waits::<ServiceAccountTokenOperator>(
            &flags.each_ref().map(String::as_str),
            "serviceaccounts",
            |server| {
                server.add(&robot(&[]));
                server.add(&secret("robot-token"));
            },
            |server| assert_eq!(algorithm(server, KEY), "RS256"),
        )
        .await;
    });
}

#[test]
fn a_token_that_comes_again_goes_if_its_account_has_gone_meanwhile() {
    let (_folder, flags) = set_up();
    test(async {
        let (server, running) = start_with_token("robot-token", &flags).await;
        it_goes_and_comes_again(
            (&server, &running),
            ("secrets", KEY),
            |server| {
                server.delete("serviceaccounts", "default/robot");
                server.add(&robot(&[]).uid_of(&format!("robot after {} requests", server.requests().len())));
            },
            SECONDS,
            |server, pause| {
                assert!(server.get("secrets", KEY).is_none(), "{pause:?}");
                // Another one, for the next pause.
                let account = server.get("serviceaccounts", "default/robot").unwrap();
                let account = account["metadata"]["uid"].as_str().unwrap_or_default();
                server.add(&secret("robot-token").annotation(ACCOUNT_UID, account));
            },
        )
        .await;
    });
}

#[test]
fn why_tells_what_is_decided_and_never_a_token() {
    let (_folder, flags) = set_up();
    test(async {
        let server = Server::new();
        server.add(&robot(&["robot-token"]));
        server.add(&secret("robot-token"));
        let running = start(&server, &flags);
        running.at_rest().await;
        let why = running.why(PATH);
        assert_eq!(why.keys[0].now[0].text, "keep (complete)", "{why}");
        let decided = why.keys[0].last.iter().find(|decision| !decision.wrote.is_empty()).unwrap();
        assert_eq!(decided.stages[0].text, "fill in (no token, no namespace, no current ca.crt)", "{why}");
        let lacks = json!({ "token": true, "namespace": true, "ca": true });
        assert_eq!(decided.stages[0].reason, json!({ "incomplete": { "lacks": lacks } }));
        let signature = value(&server, KEY, "token").split('.').next_back().unwrap().to_owned();
        assert!(!serde_json::to_string(&why).unwrap().contains(&signature), "{why}");

        server.on("get", "serviceaccounts").answer(403, "Forbidden", "no");
        server.delete("secrets", KEY);
        running.pass(Duration::from_millis(5)).await;
        let why = running.why(PATH);
        let expected = "read its ServiceAccount's list (the token of ServiceAccount robot was deleted)";
        assert_eq!(why.keys[0].now[0].text, expected, "{why}");
    });
}

#[test]
fn a_shadow_shows_which_values_it_would_write_and_not_the_values() {
    let (_folder, [key, ca]) = set_up();
    test(async {
        let server = Server::new();
        server.add(&robot(&[]));
        server.add(&secret("robot-token"));
        let running = Running::start::<ServiceAccountTokenOperator>(&server, &[&key, &ca, "--mode=shadow"]);
        running.pass(Duration::from_secs(90)).await;
        assert_eq!(server.writes(), [""; 0]);
        let report = running.shadow_report().unwrap();
        let fields = report.differences.iter().flat_map(|difference| &difference.fields);
        let fields: Vec<String> = fields.map(|field| format!("{}: {}", field.path, field.wants)).collect();
        let account = format!("metadata.annotations[{ACCOUNT_UID}]: \"{}\"", uid("robot"));
        let hidden = ["data[ca.crt]", "data.namespace", "data.token"].map(|path| format!("{path}: \"(not shown)\""));
        assert_eq!(fields, hidden.into_iter().chain([account]).collect::<Vec<String>>());
    });
}
