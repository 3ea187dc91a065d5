//! The views of a Service and of a Node: what decides about a load balancer, and the JSON that a provider gets.

pub mod address_pool;
pub mod address_range;
pub mod allocations;
pub mod ingress;
pub mod node;
pub mod pooled_service;
pub mod service;

use serde_json::value::RawValue;
use shared::api::raw::{RawObject, raw_of};
use shared::api::resource::Resource;

pub use ingress::Ingress;
pub use node::{Node, Nodes};
pub use service::Service;

pub const SERVICES: Resource = Resource::namespaced("", "v1", "Service", "services");

/// The finalizer of a Service that may have a load balancer. Upstream: `LoadBalancerCleanupFinalizer`.
pub const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// An object without its managedFields, and without the kind that only some answers of the apiserver have.
fn trimmed(object: &RawValue, edit: impl FnOnce(&mut RawObject<'_>)) -> serde_json::Result<Box<RawValue>> {
    let mut object = RawObject::parse(object)?;
    object.remove_managed_fields()?;
    object.remove("apiVersion");
    object.remove("kind");
    edit(&mut object);
    Ok(raw_of(&object))
}
