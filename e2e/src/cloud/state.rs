//! What exists in the scriptable cloud, and how each call reads or changes it. Pure.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The first address of balancers: the range of benchmarks, which no network routes.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CloudState {
    /// Nodes that are not in `instances` have no instance either.
    pub only_listed_exist: bool,
    /// By the name of the node.
    pub instances: BTreeMap<String, Instance>,
    pub balancers: BTreeMap<String, Balancer>,
    /// By name.
    pub routes: BTreeMap<String, Route>,
    /// How many addresses balancers have got. None is given twice.
    pub given_addresses: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Instance {
    pub exists: bool,
    pub is_shutdown: bool,
    pub provider_id: String,
    pub instance_type: String,
    pub zone: String,
    pub region: String,
    /// Entries of `status.addresses` of a Node. Without any, the node keeps those it has.
    pub addresses: Vec<Value>,
    pub labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Balancer {
    /// The Service, as `namespace/name`.
    pub service: String,
    pub uid: String,
    pub address: String,
    /// The numbers of the Service's ports.
    pub ports: Vec<Value>,
    /// The names of the nodes behind it.
    pub nodes: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Route {
    pub target_node: String,
    pub destination_cidr: String,
    pub blackhole: bool,
}

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Made,
    Changed,
    Deleted,
    Nothing,
}

impl Change {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
            Self::Nothing => "",
        }
    }
}

impl Default for Instance {
    fn default() -> Self {
        Self {
            exists: true,
            is_shutdown: false,
            provider_id: String::new(),
            instance_type: "scripted.small".to_owned(),
            zone: "zone-a".to_owned(),
            region: "region".to_owned(),
            addresses: Vec::new(),
            labels: BTreeMap::new(),
        }
    }
}

impl CloudState {
    /// The instance of a Node. A Node that is not listed has one, unless only listed ones exist.
    pub fn instance(&self, node: &Value) -> Option<Instance> {
        let name = text(node, "/metadata/name");
        let mut instance = match self.instances.get(name) {
            Some(listed) => listed.clone(),
            None if self.only_listed_exist => return None,
            None => Instance::default(),
        };
        if instance.provider_id.is_empty() {
            instance.provider_id = format!("scripted://{name}");
        }
        if instance.addresses.is_empty() {
            instance.addresses =
                node.pointer("/status/addresses").and_then(Value::as_array).cloned().unwrap_or_default();
        }
        instance.exists.then_some(instance)
    }

    pub fn balancer(&self, service: &Value) -> Option<&Balancer> {
        self.balancers.get(&balancer_name(service))
    }

    /// Make the balancer of a Service, or bring it up to date; gives the status of the Service.
    pub fn ensure_balancer(&mut self, service: &Value, nodes: Vec<String>) -> (Value, Change) {
        let name = balancer_name(service);
        let address = match self.balancers.get(&name) {
            Some(known) => known.address.clone(),
            None => self.give_address(),
        };
        let status = status(&address);
        let balancer = Balancer { address, nodes, ..described(service) };
        (status, self.put_balancer(name, balancer))
    }

    /// Give the balancer of a Service other nodes; none if there is no balancer.
    pub fn update_balancer(&mut self, service: &Value, nodes: Vec<String>) -> Option<Change> {
        let known = self.balancer(service)?;
        let balancer = Balancer { address: known.address.clone(), nodes, ..described(service) };
        Some(self.put_balancer(balancer_name(service), balancer))
    }

    pub fn delete_balancer(&mut self, service: &Value) -> Change {
        if self.balancers.remove(&balancer_name(service)).is_some() { Change::Deleted } else { Change::Nothing }
    }

    /// Two routes of one node to one destination are the same one, whatever they are called.
    pub fn create_route(&mut self, name_hint: &str, route: Route) -> Change {
        if self.routes.values().any(|known| *known == route) {
            return Change::Nothing;
        }
        self.routes.insert(format!("{name_hint}-{}", route.destination_cidr), route);
        Change::Made
    }

    pub fn delete_route(&mut self, name: &str) -> Change {
        if self.routes.remove(name).is_some() { Change::Deleted } else { Change::Nothing }
    }

    fn put_balancer(&mut self, name: String, balancer: Balancer) -> Change {
        let change = match self.balancers.get(&name) {
            None => Change::Made,
            Some(known) if *known == balancer => Change::Nothing,
            Some(_) => Change::Changed,
        };
        self.balancers.insert(name, balancer);
        change
    }

    fn give_address(&mut self) -> String {
        let address = u32::from(FIRST_ADDRESS).wrapping_add(self.given_addresses);
        self.given_addresses = self.given_addresses.wrapping_add(1);
        Ipv4Addr::from(address).to_string()
    }
}

/// Upstream: `DefaultLoadBalancerName`, `staging/src/k8s.io/cloud-provider/cloud.go`.
pub(super) fn balancer_name(service: &Value) -> String {
    let uid = text(service, "/metadata/uid").chars().filter(|letter| *letter != '-');
    std::iter::once('a').chain(uid).take(32).collect()
}

/// The status of a Service whose balancer has this address.
pub(super) fn status(address: &str) -> Value {
    json!({"ingress": [{"ip": address, "ipMode": "VIP"}]})
}

/// A balancer of this Service, without an address and nodes.
fn described(service: &Value) -> Balancer {
    let ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    Balancer {
        service: format!("{}/{}", text(service, "/metadata/namespace"), text(service, "/metadata/name")),
        uid: text(service, "/metadata/uid").to_owned(),
        ports: ports.filter_map(|port| port.get("port")).cloned().collect(),
        ..Balancer::default()
    }
}

/// A text of an object, empty if it has none there.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(uid: &str) -> Value {
        json!({"metadata": {"namespace": "shop", "name": "web", "uid": uid}, "spec": {"ports": [{"port": 80}]}})
    }

    fn nodes(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_balancer_is_made_once_for_a_uid_and_keeps_its_address() {
        let mut cloud = CloudState::default();
        let (status, change) = cloud.ensure_balancer(&service("u-1"), nodes(&["a"]));
        assert_eq!((status["ingress"][0]["ip"].as_str(), change), (Some("198.18.0.1"), Change::Made));
        assert_eq!(cloud.ensure_balancer(&service("u-1"), nodes(&["a"])), (status.clone(), Change::Nothing));
        assert_eq!(cloud.ensure_balancer(&service("u-1"), nodes(&["b"])), (status, Change::Changed));
        let (other, change) = cloud.ensure_balancer(&service("u-2"), nodes(&["a"]));
        assert_eq!((other["ingress"][0]["ip"].as_str(), change), (Some("198.18.0.2"), Change::Made));
        assert_eq!(cloud.balancers["au1"].service, "shop/web");
    }

    #[test]
    fn a_deleted_balancer_is_not_updated_and_its_address_is_not_given_again() {
        let mut cloud = CloudState::default();
        cloud.ensure_balancer(&service("u-1"), Vec::new());
        assert_eq!(cloud.delete_balancer(&service("u-1")), Change::Deleted);
        assert_eq!(cloud.delete_balancer(&service("u-1")), Change::Nothing);
        assert_eq!(cloud.update_balancer(&service("u-1"), nodes(&["a"])), None);
        let (status, _) = cloud.ensure_balancer(&service("u-1"), Vec::new());
        assert_eq!(status["ingress"][0]["ip"], "198.18.0.2");
    }

    #[test]
    fn every_node_has_an_instance_unless_the_file_says_otherwise() {
        let node =
            json!({"metadata": {"name": "n"}, "status": {"addresses": [{"type": "InternalIP", "address": "1.2.3.4"}]}});
        let mut cloud = CloudState::default();
        let unlisted = cloud.instance(&node).unwrap();
        assert_eq!((&*unlisted.provider_id, &unlisted.addresses[0]["address"]), ("scripted://n", &json!("1.2.3.4")));
        cloud.instances.insert("n".to_owned(), Instance { exists: false, ..Instance::default() });
        assert_eq!(cloud.instance(&node), None);
        cloud.instances.clear();
        cloud.only_listed_exist = true;
        assert_eq!(cloud.instance(&node), None);
        cloud.instances.insert("n".to_owned(), Instance { is_shutdown: true, ..Instance::default() });
        assert!(cloud.instance(&node).unwrap().is_shutdown);
    }

    #[test]
    fn a_route_is_created_once() {
        let route = Route { target_node: "n".to_owned(), destination_cidr: "10.0.1.0/24".to_owned(), blackhole: false };
        let mut cloud = CloudState::default();
        assert_eq!(cloud.create_route("uid", route.clone()), Change::Made);
        assert_eq!(cloud.create_route("other", route), Change::Nothing);
        assert_eq!(cloud.delete_route("uid-10.0.1.0/24"), Change::Deleted);
        assert_eq!(cloud.delete_route("uid-10.0.1.0/24"), Change::Nothing);
    }
}
