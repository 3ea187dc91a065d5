//! Which Service has which address: those that its status shows, and those that were given to it since.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use shared::api::object::{Key, Uid};

use super::address_range::AddressRange;
use super::pooled_service::User;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    by_service: BTreeMap<Key, Allocation>,
    by_address: BTreeMap<IpAddr, BTreeSet<Key>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Allocation {
    user: User,
    /// As the status shows them.
    shown: Vec<IpAddr>,
    /// What it was given, until the status shows that.
    given: Option<Vec<IpAddr>>,
}

impl Allocation {
    /// All addresses that may be in use: a write may be on its way.
    fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.shown.iter().chain(self.given.iter().flatten()).copied()
    }
}

impl Allocations {
    /// Notes the state of a Service. What it was given stays, unless the Service is another one or shows it.
    pub fn show(&mut self, user: &User, shown: &[IpAddr]) {
        let known = self.by_service.get(&user.service).filter(|known| known.user.uid == user.uid);
        let given = known.and_then(|known| known.given.clone()).filter(|given| given != shown);
        self.put(Allocation { user: user.clone(), shown: shown.to_vec(), given });
    }

    /// Notes that a Service gets these addresses, in place of what it was given before.
    pub fn give(&mut self, user: &User, addresses: &[IpAddr]) {
        let known = self.by_service.get(&user.service).filter(|known| known.user.uid == user.uid);
        let shown = known.map(|known| known.shown.clone()).unwrap_or_default();
        let given = Some(addresses.to_vec()).filter(|given| *given != shown);
        self.put(Allocation { user: user.clone(), shown, given });
    }

    /// Forgets a Service that is gone, unless another one has its name.
    pub fn forget(&mut self, service: &Key, uid: Uid) {
        if self.by_service.get(service).is_some_and(|known| known.user.uid == uid) {
            self.take(service);
        }
    }

    /// Forgets what was given and is in no status.
    pub fn forget_given(&mut self) {
        for allocation in std::mem::take(self).by_service.into_values() {
            self.put(Allocation { given: None, ..allocation });
        }
    }

    /// What the Service was given last, or else what its status shows.
    pub fn of(&self, user: &User) -> &[IpAddr] {
        let known = self.by_service.get(&user.service).filter(|known| known.user.uid == user.uid);
        known.map(|known| known.given.as_ref().unwrap_or(&known.shown).as_slice()).unwrap_or_default()
    }

    /// The Services that have this address.
    pub fn users(&self, address: IpAddr) -> impl Iterator<Item = &User> {
        let services = self.by_address.get(&address).into_iter().flatten();
        services.filter_map(|service| self.by_service.get(service)).map(|allocation| &allocation.user)
    }

    /// The addresses of a range that are in use, in order.
    pub fn used(&self, range: AddressRange) -> impl Iterator<Item = IpAddr> {
        self.by_address.range(range.addresses()).map(|(address, _)| *address)
    }

    /// The other Services that have an address of this one.
    pub fn neighbours(&self, service: &Key) -> BTreeSet<Key> {
        let addresses = self.by_service.get(service).into_iter().flat_map(Allocation::addresses);
        let services = addresses.filter_map(|address| self.by_address.get(&address)).flatten();
        services.filter(|other| *other != service).cloned().collect()
    }

    fn put(&mut self, allocation: Allocation) {
        let service = allocation.user.service.clone();
        self.take(&service);
        for address in allocation.addresses() {
            self.by_address.entry(address).or_default().insert(service.clone());
        }
        self.by_service.insert(service, allocation);
    }

    fn take(&mut self, service: &Key) {
        let Some(allocation) = self.by_service.remove(service) else { return };
        for address in allocation.addresses() {
            if let Some(services) = self.by_address.get_mut(&address) {
                services.remove(service);
                if services.is_empty() {
                    self.by_address.remove(&address);
                }
            }
        }
    }
}
