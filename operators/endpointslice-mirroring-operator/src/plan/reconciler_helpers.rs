//! The desired endpoints, grouped by address type and ports.
//!
//! Upstream: `pkg/controller/endpointslicemirroring/reconciler_helpers.go`.

use std::collections::BTreeMap;

use shared::controllers::endpoints::slice::{PortMapKey, port_map_key};
use shared::controllers::endpoints::subset::{pack, parts};

use super::utils::{EndpointKey, address_to_endpoint, endpoint_key, endpoint_ports};
use crate::objects::{AddressType, Endpoint, EndpointPort, Endpoints, Subset};

/// The address type and ports of a group.
///
/// Upstream: `addrTypePortMapKey`, `utils.go`.
pub(super) type GroupKey = (AddressType, PortMapKey);

/// A desired group, which may have no endpoints.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) ports: Vec<EndpointPort>,
    pub(super) endpoints: BTreeMap<EndpointKey, Endpoint>,
}

/// All desired groups.
///
/// Upstream: `desiredCalc`.
#[derive(Debug, Default)]
pub(super) struct Desired {
    pub(super) groups: BTreeMap<GroupKey, Wanted>,
    pub(super) skipped: usize,
    /// The number of these that are not IPs; addresses above the limit are not checked.
    pub(super) invalid: usize,
}

impl Desired {
    /// The groups of Endpoints with at most `max` addresses of each subset, ready ones first.
    ///
    /// Upstream: `reconcile`, `reconciler.go`.
    pub(super) fn of(endpoints: &Endpoints, max: usize) -> Self {
        let mut desired = Self::default();
        for subset in pack(parts(&endpoints.subsets)) {
            desired.add(&subset, max);
        }
        desired
    }

    fn add(&mut self, subset: &Subset, max: usize) {
        let ports = endpoint_ports(&subset.ports);
        let key = port_map_key(&ports);
        for address_type in [AddressType::IPv4, AddressType::IPv6] {
            let wanted = || Wanted { ports: ports.clone(), endpoints: BTreeMap::new() };
            self.groups.entry((address_type, key.clone())).or_insert_with(wanted);
        }
        let ready = subset.addresses.iter().map(|address| (address, true));
        let not_ready = subset.not_ready_addresses.iter().map(|address| (address, false));
        let mut left = max;
        for (address, is_ready) in ready.chain(not_ready) {
            if left == 0 {
                self.skipped += 1;
                continue;
            }
            let Some((address_type, endpoint)) = address_to_endpoint(address, is_ready) else {
                self.skipped += 1;
                self.invalid += 1;
                continue;
            };
            left -= 1;
            let group = self.groups.get_mut(&(address_type, key.clone()));
            if let (Some(group), Some(key)) = (group, endpoint_key(&endpoint)) {
                group.endpoints.insert(key, endpoint);
            }
        }
    }
}
