//! Reads one ServiceCIDR and, if it is being deleted, the addresses in it and the ServiceCIDRs that may keep these.

use std::sync::Arc;

use shared::api::object::Key;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};

use crate::objects::{ALLOCATED, IpAddress, ServiceCidr};

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub service_cidr: Arc<ServiceCidr>,
    /// The others that overlap it; empty if it is not being deleted.
    pub others: Vec<Arc<ServiceCidr>>,
    /// The allocated addresses in it; empty if it is not being deleted.
    pub addresses: Vec<Arc<IpAddress>>,
}

pub struct Caches {
    /// All ServiceCIDRs. A cluster has few, so they need no index.
    pub service_cidrs: Arc<Cache<ServiceCidr>>,
    /// The allocated addresses, while a ServiceCIDR is being deleted.
    pub ip_addresses: Arc<Cache<IpAddress>>,
}

pub struct Informers {
    pub(crate) service_cidrs: Informer<ServiceCidr>,
    pub(crate) ip_addresses: Informer<IpAddress>,
}

impl Caches {
    pub fn new() -> (Self, Informers) {
        let service_cidrs = InformerBuilder::new().build();
        let ip_addresses = InformerBuilder::new().metadata_only().labels(ALLOCATED).build();
        let caches = Self { service_cidrs: service_cidrs.cache(), ip_addresses: ip_addresses.cache() };
        (caches, Informers { service_cidrs, ip_addresses })
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let service_cidr = self.service_cidrs.get(key)?;
        if !service_cidr.metadata.is_being_deleted() {
            return Some(Observed { service_cidr, others: Vec::new(), addresses: Vec::new() });
        }
        let others = self.overlapping(&service_cidr);
        let mut addresses = self.ip_addresses.all();
        addresses.retain(|address| service_cidr.has_allocated(address));
        Some(Observed { service_cidr, others, addresses })
    }

    /// The other ServiceCIDRs that overlap this one.
    ///
    /// Upstream: `overlappingServiceCIDRs`, `pkg/controller/servicecidrs/servicecidrs_controller.go`.
    pub fn overlapping(&self, service_cidr: &ServiceCidr) -> Vec<Arc<ServiceCidr>> {
        let mut found = self.service_cidrs.all();
        found.retain(|other| other.metadata.key != service_cidr.metadata.key && other.overlaps(service_cidr));
        found
    }

    /// The ServiceCIDRs that contain this address.
    ///
    /// Upstream: `containingServiceCIDRs`, `pkg/controller/servicecidrs/servicecidrs_controller.go`.
    pub fn containing(&self, address: &IpAddress) -> Vec<Arc<ServiceCidr>> {
        let mut found = self.service_cidrs.all();
        found.retain(|service_cidr| address.address.is_some_and(|address| service_cidr.contains(address)));
        found
    }
}
