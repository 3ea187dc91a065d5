use std::sync::Mutex;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::StreamExt;
use http::header::AUTHORIZATION;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use super::*;
use crate::api::explain::{AUDIENCE, Explanation, Role};
use crate::transport::client::ClientOptions;

#[derive(Debug, clap::Args)]
struct NoFlags {}

fn flags(args: &str) -> ServingFlags {
    let args = std::iter::once("x").chain(args.split_whitespace()).map(Into::into);
    crate::process::flags::parse::<NoFlags>("test-operator", args).unwrap().shared.serving
}

/// A server, and the other end of its reviews: `good` and `poor` are tokens, and only who has `good` may GET.
struct Room {
    server: Server,
    reviews: Arc<Mutex<Vec<Value>>>,
    visitor: hyper_util::client::legacy::Client<hyper_rustls::HttpsConnector<HttpConnector>, Full<Bytes>>,
}

fn review(body: &Value) -> Value {
    let spec = &body["spec"];
    let status = match body["kind"].as_str().unwrap() {
        "TokenReview" => match spec["token"].as_str().unwrap() {
            "good" => json!({"authenticated": true, "user": {"username": "prometheus", "uid": "1",
                "groups": ["system:authenticated"], "extra": {"a": ["b"]}}}),
            "poor" => json!({"authenticated": true, "user": {"username": "poor"}}),
            "master" => json!({"authenticated": true, "user": {"username": "admin", "groups": ["system:masters"]}}),
            token => review_audiences(token, spec),
        },
        "SubjectAccessReview" => match spec["user"].as_str().unwrap() {
            "prometheus" => json!({"allowed": true}),
            "poor" => json!({"allowed": false, "reason": "no <RBAC> rule"}),
            _ => json!({"allowed": false}),
        },
        other => panic!("{other}"),
    };
    json!({"status": status})
}

/// A token of the user `prometheus` with these audiences.
fn token_for(audiences: &[&str]) -> String {
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(json!({"aud": audiences}).to_string()))
}

/// As an apiserver whose own audience is `api`.
///
/// Upstream: `Create`, pkg/registry/authentication/tokenreview/storage.go.
fn review_audiences(token: &str, spec: &Value) -> Value {
    let own = json!(["api"]);
    let wanted = spec.get("audiences").unwrap_or(&own).as_array().unwrap();
    let all = [vec!["api"], vec![AUDIENCE], vec!["api", AUDIENCE], vec!["vault"]];
    let fits = |audiences: &Vec<&str>| {
        token == token_for(audiences) && audiences.iter().any(|audience| wanted.contains(&json!(audience)))
    };
    if all.iter().any(fits) {
        json!({"authenticated": true, "user": {"username": "prometheus"}})
    } else {
        json!({"authenticated": false, "error": "unknown"})
    }
}

fn client(apiserver: SocketAddr) -> Client {
    let config = kube::Config::new(format!("http://{apiserver}").parse().unwrap());
    Client::new(&config, ClientOptions { user_agent: "test".to_owned(), ..Default::default() }).unwrap()
}

fn explanation_of(object: Subject) -> Explanation {
    let (operator, version) = ("test-operator".to_owned(), "0".to_owned());
    let (role, time) = (Role::Leader, jiff::Timestamp::UNIX_EPOCH);
    Explanation { operator, version, role, time, object, keys: Vec::new(), caches: Vec::new() }
}

impl Room {
    async fn new() -> Self {
        let reviews = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&reviews);
        let address = loopback::serve(move |request| {
            let body: Value = serde_json::from_slice(request.body()).unwrap();
            let answer = review(&body);
            log.lock().unwrap().push(body);
            loopback::answer(201, answer.to_string())
        })
        .await;
        Self::with_apiserver(address, reviews).await
    }

    async fn with_apiserver(address: SocketAddr, reviews: Arc<Mutex<Vec<Value>>>) -> Self {
        let checks = Checks::default();
        checks.add(&[Probe::Readyz], "informer-sync/pods", || Err("not listed yet".to_owned()));
        let site = Site::new(checks, Verbosity::new(0))
            .why(explanation_of)
            .page("/metrics", crate::process::metrics::CONTENT_TYPE, |_| "# EOF\n".to_owned())
            .page("/debug/decisions", JSON, |query| format!("{:?}", query.value("key")))
            .others(|path| {
                let endless = || Page::in_pieces(TEXT, |_| std::iter::repeat_with(|| "piece\n".repeat(1000)));
                (path == "/debug/endless").then(|| Arc::new(endless()))
            });
        Self::of(site, &client(address), reviews).await
    }

    async fn of(site: Site, client: &Client, reviews: Arc<Mutex<Vec<Value>>>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let server = Server::on(listener, &flags(""), site, client).unwrap();
        Self { server, reviews, visitor: visitor([127, 0, 0, 1]) }
    }

    async fn send(&self, method: Method, path: &str, token: &str, body: &'static str) -> (u16, String, String) {
        let mut request = Request::new(Full::new(Bytes::from_static(body.as_bytes())));
        *request.method_mut() = method;
        *request.uri_mut() = format!("https://localhost:{}{path}", self.server.address().port()).parse().unwrap();
        if !token.is_empty() {
            request.headers_mut().insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        }
        let response = self.visitor.request(request).await.unwrap();
        let (head, body) = response.into_parts();
        assert_eq!(head.headers["x-content-type-options"], "nosniff");
        assert_eq!(head.headers["cache-control"], "no-cache, private");
        assert_eq!(head.headers.contains_key("retry-after"), head.status == StatusCode::SERVICE_UNAVAILABLE);
        let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        (head.status.as_u16(), head.headers["content-type"].to_str().unwrap().to_owned(), body)
    }

    async fn get(&self, path: &str, token: &str) -> (u16, String) {
        let (code, _, body) = self.send(Method::GET, path, token, "").await;
        (code, body)
    }

    fn reviews(&self) -> Vec<Value> {
        self.reviews.lock().unwrap().clone()
    }
}

/// Trusts every certificate, as a scraper of self-signed ones must.
#[derive(Debug)]
struct TrustsAll;

impl rustls::client::danger::ServerCertVerifier for TrustsAll {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

fn visitor(
    from: [u8; 4],
) -> hyper_util::client::legacy::Client<hyper_rustls::HttpsConnector<HttpConnector>, Full<Bytes>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(TrustsAll))
        .with_no_client_auth();
    let mut http = HttpConnector::new();
    http.set_local_address(Some(from.into()));
    http.enforce_http(false);
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only()
        .enable_http1()
        .wrap_connector(http);
    hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector)
}

#[tokio::test]
async fn health_is_open_to_all_and_asks_nobody() {
    let room = Room::new().await;
    assert_eq!(room.get("/livez", "").await, (200, "ok".to_owned()));
    assert_eq!(room.get("/healthz?verbose", "").await, (200, "[+]ping ok\nhealthz check passed\n".to_owned()));
    let failed = "[+]ping ok\n[-]informer-sync/pods failed: reason withheld\nreadyz check failed\n";
    assert_eq!(room.get("/readyz", "").await, (500, failed.to_owned()));
    assert_eq!(room.reviews(), [Value::Null; 0]);
    assert_eq!(room.get("/livez", "wrong").await.0, 401);
}

#[tokio::test]
async fn everything_else_is_for_those_who_may_see_it() {
    let room = Room::new().await;
    let (code, content_type, body) = room.send(Method::GET, "/metrics", "good", "").await;
    assert_eq!((code, content_type.as_str(), body.as_str()), (200, crate::process::metrics::CONTENT_TYPE, "# EOF\n"));
    assert_eq!(
        room.reviews(),
        [
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "good"}}),
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
                "user": "prometheus", "uid": "1", "groups": ["system:authenticated"], "extra": {"a": ["b"]},
                "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}}),
        ]
    );
    assert_eq!(room.get("/debug/decisions?key=ns%2Fa", "master").await, (200, "Some(\"ns/a\")".to_owned()));
    assert_eq!(room.get("/readyz/informer-sync/pods", "good").await.1, "internal server error: not listed yet\n");
    assert_eq!(room.get("/readyz/informer-sync/pods", "").await.0, 403);
}

#[tokio::test]
async fn a_token_is_for_operators_or_for_the_apiserver() {
    let room = Room::new().await;
    for (audiences, code, asked) in [
        (&[AUDIENCE][..], 200, json!([AUDIENCE])),
        (&["api", AUDIENCE], 200, json!([AUDIENCE])),
        (&["api"], 200, Value::Null),
        (&["vault"], 401, Value::Null),
    ] {
        let token = token_for(audiences);
        assert_eq!(room.get("/metrics", &token).await.0, code, "{audiences:?}");
        let reviews = room.reviews();
        let of_it: Vec<&Value> = reviews.iter().filter(|review| review["spec"]["token"] == token.as_str()).collect();
        assert_eq!(of_it.len(), 1, "one review: {of_it:?}");
        assert_eq!(of_it[0]["spec"]["audiences"], asked, "{audiences:?}");
    }
}

#[tokio::test]
async fn those_who_may_not_get_upstreams_answers() {
    let room = Room::new().await;
    for (token, code, reason, message) in [
        ("", 403, "Forbidden", r#"forbidden: User "system:anonymous" cannot get path "/metrics""#),
        ("poor", 403, "Forbidden", r#"forbidden: User "poor" cannot get path "/metrics": no <RBAC> rule"#),
        ("wrong", 401, "Unauthorized", "Unauthorized"),
    ] {
        let (got, content_type, body) = room.send(Method::GET, "/metrics", token, "").await;
        assert_eq!((got, content_type.as_str()), (code, "application/json"));
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&body["reason"], &body["message"]), (&json!(reason), &json!(message)));
    }
}

#[tokio::test]
async fn what_is_not_there_costs_no_review() {
    let room = Room::new().await;
    for path in ["/", "/no-such-page", "/debug", "/livez/no-such-check", "/livez/informer-sync/pods", "/metrics/"] {
        for token in ["", "good", "wrong"] {
            assert_eq!(room.get(path, token).await, (404, "404 page not found\n".to_owned()), "{path}");
        }
    }
    for (method, path) in [(Method::POST, "/metrics"), (Method::PUT, "/livez"), (Method::DELETE, "/debug/flags/v")] {
        let (code, ..) = room.send(method, path, "", "").await;
        assert_eq!(code, 405, "{path}");
    }
    assert_eq!(room.reviews(), [Value::Null; 0]);
}

#[tokio::test]
async fn reviews_have_a_limit_of_their_own_and_health_needs_none() {
    let room = Room::new().await;
    let tokens: Vec<String> = (0..20).map(|number| format!("wrong-{number}")).collect();
    let mut asking: stream::FuturesUnordered<_> = tokens.iter().map(|token| room.get("/metrics", token)).collect();
    while room.reviews().len() < 5 {
        assert_eq!(asking.next().await.unwrap().0, 401);
    }
    // The rest wait, and whoever needs no review does not.
    assert_eq!(room.get("/livez", "").await.0, 200);
    assert!(room.reviews().len() < tokens.len(), "{}", room.reviews().len());
}

#[tokio::test]
async fn invented_tokens_of_one_peer_hold_up_no_other() {
    let mut room = Room::new().await;
    let scraper = std::mem::replace(&mut room.visitor, visitor([127, 0, 0, 2]));
    let tokens: Vec<String> = (0..30).map(|number| format!("wrong-{number}")).collect();
    let mut crowd: stream::FuturesUnordered<_> = tokens.iter().map(|token| room.get("/metrics", token)).collect();
    while room.reviews().len() < 5 {
        assert_eq!(crowd.next().await.unwrap().0, 401);
    }
    let url = format!("https://localhost:{}/metrics", room.server.address().port());
    let request = Request::get(url).header(AUTHORIZATION, "Bearer good").body(Full::default()).unwrap();
    tokio::select! {
        answer = scraper.request(request) => assert_eq!(answer.unwrap().status(), 200),
        () = async { while crowd.next().await.is_some() {} } => panic!("all of the crowd came first"),
    }
}

#[tokio::test]
async fn visitors_with_one_token_cause_one_review() {
    let room = Room::new().await;
    let mut asking: stream::FuturesUnordered<_> = (0..20).map(|_| room.get("/metrics", "good")).collect();
    while let Some((code, _)) = asking.next().await {
        assert_eq!(code, 200);
    }
    assert_eq!(room.reviews().len(), 2, "{:?}", room.reviews());
}

#[tokio::test]
async fn an_answer_of_the_apiserver_is_kept_for_a_while() {
    let room = Room::new().await;
    for _ in 0..3 {
        room.get("/metrics", "good").await;
    }
    assert_eq!(room.reviews().len(), 2);
    room.get("/debug/decisions", "good").await;
    assert_eq!(room.reviews().len(), 3);
}

#[tokio::test]
async fn an_apiserver_that_cannot_be_asked_opens_nothing() {
    let address =
        loopback::serve(|_| loopback::answer(403, r#"{"code":403,"reason":"Forbidden","message":"no"}"#)).await;
    let room = Room::with_apiserver(address, Arc::default()).await;
    for (token, message) in [("good", "cannot review the token: no"), ("", "cannot review access: no")] {
        let (code, body) = room.get("/metrics", token).await;
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((code, &body["reason"], &body["message"]), (503, &json!("ServiceUnavailable"), &json!(message)));
    }
    assert_eq!(room.get("/livez", "").await.0, 200);
}

#[tokio::test]
async fn the_log_level_can_be_seen_and_changed() {
    let room = Room::new().await;
    let answer = room.send(Method::PUT, "/debug/flags/v", "good", "4").await;
    assert_eq!((answer.0, answer.2.as_str()), (200, "successfully set klog.logging.verbosity to 4"));
    assert_eq!(room.get("/debug/flags/v", "good").await, (200, "4".to_owned()));
    assert_eq!(room.send(Method::PUT, "/debug/flags/v", "good", "many").await.0, 400);
    assert_eq!(room.send(Method::PUT, "/debug/flags/v", "poor", "4").await.0, 403);
    let room_for_too_much: &str = "9".repeat(2 * BODY_BYTES_MAX).leak();
    assert_eq!(room.send(Method::PUT, "/debug/flags/v", "good", room_for_too_much).await.0, 400);
}

/// Connects from this address of loopback, and says nothing.
async fn silent(server: &Server, from: [u8; 4]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    socket.connect(server.address()).await.unwrap()
}

#[tokio::test]
async fn silent_peers_keep_nobody_out() {
    let room = Room::new().await;
    let mut crowd = Vec::new();
    for host in 1..=5 {
        for _ in 0..40 {
            crowd.push(silent(&room.server, [127, 0, 0, host]).await);
        }
    }
    // A newcomer, as each of the kubelet's probes; well before the handshakes of the others are given up.
    let probe = timeout(HANDSHAKE_MAX / 2, room.get("/livez", "")).await;
    assert_eq!(probe.expect("a place for the kubelet").0, 200);
    let [mut first, last] = [crowd.remove(0), crowd.pop().unwrap()];
    let mut rest = [0; 1];
    assert!(matches!(first.read(&mut rest).await, Ok(0) | Err(_)), "the oldest is closed");
    let error = last.try_read(&mut rest).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "the newest is not");
}

#[tokio::test]
async fn who_speaks_no_tls_is_sent_away_and_others_are_served() {
    let room = Room::new().await;
    let mut plain = TcpStream::connect(room.server.address()).await.unwrap();
    plain.write_all(b"GET /livez HTTP/1.1\r\n\r\n").await.unwrap();
    let mut silent = TcpStream::connect(room.server.address()).await.unwrap();
    assert_eq!(room.get("/livez", "").await.0, 200);
    let mut answer = Vec::new();
    // Ends with an alert of TLS or a reset; not with a page.
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    drop(room);
    let mut rest = [0; 1];
    assert!(matches!(silent.read(&mut rest).await, Ok(0) | Err(_)), "the server ends its connections");
}

#[tokio::test]
async fn a_taken_port_is_named_and_port_0_serves_nothing() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = listen([127, 0, 0, 1].into(), port).await.unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("cannot listen on 127.0.0.1:{port} (--bind-address, --secure-port): ")),
        "{error}"
    );
    let client = client(([127, 0, 0, 1], 9).into());
    let site = || Site::new(Checks::default(), Verbosity::new(0));
    assert!(Server::start(&flags("--secure-port=0"), site(), &client).await.unwrap().is_none());
    let broken = flags("--tls-cert-file=/no/cert --tls-private-key-file=/no/key --secure-port=1");
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let error = Server::on(listener, &broken, site(), &client).err().unwrap().to_string();
    assert!(error.starts_with("cannot use --tls-cert-file /no/cert: "), "{error}");
}

#[tokio::test]
async fn an_unspecified_address_means_both_families() {
    let listener = listen([0, 0, 0, 0].into(), 0).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (connected, _) = tokio::join!(TcpStream::connect(("127.0.0.1", port)), listener.accept());
    connected.unwrap();
}

#[tokio::test]
async fn a_page_in_pieces_is_sent_while_it_is_made() {
    let room = Room::new().await;
    let url = format!("https://localhost:{}/debug/endless", room.server.address().port());
    let request = Request::get(url).header(AUTHORIZATION, "Bearer good").body(Full::default()).unwrap();
    let mut body = room.visitor.request(request).await.unwrap().into_body();
    let mut read = 0;
    while read < 1024 * 1024 {
        let frame = timeout(Duration::from_secs(10), body.frame()).await.expect("it comes in time").unwrap().unwrap();
        read += frame.into_data().unwrap().len();
    }
}

#[tokio::test]
async fn an_object_is_explained_to_whoever_may_get_it() {
    const PATH: &str = "/why/apis/apps/v1/namespaces/a%20b/deployments/web";
    let room = Room::new().await;
    let (code, body) = room.get(PATH, "good").await;
    let explanation: Explanation = serde_json::from_str(&body).unwrap();
    assert_eq!((code, explanation.object.to_string()), (200, "deployments.apps a b/web".to_owned()));
    let [_, access] = &room.reviews()[..] else { panic!("{:?}", room.reviews()) };
    let attributes = json!({"verb": "get", "group": "apps", "version": "v1", "resource": "deployments",
        "namespace": "a b", "name": "web"});
    assert_eq!(access["spec"]["resourceAttributes"], attributes);
    assert_eq!(access["spec"].get("nonResourceAttributes"), None);
    let (code, text) = room.get(&format!("{PATH}?format=text"), "good").await;
    assert_eq!(code, 200);
    assert!(text.starts_with("deployments.apps a b/web, by test-operator 0, which leads"), "{text}");
    let (code, body) = room.get(PATH, "poor").await;
    assert!(code == 403 && body.contains("cannot get deployments.apps a b/web"), "{code} {body}");
    for nothing in ["/why", "/why/", "/why/apis/apps/v1/deployments", "/why/api/v1/pods/%2e%2e"] {
        let reviews = room.reviews().len();
        assert_eq!(room.get(nothing, "good").await.0, 404, "{nothing}");
        assert_eq!(room.reviews().len(), reviews, "what cannot be there costs no review");
    }
    assert_eq!(room.send(Method::PUT, PATH, "good", "").await.0, 405);
}

#[tokio::test]
async fn who_may_get_a_namespace_in_that_namespace_is_told_about_it() {
    let room = Room::new().await;
    for (path, namespace) in [("/why/api/v1/namespaces/team", "team"), ("/why/api/v1/nodes/team", "")] {
        let reviews = room.reviews().len();
        assert_eq!(room.get(path, "good").await.0, 200, "{path}");
        let review = room.reviews().pop().unwrap();
        assert!(room.reviews().len() > reviews, "{path}");
        let attributes = &review["spec"]["resourceAttributes"];
        assert_eq!((&attributes["namespace"], &attributes["name"]), (&json!(namespace), &json!("team")), "{path}");
    }
}

#[test]
fn only_an_accept_that_lacks_something_here_is_waited_for() {
    for (errno, waits) in [
        (Errno::MFILE, true),
        (Errno::NFILE, true),
        (Errno::NOBUFS, true),
        (Errno::NOMEM, true),
        (Errno::PROTO, false),
        (Errno::CONNABORTED, false),
        (Errno::NETDOWN, false),
        (Errno::HOSTUNREACH, false),
    ] {
        assert_eq!(is_exhausted(&errno.into()), waits, "{errno}");
    }
}
