//! An apiserver for metrics behind the cluster's own, with the values that a test or the bench sets: what pods take of a
//! CPU, values of pods and of other objects, and values from outside.
//!
//! It is registered for all three metrics APIs, by a Service that leads to a port of this machine. Left out: metrics of
//! nodes, and who may ask: the cluster's own apiserver has looked at that.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use shared::api::time::Time;
use shared::transport::clock::Clock;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsAcceptor;

use crate::apply::apply;
use crate::cluster::Cluster;

const SERVED: [(&str, &str); 3] =
    [("metrics.k8s.io", "v1beta1"), ("custom.metrics.k8s.io", "v1beta2"), ("external.metrics.k8s.io", "v1beta1")];
/// How long the cluster's apiserver may take to find it.
const DEADLINE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(30);

/// In thousandths, by `namespace/cpu/app`, and else by the path behind `namespaces`. One that comes in another's place
/// goes on with the other's.
static VALUES: Mutex<BTreeMap<String, i64>> = Mutex::new(BTreeMap::new());

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pods {
    Live,
    /// Those that there were when it was first asked about them. One that measures many pods knows them, and nobody's
    /// list has to wait for its own.
    Known,
}

/// The server, for as long as the process runs, and whose pods and objects have the values that are set.
pub struct Metrics {
    namespace: String,
}

impl Metrics {
    /// Starts it, and waits until the cluster's apiserver asks it. Values that are set are of `namespace`.
    pub async fn start(cluster: &Cluster, namespace: &str, pods: Pods) -> Result<Self> {
        let client = cluster.client().await?;
        let tls = TlsAcceptor::from(Arc::new(cluster.pki()?.tls("metrics")?));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("open the port for metrics")?;
        let port = listener.local_addr().context("open the port for metrics")?.port();
        let server = Server { client: client.clone(), pods, known: Arc::default() };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(server.clone().serve(stream, tls.clone()));
            }
        });
        let spec = json!({"type": "ExternalName", "externalName": "localhost"});
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics"}, "spec": spec});
        apply(&client, namespace, &service).await?;
        for (group, version) in SERVED {
            let service = json!({"namespace": namespace, "name": "metrics", "port": port});
            let spec = json!({
                "group": group, "version": version, "service": service, "insecureSkipTLSVerify": true,
                "groupPriorityMinimum": 100, "versionPriority": 100,
            });
            let service = json!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"name": format!("{version}.{group}")}, "spec": spec,
            });
            apply(&client, "", &service).await?;
        }
        for (group, version) in SERVED {
            wait_served(&client, &format!("/apis/{group}/{version}")).await?;
        }
        Ok(Self { namespace: namespace.to_owned() })
    }

    /// The same server's values of another namespace.
    #[must_use]
    pub fn of(&self, namespace: &str) -> Self {
        Self { namespace: namespace.to_owned() }
    }

    /// Each pod of `app=APP` takes so much of a CPU from now on.
    pub fn set_cpu(&self, app: &str, millis: i64) {
        self.set(&format!("cpu/{app}"), millis);
    }

    /// A metric has this value from now on: `length` one from outside, `deployments.apps/web/hits` one of an object, and
    /// `pods/*/qps` one of each pod.
    pub fn set(&self, metric: &str, millis: i64) {
        values().insert(format!("{}/{metric}", self.namespace), millis);
    }
}

pub async fn withdraw(client: &Client) -> Result<()> {
    let services: Api<APIService> = Api::all(client.clone());
    for (group, version) in SERVED {
        services.delete(&format!("{version}.{group}"), &DeleteParams::default()).await?;
    }
    Ok(())
}

async fn wait_served(client: &Client, path: &str) -> Result<()> {
    let end = Instant::now() + DEADLINE;
    loop {
        let answer = client.request_text(Request::get(path).body(Vec::new())?).await;
        if answer.as_ref().is_ok_and(|answer| answer.contains("APIResourceList")) {
            return Ok(());
        }
        if Instant::now() >= end {
            bail!("{path} is not served within {DEADLINE:?}: {answer:?}");
        }
        sleep(POLL).await;
    }
}

fn values() -> MutexGuard<'static, BTreeMap<String, i64>> {
    VALUES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn value(metric: &str) -> Option<String> {
    values().get(metric).map(|millis| format!("{millis}m"))
}

/// Pods by namespace and selector.
type Known = BTreeMap<(String, String), Vec<Pod>>;

#[derive(Clone)]
struct Server {
    client: Client,
    pods: Pods,
    known: Arc<Mutex<Known>>,
}

impl Server {
    /// A connection that breaks is the apiserver's to report.
    async fn serve(self, stream: TcpStream, tls: TlsAcceptor) {
        let Ok(stream) = tls.accept(stream).await else { return };
        let service = service_fn(async |request: Request<Incoming>| {
            let path = request.uri().path().replace("%2A", "*");
            let (code, answer) = match self.answer(&path, request.uri().query().unwrap_or_default()).await {
                Some(answer) => (StatusCode::OK, answer),
                None => (StatusCode::NOT_FOUND, not_found(&path)),
            };
            let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
            *response.status_mut() = code;
            response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
            Ok::<_, Infallible>(response)
        });
        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    }

    async fn answer(&self, path: &str, query: &str) -> Option<Value> {
        let (group, rest) = path.strip_prefix("/apis/")?.split_once('/')?;
        let Some((_, rest)) = rest.split_once("/namespaces/") else { return Some(resources(group)) };
        let (namespace, metric) = rest.split_once('/')?;
        let now = Time::of(Clock::system().now()).to_string();
        let items = match (group, metric.strip_prefix("pods/*/")) {
            ("metrics.k8s.io", _) => {
                let pods = self.pods(namespace, query).await?;
                pods.iter().filter_map(|pod| usage(namespace, pod, &now)).collect()
            }
            (_, Some(_)) => {
                let found = value(rest)?;
                let of = |pod: &Pod| object_value("Pod", &pod.name_any(), &found, &now);
                self.pods(namespace, query).await?.iter().map(of).collect()
            }
            ("custom.metrics.k8s.io", None) => {
                vec![object_value("Object", metric.split('/').nth(1).unwrap_or_default(), &value(rest)?, &now)]
            }
            // One that nobody has set has no series.
            (_, None) => {
                let of = |value| json!({"metricName": metric, "timestamp": now, "value": value});
                value(rest).map(of).into_iter().collect()
            }
        };
        Some(list(group, &items))
    }

    async fn pods(&self, namespace: &str, query: &str) -> Option<Vec<Pod>> {
        let selector = query.split('&').find_map(|pair| pair.strip_prefix("labelSelector="))?;
        let selector = selector.replace("%3D", "=").replace("%2C", ",");
        let key = (namespace.to_owned(), selector);
        if let Some(known) = self.known().get(&key) {
            return Some(known.clone());
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let pods = pods.list(&ListParams::default().labels(&key.1)).await.ok()?.items;
        if self.pods == Pods::Known {
            self.known().insert(key, pods.clone());
        }
        Some(pods)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn usage(namespace: &str, pod: &Pod, now: &str) -> Option<Value> {
    let app = pod.labels().get("app")?;
    let cpu = value(&format!("{namespace}/cpu/{app}"))?;
    let containers = json!([{"name": "main", "usage": {"cpu": cpu, "memory": "1Mi"}}]);
    let metadata = json!({"name": pod.name_any(), "namespace": namespace, "labels": pod.labels()});
    Some(json!({"metadata": metadata, "timestamp": now, "window": "0s", "containers": containers}))
}

fn object_value(kind: &str, name: &str, value: &str, now: &str) -> Value {
    let object = json!({"kind": kind, "name": name});
    json!({"describedObject": object, "metric": {"name": "any"}, "timestamp": now, "value": value})
}

fn version_of(group: &str) -> &'static str {
    SERVED.iter().find(|(served, _)| *served == group).map_or("v1beta1", |(_, version)| version)
}

fn list(group: &str, items: &[Value]) -> Value {
    let kind = match group {
        "metrics.k8s.io" => "PodMetricsList",
        "custom.metrics.k8s.io" => "MetricValueList",
        _ => "ExternalMetricValueList",
    };
    json!({"apiVersion": format!("{group}/{}", version_of(group)), "kind": kind, "metadata": {}, "items": items})
}

/// Whatever is discovered is looked after by others, who need not know of metrics.
fn resources(group: &str) -> Value {
    let pods = json!({
        "name": "pods", "singularName": "", "namespaced": true, "kind": "PodMetrics", "verbs": ["get", "list"],
    });
    let resources = if group == "metrics.k8s.io" { json!([pods]) } else { json!([]) };
    let group_version = format!("{group}/{}", version_of(group));
    json!({"apiVersion": "v1", "kind": "APIResourceList", "groupVersion": group_version, "resources": resources})
}

fn not_found(path: &str) -> Value {
    let metric = path.rsplit('/').next().unwrap_or_default();
    let message = format!("nobody measures {metric}");
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound",
        "message": message,
    })
}
