//! The side of a provider: a trait with the calls, and a server for it.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixListener;
use tonic::body::Body;
use tonic::server::Grpc;
use tonic_prost::ProstCodec;

use crate::MESSAGE_MAX;
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

/// A cloud. Its calls have the contract of `cloud.proto`; those of a capability that it lacks may be left out.
///
/// A call is dropped where it stands when its controller goes away or its deadline has passed.
pub trait Provider: Send + Sync + 'static {
    fn info(&self) -> impl Future<Output = Result<Info, CloudError>> + Send;

    fn get_load_balancer(
        &self,
        _cluster: &str,
        _service: &RawValue,
    ) -> impl Future<Output = Result<LoadBalancer, CloudError>> + Send {
        async { Err(CloudError::NotSupported) }
    }

    fn ensure_load_balancer(
        &self,
        _cluster: &str,
        _service: &RawValue,
        _nodes: &[Box<RawValue>],
    ) -> impl Future<Output = Result<Box<RawValue>, CloudError>> + Send {
        async { Err(CloudError::NotSupported) }
    }

    fn update_load_balancer(
        &self,
        _cluster: &str,
        _service: &RawValue,
        _nodes: &[Box<RawValue>],
    ) -> impl Future<Output = Result<(), CloudError>> + Send {
        async { Err(CloudError::NotSupported) }
    }

    fn delete_load_balancer(
        &self,
        _cluster: &str,
        _service: &RawValue,
    ) -> impl Future<Output = Result<(), CloudError>> + Send {
        async { Err(CloudError::NotSupported) }
    }

    fn instance_exists(&self, _node: &RawValue) -> impl Future<Output = Result<bool, CloudError>> + Send {
        async { Err(CloudError::NotSupported) }
    }

    fn instance_is_shutdown(&self, _node: &RawValue) -> impl Future<Output = Result<bool, CloudError>> + Send {
        async { Err(CloudError::NotSupported) }
    }

    fn instance_metadata(
        &self,
        _node: &RawValue,
    ) -> impl Future<Output = Result<Option<InstanceMetadata>, CloudError>> + Send {
        async { Err(CloudError::NotSupported) }
    }

    fn list_routes(&self, _cluster: &str) -> impl Future<Output = Result<Vec<Route>, CloudError>> + Send {
        async { Err(CloudError::NotSupported) }
    }

    fn create_route(
        &self,
        _cluster: &str,
        _name_hint: &str,
        _route: &Route,
    ) -> impl Future<Output = Result<(), CloudError>> + Send {
        async { Err(CloudError::NotSupported) }
    }

    fn delete_route(&self, _cluster: &str, _route: &Route) -> impl Future<Output = Result<(), CloudError>> + Send {
        async { Err(CloudError::NotSupported) }
    }
}

/// Serves a provider on a Unix socket, until accepting fails.
pub async fn serve<P: Provider>(listener: UnixListener, provider: Arc<P>) -> io::Error {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let provider = Arc::clone(&provider);
                tokio::spawn(async move { serve_connection(stream, provider).await });
            }
            Err(error) => return error,
        }
    }
}

/// Serves a provider on one connection, until that ends.
pub async fn serve_connection<P: Provider>(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    provider: Arc<P>,
) -> hyper::Result<()> {
    let service = service_fn(move |request| {
        let provider = Arc::clone(&provider);
        async move { Ok::<_, Infallible>(route(provider, request).await) }
    });
    http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await
}

async fn route<P: Provider>(provider: Arc<P>, request: Request<Incoming>) -> Response<Body> {
    match request.uri().path() {
        GetInfoRequest::PATH => unary::<GetInfoRequest, P>(provider, request).await,
        GetLoadBalancerRequest::PATH => unary::<GetLoadBalancerRequest, P>(provider, request).await,
        EnsureLoadBalancerRequest::PATH => unary::<EnsureLoadBalancerRequest, P>(provider, request).await,
        UpdateLoadBalancerRequest::PATH => unary::<UpdateLoadBalancerRequest, P>(provider, request).await,
        DeleteLoadBalancerRequest::PATH => unary::<DeleteLoadBalancerRequest, P>(provider, request).await,
        InstanceExistsRequest::PATH => unary::<InstanceExistsRequest, P>(provider, request).await,
        InstanceShutdownRequest::PATH => unary::<InstanceShutdownRequest, P>(provider, request).await,
        InstanceMetadataRequest::PATH => unary::<InstanceMetadataRequest, P>(provider, request).await,
        ListRoutesRequest::PATH => unary::<ListRoutesRequest, P>(provider, request).await,
        CreateRouteRequest::PATH => unary::<CreateRouteRequest, P>(provider, request).await,
        DeleteRouteRequest::PATH => unary::<DeleteRouteRequest, P>(provider, request).await,
        _ => CloudError::NotSupported.to_status().into_http(),
    }
}

async fn unary<M: Answered, P: Provider>(provider: Arc<P>, request: Request<Incoming>) -> Response<Body> {
    let codec: ProstCodec<M::Response, M> = ProstCodec::default();
    let answer = tower::service_fn(move |request: tonic::Request<M>| {
        let provider = Arc::clone(&provider);
        async move {
            let answer = request.into_inner().answer(&*provider).await;
            answer.map(tonic::Response::new).map_err(|error| error.to_status())
        }
    });
    Grpc::new(codec).max_decoding_message_size(MESSAGE_MAX).unary(answer, request).await
}

/// A call with the way to its answer.
trait Answered: Method {
    fn answer(self, provider: &impl Provider) -> impl Future<Output = Result<Self::Response, CloudError>> + Send;
}

impl Answered for GetInfoRequest {
    async fn answer(self, provider: &impl Provider) -> Result<GetInfoResponse, CloudError> {
        let Info { name, protocol_version, load_balancers, instances, routes, has_cluster_id } =
            provider.info().await?;
        Ok(GetInfoResponse { name, protocol_version, load_balancers, instances, routes, has_cluster_id })
    }
}

impl Answered for GetLoadBalancerRequest {
    async fn answer(self, provider: &impl Provider) -> Result<GetLoadBalancerResponse, CloudError> {
        let service: Box<RawValue> = read(&self.service)?;
        let LoadBalancer { name, status } = provider.get_load_balancer(&self.cluster_name, &service).await?;
        Ok(GetLoadBalancerResponse { name, status: status.map(bytes) })
    }
}

impl Answered for EnsureLoadBalancerRequest {
    async fn answer(self, provider: &impl Provider) -> Result<EnsureLoadBalancerResponse, CloudError> {
        let (service, nodes): (Box<RawValue>, _) = (read(&self.service)?, read_all(&self.nodes)?);
        let status = provider.ensure_load_balancer(&self.cluster_name, &service, &nodes).await?;
        Ok(EnsureLoadBalancerResponse { status: bytes(status) })
    }
}

impl Answered for UpdateLoadBalancerRequest {
    async fn answer(self, provider: &impl Provider) -> Result<UpdateLoadBalancerResponse, CloudError> {
        let (service, nodes): (Box<RawValue>, _) = (read(&self.service)?, read_all(&self.nodes)?);
        provider.update_load_balancer(&self.cluster_name, &service, &nodes).await?;
        Ok(UpdateLoadBalancerResponse {})
    }
}

impl Answered for DeleteLoadBalancerRequest {
    async fn answer(self, provider: &impl Provider) -> Result<DeleteLoadBalancerResponse, CloudError> {
        let service: Box<RawValue> = read(&self.service)?;
        provider.delete_load_balancer(&self.cluster_name, &service).await?;
        Ok(DeleteLoadBalancerResponse {})
    }
}

impl Answered for InstanceExistsRequest {
    async fn answer(self, provider: &impl Provider) -> Result<InstanceExistsResponse, CloudError> {
        let node: Box<RawValue> = read(&self.node)?;
        Ok(InstanceExistsResponse { exists: provider.instance_exists(&node).await? })
    }
}

impl Answered for InstanceShutdownRequest {
    async fn answer(self, provider: &impl Provider) -> Result<InstanceShutdownResponse, CloudError> {
        let node: Box<RawValue> = read(&self.node)?;
        Ok(InstanceShutdownResponse { is_shutdown: provider.instance_is_shutdown(&node).await? })
    }
}

impl Answered for InstanceMetadataRequest {
    async fn answer(self, provider: &impl Provider) -> Result<InstanceMetadataResponse, CloudError> {
        let node: Box<RawValue> = read(&self.node)?;
        let metadata = provider.instance_metadata(&node).await?;
        Ok(InstanceMetadataResponse { metadata: metadata.as_ref().map(written).transpose()? })
    }
}

impl Answered for ListRoutesRequest {
    async fn answer(self, provider: &impl Provider) -> Result<ListRoutesResponse, CloudError> {
        let routes = provider.list_routes(&self.cluster_name).await?;
        Ok(ListRoutesResponse { routes: routes.iter().map(written).collect::<Result<_, _>>()? })
    }
}

impl Answered for CreateRouteRequest {
    async fn answer(self, provider: &impl Provider) -> Result<CreateRouteResponse, CloudError> {
        provider.create_route(&self.cluster_name, &self.name_hint, &read(&self.route)?).await?;
        Ok(CreateRouteResponse {})
    }
}

impl Answered for DeleteRouteRequest {
    async fn answer(self, provider: &impl Provider) -> Result<DeleteRouteResponse, CloudError> {
        provider.delete_route(&self.cluster_name, &read(&self.route)?).await?;
        Ok(DeleteRouteResponse {})
    }
}

fn bytes(object: Box<RawValue>) -> Vec<u8> {
    Box::<str>::from(object).into_string().into_bytes()
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CloudError> {
    serde_json::from_slice(bytes)
        .map_err(|error| CloudError::Failed(format!("the call is not the JSON it should be: {error}")))
}

fn read_all(objects: &[Vec<u8>]) -> Result<Vec<Box<RawValue>>, CloudError> {
    objects.iter().map(|object| read(object)).collect()
}
