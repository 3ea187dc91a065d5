//! An apiserver in the test's own process, with state and with a script: operators run against it as they are.
//!
//! It stores, versions, patches, deletes, lists and watches as a real one does, as far as controllers can tell. A test
//! says what else happens ([`Server::on`], [`Server::hold_watches`], [`Server::stop_after_writes`]), and plays
//! everybody else: the person with kubectl, the kubelet, other controllers ([`Server::add`], [`Server::change`],
//! [`Server::delete`]). There are no sockets, so tokio's paused time passes as soon as everybody waits.
//!
//! Left out: validation, defaults and admission. What depends on them is the e2e suite's.

mod filter;
mod patch;
mod request;
mod script;
mod store;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::filter::Filter;
use self::request::{Call, EVICTION};
use self::script::Action;
pub use self::script::Rule;
use self::store::{Id, Refusal, Store, text};
use self::watch::{AHEAD, Watches, apart};
use super::{NOW, ObjectBuilder, protobuf};
use crate::api::resource::{
    CERTIFICATE_SIGNING_REQUESTS, CONFIG_MAPS, CONTROLLER_REVISIONS, CSI_DRIVERS, DEPLOYMENTS, EVENTS, JOBS, LEASES,
    NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_GROUPS, PODS, REPLICA_SETS,
    REPLICATION_CONTROLLERS, Resource, SECRETS,
};
use crate::transport::client::{Client, connection_of};
use crate::transport::clock::Clock;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Reviews, of which none is stored.
const SUBJECT_ACCESS_REVIEWS: Resource =
    Resource::cluster_scoped("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews");

/// The verbs of every resource.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The served resources besides those that this crate names.
const OTHERS: &[Resource] = &[
    Resource::namespaced("apps", "v1", "StatefulSet", "statefulsets"),
    Resource::namespaced("apps", "v1", "DaemonSet", "daemonsets"),
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    Resource::cluster_scoped("storage.k8s.io", "v1", "StorageClass", "storageclasses"),
    CSI_DRIVERS,
    Resource::cluster_scoped("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments"),
    Resource::cluster_scoped("storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses"),
    Resource::namespaced("", "v1", "Service", "services"),
    Resource::namespaced("", "v1", "ServiceAccount", "serviceaccounts"),
    Resource::namespaced("", "v1", "ResourceQuota", "resourcequotas"),
    Resource::namespaced("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims"),
    Resource::namespaced("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates"),
    POD_GROUPS,
    Resource::cluster_scoped("resource.k8s.io", "v1", "ResourceSlice", "resourceslices"),
    Resource::cluster_scoped("resource.k8s.io", "v1beta2", "DeviceTaintRule", "devicetaintrules"),
    Resource::namespaced("", "v1", "Endpoints", "endpoints"),
    Resource::namespaced("batch", "v1", "CronJob", "cronjobs"),
    Resource::namespaced("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
    Resource::namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    Resource::cluster_scoped("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
    Resource::cluster_scoped(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
    ),
    SUBJECT_ACCESS_REVIEWS,
    Resource::namespaced("certificates.k8s.io", "v1beta1", "PodCertificateRequest", "podcertificaterequests"),
    Resource::cluster_scoped("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs"),
    Resource::cluster_scoped("networking.k8s.io", "v1", "IPAddress", "ipaddresses"),
    Resource::namespaced("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
];

/// The apiserver; cheap to clone.
#[derive(Clone)]
pub struct Server {
    state: Arc<Mutex<State>>,
    started: Instant,
    /// By how many seconds the clock was set.
    stepped: Arc<AtomicI64>,
}

#[derive(Default)]
struct State {
    served: Vec<Resource>,
    /// Those whose objects have a scale, which here is the object itself.
    scalable: Vec<Resource>,
    store: Store,
    watches: Watches,
    rules: Vec<Rule>,
    requests: Vec<Recorded>,
    /// How many writes the next connection that writes may still make.
    writes_left: Option<usize>,
    discoveries_to_fail: usize,
    /// What other apiservers answer behind this one, by path.
    documents: BTreeMap<String, Value>,
    /// The users and their permissions.
    allowed: BTreeSet<(String, String)>,
}

struct Recorded {
    line: String,
    is_write: bool,
}

/// One process's way to the server; once it is cut nothing goes through it any more.
#[derive(Clone, Default)]
pub struct Connection(CancellationToken);

impl Connection {
    /// Cuts it, as when the process is killed.
    pub fn cut(&self) {
        self.0.cancel();
    }

    /// Whether it was cut.
    pub fn is_cut(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until it is cut.
    pub async fn when_cut(&self) {
        self.0.cancelled().await;
    }
}

/// What was stored at a moment.
pub struct Backup(Store);

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

/// The methods for tests. A resource is named by its plural (`pods`), a target may have a subresource
/// (`pods/status`), and a key is `namespace/name`, or the name where there is no namespace.
impl Server {
    /// An empty cluster, at [`NOW`].
    pub fn new() -> Self {
        let core = [PODS, NAMESPACES, REPLICATION_CONTROLLERS, EVENTS, NODES, CONFIG_MAPS, SECRETS];
        let others = [REPLICA_SETS, DEPLOYMENTS, CONTROLLER_REVISIONS, JOBS, LEASES, CERTIFICATE_SIGNING_REQUESTS];
        let served = core.into_iter().chain(others).chain(OTHERS.iter().cloned()).collect();
        let scalable = vec![REPLICATION_CONTROLLERS, REPLICA_SETS, DEPLOYMENTS];
        let state = State { served, scalable, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), started: Instant::now(), stepped: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a resource more.
    pub fn serve(&self, resource: Resource) {
        self.state().served.push(resource);
    }

    /// Answers each GET of this path with this document, as an apiserver behind this one does; with `null` no more.
    pub fn serve_document(&self, path: &str, document: Value) {
        let mut state = self.state();
        if document.is_null() {
            state.documents.remove(path);
        } else {
            state.documents.insert(path.to_owned(), document);
        }
    }

    /// Serves a resource no more: its paths are unknown, and its watches end. What was stored stays.
    pub fn withdraw(&self, resource: &str) {
        let mut state = self.state();
        state.served.retain(|served| served.plural != resource);
        state.watches.cut(resource);
    }

    /// Serves a resource more, whose objects have the subresource `scale`.
    pub fn serve_scalable(&self, resource: Resource) {
        self.state().scalable.push(resource.clone());
        self.serve(resource);
    }

    /// The clock of the server and of its clients' processes: [`NOW`] and what has passed since, in tokio's time.
    pub fn clock(&self) -> Clock {
        let (started, stepped) = (self.started, Arc::clone(&self.stepped));
        Clock::new(move || NOW + started.elapsed() + SignedDuration::from_secs(stepped.load(Ordering::Relaxed)))
    }

    /// Sets the clock forwards, or backwards.
    pub fn step_clock(&self, seconds: i64) {
        self.stepped.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Lets a user do something, such as `create certificatesigningrequests/nodeclient`; reviews of access say so.
    pub fn allow(&self, user: &str, permission: &str) {
        self.state().allowed.insert((user.to_owned(), permission.to_owned()));
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.clock().now().as_second()).unwrap_or(NOW)
    }

    /// A client with a connection of its own.
    pub fn client(&self, connection: &Connection) -> Client {
        let (server, connection) = (self.clone(), connection.clone());
        Client::of_service(move || {
            let (server, connection) = (server.clone(), connection.clone());
            let service = tower::service_fn(move |request: Request<kube::client::Body>| {
                let (server, connection) = (server.clone(), connection.clone());
                async move { server.answer(&connection, request).await }
            });
            connection_of(service)
        })
    }

    /// Sets a rule for requests such as `("create", "pods")` from now on; of several rules the newest counts.
    pub fn on(&self, verb: &str, target: &str) -> Rule {
        let rule = Rule::new(verb, target);
        self.state().rules.push(rule.clone());
        rule
    }

    /// Cuts the connection that writes next instead of its n+1-th write.
    pub fn stop_after_writes(&self, n: usize) {
        self.state().writes_left = Some(n);
    }

    /// Sends the watches of a resource nothing until [`Self::release_watches`].
    pub fn hold_watches(&self, resource: &str) {
        self.state().watches.hold(resource);
    }

    /// Sends the watches of a resource all that was held.
    pub fn release_watches(&self, resource: &str) {
        self.state().watches.release(resource);
        self.state().send();
    }

    /// How many watches of a resource somebody reads.
    pub fn open_watches(&self, resource: &str) -> usize {
        self.state().watches.count(resource)
    }

    /// Ends the watches of a resource.
    pub fn cut_watches(&self, resource: &str) {
        self.state().watches.cut(resource);
    }

    /// A backup of all that is stored.
    pub fn back_up(&self) -> Backup {
        Backup(self.state().store.clone())
    }

    /// Stores what there was at the time of a backup, versions and all, as after a restart with a restored etcd.
    pub fn restore(&self, Backup(store): Backup) {
        let mut state = self.state();
        state.store = store;
        state.watches.cut_all();
    }

    /// Ends the watches of a resource with 410 Gone: only a list helps.
    pub fn expire_watches(&self, resource: &str) {
        let mut state = self.state();
        let version = state.store.version;
        state.watches.expire(resource, version);
    }

    /// Serves a resource from an etcd of its own, as `--etcd-servers-overrides` says: in its lists and watches the versions
    /// are much lower than those of all other resources. It must not have objects yet.
    pub fn set_apart(&self, resource: &str) {
        let mut state = self.state();
        state.store.version += AHEAD;
        state.watches.set_apart(resource);
    }

    /// Adds an object as it is.
    pub fn add(&self, object: &ObjectBuilder) {
        let (now, mut state) = (self.now(), self.state());
        let object = object.json();
        let kind = (object["apiVersion"].clone(), object["kind"].clone());
        let resource = state.served.iter().find(|found| kind == (found.api_version().into(), (*found.kind).into()));
        let resource = known(resource, text(object, "/kind")).clone();
        let mut object = object.clone();
        if !resource.namespaced {
            store::child(&mut object["metadata"]).remove("namespace");
        }
        expect(state.store.insert(&resource, object, now));
        state.send();
    }

    /// Changes an object, its status and all.
    pub fn change(&self, resource: &str, key: &str, change: impl FnOnce(&mut Value)) {
        let mut state = self.state();
        let id = state.id(resource, key);
        expect(state.store.change(&id, change));
        state.send();
    }

    /// Changes an object as an apiserver does that begins to set a default: its generation stays.
    pub fn set_default(&self, resource: &str, key: &str, change: impl FnOnce(&mut Value)) {
        let mut state = self.state();
        let id = state.id(resource, key);
        expect(state.store.set_default(&id, change));
        state.send();
    }

    /// Deletes an object without grace, as a kubelet in the end does; finalizers keep it.
    pub fn delete(&self, resource: &str, key: &str) {
        let (now, mut state) = (self.now(), self.state());
        let id = state.id(resource, key);
        expect(state.store.delete(&id, &json!({ "gracePeriodSeconds": 0 }), now));
        state.send();
    }

    /// Plays scheduler and kubelet for a moment: what waits runs and is ready, and what is being deleted is gone.
    pub fn run_pods(&self) {
        self.each_pod(|pod, phase, is_deleted| {
            if is_deleted {
                pod["metadata"]["deletionGracePeriodSeconds"] = 0.into();
            } else if phase == "Pending" {
                let since = &pod["metadata"]["creationTimestamp"];
                pod["status"]["conditions"] =
                    json!([{ "type": "Ready", "status": "True", "lastTransitionTime": since }]);
                pod["status"]["phase"] = "Running".into();
                pod["spec"]["nodeName"] = "node".into();
            }
        });
    }

    /// Plays the scheduler, and a kubelet that admits nothing: what waits is rejected, for this reason.
    pub fn reject_pods(&self, reason: &str) {
        self.each_pod(|pod, phase, _| {
            if phase == "Pending" {
                pod["spec"]["nodeName"] = "node".into();
            }
        });
        self.each_pod(|pod, phase, is_deleted| {
            if phase == "Pending" && !is_deleted {
                let message = format!("Pod was rejected: {reason}");
                pod["status"] = json!({ "phase": "Failed", "reason": reason, "message": message });
            }
        });
    }

    /// Plays the kubelet: all that runs ends, in this phase.
    pub fn end_pods(&self, phase: &str) {
        self.each_pod(|pod, now, _| {
            if now == "Running" {
                pod["status"]["phase"] = phase.into();
                pod["status"]["conditions"] = json!([{ "type": "Ready", "status": "False" }]);
            }
        });
    }

    fn each_pod(&self, change: impl Fn(&mut Value, &str, bool)) {
        for key in self.keys("pods") {
            self.change("pods", &key, |pod| {
                let phase = text(pod, "/status/phase").to_owned();
                let is_deleted = !pod["metadata"]["deletionTimestamp"].is_null();
                change(pod, &phase, is_deleted);
            });
        }
    }

    /// An object, if it is there.
    pub fn get(&self, resource: &str, key: &str) -> Option<Value> {
        let state = self.state();
        state.store.get(&state.id(resource, key)).ok().cloned()
    }

    /// Answers the next requests for what is served with 503.
    pub fn fail_discovery(&self, times: usize) {
        self.state().discoveries_to_fail = times;
    }

    /// All objects of a resource, by key.
    pub fn list(&self, resource: &str) -> Vec<Value> {
        let state = self.state();
        let resource = state.resource(resource);
        state.store.list(&resource, &Filter::default()).cloned().collect()
    }

    /// The keys of all objects of a resource.
    pub fn keys(&self, resource: &str) -> Vec<String> {
        let key = |object: &Value| match text(object, "/metadata/namespace") {
            "" => text(object, "/metadata/name").to_owned(),
            namespace => format!("{namespace}/{}", text(object, "/metadata/name")),
        };
        self.list(resource).iter().map(key).collect()
    }

    /// Every request so far, such as `create pods default/web-`.
    pub fn requests(&self) -> Vec<String> {
        self.state().requests.iter().map(|request| request.line.clone()).collect()
    }

    /// Every request that would change something, refused ones too. Left out: Events and Leases.
    pub fn writes(&self) -> Vec<String> {
        let state = self.state();
        state.requests.iter().filter(|request| request.is_write).map(|request| request.line.clone()).collect()
    }

    /// How many requests so far start so, such as `create pods`.
    pub fn count(&self, start: &str) -> usize {
        self.state().requests.iter().filter(|request| request.line.starts_with(start)).count()
    }

    /// Every Event, such as `Normal SuccessfulCreate: Created pod: web-bbbbc`.
    pub fn events(&self) -> Vec<String> {
        let line = |event: &Value| {
            let field = |pointer| text(event, pointer);
            format!("{} {}: {}", field("/type"), field("/reason"), field("/message"))
        };
        self.list("events").iter().map(line).collect()
    }

    /// All objects but Events and Leases without what differs between two clusters with the same history: versions,
    /// uids, instants, generated names and certificates, and annotations that say when something happened.
    pub fn objects(&self) -> Vec<String> {
        let served = self.state().served.clone();
        let told = served.iter().filter(|resource| **resource != EVENTS && **resource != LEASES);
        let objects = told.flat_map(|resource| self.list(&resource.plural));
        let mut objects: Vec<String> = objects.map(|object| masked(&object).to_string()).collect();
        objects.sort();
        objects
    }
}

/// The server as a process meets it.
impl Server {
    async fn answer(
        &self,
        connection: &Connection,
        request: Request<kube::client::Body>,
    ) -> Result<Response<Body>, io::Error> {
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.map_err(io::Error::other)?;
        if connection.is_cut() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        if matches!(head.uri.path(), "/api" | "/apis") {
            return Ok(self.state().discover(head.uri.path()));
        }
        if let Some(document) = self.state().document(&head) {
            return Ok(document);
        }
        if let Some(document) = self.state().group_version(head.uri.path()) {
            return Ok(document);
        }
        let Some(mut call) = Call::read(&head, &body, &self.state().served) else {
            return Ok(answer(404, &Value::from("404 page not found")));
        };
        let action = self.state().meet(&call, connection)?;
        if let Err(refusal) = action.before(&call).await {
            return Ok(refuse(&call, &refusal));
        }
        if connection.is_cut() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if call.verb == "watch" {
            return Ok(self.watch(&call));
        }
        if let Action::Change(change) = action {
            change(&mut call.body);
        }
        let done = self.state().carry_out(&call, self.now());
        match (action, done) {
            (Action::Lose, _) => Err(io::ErrorKind::ConnectionReset.into()),
            (_, Ok(object)) => Ok(show(&call, &object)),
            (_, Err(refusal)) => Ok(refuse(&call, &refusal)),
        }
    }

    fn watch(&self, call: &Call) -> Response<Body> {
        let mut state = self.state();
        let received = state.watches.open(call);
        state.send();
        let seconds = call.query.get("timeoutSeconds").and_then(|seconds| seconds.parse().ok()).unwrap_or(300);
        let events = stream::unfold(received, async |mut received| Some((received.recv().await?, received)));
        let events = events.take_until(Box::pin(tokio::time::sleep(Duration::from_secs(seconds))));
        Response::new(StreamBody::new(events.map(|event| Ok(Frame::data(event)))).boxed_unsync())
    }
}

impl State {
    fn discover(&mut self, path: &str) -> Response<Body> {
        let document = self.discovery(path);
        self.unless_it_fails(&document)
    }

    fn unless_it_fails(&mut self, document: &Value) -> Response<Body> {
        if self.discoveries_to_fail > 0 {
            self.discoveries_to_fail -= 1;
            return answer(503, &Value::from("apiserver not ready"));
        }
        answer(200, document)
    }

    /// What another apiserver answers.
    fn document(&mut self, head: &http::request::Parts) -> Option<Response<Body>> {
        let path = head.uri.path();
        let document = self.documents.get(path).filter(|_| head.method == http::Method::GET)?;
        let response = answer(200, document);
        let line = format!("get {}", head.uri.path_and_query().map_or(path, |path| path.as_str()));
        self.requests.push(Recorded { line, is_write: false });
        Some(response)
    }

    /// The document of a group, at its path.
    ///
    /// Upstream: `APIGroup`, staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go.
    fn group(&self, path: &str) -> Option<Value> {
        let group = path.strip_prefix("/apis/")?;
        let of_group = self.served.iter().filter(|resource| resource.group == *group);
        let versions: BTreeSet<&str> = of_group.map(|resource| &*resource.version).collect();
        let versions: Vec<Value> = versions.iter().map(|version| json!({ "version": version })).collect();
        let preferred = versions.first()?.clone();
        Some(json!({ "kind": "APIGroup", "name": group, "versions": versions, "preferredVersion": preferred }))
    }

    /// The document of a group or of a group version, at its path.
    ///
    /// Upstream: `APIResourceList`, staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go.
    fn group_version(&mut self, path: &str) -> Option<Response<Body>> {
        if let Some(group) = self.group(path) {
            return Some(self.unless_it_fails(&group));
        }
        let is_in_it = |resource: &&Resource| resource.collection_path("") == format!("{path}/{}", resource.plural);
        let resources = self.served.iter().filter(is_in_it).flat_map(|resource| {
            let (plural, namespaced) = (&resource.plural, resource.namespaced);
            let own = json!({ "name": plural, "kind": resource.kind, "namespaced": namespaced, "verbs": VERBS });
            let scale = json!({
                "name": format!("{plural}/scale"), "namespaced": namespaced,
                "group": "autoscaling", "version": "v1", "kind": "Scale",
            });
            [Some(own), self.scalable.contains(resource).then_some(scale)].into_iter().flatten()
        });
        let resources: Vec<Value> = resources.collect();
        if resources.is_empty() {
            return None;
        }
        Some(self.unless_it_fails(&json!({ "kind": "APIResourceList", "resources": resources })))
    }

    fn resource(&self, plural: &str) -> Resource {
        known(self.served.iter().find(|found| found.plural == plural), plural).clone()
    }

    fn id(&self, resource: &str, key: &str) -> Id {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        Id::new(&self.resource(resource), namespace, name)
    }

    fn send(&mut self) {
        self.watches.send(&self.store);
    }

    /// Notes a request and gives what becomes of it; an error where it does not even arrive.
    fn meet(&mut self, call: &Call, connection: &Connection) -> Result<Action, io::Error> {
        if call.is_write() && self.writes_left == Some(0) {
            self.writes_left = None;
            connection.cut();
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if call.is_write() {
            self.writes_left = self.writes_left.map(|left| left - 1);
        }
        self.requests.push(Recorded { line: call.to_string(), is_write: call.is_write() });
        Ok(self.rules.iter().rev().find_map(|rule| rule.meet(call)).unwrap_or(Action::Pass))
    }

    fn carry_out(&mut self, call: &Call, now: Timestamp) -> Result<Value, Refusal> {
        let id = Id::new(&call.resource, &call.namespace, &call.name);
        let done = match call.verb {
            "get" => self.store.get(&id).cloned(),
            "list" => return Ok(self.list(call)),
            "create" if call.resource == SUBJECT_ACCESS_REVIEWS => return Ok(self.review(&call.body)),
            "create" if call.subresource == EVICTION => self.evict(&id, call, now),
            "create" => self.store.create(&call.resource, &call.namespace, call.body.clone(), now),
            "update" => self.store.update(&id, &call.subresource, &call.body),
            "patch" => self.patched(&id, call).and_then(|sent| self.store.update(&id, &call.subresource, &sent)),
            "delete" => self.store.delete(&id, &call.body, now),
            _ => return self.delete_collection(call, now),
        };
        self.send();
        done.map(|object| call.shown(&object))
    }

    /// Deletes a pod, unless a budget that selects it allows no disruption. A pod that does not run is in no budget.
    ///
    /// Upstream: `EvictionREST`, pkg/registry/core/pod/storage/eviction.go.
    fn evict(&mut self, id: &Id, call: &Call, now: Timestamp) -> Result<Value, Refusal> {
        let pod = self.store.get(id)?;
        let counts = text(pod, "/status/phase") == "Running" && pod["metadata"]["deletionTimestamp"].is_null();
        let selects = |budget: &Value| {
            let labels = budget["spec"]["selector"]["matchLabels"].as_object();
            budget["metadata"]["namespace"] == pod["metadata"]["namespace"]
                && labels.into_iter().flatten().all(|(label, value)| pod["metadata"]["labels"][label] == *value)
        };
        let allows = |budget: &Value| budget["status"]["disruptionsAllowed"].as_i64().unwrap_or_default() > 0;
        let budgets = self.resource("poddisruptionbudgets");
        if counts && self.store.list(&budgets, &Filter::default()).any(|budget| selects(budget) && !allows(budget)) {
            let message = "Cannot evict pod as it would violate the pod's disruption budget.";
            return Err(call.refusal(429, "TooManyRequests", message).with_cause("DisruptionBudget"));
        }
        self.store.delete(id, &call.body["deleteOptions"], now)?;
        Ok(json!({ "apiVersion": "v1", "kind": "Status", "status": "Success", "code": 201 }))
    }

    fn patched(&self, id: &Id, call: &Call) -> Result<Value, Refusal> {
        let is_applied = call.content_type == "application/apply-patch+yaml";
        let mut object = match self.store.get(id) {
            // An apply would create the object, if it named no uid; each write of an operator names one.
            Err(_) if is_applied => {
                return Err(call.refusal(409, "Conflict", "uid mismatch: no existing object was found"));
            }
            found => found?.clone(),
        };
        let patched = match (&*call.content_type, &call.body) {
            (_, configuration) if is_applied => {
                patch::apply(&mut object, configuration, &call.resource, call.query.get("fieldManager"))
            }
            ("application/strategic-merge-patch+json", Value::Object(fields)) => {
                patch::strategic_merge(&mut object, fields)
            }
            ("application/json-patch+json", Value::Array(operations)) => patch::json_patch(&mut object, operations),
            (_, patch) => {
                patch::merge(&mut object, patch);
                Ok(())
            }
        };
        patched.map(|()| object).map_err(|message| call.refusal(422, "Invalid", &message))
    }

    /// The answer to a review of access.
    fn review(&self, asked: &Value) -> Value {
        let attribute = |name: &str| text(asked, &format!("/spec/resourceAttributes/{name}")).to_owned();
        let resource = match (attribute("resource"), attribute("subresource")) {
            (resource, subresource) if subresource.is_empty() => resource,
            (resource, subresource) => format!("{resource}/{subresource}"),
        };
        let asked_for = (text(asked, "/spec/user").to_owned(), format!("{} {resource}", attribute("verb")));
        let mut answer = asked.clone();
        answer["status"] = json!({ "allowed": self.allowed.contains(&asked_for) });
        answer
    }

    fn list(&self, call: &Call) -> Value {
        let number = |name: &str| call.query.get(name).and_then(|text| text.parse::<usize>().ok());
        let (limit, from) = (number("limit").unwrap_or(usize::MAX), number("continue").unwrap_or_default());
        let mut rest = self.store.list(&call.resource, &call.filter).skip(from);
        let is_apart = self.watches.is_apart(&call.resource.plural);
        let shown = |object| if is_apart { apart(call.shown(object)) } else { call.shown(object) };
        let items: Vec<Value> = rest.by_ref().take(limit).map(shown).collect();
        let left = rest.count();
        let token = if left > 0 { (from + items.len()).to_string() } else { String::new() };
        let mut metadata = json!({ "resourceVersion": self.store.version.to_string(), "continue": token });
        if left > 0 {
            metadata["remainingItemCount"] = left.into();
        }
        let list = json!({
            "kind": if call.metadata_only { "PartialObjectMetadataList".to_owned() } else { format!("{}List", call.resource.kind) },
            "metadata": metadata,
            "items": items,
        });
        if is_apart { apart(list) } else { list }
    }

    fn delete_collection(&mut self, call: &Call, now: Timestamp) -> Result<Value, Refusal> {
        let named = |object: &Value| {
            Id::new(&call.resource, text(object, "/metadata/namespace"), text(object, "/metadata/name"))
        };
        let ids: Vec<Id> = self.store.list(&call.resource, &call.filter).map(named).collect();
        for id in ids {
            self.store.delete(&id, &call.body, now)?;
        }
        self.send();
        Ok(json!({ "kind": "Status", "status": "Success" }))
    }

    /// Upstream: `APIGroupDiscoveryList`, staging/src/k8s.io/api/apidiscovery/v2/types.go.
    fn discovery(&self, path: &str) -> Value {
        let served = self.served.iter().filter(|resource| resource.group.is_empty() == (path == "/api"));
        let group = |resource: &Resource| {
            let found = json!({
                "resource": resource.plural,
                "responseKind": { "kind": resource.kind },
                "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
                "verbs": VERBS,
            });
            json!({
                "metadata": { "name": resource.group },
                "versions": [{ "version": resource.version, "resources": [found], "freshness": "Current" }],
            })
        };
        json!({ "kind": "APIGroupDiscoveryList", "items": served.map(group).collect::<Vec<Value>>() })
    }
}

/// The object in the form that was asked for: protobuf, where there are tables for it.
fn show(call: &Call, object: &Value) -> Response<Body> {
    let code = if call.verb == "create" { 201 } else { 200 };
    let shown = || if call.verb == "list" { protobuf::list(object) } else { protobuf::object(object) };
    match shown().filter(|_| call.is_for_protobuf) {
        Some(body) => answer_bytes(code, body),
        None => answer(code, object),
    }
}

/// A refusal comes in the form that was asked for.
fn refuse(call: &Call, refusal: &Refusal) -> Response<Body> {
    if call.is_for_protobuf {
        answer_bytes(refusal.code, protobuf::status(&refusal.body))
    } else {
        answer(refusal.code, &refusal.body)
    }
}

fn answer(code: u16, body: &Value) -> Response<Body> {
    answer_bytes(code, body.to_string().into())
}

fn answer_bytes(code: u16, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(body).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

fn masked(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let generated = fields.get("generateName");
            let field = |(name, value): (&String, &Value)| {
                let masked = match (&**name, generated) {
                    ("uid" | "resourceVersion", _) => Value::Null,
                    ("name", Some(prefix)) => prefix.clone(),
                    ("certificate", _) if value.is_string() => "a certificate".into(),
                    ("annotations", _) => timeless(value),
                    _ => masked(value),
                };
                (name.clone(), masked)
            };
            Value::Object(fields.iter().map(field).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(masked).collect()),
        Value::String(_) if is_instant(value) => "an instant".into(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn timeless(annotations: &Value) -> Value {
    let kept = annotations.as_object().into_iter().flatten().filter(|(_, value)| !is_instant(value));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect::<serde_json::Map<_, _>>().into()
}

fn is_instant(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.parse::<Timestamp>().is_ok())
}

#[expect(clippy::panic, reason = "a test that names what is not served is broken")]
fn known<'a>(resource: Option<&'a Resource>, name: &str) -> &'a Resource {
    resource.unwrap_or_else(|| panic!("{name} is not served"))
}

#[expect(clippy::panic, reason = "a test that changes what is not there is broken")]
fn expect(done: Result<Value, Refusal>) {
    if let Err(refusal) = done {
        panic!("{}", text(&refusal.body, "/message"));
    }
}

#[cfg(test)]
mod tests;
