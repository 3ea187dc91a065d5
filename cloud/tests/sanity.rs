//! The checks of a provider: they pass for one that keeps the contract, and find those that break it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use cloud::sanity::{Ground, Verdict, check};
use cloud::server::{Provider, serve};
use cloud::testing::{Cloud, Instance};
use cloud::{Client, CloudError, Endpoint, Info, InstanceMetadata, LoadBalancer, Route};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::net::UnixListener;

fn ground() -> Ground {
    Ground {
        cluster: "c".to_owned(),
        nodes: vec![("node-1".to_owned(), "test://1".to_owned())],
        annotations: vec![("example.com/kind".to_owned(), "network".to_owned())],
        concurrent_services: 5,
        route_cidrs: vec!["10.254.0.0/24".to_owned(), "10.254.1.0/24".to_owned()],
    }
}

/// The checks that did not pass, each with its reason.
async fn complaints(client: &Client, ground: &Ground) -> Vec<String> {
    let mut complaints = Vec::new();
    let failed = check(client, ground, |name, verdict| match verdict {
        Verdict::Passed => {}
        Verdict::Skipped(why) => complaints.push(format!("{name}: skipped, {why}")),
        Verdict::Failed(why) => complaints.push(format!("{name}: {why}")),
    })
    .await;
    assert_eq!(failed, complaints.iter().filter(|complaint| !complaint.contains(": skipped, ")).count());
    complaints
}

/// How a provider breaks the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Another address with each Ensure.
    NewStatus,
    /// A load balancer is found by the name of its Service.
    ByName,
    /// Deleting what does not exist fails.
    DeleteOnce,
    /// Get shows a load balancer without an address.
    OldStatus,
    /// Creating a route that exists makes another one.
    SecondRoute,
    /// Creating a route that exists fails.
    CreateOnce,
    /// An instance that does not exist fails without a reason.
    NoReason,
    /// The ID of an instance is not looked at.
    ByNodeName,
    /// The metadata change.
    NewMetadata,
    /// A route is deleted by a key that only List gave, and keys of the provider's own get lost.
    LostKeys,
    /// Updating fails the second time.
    UpdateOnce,
    Nameless,
}

#[derive(Default)]
struct State {
    balancers: BTreeMap<String, Value>,
    routes: Vec<Route>,
    numbers: usize,
    updated: usize,
}

struct Faulty(Fault, Mutex<State>);

impl Faulty {
    fn state(&self) -> MutexGuard<'_, State> {
        self.1.lock().unwrap()
    }

    fn key(&self, service: &RawValue) -> Result<String, CloudError> {
        let service = read(service)?;
        let field = if self.0 == Fault::ByName { "name" } else { "uid" };
        Ok(service["metadata"][field].to_string())
    }

    fn has(&self, node: &RawValue) -> Result<bool, CloudError> {
        let node = read(node)?;
        let by_id = self.0 != Fault::ByNodeName && node["spec"]["providerID"] != "";
        Ok(if by_id { node["spec"]["providerID"] == "test://1" } else { node["metadata"]["name"] == "node-1" })
    }

    fn not_found(&self) -> CloudError {
        if self.0 == Fault::NoReason { CloudError::Failed("404".to_owned()) } else { CloudError::InstanceNotFound }
    }
}

fn read(object: &RawValue) -> Result<Value, CloudError> {
    serde_json::from_str(object.get()).map_err(|error| CloudError::Failed(error.to_string()))
}

fn address(number: usize) -> Value {
    json!({ "ingress": [{ "ip": format!("192.0.2.{number}") }] })
}

impl Provider for Faulty {
    async fn info(&self) -> Result<Info, CloudError> {
        let name = if self.0 == Fault::Nameless { "" } else { "faulty" };
        Ok(Info {
            name: name.to_owned(),
            protocol_version: 1,
            load_balancers: true,
            instances: true,
            routes: true,
            has_cluster_id: true,
        })
    }

    async fn get_load_balancer(&self, _: &str, service: &RawValue) -> Result<LoadBalancer, CloudError> {
        let key = self.key(service)?;
        let status = self.state().balancers.get(&key).cloned();
        let status = status.map(|status| if self.0 == Fault::OldStatus { json!({}) } else { status });
        Ok(LoadBalancer { name: "a".to_owned(), status: status.map(|status| to_raw_value(&status).unwrap()) })
    }

    async fn ensure_load_balancer(
        &self,
        _: &str,
        service: &RawValue,
        _: &[Box<RawValue>],
    ) -> Result<Box<RawValue>, CloudError> {
        let (key, mut state) = (self.key(service)?, self.state());
        state.numbers += 1;
        let new = address(state.numbers);
        let status = match state.balancers.get(&key) {
            Some(status) if self.0 != Fault::NewStatus => status.clone(),
            _ => new,
        };
        state.balancers.insert(key, status.clone());
        Ok(to_raw_value(&status).unwrap())
    }

    async fn update_load_balancer(&self, _: &str, _: &RawValue, _: &[Box<RawValue>]) -> Result<(), CloudError> {
        let mut state = self.state();
        state.updated += 1;
        let fails = self.0 == Fault::UpdateOnce && state.updated > 1;
        if fails { Err(CloudError::Failed("nothing to do".to_owned())) } else { Ok(()) }
    }

    async fn delete_load_balancer(&self, _: &str, service: &RawValue) -> Result<(), CloudError> {
        let removed = self.state().balancers.remove(&self.key(service)?);
        let fails = self.0 == Fault::DeleteOnce && removed.is_none();
        if fails { Err(CloudError::Failed("no such load balancer".to_owned())) } else { Ok(()) }
    }

    async fn instance_exists(&self, node: &RawValue) -> Result<bool, CloudError> {
        let has = self.has(node)?;
        if !has && self.0 == Fault::NoReason { Err(self.not_found()) } else { Ok(has) }
    }

    async fn instance_is_shutdown(&self, node: &RawValue) -> Result<bool, CloudError> {
        if self.has(node)? { Ok(false) } else { Err(self.not_found()) }
    }

    async fn instance_metadata(&self, node: &RawValue) -> Result<Option<InstanceMetadata>, CloudError> {
        if !self.has(node)? {
            return Err(self.not_found());
        }
        let mut state = self.state();
        state.numbers += 1;
        let zone = if self.0 == Fault::NewMetadata { state.numbers.to_string() } else { String::new() };
        Ok(Some(InstanceMetadata { provider_id: "test://1".to_owned(), zone, ..InstanceMetadata::default() }))
    }

    async fn list_routes(&self, _: &str) -> Result<Vec<Route>, CloudError> {
        Ok(self.state().routes.clone())
    }

    async fn create_route(&self, _: &str, _: &str, route: &Route) -> Result<(), CloudError> {
        let mut state = self.state();
        let is_same = |other: &Route| other.destination_cidr == route.destination_cidr;
        let exists = state.routes.iter().any(is_same);
        if exists && self.0 == Fault::CreateOnce {
            return Err(CloudError::Failed("the route exists".to_owned()));
        }
        if !exists || self.0 == Fault::SecondRoute {
            state.numbers += 1;
            let id = json!(state.numbers);
            state.routes.push(Route { others: [("id".to_owned(), id)].into_iter().collect(), ..route.clone() });
        }
        Ok(())
    }

    async fn delete_route(&self, _: &str, route: &Route) -> Result<(), CloudError> {
        let id = if self.0 == Fault::LostKeys { None } else { route.others.get("id").cloned() };
        self.state().routes.retain(|other| other.others.get("id").cloned() != id);
        Ok(())
    }
}

#[tokio::test]
async fn a_provider_that_keeps_the_contract_passes() {
    let cloud = Cloud::new();
    let metadata = InstanceMetadata { provider_id: "test://1".to_owned(), ..InstanceMetadata::default() };
    let instance = Instance { provider_id: "test://1".to_owned(), metadata: Some(metadata), ..Instance::default() };
    cloud.world(|world| world.instances.insert("node-1".to_owned(), instance));
    let client = Client::new(&cloud.endpoint());
    assert_eq!(complaints(&client, &ground()).await, Vec::<String>::new());
    let one_at_a_time = Ground { concurrent_services: 1, ..ground() };
    assert_eq!(
        complaints(&client, &one_at_a_time).await,
        ["Ensure and Delete work for many at a time: skipped, one Service is synced at a time"]
    );
    // Nothing is left behind.
    cloud.world(|world| assert!(world.balancers.is_empty() && world.routes.is_empty(), "{world:?}"));
}

#[tokio::test]
async fn what_a_provider_lacks_is_skipped() {
    let cloud = Cloud::new();
    cloud.set_info(|info| (info.load_balancers, info.instances) = (false, false));
    let skipped = complaints(&Client::new(&cloud.endpoint()), &Ground::default()).await;
    let count = |why: &str| skipped.iter().filter(|text| text.ends_with(why)).count();
    let counts =
        ["skipped, the provider has no load balancers", "no instances", "skipped, no node is given"].map(count);
    assert_eq!((counts, skipped.len()), ([8, 5, 4], 17), "{skipped:#?}");
}

#[tokio::test]
async fn a_provider_that_is_away_fails_the_first_checks() {
    let endpoint: Endpoint = "unix:///no/such/cloud.sock".parse().unwrap();
    let complaints = complaints(&Client::new(&endpoint), &ground()).await;
    assert!(
        complaints.iter().all(|text| text.contains("cannot connect") || text.contains("skipped")),
        "{complaints:#?}"
    );
    assert_eq!(complaints.iter().filter(|text| text.contains("cannot connect")).count(), 2);
}

/// Each with the check that finds it. Others may find it too.
#[tokio::test]
async fn a_provider_that_breaks_the_contract_is_found() {
    let cases = [
        (Fault::NewStatus, "Ensure gives the same again: first "),
        (Fault::ByName, "another uid is another load balancer: "),
        (Fault::DeleteOnce, "a load balancer that does not exist has a name: the first Delete: no such load balancer"),
        (Fault::OldStatus, "Ensure gives the status that Get shows: Ensure gave "),
        (Fault::SecondRoute, "Create makes one route, however often it is called: after the second Create, "),
        (Fault::CreateOnce, "Create makes one route, however often it is called: Create: the route exists"),
        (Fault::NoReason, "an instance that does not exist is not found: Exists: "),
        (Fault::ByNodeName, "an instance exists, and is asked for by its ID: Exists of "),
        (Fault::NewMetadata, "Metadata gives an ID, and the same again: first "),
        (Fault::LostKeys, "Delete takes a route of List, and succeeds again: after the first Delete, "),
        (Fault::UpdateOnce, "Update can be repeated: Update: nothing to do"),
        (Fault::Nameless, "GetInfo gives a name and a version, and the same again: it has no name"),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (fault, expected) in [(Fault::None, "")].into_iter().chain(cases) {
        let socket = folder.path().join(format!("{fault:?}"));
        let listener = UnixListener::bind(&socket).unwrap();
        let serving = tokio::spawn(serve(listener, Arc::new(Faulty(fault, Mutex::default()))));
        let endpoint: Endpoint = format!("unix://{}", socket.display()).parse().unwrap();
        let complaints = complaints(&Client::new(&endpoint), &ground()).await;
        serving.abort();
        let is_found = complaints.iter().any(|complaint| complaint.starts_with(expected));
        assert!(if fault == Fault::None { complaints.is_empty() } else { is_found }, "{fault:?}: {complaints:#?}");
    }
}
