//! Both sides over the connections that a cluster has: a Unix socket, and TLS.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cloud::server::{Provider, serve, serve_connection};
use cloud::{Client, CloudError, Endpoint, Info, InstanceMetadata, LoadBalancer, NodeAddress, Route};
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tempfile::TempDir;
use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::TlsAcceptor;

/// Answers with what it got, or fails as the name in the call says.
struct Mirror;

fn address() -> NodeAddress {
    NodeAddress { type_: "InternalIP".to_owned(), address: "10.0.0.1".to_owned() }
}

impl Provider for Mirror {
    async fn info(&self) -> Result<Info, CloudError> {
        Ok(Info { name: "mirror".to_owned(), protocol_version: 1, load_balancers: true, ..Info::default() })
    }

    async fn get_load_balancer(&self, cluster: &str, service: &RawValue) -> Result<LoadBalancer, CloudError> {
        let exists = service.get() != "{}";
        Ok(LoadBalancer { name: cluster.to_owned(), status: exists.then(|| service.to_owned()) })
    }

    async fn ensure_load_balancer(
        &self,
        cluster: &str,
        service: &RawValue,
        nodes: &[Box<RawValue>],
    ) -> Result<Box<RawValue>, CloudError> {
        #[derive(Serialize)]
        struct Seen<'a> {
            cluster: &'a str,
            nodes: &'a [Box<RawValue>],
            service: &'a RawValue,
        }
        Ok(to_raw_value(&Seen { cluster, nodes, service }).unwrap())
    }

    async fn delete_load_balancer(&self, cluster: &str, _: &RawValue) -> Result<(), CloudError> {
        match cluster {
            "elsewhere" => Err(CloudError::ImplementedElsewhere),
            "later" => {
                Err(CloudError::RetryAfter { after: Duration::from_secs(7), message: "quota exceeded".to_owned() })
            }
            _ => Err(CloudError::Failed(format!("no access to {cluster}: \u{e4}\n100%"))),
        }
    }

    async fn instance_exists(&self, _: &RawValue) -> Result<bool, CloudError> {
        Err(CloudError::InstanceNotFound)
    }

    async fn instance_metadata(&self, node: &RawValue) -> Result<Option<InstanceMetadata>, CloudError> {
        let known = InstanceMetadata {
            provider_id: "aws:///a/i-1".to_owned(),
            instance_type: "m5.large".to_owned(),
            node_addresses: vec![address()],
            zone: "a".to_owned(),
            region: "r".to_owned(),
            additional_labels: [("rack".to_owned(), "7".to_owned())].into(),
        };
        Ok((node.get() != "{}").then_some(known))
    }

    async fn list_routes(&self, cluster: &str) -> Result<Vec<Route>, CloudError> {
        let others = json!({ "table": cluster }).as_object().cloned().unwrap();
        Ok(vec![Route { name: "r".to_owned(), others, ..Route::default() }])
    }

    async fn delete_route(&self, cluster: &str, route: &Route) -> Result<(), CloudError> {
        let listed = self.list_routes(cluster).await?;
        if listed.contains(route) { Ok(()) } else { Err(CloudError::Failed("not as it was listed".to_owned())) }
    }
}

struct Serving {
    folder: TempDir,
    server: tokio::task::JoinHandle<()>,
}

impl Serving {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Self::start(folder.path());
        Self { folder, server }
    }

    fn start(folder: &Path) -> tokio::task::JoinHandle<()> {
        let listener = UnixListener::bind(folder.join("socket")).unwrap();
        tokio::spawn(async move {
            serve(listener, Arc::new(Mirror)).await;
        })
    }

    fn client(&self) -> Client {
        let endpoint = format!("unix://{}/socket", self.folder.path().display());
        Client::new(&endpoint.parse().unwrap())
    }
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[tokio::test]
async fn objects_arrive_as_they_were_sent() {
    let serving = Serving::new();
    let client = serving.client();
    let service = raw(r#"{"spec": {"newer": [1, 2.50]}}"#);
    let nodes = [raw(r#"{"metadata":{"name":"a"}}"#), raw("{}")];
    let status = client.ensure_load_balancer("c", &service, nodes.iter().map(|node| &**node)).await.unwrap();
    let expected = r#"{"cluster":"c","nodes":[{"metadata":{"name":"a"}},{}],"service":{"spec": {"newer": [1, 2.50]}}}"#;
    assert_eq!(status.get(), expected);
    let LoadBalancer { name, status } = client.get_load_balancer("c", &service).await.unwrap();
    assert_eq!((name.as_str(), status.unwrap().get()), ("c", service.get()));
    assert!(client.get_load_balancer("c", &raw("{}")).await.unwrap().status.is_none());
    assert_eq!(client.instance_metadata(&raw("{}")).await, Ok(None));
    let metadata = client.instance_metadata(&service).await.unwrap().unwrap();
    assert_eq!(Ok(Some(metadata)), Mirror.instance_metadata(&service).await);
    let info = client.info().await.unwrap();
    assert_eq!(Ok(info), Mirror.info().await);
}

#[tokio::test]
async fn a_route_is_deleted_as_it_was_listed() {
    let serving = Serving::new();
    let client = serving.client();
    let routes = client.list_routes("c").await.unwrap();
    assert_eq!(client.delete_route("c", &routes[0]).await, Ok(()));
}

#[tokio::test]
async fn errors_keep_their_reasons_and_words() {
    let serving = Serving::new();
    let client = serving.client();
    let object = raw("{}");
    assert_eq!(client.delete_load_balancer("elsewhere", &object).await, Err(CloudError::ImplementedElsewhere));
    let later = CloudError::RetryAfter { after: Duration::from_secs(7), message: "quota exceeded".to_owned() };
    assert_eq!(client.delete_load_balancer("later", &object).await, Err(later));
    let words = CloudError::Failed("no access to c: \u{e4}\n100%".to_owned());
    assert_eq!(client.delete_load_balancer("c", &object).await, Err(words));
    assert_eq!(client.instance_exists(&object).await, Err(CloudError::InstanceNotFound));
    assert_eq!(client.instance_is_shutdown(&object).await, Err(CloudError::NotSupported));
    assert_eq!(client.update_load_balancer("c", &object, []).await, Err(CloudError::NotSupported));
}

#[tokio::test]
async fn a_provider_that_was_away_is_called_again() {
    let mut serving = Serving::new();
    let client = serving.client();
    client.info().await.unwrap();
    serving.server.abort();
    let _ = (&mut serving.server).await;
    fs::remove_file(serving.folder.path().join("socket")).unwrap();
    let away = Client::new(&format!("unix://{}/socket", serving.folder.path().display()).parse().unwrap());
    let CloudError::Failed(words) = away.info().await.unwrap_err() else { panic!("a failure") };
    assert!(words.contains("cannot connect to the cloud provider at unix://"), "{words}");
    serving.server = Serving::start(serving.folder.path());
    away.info().await.unwrap();
}

#[tokio::test]
async fn a_call_with_thousands_of_nodes_arrives() {
    let serving = Serving::new();
    let node = raw(&json!({ "padding": "x".repeat(3000) }).to_string());
    let nodes = std::iter::repeat_n(&*node, 5000);
    let status = serving.client().ensure_load_balancer("c", &raw("{}"), nodes).await.unwrap();
    assert!(status.get().len() > 15_000_000);
}

struct Tls {
    folder: TempDir,
    port: u16,
}

impl Tls {
    /// Serves with a certificate of its own CA, to whoever has one of that CA too.
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ca_key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let ca = rcgen::CertifiedIssuer::self_signed(params, ca_key).unwrap();
        fs::write(folder.path().join("ca.pem"), ca.pem()).unwrap();
        for name in ["server", "client"] {
            let key = rcgen::KeyPair::generate().unwrap();
            let params = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
            let certificate = params.signed_by(&key, &ca).unwrap();
            fs::write(folder.path().join(format!("{name}.pem")), certificate.pem()).unwrap();
            fs::write(folder.path().join(format!("{name}.key")), key.serialize_pem()).unwrap();
        }
        let acceptor = TlsAcceptor::from(Arc::new(server_config(folder.path())));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let _ = serve_connection(stream, Arc::new(Mirror)).await;
                });
            }
        });
        Self { folder, port }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn endpoint(&self, files: &[(&str, &str)]) -> Endpoint {
        use clap::{Args, Command, FromArgMatches};
        let endpoint = format!("--cloud-provider-endpoint=https://127.0.0.1:{}", self.port);
        let files = files.iter().map(|(flag, file)| format!("--cloud-provider-{flag}={}", self.path(file).display()));
        let flags = std::iter::once("operator".to_owned()).chain([endpoint]).chain(files);
        let command = cloud::flags::ProviderFlags::augment_args(Command::new("operator"));
        let matches = command.try_get_matches_from(flags).unwrap();
        cloud::flags::ProviderFlags::from_arg_matches(&matches).unwrap().required_endpoint().unwrap()
    }
}

fn server_config(folder: &Path) -> rustls::ServerConfig {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let certificate = |file: &str| CertificateDer::from_pem_file(folder.join(file)).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate("ca.pem")).unwrap();
    let verifier = rustls::server::WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).unwrap();
    let mut config = rustls::ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate("server.pem")], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

#[tokio::test]
async fn over_tls_both_sides_know_each_other() {
    let tls = Tls::new().await;
    let whole = [("ca-file", "ca.pem"), ("cert-file", "client.pem"), ("key-file", "client.key")];
    let client = Client::new(&tls.endpoint(&whole));
    assert_eq!(client.info().await.unwrap().name, "mirror");
    let stranger = Client::new(&tls.endpoint(&whole[..1]));
    assert!(stranger.info().await.is_err());
    let deceived = Client::new(&tls.endpoint(&[("ca-file", "client.pem")]));
    let CloudError::Failed(words) = deceived.info().await.unwrap_err() else { panic!("a failure") };
    assert!(words.contains("certificate"), "{words}");
}

#[tokio::test]
async fn a_renewed_file_is_read_for_the_next_connection() {
    let tls = Tls::new().await;
    let client = Client::new(&tls.endpoint(&[
        ("ca-file", "later.pem"),
        ("cert-file", "client.pem"),
        ("key-file", "client.key"),
    ]));
    let CloudError::Failed(words) = client.info().await.unwrap_err() else { panic!("a failure") };
    assert!(words.contains("later.pem"), "{words}");
    fs::copy(tls.path("ca.pem"), tls.path("later.pem")).unwrap();
    client.info().await.unwrap();
}
