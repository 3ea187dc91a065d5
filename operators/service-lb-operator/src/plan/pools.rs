//! Which addresses a Service gets, keeps or loses. Pure.
//!
//! An address is kept as long as a pool has it and no older Service does. It does not move to a better pool. Without an
//! address, or where another one is wanted, the Service gets the first free one of the first pool that serves it.
//!
//! MetalLB: `convergeBalancer`, `controller/service.go`, and `internal/allocator/allocator.go`. There a Service whose
//! wish cannot be met loses its address; here it keeps it, because traffic may use it.

use std::cmp::Reverse;
use std::fmt;
use std::net::IpAddr;

use serde::Serialize;
use shared::api::cidr::Family;
use shared::api::intern::Text;
use shared::working::decisions::{self, Reasoned};

use crate::objects::address_pool::AddressPool;
use crate::objects::allocations::Allocations;
use crate::objects::pooled_service::{PooledService, Request, User};
use crate::observe::pools::Observed;

/// What is done about a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolsPlan {
    /// It is not for the pools.
    Leave,
    /// It was for the pools: it loses its addresses and its condition.
    Release,
    Give(AddressPlan),
}

/// The addresses that a Service has from now on. None are lost without a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPlan {
    /// In the order of the Service's families.
    pub addresses: Vec<IpAddr>,
    pub reason: AddressReason,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AddressReason {
    /// It has what it asks for.
    Kept { pool: Text },
    /// It gets what it asks for.
    Assigned { pool: Text },
    /// It has an address of a family, and no pool has one of its other family.
    OneFamily { pool: Text, missing: Family },
    /// No pool has its addresses, and they stay as they are until all pools are known.
    Unknown,
    /// It does not have what it asks for. What it has, it keeps.
    Unmet(Problem),
}

/// Why a Service does not have what it asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Problem {
    /// Its wish cannot be read.
    Invalid(String),
    /// No pool serves its class and its namespace.
    NoPool,
    /// No pool of this name serves it.
    NoSuchPool(Text),
    /// No pool that serves it has the address that it wants.
    NotInPool(IpAddr),
    /// Another Service has the address that it wants.
    InUse { address: IpAddr, by: String },
    /// All addresses of the pools that serve it are in use.
    Exhausted { pools: Vec<Text> },
}

impl Problem {
    /// The reason of the condition.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "InvalidRequest",
            Self::NoPool => "NoPool",
            Self::NoSuchPool(_) => "NoSuchPool",
            Self::NotInPool(_) => "NotInPool",
            Self::InUse { .. } => "AddressInUse",
            Self::Exhausted { .. } => "PoolExhausted",
        }
    }
}

impl AddressPlan {
    /// Whether the Service asks for more than it has, so that an address that becomes free may be for it.
    pub fn is_waiting(&self) -> bool {
        matches!(self.reason, AddressReason::Unmet(_) | AddressReason::OneFamily { .. })
    }
}

/// The addresses that one pool can give a Service, one for each of its families.
struct Offer<'a> {
    pool: &'a AddressPool,
    families: &'a [Family],
    addresses: Vec<Option<IpAddr>>,
    /// How many of them it has already.
    kept: usize,
}

pub fn plan(observed: &Observed, allocations: &Allocations) -> PoolsPlan {
    let PooledService { is_load_balancer, class, assigned, .. } = &*observed.service;
    if *is_load_balancer && observed.pools.serve_class(class.as_deref()) {
        return PoolsPlan::Give(Asked { observed, allocations }.plan());
    }
    // Its class may be that of a pool that cannot be read.
    let is_sure = !*is_load_balancer || observed.knows_all_pools();
    if assigned.is_some() && is_sure { PoolsPlan::Release } else { PoolsPlan::Leave }
}

#[derive(Clone, Copy)]
struct Asked<'a> {
    observed: &'a Observed,
    allocations: &'a Allocations,
}

impl<'a> Asked<'a> {
    fn plan(self) -> AddressPlan {
        let has = self.held_addresses();
        let has_lost_pool = || has.iter().any(|address| !self.is_served(*address));
        if !self.observed.knows_all_pools() && has_lost_pool() {
            return AddressPlan { addresses: has, reason: AddressReason::Unknown };
        }
        match self.best_offer(&has) {
            Ok(offer) => offer.accept(),
            Err(problem) => {
                let is_kept = |address: &IpAddr| self.is_served(*address) && self.has_family(Family::of(*address));
                let addresses = has.into_iter().filter(is_kept).collect();
                AddressPlan { addresses, reason: AddressReason::Unmet(problem) }
            }
        }
    }

    fn user(self) -> &'a User {
        &self.observed.service.user
    }

    /// The addresses that it has and that no older Service has a right to.
    fn held_addresses(self) -> Vec<IpAddr> {
        let mut addresses: Vec<IpAddr> = self.allocations.of(self.user()).to_vec();
        addresses.retain(|address| self.rival(*address, true).is_none());
        addresses
    }

    /// A Service that keeps this one from the address.
    fn rival(self, address: IpAddr, is_own: bool) -> Option<&'a User> {
        let user = self.user();
        let mut others = self.allocations.users(address).filter(|other| other.service != user.service);
        others.find(|other| !(user.may_share_with(other) || is_own && user.is_older_than(other)))
    }

    /// Whether the Service may have an address of this family. Without a request that can be read it may have any.
    fn has_family(self, family: Family) -> bool {
        self.observed.service.request.as_ref().map_or(true, |request| request.families.contains(&family))
    }

    fn serving(self) -> impl Iterator<Item = &'a AddressPool> {
        let Observed { service, namespace, pools, .. } = self.observed;
        pools.pools.iter().filter(move |pool| pool.serves(service.class.as_deref(), namespace))
    }

    fn is_served(self, address: IpAddr) -> bool {
        self.serving().any(|pool| pool.contains(address))
    }

    /// The offer that keeps most, is complete, and is of the most special pool.
    fn best_offer(self, has: &[IpAddr]) -> Result<Offer<'a>, Problem> {
        let request = self.observed.service.request.as_ref().map_err(|wrong| Problem::Invalid(wrong.clone()))?;
        let serving: Vec<&AddressPool> = self.serving().collect();
        if serving.is_empty() {
            return Err(Problem::NoPool);
        }
        let is_named = |pool: &&AddressPool| request.pool.as_ref().is_none_or(|name| *name == pool.name);
        let named: Vec<&AddressPool> = serving.into_iter().filter(is_named).collect();
        if let (true, Some(name)) = (named.is_empty(), &request.pool) {
            return Err(Problem::NoSuchPool(name.clone()));
        }
        let offers = named.iter().filter_map(|pool| self.offer(pool, request, has));
        let rank = |offer: &Offer<'_>| {
            let first = offer.addresses.first().is_some_and(Option::is_some);
            (offer.kept, offer.is_complete(), first, offer.pool.namespaces.is_some(), Reverse(offer.pool.name.clone()))
        };
        offers.max_by_key(rank).ok_or_else(|| self.why_nothing(request, &named))
    }

    /// What this pool can give, if that is enough.
    fn offer(self, pool: &'a AddressPool, request: &'a Request, has: &[IpAddr]) -> Option<Offer<'a>> {
        let is_open = pool.is_open_to(request);
        let address = |family: &Family| {
            if let Some(wanted) = request.wanted.iter().find(|address| Family::of(**address) == *family) {
                let is_usable = pool.contains(*wanted) && self.rival(*wanted, has.contains(wanted)).is_none();
                return is_usable.then_some(*wanted);
            }
            let own = has.iter().find(|address| Family::of(**address) == *family && pool.contains(**address));
            own.copied().or_else(|| is_open.then(|| self.new_address(pool, *family)).flatten())
        };
        let addresses: Vec<Option<IpAddr>> = request.families.iter().map(address).collect();
        let kept = addresses.iter().flatten().filter(|address| has.contains(address)).count();
        let offer = Offer { pool, families: &request.families, addresses, kept };
        let has_wanted = request.wanted.iter().all(|wanted| offer.addresses.contains(&Some(*wanted)));
        let is_enough = offer.is_complete() || request.is_one_enough && offer.addresses.iter().any(Option::is_some);
        (has_wanted && is_enough).then_some(offer)
    }

    /// An address that the Service may share, or the first one that nobody has.
    fn new_address(self, pool: &AddressPool, family: Family) -> Option<IpAddr> {
        let is_shared = |address: &IpAddr| self.user().sharing.is_some() && self.rival(*address, false).is_none();
        let shared = || pool.ranges(family).flat_map(|range| self.allocations.used(range)).find(is_shared);
        let free = || pool.ranges(family).find_map(|range| range.first_outside(self.allocations.used(range)));
        shared().or_else(free)
    }

    fn why_nothing(self, request: &Request, pools: &[&AddressPool]) -> Problem {
        for wanted in &request.wanted {
            if !pools.iter().any(|pool| pool.contains(*wanted)) {
                return Problem::NotInPool(*wanted);
            }
            let is_own = self.allocations.of(self.user()).contains(wanted);
            if let Some(rival) = self.rival(*wanted, is_own) {
                return Problem::InUse { address: *wanted, by: rival.service.to_string() };
            }
        }
        let open = pools.iter().filter(|pool| pool.is_open_to(request));
        let pools: Vec<Text> = open.map(|pool| pool.name.clone()).collect();
        if pools.is_empty() { Problem::NoPool } else { Problem::Exhausted { pools } }
    }
}

impl Offer<'_> {
    fn is_complete(&self) -> bool {
        self.addresses.iter().all(Option::is_some)
    }

    fn accept(self) -> AddressPlan {
        let missing = self.families.iter().zip(&self.addresses).find(|(_, address)| address.is_none());
        let (pool, missing) = (self.pool.name.clone(), missing.map(|(family, _)| *family));
        let addresses: Vec<IpAddr> = self.addresses.into_iter().flatten().collect();
        let reason = match missing {
            Some(missing) => AddressReason::OneFamily { pool, missing },
            None if self.kept == addresses.len() => AddressReason::Kept { pool },
            None => AddressReason::Assigned { pool },
        };
        AddressPlan { addresses, reason }
    }
}

/// Why a plan is as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// It is no Service of a class that the pools serve.
    NotForPools,
    NoLongerForPools,
    Addresses(AddressReason),
}

impl decisions::Reason for Reason {}

impl Reasoned for PoolsPlan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Leave => Reason::NotForPools,
            Self::Release => Reason::NoLongerForPools,
            Self::Give(plan) => Reason::Addresses(plan.reason.clone()),
        }
    }
}

impl fmt::Display for PoolsPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leave => write!(f, "nothing ({})", Reason::NotForPools),
            Self::Release => write!(f, "release its addresses ({})", Reason::NoLongerForPools),
            Self::Give(plan) => plan.fmt(f),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotForPools => f.write_str("no address pool serves its type and class"),
            Self::NoLongerForPools => f.write_str("no address pool serves its type and class any more"),
            Self::Addresses(reason) => reason.fmt(f),
        }
    }
}

impl fmt::Display for AddressPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.addresses {
            [] => f.write_str("no address")?,
            [first, rest @ ..] => {
                write!(f, "{first}")?;
                rest.iter().try_for_each(|address| write!(f, ", {address}"))?;
            }
        }
        write!(f, " ({})", self.reason)
    }
}

impl fmt::Display for AddressReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept { pool } => write!(f, "kept from the pool {pool}"),
            Self::Assigned { pool } => write!(f, "from the pool {pool}"),
            Self::OneFamily { pool, missing } => {
                write!(f, "from the pool {pool}; no pool has a free {missing} address")
            }
            Self::Unknown => f.write_str("unchanged until all pools can be read"),
            Self::Unmet(problem) => problem.fmt(f),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(wrong) => f.write_str(wrong),
            Self::NoPool => f.write_str("no address pool serves this class and namespace"),
            Self::NoSuchPool(name) => write!(f, "no address pool {name} serves this class and namespace"),
            Self::NotInPool(address) => write!(f, "{address} is in no address pool that serves this Service"),
            Self::InUse { address, by } => write!(f, "{address} is in use by the Service {by}"),
            Self::Exhausted { pools } => {
                let names: Vec<&str> = pools.iter().map(Text::as_str).collect();
                write!(f, "no address is free in {}", names.join(", "))
            }
        }
    }
}
