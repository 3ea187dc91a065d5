//! The bench's own cloud, in memory: it answers each call after the same time, whoever calls.
//! Left out: all but load balancers, and faults.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use cloud::objects::PROTOCOL_VERSION;
use cloud::server::{Provider, serve};
use cloud::{CloudError, Info, LoadBalancer};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Ends when it is dropped.
pub(crate) struct LateCloud {
    endpoint: String,
    provider: Arc<Late>,
    server: JoinHandle<()>,
}

impl LateCloud {
    /// Serves on a socket in this folder.
    pub(crate) fn start(folder: &Path, latency: Duration) -> Result<Self> {
        let socket = folder.join("late-cloud.sock");
        let listener = UnixListener::bind(&socket).with_context(|| format!("listen at {}", socket.display()))?;
        let provider = Arc::new(Late { latency, balancers: Mutex::default() });
        let served = Arc::clone(&provider);
        let server = tokio::spawn(async move {
            let error = serve(listener, served).await;
            eprintln!("bench: the cloud accepts no connection: {error}");
        });
        Ok(Self { endpoint: format!("unix://{}", socket.display()), provider, server })
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// How many load balancers have so many nodes behind them.
    pub(crate) fn count(&self, nodes: u32) -> usize {
        let nodes = usize::try_from(nodes).unwrap_or(usize::MAX);
        self.provider.lock().values().filter(|balancer| balancer.nodes == nodes).count()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.provider.lock().is_empty()
    }
}

impl Drop for LateCloud {
    fn drop(&mut self) {
        self.server.abort();
    }
}

struct Late {
    latency: Duration,
    /// By the uid of the Service.
    balancers: Mutex<BTreeMap<String, Balancer>>,
}

struct Balancer {
    status: Box<RawValue>,
    /// How many.
    nodes: usize,
}

/// What the cloud reads of a Service.
#[derive(Deserialize)]
struct Known {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    uid: String,
}

impl Late {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Balancer>> {
        self.balancers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Provider for Late {
    async fn info(&self) -> Result<Info, CloudError> {
        Ok(Info {
            name: "late".to_owned(),
            protocol_version: PROTOCOL_VERSION,
            load_balancers: true,
            has_cluster_id: true,
            ..Info::default()
        })
    }

    async fn get_load_balancer(&self, _cluster: &str, service: &RawValue) -> Result<LoadBalancer, CloudError> {
        let name = uid(service)?;
        sleep(self.latency).await;
        let status = self.lock().get(&name).map(|balancer| balancer.status.clone());
        Ok(LoadBalancer { name, status })
    }

    async fn ensure_load_balancer(
        &self,
        _cluster: &str,
        service: &RawValue,
        nodes: &[Box<RawValue>],
    ) -> Result<Box<RawValue>, CloudError> {
        let uid = uid(service)?;
        sleep(self.latency).await;
        // No packet goes there, so all may have the same.
        let status = to_raw_value(&json!({"ingress": [{"ip": "198.18.0.1"}]})).map_err(|error| failed(&error))?;
        self.lock().insert(uid, Balancer { status: status.clone(), nodes: nodes.len() });
        Ok(status)
    }

    async fn update_load_balancer(
        &self,
        _cluster: &str,
        service: &RawValue,
        nodes: &[Box<RawValue>],
    ) -> Result<(), CloudError> {
        let uid = uid(service)?;
        sleep(self.latency).await;
        match self.lock().get_mut(&uid) {
            Some(balancer) => balancer.nodes = nodes.len(),
            None => return Err(CloudError::Failed("there is no such load balancer".to_owned())),
        }
        Ok(())
    }

    async fn delete_load_balancer(&self, _cluster: &str, service: &RawValue) -> Result<(), CloudError> {
        let uid = uid(service)?;
        sleep(self.latency).await;
        self.lock().remove(&uid);
        Ok(())
    }
}

fn uid(service: &RawValue) -> Result<String, CloudError> {
    let Known { metadata: Metadata { uid } } = serde_json::from_str(service.get()).map_err(|error| failed(&error))?;
    Ok(uid)
}

fn failed(error: &serde_json::Error) -> CloudError {
    CloudError::Failed(error.to_string())
}
