//! The messages of `cloud.proto`, field by field.
//!
//! They are written by hand, since they are few: generated code would need a compiler of the protocol in every build. The
//! tests compare them with the file.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetInfoRequest {}

#[derive(Clone, PartialEq, Message)]
#[expect(clippy::struct_excessive_bools, reason = "capabilities are independent")]
pub(crate) struct GetInfoResponse {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(uint32, tag = "2")]
    pub(crate) protocol_version: u32,
    #[prost(bool, tag = "3")]
    pub(crate) load_balancers: bool,
    #[prost(bool, tag = "4")]
    pub(crate) instances: bool,
    #[prost(bool, tag = "5")]
    pub(crate) routes: bool,
    #[prost(bool, tag = "6")]
    pub(crate) has_cluster_id: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetLoadBalancerRequest {
    #[prost(string, tag = "1")]
    pub(crate) cluster_name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) service: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetLoadBalancerResponse {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) status: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct EnsureLoadBalancerRequest {
    #[prost(string, tag = "1")]
    pub(crate) cluster_name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) service: Vec<u8>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub(crate) nodes: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct EnsureLoadBalancerResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) status: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct UpdateLoadBalancerRequest {
    #[prost(string, tag = "1")]
    pub(crate) cluster_name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) service: Vec<u8>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub(crate) nodes: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct UpdateLoadBalancerResponse {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteLoadBalancerRequest {
    #[prost(string, tag = "1")]
    pub(crate) cluster_name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) service: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteLoadBalancerResponse {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InstanceExistsRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) node: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InstanceExistsResponse {
    #[prost(bool, tag = "1")]
    pub(crate) exists: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InstanceShutdownRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) node: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InstanceShutdownResponse {
    #[prost(bool, tag = "1")]
    pub(crate) is_shutdown: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InstanceMetadataRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) node: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InstanceMetadataResponse {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(crate) metadata: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListRoutesRequest {
    #[prost(string, tag = "1")]
    pub(crate) cluster_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListRoutesResponse {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) routes: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CreateRouteRequest {
    #[prost(string, tag = "1")]
    pub(crate) cluster_name: String,
    #[prost(string, tag = "2")]
    pub(crate) name_hint: String,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) route: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CreateRouteResponse {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteRouteRequest {
    #[prost(string, tag = "1")]
    pub(crate) cluster_name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) route: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteRouteResponse {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ErrorDetail {
    #[prost(enumeration = "Reason", tag = "1")]
    pub(crate) reason: i32,
    #[prost(uint64, tag = "2")]
    pub(crate) retry_after_milliseconds: u64,
}

/// `ErrorDetail.Reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum Reason {
    Unspecified = 0,
    InstanceNotFound = 1,
    ImplementedElsewhere = 2,
    RetryAfter = 3,
}
