//! The load balancers of the cloud, through its provider.
//!
//! No write to the cloud is sent while another replica may lead. A shadow sends none. It assumes that the
//! controller it watches does, because it cannot see those calls.

use cloud::{Client, CloudError, Info};
use serde_json::value::RawValue;
use shared::transport::api_error::ApiError;
use shared::working::control::{Control, Elsewhere};

use crate::objects::{Ingress, Nodes, Service};

/// What the guards call a load balancer.
const RESOURCE: &str = "loadbalancers";

/// The calls about load balancers; cheap to clone.
#[derive(Clone)]
pub struct Balancers {
    pub(crate) client: Client,
    pub(crate) control: Control,
    /// The name of this cluster, for the provider.
    pub(crate) cluster: String,
    /// Whether it only looks at what another process does.
    pub(crate) is_shadow: bool,
}

/// Why a call about a load balancer failed.
#[derive(Debug)]
pub enum Failure {
    Cloud(CloudError),
    /// The call was not made: see [`Control::allow`].
    Refused(ApiError),
}

impl Balancers {
    pub async fn info(&self) -> Result<Info, CloudError> {
        self.client.info().await
    }

    /// The addresses of the load balancer of this Service; none if there is no load balancer.
    pub async fn get(&self, service: &RawValue) -> Result<Option<Ingress>, CloudError> {
        let balancer = self.client.get_load_balancer(&self.cluster, service).await?;
        balancer.status.map(|status| ingress(&status)).transpose()
    }

    /// Makes the load balancer as it should be, and gives its addresses. A shadow looks at the one that there is.
    pub async fn ensure(&self, service: &Service, whole: &RawValue, nodes: &Nodes) -> Result<Ingress, Failure> {
        if self.is_shadow {
            let found = self.get(whole).await.map_err(Failure::Cloud)?;
            return found.ok_or(Failure::Cloud(CloudError::ImplementedElsewhere));
        }
        self.allow(Elsewhere::Create, service)?;
        let nodes = nodes.all.iter().map(|node| &*node.whole);
        let status = self.client.ensure_load_balancer(&self.cluster, whole, nodes).await.map_err(Failure::Cloud)?;
        ingress(&status).map_err(Failure::Cloud)
    }

    /// Puts these Nodes behind the load balancer.
    pub async fn update(&self, service: &Service, whole: &RawValue, nodes: &Nodes) -> Result<(), Failure> {
        if self.is_shadow {
            return Ok(());
        }
        self.allow(Elsewhere::Create, service)?;
        let nodes = nodes.all.iter().map(|node| &*node.whole);
        self.client.update_load_balancer(&self.cluster, whole, nodes).await.map_err(Failure::Cloud)
    }

    pub async fn delete(&self, service: &Service, whole: &RawValue) -> Result<(), Failure> {
        if self.is_shadow {
            return Ok(());
        }
        self.allow(Elsewhere::Delete, service)?;
        self.client.delete_load_balancer(&self.cluster, whole).await.map_err(Failure::Cloud)
    }

    fn allow(&self, write: Elsewhere, service: &Service) -> Result<(), Failure> {
        self.control.allow(write, RESOURCE, service.metadata.key.as_str()).map_err(Failure::Refused)
    }
}

fn ingress(status: &RawValue) -> Result<Ingress, CloudError> {
    serde_json::from_str(status.get())
        .map_err(|error| CloudError::Failed(format!("the cloud provider's answer is no LoadBalancerStatus: {error}")))
}
