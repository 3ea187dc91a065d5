//! The contract of `cloud.proto`, checked against any provider, as csi-sanity checks drivers of storage.
//!
//! A check is a sentence that holds for every provider. It gives each object in the cloud a new uid, and deletes the
//! object at the end.
//! Left out: whether traffic arrives, and calls for one object at the same time, which no controller makes.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use prost::Message;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::client::Client;
use crate::error::CloudError;
use crate::messages::{CreateRouteRequest, EnsureLoadBalancerRequest, GetInfoResponse, InstanceExistsRequest};
use crate::methods::Method;
use crate::objects::{Info, LoadBalancer, NodeAddress, Route};

/// Shorter than any provider needs: the call is under way when it passes.
const TOO_SHORT: Duration = Duration::from_millis(1);

/// How many questions are asked at the same time.
const QUESTIONS: usize = 50;
const ROUTES_MAX: usize = 5;

/// What the checks may use in the cloud.
#[derive(Clone, Debug, Default)]
pub struct Ground {
    /// `--cluster-name` of the controllers.
    pub cluster: String,
    /// Nodes that have an instance: each name with its providerID, which may be empty.
    pub nodes: Vec<(String, String)>,
    /// The annotations of Services, such as those that choose a kind of load balancer.
    pub annotations: Vec<(String, String)>,
    /// `--concurrent-service-syncs` of service-lb-operator.
    pub concurrent_services: usize,
    /// Destinations of which the cloud has no route.
    pub route_cidrs: Vec<String>,
}

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    /// The provider lacks the capability, or nothing was given that the check could use.
    Skipped(&'static str),
    Failed(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    LoadBalancers,
    /// Load balancers, of which several are changed at a time.
    ManyLoadBalancers,
    Instances,
    /// Instances, and a node that has one.
    Node,
    /// Routes, and a node that has an instance.
    Routes,
}

type Check = for<'a> fn(&'a Bench<'a>) -> BoxFuture<'a, Result<(), String>>;

const CHECKS: &[(Needs, &str, Check)] = &[
    (Needs::Nothing, "GetInfo gives a name and a version, and the same again", |bench| {
        Box::pin(bench.info_is_stable())
    }),
    (Needs::Nothing, "an unknown call is not supported", |bench| Box::pin(bench.unknown_call())),
    (Needs::LoadBalancers, "a Service that is no JSON fails alone", |bench| Box::pin(bench.broken_service())),
    (Needs::LoadBalancers, "a load balancer that does not exist has a name", |bench| Box::pin(bench.absent_balancer())),
    (Needs::LoadBalancers, "Ensure gives the status that Get shows", |bench| Box::pin(bench.ensured_balancer())),
    (Needs::LoadBalancers, "Ensure gives the same again", |bench| Box::pin(bench.ensured_again())),
    (Needs::LoadBalancers, "Ensure can be repeated after its deadline", |bench| Box::pin(bench.ensured_late())),
    (Needs::LoadBalancers, "Update can be repeated", |bench| Box::pin(bench.updated_balancer())),
    (Needs::LoadBalancers, "another uid is another load balancer", |bench| Box::pin(bench.other_uid())),
    (Needs::ManyLoadBalancers, "Ensure and Delete work for many at a time", |bench| Box::pin(bench.many_balancers())),
    (Needs::Instances, "an instance that does not exist is not found", |bench| Box::pin(bench.absent_instance())),
    (Needs::Instances, "a Node that is no JSON fails alone", |bench| Box::pin(bench.broken_node())),
    (Needs::Node, "an instance exists, and is asked for by its ID", |bench| Box::pin(bench.known_instance())),
    (Needs::Node, "Metadata gives an ID, and the same again", |bench| Box::pin(bench.stable_metadata())),
    (Needs::Node, "many questions are answered at a time", |bench| Box::pin(bench.many_questions())),
    (Needs::Routes, "Create makes one route, however often it is called", |bench| Box::pin(bench.created_route())),
    (Needs::Routes, "Delete takes a route of List, and succeeds again", |bench| Box::pin(bench.deleted_route())),
    (Needs::Routes, "Create can be repeated after its deadline", |bench| Box::pin(bench.created_late())),
    (Needs::Routes, "Create and Delete work for many at a time", |bench| Box::pin(bench.many_routes())),
];

/// Runs all checks one after the other, and tells how each ended. Gives how many failed.
pub async fn check(client: &Client, ground: &Ground, mut tell: impl FnMut(&str, &Verdict)) -> usize {
    let info = client.info().await;
    let bench = Bench { client, ground, run: RandomState::new().hash_one(CHECKS.len()) };
    let mut failed = 0;
    for (needs, name, check) in CHECKS {
        let verdict = match lacking(*needs, info.as_ref().ok(), ground) {
            Some(why) => Verdict::Skipped(why),
            None => check(&bench).await.map_or_else(Verdict::Failed, |()| Verdict::Passed),
        };
        failed += usize::from(matches!(verdict, Verdict::Failed(_)));
        tell(name, &verdict);
    }
    failed
}

/// Why a check cannot run.
fn lacking(needs: Needs, info: Option<&Info>, ground: &Ground) -> Option<&'static str> {
    let Some(info) = info else {
        return (needs != Needs::Nothing).then_some("the provider does not say what it can do");
    };
    match needs {
        Needs::LoadBalancers | Needs::ManyLoadBalancers if !info.load_balancers => {
            Some("the provider has no load balancers")
        }
        Needs::ManyLoadBalancers if ground.concurrent_services < 2 => Some("one Service is synced at a time"),
        Needs::Instances | Needs::Node if !info.instances => Some("the provider has no instances"),
        Needs::Routes if !info.routes => Some("the provider has no routes"),
        Needs::Node | Needs::Routes if ground.nodes.is_empty() => Some("no node is given"),
        Needs::Routes if ground.route_cidrs.is_empty() => Some("no destination of a route is given"),
        Needs::Nothing
        | Needs::LoadBalancers
        | Needs::ManyLoadBalancers
        | Needs::Instances
        | Needs::Node
        | Needs::Routes => None,
    }
}

/// A call that no version of the protocol has.
#[derive(Clone, PartialEq, Message)]
struct UnknownRequest {}

impl Method for UnknownRequest {
    type Response = GetInfoResponse;
    const PATH: &'static str = "/cloud.v1.Cloud/NoSuchCall";
    const DEADLINE: Duration = Duration::from_mins(1);
}

struct Bench<'a> {
    client: &'a Client,
    ground: &'a Ground,
    /// A number that no other run has.
    run: u64,
}

impl Bench<'_> {
    fn cluster(&self) -> &str {
        &self.ground.cluster
    }

    /// A Service with the apiserver's defaults, a node port of its own, and a field that no provider knows.
    fn service(&self, number: u64) -> Result<Box<RawValue>, String> {
        let annotations: serde_json::Map<String, Value> =
            self.ground.annotations.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        raw(&json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "cloud-sanity",
                "namespace": "default",
                "uid": format!("{:08x}-0000-4000-8000-{:012x}", number, self.run & 0xffff_ffff_ffff),
                "annotations": annotations,
            },
            "spec": {
                "type": "LoadBalancer",
                "clusterIP": "10.96.0.10",
                "clusterIPs": ["10.96.0.10"],
                "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack",
                "sessionAffinity": "None",
                "internalTrafficPolicy": "Cluster",
                "externalTrafficPolicy": "Cluster",
                "allocateLoadBalancerNodePorts": true,
                "ports": [
                    { "name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080, "nodePort": 30080 + number },
                ],
                "fieldOfTheFuture": { "a": [1] },
            },
            "status": { "loadBalancer": {} },
        }))
    }

    fn nodes(&self) -> Result<Vec<Box<RawValue>>, String> {
        self.ground.nodes.iter().map(|(name, id)| node(name, id)).collect()
    }

    /// The first node that has an instance.
    fn known(&self) -> Result<(&str, &str), String> {
        let (name, id) = self.ground.nodes.first().ok_or("no node is given")?;
        Ok((name, id))
    }

    async fn ensure(&self, service: &RawValue) -> Result<Value, String> {
        let nodes = self.nodes()?;
        let status = self.client.ensure_load_balancer(self.cluster(), service, nodes.iter().map(|node| &**node)).await;
        let status = status.map_err(|error| format!("Ensure: {error}"))?;
        serde_json::from_str(status.get()).map_err(|error| format!("Ensure gave no status: {error}"))
    }

    /// The status that Get shows.
    async fn get(&self, service: &RawValue) -> Result<Option<Value>, String> {
        let LoadBalancer { name, status } =
            self.client.get_load_balancer(self.cluster(), service).await.map_err(|error| format!("Get: {error}"))?;
        ensure(!name.is_empty(), || "Get gave no name".to_owned())?;
        let read = |status: Box<RawValue>| serde_json::from_str(status.get());
        status.map(read).transpose().map_err(|error| format!("Get gave no status: {error}"))
    }

    /// Deletes a load balancer twice, and looks whether it is gone.
    async fn delete(&self, service: &RawValue) -> Result<(), String> {
        for time in ["first", "second"] {
            let deleted = self.client.delete_load_balancer(self.cluster(), service).await;
            deleted.map_err(|error| format!("the {time} Delete: {error}"))?;
            let left = self.get(service).await?;
            ensure(left.is_none(), || format!("after the {time} Delete, Get shows {left:?}"))?;
        }
        Ok(())
    }

    /// Does something with load balancers of Services, and deletes them also if it fails.
    async fn with_services<F: Future<Output = Result<(), String>>>(
        &self,
        services: &[&RawValue],
        act: F,
    ) -> Result<(), String> {
        let done = act.await;
        let mut deleted = Vec::new();
        for together in services.chunks(self.ground.concurrent_services.max(1)) {
            deleted.extend(join_all(together.iter().map(|service| self.delete(service))).await);
        }
        done.and(deleted.into_iter().collect())
    }

    async fn info_is_stable(&self) -> Result<(), String> {
        let first = self.client.info().await.map_err(|error| words(&error))?;
        ensure(!first.name.is_empty(), || "it has no name".to_owned())?;
        ensure(first.protocol_version >= 1, || format!("it knows version {}", first.protocol_version))?;
        let again = self.client.info().await.map_err(|error| words(&error))?;
        ensure(first == again, || format!("first {first:?}, then {again:?}"))
    }

    async fn unknown_call(&self) -> Result<(), String> {
        let answer = self.client.call(UnknownRequest {}).await;
        ensure(answer.as_ref() == Err(&CloudError::NotSupported), || format!("it answered {answer:?}"))?;
        self.client.info().await.map(drop).map_err(|error| words(&error))
    }

    async fn broken_service(&self) -> Result<(), String> {
        let request = EnsureLoadBalancerRequest {
            cluster_name: self.ground.cluster.clone(),
            service: b"{\"metadata\":".to_vec(),
            nodes: Vec::new(),
        };
        let answer = self.client.call(request).await;
        ensure(matches!(answer, Err(CloudError::Failed(_))), || format!("it answered {answer:?}"))?;
        self.get(&self.service(0)?).await.map(drop)
    }

    async fn absent_balancer(&self) -> Result<(), String> {
        let service = self.service(1)?;
        let shown = self.get(&service).await?;
        ensure(shown.is_none(), || format!("Get shows {shown:?}"))?;
        self.delete(&service).await
    }

    async fn ensured_balancer(&self) -> Result<(), String> {
        let service = &*self.service(2)?;
        let act = async {
            let ensured = self.ensure(service).await?;
            let shown = self.get(service).await?;
            ensure(shown.as_ref() == Some(&ensured), || format!("Ensure gave {ensured}, Get shows {shown:?}"))
        };
        self.with_services(&[service], act).await
    }

    async fn ensured_again(&self) -> Result<(), String> {
        let service = &*self.service(3)?;
        let act = async {
            let (first, again) = (self.ensure(service).await?, self.ensure(service).await?);
            ensure(first == again, || format!("first {first}, then {again}"))
        };
        self.with_services(&[service], act).await
    }

    async fn ensured_late(&self) -> Result<(), String> {
        let service = &*self.service(4)?;
        let act = async {
            let request = EnsureLoadBalancerRequest {
                cluster_name: self.ground.cluster.clone(),
                service: service.get().as_bytes().to_vec(),
                nodes: Vec::new(),
            };
            // It may be done in time.
            let _ = self.client.call_within(request, TOO_SHORT).await;
            let (first, again) = (self.ensure(service).await?, self.ensure(service).await?);
            ensure(first == again, || format!("first {first}, then {again}"))
        };
        self.with_services(&[service], act).await
    }

    async fn updated_balancer(&self) -> Result<(), String> {
        let service = &*self.service(5)?;
        let act = async {
            let status = self.ensure(service).await?;
            let nodes = self.nodes()?;
            for _ in 0..2 {
                let nodes = nodes.iter().map(|node| &**node);
                let updated = self.client.update_load_balancer(self.cluster(), service, nodes).await;
                updated.map_err(|error| format!("Update: {error}"))?;
            }
            let shown = self.get(service).await?;
            ensure(shown.as_ref() == Some(&status), || format!("before {status}, then {shown:?}"))
        };
        self.with_services(&[service], act).await
    }

    async fn other_uid(&self) -> Result<(), String> {
        let (old, new) = (&*self.service(6)?, &*self.service(7)?);
        let act = async {
            self.ensure(old).await?;
            let status = self.ensure(new).await?;
            self.delete(old).await?;
            let left = self.get(new).await?;
            ensure(left.as_ref() == Some(&status), || format!("Delete of another one left {left:?} of {status}"))
        };
        self.with_services(&[old, new], act).await
    }

    async fn many_balancers(&self) -> Result<(), String> {
        let services: Vec<_> =
            (8..).take(self.ground.concurrent_services).map(|number| self.service(number)).collect::<Result<_, _>>()?;
        let services: Vec<&RawValue> = services.iter().map(|service| &**service).collect();
        let act = async {
            let ensured: Vec<Value> = join_all(services.iter().map(|service| self.ensure(service)))
                .await
                .into_iter()
                .collect::<Result<_, _>>()?;
            let shown: Vec<Option<Value>> = join_all(services.iter().map(|service| self.get(service)))
                .await
                .into_iter()
                .collect::<Result<_, _>>()?;
            let is_same = ensured.iter().map(Some).eq(shown.iter().map(Option::as_ref));
            ensure(is_same, || format!("Ensure gave {ensured:?}, Get shows {shown:?}"))
        };
        self.with_services(&services, act).await
    }

    async fn absent_instance(&self) -> Result<(), String> {
        let absent = node("cloud-sanity-no-such-node", "")?;
        let exists = self.client.instance_exists(&absent).await;
        ensure(exists == Ok(false), || format!("Exists: {exists:?}"))?;
        let shutdown = self.client.instance_is_shutdown(&absent).await;
        ensure(shutdown == Err(CloudError::InstanceNotFound), || format!("Shutdown: {shutdown:?}"))?;
        let metadata = self.client.instance_metadata(&absent).await;
        ensure(matches!(metadata, Ok(None) | Err(CloudError::InstanceNotFound)), || format!("Metadata: {metadata:?}"))
    }

    async fn broken_node(&self) -> Result<(), String> {
        let answer = self.client.call(InstanceExistsRequest { node: b"[".to_vec() }).await;
        ensure(matches!(answer, Err(CloudError::Failed(_))), || format!("it answered {answer:?}"))?;
        self.absent_instance().await
    }

    async fn known_instance(&self) -> Result<(), String> {
        let (name, id) = self.known()?;
        let mut ways = vec![node(name, id)?];
        if !id.is_empty() {
            ways.push(node("cloud-sanity-another-name", id)?);
        }
        for way in ways {
            let exists = self.client.instance_exists(&way).await;
            ensure(exists == Ok(true), || format!("Exists of {way}: {exists:?}"))?;
            let shutdown = self.client.instance_is_shutdown(&way).await;
            ensure(shutdown.is_ok(), || format!("Shutdown of {way}: {shutdown:?}"))?;
        }
        Ok(())
    }

    async fn stable_metadata(&self) -> Result<(), String> {
        let (name, id) = self.known()?;
        let node = node(name, id)?;
        let first =
            self.client.instance_metadata(&node).await.map_err(|error| words(&error))?.ok_or("it has no metadata")?;
        ensure(!first.provider_id.is_empty(), || "it has no providerID".to_owned())?;
        ensure(id.is_empty() || id == first.provider_id, || format!("the providerID is {}", first.provider_id))?;
        let again = self.client.instance_metadata(&node).await.map_err(|error| words(&error))?;
        ensure(again.as_ref() == Some(&first), || format!("first {first:?}, then {again:?}"))
    }

    async fn many_questions(&self) -> Result<(), String> {
        let nodes = self.nodes()?;
        let asked = nodes.iter().cycle().take(QUESTIONS);
        let answers = join_all(asked.map(|node| self.client.instance_exists(node))).await;
        let wrong = answers.into_iter().find(|answer| *answer != Ok(true));
        ensure(wrong.is_none(), || format!("one of them: {wrong:?}"))
    }

    /// The first route that a check makes.
    fn route(&self, cidr: &str) -> Result<Route, String> {
        let (name, _) = self.known()?;
        let address = NodeAddress { type_: "InternalIP".to_owned(), address: "192.0.2.1".to_owned() };
        Ok(Route {
            target_node: name.to_owned(),
            target_node_addresses: vec![address],
            destination_cidr: cidr.to_owned(),
            ..Route::default()
        })
    }

    fn first_cidr(&self) -> Result<&str, String> {
        Ok(self.ground.route_cidrs.first().ok_or("no destination of a route is given")?)
    }

    /// The name hint of all routes. Operators repeat a call with the same one.
    fn hint(&self) -> String {
        format!("cloud-sanity-{:x}", self.run)
    }

    async fn create(&self, route: &Route) -> Result<(), String> {
        self.client.create_route(self.cluster(), &self.hint(), route).await.map_err(|error| format!("Create: {error}"))
    }

    /// The routes of List to the same pods.
    async fn listed(&self, of: &Route) -> Result<Vec<Route>, String> {
        let routes = self.client.list_routes(self.cluster()).await.map_err(|error| format!("List: {error}"))?;
        let is_same =
            |route: &Route| (&route.target_node, &route.destination_cidr) == (&of.target_node, &of.destination_cidr);
        Ok(routes.into_iter().filter(is_same).collect())
    }

    /// Deletes what List shows of a route, twice.
    async fn remove(&self, route: &Route) -> Result<(), String> {
        let listed = self.listed(route).await?;
        for time in ["first", "second"] {
            for route in &listed {
                let deleted = self.client.delete_route(self.cluster(), route).await;
                deleted.map_err(|error| format!("the {time} Delete: {error}"))?;
            }
            let left = self.listed(route).await?;
            ensure(left.is_empty(), || format!("after the {time} Delete, List shows {left:?}"))?;
        }
        Ok(())
    }

    async fn with_routes<F: Future<Output = Result<(), String>>>(
        &self,
        routes: &[Route],
        act: F,
    ) -> Result<(), String> {
        let done = act.await;
        let removed = join_all(routes.iter().map(|route| self.remove(route))).await;
        done.and(removed.into_iter().collect())
    }

    async fn created_route(&self) -> Result<(), String> {
        let route = self.route(self.first_cidr()?)?;
        let act = async {
            for time in ["first", "second"] {
                self.create(&route).await?;
                let listed = self.listed(&route).await?;
                let is_right = listed.len() == 1 && listed.iter().all(|listed| !listed.blackhole);
                ensure(is_right, || format!("after the {time} Create, List shows {listed:?}"))?;
            }
            Ok(())
        };
        self.with_routes(std::slice::from_ref(&route), act).await
    }

    async fn deleted_route(&self) -> Result<(), String> {
        let route = self.route(self.first_cidr()?)?;
        let act = async {
            self.create(&route).await?;
            self.remove(&route).await?;
            // What List does not show any more is created again.
            self.create(&route).await
        };
        self.with_routes(std::slice::from_ref(&route), act).await
    }

    async fn created_late(&self) -> Result<(), String> {
        let route = self.route(self.first_cidr()?)?;
        let act = async {
            let written = serde_json::to_vec(&route).map_err(|error| error.to_string())?;
            let (cluster_name, name_hint) = (self.ground.cluster.clone(), self.hint());
            let request = CreateRouteRequest { cluster_name, name_hint, route: written };
            // It may be done in time.
            let _ = self.client.call_within(request, TOO_SHORT).await;
            self.create(&route).await?;
            let listed = self.listed(&route).await?;
            ensure(listed.len() == 1, || format!("List shows {listed:?}"))
        };
        self.with_routes(std::slice::from_ref(&route), act).await
    }

    async fn many_routes(&self) -> Result<(), String> {
        let routes = self.ground.route_cidrs.iter().take(ROUTES_MAX).map(|cidr| self.route(cidr));
        let routes: Vec<Route> = routes.collect::<Result<_, _>>()?;
        let act = async {
            let created = join_all(routes.iter().map(|route| self.create(route))).await;
            created.into_iter().collect::<Result<(), _>>()?;
            for route in &routes {
                let listed = self.listed(route).await?;
                ensure(listed.len() == 1, || format!("List shows {listed:?}"))?;
            }
            Ok(())
        };
        self.with_routes(&routes, act).await
    }
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

fn words(error: &CloudError) -> String {
    error.to_string()
}

fn raw(value: &Value) -> Result<Box<RawValue>, String> {
    to_raw_value(value).map_err(|error| error.to_string())
}

/// A Node with a field that no provider knows.
fn node(name: &str, provider_id: &str) -> Result<Box<RawValue>, String> {
    raw(&json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "uid": format!("{name}-uid"), "labels": { "kubernetes.io/hostname": name } },
        "spec": { "providerID": provider_id, "fieldOfTheFuture": [null] },
        "status": { "addresses": [{ "type": "Hostname", "address": name }], "conditions": [] },
    }))
}
