//! Which credentials requests carry, while the files that they come from change.

use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::{NamedTempFile, TempDir};

use super::*;
use crate::process::serving::loopback;
use crate::transport::client::{Accept, Client, ClientOptions, load_config};

/// A server that lets only one token in, which it is told.
struct Server {
    address: std::net::SocketAddr,
    valid: Arc<Mutex<&'static str>>,
}

impl Server {
    async fn new(valid: &'static str) -> Self {
        let valid = Arc::new(Mutex::new(valid));
        let expected = Arc::clone(&valid);
        let address = loopback::serve(move |request| {
            let token = format!("Bearer {}", expected.lock().unwrap());
            let is_valid = request.headers().get(AUTHORIZATION).is_some_and(|value| *value == *token);
            loopback::answer(if is_valid { 200 } else { 401 }, "{}")
        })
        .await;
        Self { address, valid }
    }

    fn config(&self) -> kube::Config {
        kube::Config::new(format!("http://{}", self.address).parse().unwrap())
    }

    fn expects(&self, token: &'static str) {
        *self.valid.lock().unwrap() = token;
    }
}

async fn code(client: &Client) -> u16 {
    client.get_bytes("/api", Accept::Object).await.map_or_else(|error| error.code().unwrap_or_default(), |_| 200)
}

#[tokio::test]
async fn a_token_is_read_without_its_newline_and_again_once_it_is_refused() {
    let server = Server::new("first").await;
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), " first\n").unwrap();
    let mut config = server.config();
    config.auth_info.token_file = Some(file.path().to_str().unwrap().to_owned());
    config.auth_info.token = Some("beside the file".to_owned().into());
    let client = Client::new(&config, ClientOptions::default()).unwrap();
    assert_eq!(code(&client).await, 200);

    server.expects("second");
    assert_eq!(code(&client).await, 401);
    assert_eq!(code(&client).await, 401, "the file has not changed");
    std::fs::write(file.path(), "second\n").unwrap();
    assert_eq!((code(&client).await, code(&client).await), (200, 200));

    std::fs::write(file.path(), "\n").unwrap();
    server.expects("third");
    assert_eq!(code(&client).await, 401);
    server.expects("second");
    assert_eq!(code(&client).await, 200, "where a file says nothing the last token is used");
}

#[tokio::test]
async fn a_token_file_that_cannot_be_used_is_named() {
    let mut config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    config.auth_info.token_file = Some("/not/there".to_owned());
    let error = Client::new(&config, ClientOptions::default()).err().unwrap().to_string();
    assert!(error.contains("cannot use token file /not/there"), "{error}");
}

/// A plugin that counts how often it was run, in a file, and gives the number as its token, once there is a file `open`.
async fn with_plugin(server: &Server, folder: &TempDir) -> Client {
    std::fs::write(folder.path().join("open"), "").unwrap();
    let script = r#"until [ -e open ]; do sleep 0.02; done; n=$(($(cat runs 2>/dev/null || echo 0)+1)); echo $n >runs
        echo "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"run-$n\"}}""#;
    let exec = serde_json::json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
        "args": ["-c", format!("cd {}; {script}", folder.path().display())], "interactiveMode": "Never" });
    let kubeconfig = serde_json::json!({ "current-context": "a",
        "contexts": [{ "name": "a", "context": { "cluster": "a", "user": "a" } }],
        "clusters": [{ "name": "a", "cluster": { "server": format!("http://{}", server.address) } }],
        "users": [{ "name": "a", "user": { "exec": exec } }] });
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    Client::new(&load_config(Some(&path), None).await.unwrap().config, ClientOptions::default()).unwrap()
}

#[tokio::test]
async fn a_plugin_is_run_again_once_its_credentials_are_refused_but_not_for_each_refusal() {
    let (server, folder) = (Server::new("none yet").await, TempDir::new().unwrap());
    let client = with_plugin(&server, &folder).await;
    let runs = || std::fs::read_to_string(folder.path().join("runs")).unwrap().trim().parse::<u32>().unwrap();
    let at_first = runs();
    assert_eq!((code(&client).await, code(&client).await, runs()), (401, 401, at_first));
    tokio::time::pause();
    tokio::time::advance(PLUGIN_PERIOD).await;
    tokio::time::resume();
    code(&client).await;
    assert!(runs() > at_first);
}

#[tokio::test]
async fn what_a_plugin_answers_is_used_though_the_request_that_ran_it_gave_up() {
    let (server, folder) = (Server::new("none yet").await, TempDir::new().unwrap());
    let client = with_plugin(&server, &folder).await;
    let runs = || std::fs::read_to_string(folder.path().join("runs")).unwrap().trim().parse::<u32>().unwrap();
    let of_one_connection = runs();
    assert_eq!(code(&client).await, 401);
    tokio::time::pause();
    tokio::time::advance(PLUGIN_PERIOD).await;
    tokio::time::resume();
    std::fs::remove_file(folder.path().join("open")).unwrap();
    let given_up = tokio::time::timeout(Duration::from_millis(100), code(&client)).await;
    assert!(given_up.is_err(), "the plugin has not answered yet");
    server.expects(Box::leak(format!("run-{}", of_one_connection * 2).into_boxed_str()));
    std::fs::write(folder.path().join("open"), "").unwrap();
    assert_eq!(code(&client).await, 200);
    assert_eq!(runs(), of_one_connection * 2);
}

/// Counts the connections that are made.
static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);

fn counted(config: &kube::Config) -> Result<Connection, kube::Error> {
    CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    crate::transport::client::connection(config)
}

fn identity() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

#[tokio::test(start_paused = true)]
async fn a_new_certificate_gets_a_new_connection_once_it_is_whole() {
    let folder = TempDir::new().unwrap();
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let write = |(new_certificate, new_key): &(String, String)| {
        std::fs::write(&certificate, new_certificate).unwrap();
        std::fs::write(&key, new_key).unwrap();
    };
    let (first, second) = (identity(), identity());
    write(&first);
    let mut config = kube::Config::new("https://127.0.0.1:1".parse().unwrap());
    config.root_cert = Some(Vec::new());
    config.auth_info.client_certificate = Some(certificate.to_str().unwrap().to_owned());
    config.auth_info.client_key = Some(key.to_str().unwrap().to_owned());
    let renewing = Renewing::new(&config, None, counted).unwrap();
    let made = async |after: Duration| {
        tokio::time::advance(after).await;
        renewing.current().await;
        CONNECTIONS.load(Ordering::Relaxed)
    };
    assert_eq!(made(PERIOD).await, 1, "nothing has changed");
    write(&second);
    assert_eq!(made(PERIOD / 2).await, 1, "it was just looked at");
    assert_eq!((made(PERIOD / 2).await, made(PERIOD).await), (2, 2));
    std::fs::remove_file(&key).unwrap();
    assert_eq!(made(PERIOD).await, 2, "a key that is not there is none");
    std::fs::write(&key, &first.1).unwrap();
    assert_eq!(made(PERIOD).await, 3, "it is tried, and does not fit");
    write(&first);
    assert_eq!((made(PERIOD).await, made(PERIOD).await), (4, 4));
}

/// The CA of the last connection.
static TRUSTED: Mutex<Option<Vec<Vec<u8>>>> = Mutex::new(None);

fn trusting(config: &kube::Config) -> Result<Connection, kube::Error> {
    TRUSTED.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&config.root_cert);
    crate::transport::client::connection(config)
}

#[tokio::test(start_paused = true)]
async fn another_ca_gets_a_new_connection_once_it_is_whole() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ca.crt");
    let ((old, _), (new, _)) = (identity(), identity());
    let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec();
    let mut config = kube::Config::new("https://127.0.0.1:1".parse().unwrap());
    config.root_cert = Some(vec![der(&old)]);
    let renewing = Renewing::new(&config, Some(&path), trusting).unwrap();
    let trusted = async || {
        tokio::time::advance(PERIOD).await;
        renewing.current().await;
        TRUSTED.lock().unwrap().clone().unwrap()
    };
    assert_eq!(trusted().await, [der(&old)], "a file that is not there says nothing");
    for (text, expected) in [
        (format!("{old}{new}"), vec![der(&old), der(&new)]),
        (String::new(), vec![der(&old), der(&new)]),
        (format!("{old}{}", new.replacen("MII", "?", 1)), vec![der(&old), der(&new)]),
        (new.clone(), vec![der(&new)]),
    ] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(trusted().await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_refused_for_minutes_are_no_more_good() {
    let refusals = Refusals::default();
    refusals.note(StatusCode::UNAUTHORIZED);
    tokio::time::advance(REFUSED_MAX / 2).await;
    refusals.note(StatusCode::UNAUTHORIZED);
    assert_eq!(refusals.check(), Ok(()));
    tokio::time::advance(REFUSED_MAX / 2).await;
    assert_eq!(refusals.check(), Err("the apiserver has refused the credentials for 180 s".to_owned()));
    refusals.note(StatusCode::FORBIDDEN);
    assert_eq!(refusals.check(), Ok(()), "who may not do something is known");
}
