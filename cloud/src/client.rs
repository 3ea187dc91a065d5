//! The calls of a controller to its provider.

use std::time::Duration;

use http::Uri;
use http::uri::PathAndQuery;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use crate::MESSAGE_MAX;
use crate::connector::Connector;
use crate::endpoint::Endpoint;
use crate::error::CloudError;
use crate::messages::{
    CreateRouteRequest, CreateRouteResponse, DeleteLoadBalancerRequest, DeleteLoadBalancerResponse, DeleteRouteRequest,
    DeleteRouteResponse, EnsureLoadBalancerRequest, EnsureLoadBalancerResponse, GetInfoRequest, GetInfoResponse,
    GetLoadBalancerRequest, GetLoadBalancerResponse, InstanceExistsRequest, InstanceExistsResponse,
    InstanceMetadataRequest, InstanceMetadataResponse, InstanceShutdownRequest, InstanceShutdownResponse,
    ListRoutesRequest, ListRoutesResponse, UpdateLoadBalancerRequest, UpdateLoadBalancerResponse,
};
use crate::methods::Method;
use crate::objects::{Info, InstanceMetadata, LoadBalancer, Route, written};

/// The interval of HTTP/2 pings while calls are in flight, and the time that an answer to one may take.
const SILENCE: Duration = Duration::from_secs(20);

/// Calls a provider. It connects when the first call needs it, and again after the connection broke; clones share it.
#[derive(Clone, Debug)]
pub struct Client {
    http: legacy::Client<Connector, Body>,
}

impl Client {
    pub fn new(endpoint: &Endpoint) -> Self {
        let http = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .http2_only(true)
            .http2_keep_alive_interval(SILENCE)
            .http2_keep_alive_timeout(SILENCE)
            .build(Connector::new(endpoint.clone()));
        Self { http }
    }

    pub async fn info(&self) -> Result<Info, CloudError> {
        let GetInfoResponse { name, protocol_version, load_balancers, instances, routes, has_cluster_id } =
            self.call(GetInfoRequest {}).await?;
        Ok(Info { name, protocol_version, load_balancers, instances, routes, has_cluster_id })
    }

    pub async fn get_load_balancer(&self, cluster: &str, service: &RawValue) -> Result<LoadBalancer, CloudError> {
        let request = GetLoadBalancerRequest { cluster_name: cluster.to_owned(), service: bytes(service) };
        let GetLoadBalancerResponse { name, status } = self.call(request).await?;
        Ok(LoadBalancer { name, status: status.map(|status| read(&status)).transpose()? })
    }

    /// Gives the status: a LoadBalancerStatus.
    pub async fn ensure_load_balancer<'a>(
        &self,
        cluster: &str,
        service: &RawValue,
        nodes: impl IntoIterator<Item = &'a RawValue>,
    ) -> Result<Box<RawValue>, CloudError> {
        let nodes = nodes.into_iter().map(bytes).collect();
        let request = EnsureLoadBalancerRequest { cluster_name: cluster.to_owned(), service: bytes(service), nodes };
        let EnsureLoadBalancerResponse { status } = self.call(request).await?;
        read(&status)
    }

    pub async fn update_load_balancer<'a>(
        &self,
        cluster: &str,
        service: &RawValue,
        nodes: impl IntoIterator<Item = &'a RawValue>,
    ) -> Result<(), CloudError> {
        let nodes = nodes.into_iter().map(bytes).collect();
        let request = UpdateLoadBalancerRequest { cluster_name: cluster.to_owned(), service: bytes(service), nodes };
        let UpdateLoadBalancerResponse {} = self.call(request).await?;
        Ok(())
    }

    pub async fn delete_load_balancer(&self, cluster: &str, service: &RawValue) -> Result<(), CloudError> {
        let request = DeleteLoadBalancerRequest { cluster_name: cluster.to_owned(), service: bytes(service) };
        let DeleteLoadBalancerResponse {} = self.call(request).await?;
        Ok(())
    }

    pub async fn instance_exists(&self, node: &RawValue) -> Result<bool, CloudError> {
        let InstanceExistsResponse { exists } = self.call(InstanceExistsRequest { node: bytes(node) }).await?;
        Ok(exists)
    }

    pub async fn instance_is_shutdown(&self, node: &RawValue) -> Result<bool, CloudError> {
        let InstanceShutdownResponse { is_shutdown } = self.call(InstanceShutdownRequest { node: bytes(node) }).await?;
        Ok(is_shutdown)
    }

    /// None if the provider has nothing to say about the node yet.
    pub async fn instance_metadata(&self, node: &RawValue) -> Result<Option<InstanceMetadata>, CloudError> {
        let InstanceMetadataResponse { metadata } = self.call(InstanceMetadataRequest { node: bytes(node) }).await?;
        metadata.map(|metadata| read(&metadata)).transpose()
    }

    pub async fn list_routes(&self, cluster: &str) -> Result<Vec<Route>, CloudError> {
        let ListRoutesResponse { routes } = self.call(ListRoutesRequest { cluster_name: cluster.to_owned() }).await?;
        routes.iter().map(|route| read(route)).collect()
    }

    pub async fn create_route(&self, cluster: &str, name_hint: &str, route: &Route) -> Result<(), CloudError> {
        let (cluster_name, name_hint) = (cluster.to_owned(), name_hint.to_owned());
        let request = CreateRouteRequest { cluster_name, name_hint, route: written(route)? };
        let CreateRouteResponse {} = self.call(request).await?;
        Ok(())
    }

    /// Deletes a route that [`Self::list_routes`] gave.
    pub async fn delete_route(&self, cluster: &str, route: &Route) -> Result<(), CloudError> {
        let request = DeleteRouteRequest { cluster_name: cluster.to_owned(), route: written(route)? };
        let DeleteRouteResponse {} = self.call(request).await?;
        Ok(())
    }

    pub(crate) async fn call<M: Method>(&self, message: M) -> Result<M::Response, CloudError> {
        self.call_within(message, M::DEADLINE).await
    }

    pub(crate) async fn call_within<M: Method>(
        &self,
        message: M,
        deadline: Duration,
    ) -> Result<M::Response, CloudError> {
        // The connector knows where the provider is; a request needs some address.
        let mut grpc = Grpc::with_origin(self.http.clone(), Uri::from_static("http://cloud-provider"))
            .max_decoding_message_size(MESSAGE_MAX);
        let mut request = Request::new(message);
        request.set_timeout(deadline);
        let answer = async {
            grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
            let codec: ProstCodec<M, M::Response> = ProstCodec::default();
            grpc.unary(request, PathAndQuery::from_static(M::PATH), codec).await
        };
        match timeout(deadline, answer).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(CloudError::of_status(&status)),
            Err(_) => {
                let what = format!("no answer to {} from the cloud provider in {deadline:?}", M::PATH);
                Err(CloudError::Failed(what))
            }
        }
    }
}

fn bytes(object: &RawValue) -> Vec<u8> {
    object.get().as_bytes().to_vec()
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CloudError> {
    serde_json::from_slice(bytes).map_err(|error| {
        CloudError::Failed(format!("the cloud provider's answer is not the JSON it should be: {error}"))
    })
}
