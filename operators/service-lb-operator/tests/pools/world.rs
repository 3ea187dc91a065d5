//! Services and pools as values, and a sync without a cluster.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use service_lb_operator::objects::address_pool::{AddressPools, POOLS_CLASS};
use service_lb_operator::objects::allocations::Allocations;
use service_lb_operator::objects::pooled_service::{PooledService, SHARING_KEY, WANTED_ADDRESSES, WANTED_POOL};
use service_lb_operator::observe::pools::Observed;
use service_lb_operator::plan::pools::{AddressPlan, PoolsPlan, plan};
use shared::api::labels::Labels;

pub(crate) struct World {
    pub(crate) pools: Arc<AddressPools>,
    pub(crate) is_configured: bool,
    pub(crate) services: BTreeMap<String, Value>,
    pub(crate) allocations: Allocations,
    /// How many Services were created.
    created: u32,
}

/// A Service of one family with a port 80.
pub(crate) fn service() -> Value {
    json!({
        "metadata": {"namespace": "shop", "annotations": {}},
        "spec": {
            "type": "LoadBalancer", "loadBalancerClass": POOLS_CLASS, "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "externalTrafficPolicy": "Cluster", "selector": {"app": "web"},
            "ports": [{"protocol": "TCP", "port": 80}],
        },
        "status": {"loadBalancer": {}},
    })
}

/// Builders of what a Service asks for.
pub(crate) trait Asking: Sized {
    fn families(self, families: &[&str], policy: &str) -> Self;
    fn annotated(self, key: &str, value: &str) -> Self;
    fn port(self, port: u16) -> Self;
    fn wants(self, addresses: &str) -> Self {
        self.annotated(WANTED_ADDRESSES, addresses)
    }
    fn of_pool(self, pool: &str) -> Self {
        self.annotated(WANTED_POOL, pool)
    }
    fn sharing(self, key: &str) -> Self {
        self.annotated(SHARING_KEY, key)
    }
}

impl Asking for Value {
    fn families(mut self, families: &[&str], policy: &str) -> Self {
        self["spec"]["ipFamilies"] = json!(families);
        self["spec"]["ipFamilyPolicy"] = json!(policy);
        self
    }

    fn annotated(mut self, key: &str, value: &str) -> Self {
        self["metadata"]["annotations"][key] = json!(value);
        self
    }

    fn port(mut self, port: u16) -> Self {
        self["spec"]["ports"] = json!([{"protocol": "TCP", "port": port}]);
        self
    }
}

impl World {
    /// A world with these pools, each with its JSON.
    pub(crate) fn new(pools: &[(&str, Value)]) -> Self {
        let mut world = Self {
            pools: Arc::default(),
            is_configured: true,
            services: BTreeMap::new(),
            allocations: Allocations::default(),
            created: 0,
        };
        world.configure(pools);
        world
    }

    pub(crate) fn configure(&mut self, pools: &[(&str, Value)]) {
        let data = pools.iter().map(|(name, pool)| ((*name).to_owned(), pool.to_string()));
        self.pools = Arc::new(AddressPools::parse(&data.collect()));
    }

    /// Creates a Service; a later one is younger.
    pub(crate) fn create(&mut self, name: &str, mut service: Value) {
        self.created += 1;
        service["metadata"]["name"] = json!(name);
        service["metadata"]["uid"] = json!(format!("00000000-0000-0000-0000-{:012}", self.created));
        service["metadata"]["creationTimestamp"] =
            json!(format!("2026-01-01T{:02}:{:02}:00Z", self.created / 60 % 24, self.created % 60));
        self.services.insert(name.to_owned(), service);
        self.note(name);
    }

    /// Changes what a Service asks for. Its identity and its status stay.
    pub(crate) fn edit(&mut self, name: &str, mut service: Value) {
        let Some(old) = self.services.get_mut(name) else { return };
        let (annotations, spec) = (service["metadata"]["annotations"].take(), service["spec"].take());
        old["metadata"]["annotations"] = annotations;
        old["spec"] = spec;
        self.note(name);
    }

    pub(crate) fn delete(&mut self, name: &str) {
        if let Some(service) = self.services.remove(name) {
            let service: PooledService = serde_json::from_value(service).unwrap();
            self.allocations.forget(&service.metadata.key, service.metadata.uid);
        }
    }

    /// Writes addresses to a status, as the operator or somebody else does.
    pub(crate) fn show(&mut self, name: &str, addresses: &[IpAddr]) {
        let Some(service) = self.services.get_mut(name) else { return };
        let ingress: Vec<Value> = addresses.iter().map(|address| json!({"ip": address, "ipMode": "VIP"})).collect();
        service["status"]["loadBalancer"] = json!({"ingress": ingress});
        self.note(name);
    }

    fn note(&mut self, name: &str) {
        let service = self.view(name);
        self.allocations.show(&service.user, &service.addresses);
    }

    pub(crate) fn view(&self, name: &str) -> Arc<PooledService> {
        Arc::new(serde_json::from_value(self.services[name].clone()).unwrap())
    }

    pub(crate) fn plan(&self, name: &str) -> PoolsPlan {
        self.plan_with(name, &self.allocations)
    }

    pub(crate) fn plan_with(&self, name: &str, allocations: &Allocations) -> PoolsPlan {
        let observed = Observed {
            service: self.view(name),
            namespace: Labels::new([("team", "shop")]),
            pools: Arc::clone(&self.pools),
            is_configured: self.is_configured,
        };
        plan(&observed, allocations)
    }

    /// One sync; its write may be lost. Gives whether the status changed.
    pub(crate) fn sync(&mut self, name: &str, is_written: bool) -> bool {
        if !self.services.contains_key(name) {
            return false;
        }
        let PoolsPlan::Give(AddressPlan { addresses, reason: _ }) = self.plan(name) else { return false };
        let service = self.view(name);
        self.allocations.give(&service.user, &addresses);
        let is_new = *service.addresses != *addresses;
        if is_written && is_new {
            self.show(name, &addresses);
        }
        is_new
    }

    /// Syncs all Services until nothing changes.
    pub(crate) fn settle(&mut self) {
        let names: Vec<String> = self.services.keys().cloned().collect();
        let mut is_at_rest = || names.iter().filter(|name| self.sync(name, true)).count() == 0;
        assert!((0..=2 * names.len()).any(|_| is_at_rest()), "the Services do not come to rest");
    }

    /// What a new process knows: the Services alone, in any order.
    pub(crate) fn remembered<'a>(&self, names: impl IntoIterator<Item = &'a String>) -> Allocations {
        let mut allocations = Allocations::default();
        for name in names {
            let service = self.view(name);
            allocations.show(&service.user, &service.addresses);
        }
        allocations
    }

    pub(crate) fn addresses(&self, name: &str) -> Vec<IpAddr> {
        self.view(name).addresses.to_vec()
    }
}
