//! The calls of `cloud.proto`: the path of each, its messages, and its deadline.

use std::time::Duration;

use prost::Message;

use crate::messages::{
    CreateRouteRequest, CreateRouteResponse, DeleteLoadBalancerRequest, DeleteLoadBalancerResponse, DeleteRouteRequest,
    DeleteRouteResponse, EnsureLoadBalancerRequest, EnsureLoadBalancerResponse, GetInfoRequest, GetInfoResponse,
    GetLoadBalancerRequest, GetLoadBalancerResponse, InstanceExistsRequest, InstanceExistsResponse,
    InstanceMetadataRequest, InstanceMetadataResponse, InstanceShutdownRequest, InstanceShutdownResponse,
    ListRoutesRequest, ListRoutesResponse, UpdateLoadBalancerRequest, UpdateLoadBalancerResponse,
};

/// A cloud answers a question within this time.
const READ: Duration = Duration::from_mins(1);

/// A cloud needs minutes to make or to delete a load balancer.
const WRITE: Duration = Duration::from_mins(5);

/// A call, known by its request.
pub(crate) trait Method: Message + Default + 'static {
    type Response: Message + Default + 'static;
    const PATH: &'static str;
    const DEADLINE: Duration;
}

macro_rules! methods {
    ($($path:literal: $request:ty => $response:ty, $deadline:expr;)*) => {
        $(
            impl Method for $request {
                type Response = $response;
                const PATH: &'static str = $path;
                const DEADLINE: Duration = $deadline;
            }
        )*

        /// The path of each call, and its messages.
        #[cfg(test)]
        const METHODS: &[(&str, [tests::Shape; 2])] = &[
            $(($path, [tests::Shape::of::<$request>(stringify!($request)), tests::Shape::of::<$response>(stringify!($response))]),)*
        ];
    };
}

methods! {
    "/cloud.v1.Cloud/GetInfo": GetInfoRequest => GetInfoResponse, READ;
    "/cloud.v1.LoadBalancers/Get": GetLoadBalancerRequest => GetLoadBalancerResponse, READ;
    "/cloud.v1.LoadBalancers/Ensure": EnsureLoadBalancerRequest => EnsureLoadBalancerResponse, WRITE;
    "/cloud.v1.LoadBalancers/Update": UpdateLoadBalancerRequest => UpdateLoadBalancerResponse, WRITE;
    "/cloud.v1.LoadBalancers/Delete": DeleteLoadBalancerRequest => DeleteLoadBalancerResponse, WRITE;
    "/cloud.v1.Instances/Exists": InstanceExistsRequest => InstanceExistsResponse, READ;
    "/cloud.v1.Instances/Shutdown": InstanceShutdownRequest => InstanceShutdownResponse, READ;
    "/cloud.v1.Instances/Metadata": InstanceMetadataRequest => InstanceMetadataResponse, READ;
    "/cloud.v1.Routes/List": ListRoutesRequest => ListRoutesResponse, READ;
    "/cloud.v1.Routes/Create": CreateRouteRequest => CreateRouteResponse, WRITE;
    "/cloud.v1.Routes/Delete": DeleteRouteRequest => DeleteRouteResponse, WRITE;
}

#[cfg(test)]
mod tests;
