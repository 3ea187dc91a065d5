//! A cloud in the test's process, behind the whole protocol: only its connections are pipes in memory, since a test in
//! paused time must not wait for a socket.
//!
//! It notes each call, and fails, is late, loses an answer, dies or answers yesterday's state when it is told to.

mod world;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::DuplexStream;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::endpoint::{Address, Endpoint, Files};
use crate::error::CloudError;
use crate::objects::{Info, InstanceMetadata, LoadBalancer, PROTOCOL_VERSION, Route};
use crate::server::{Provider, serve_connection};
pub use world::{Balancer, Instance, World};

/// Duration of each call, so that its begin and end have different times.
const LATENCY: Duration = Duration::from_millis(1);

/// How much of a message is on its way at a time.
const PIPE: usize = 64 << 10;

static CLOUDS: Mutex<BTreeMap<u64, Weak<Shared>>> = Mutex::new(BTreeMap::new());

static NEXT: AtomicU64 = AtomicU64::new(0);

/// The calls of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    GetInfo,
    GetLoadBalancer,
    EnsureLoadBalancer,
    UpdateLoadBalancer,
    DeleteLoadBalancer,
    InstanceExists,
    InstanceIsShutdown,
    InstanceMetadata,
    ListRoutes,
    CreateRoute,
    DeleteRoute,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// What goes wrong with a call.
#[derive(Clone, Debug)]
pub enum Fault {
    /// It changes nothing, and fails.
    Fail(CloudError),
    /// It is done, and every connection breaks before its answer.
    Lose,
    /// It begins so much later.
    Delay(Duration),
}

/// A cloud with its provider. It is gone when this is dropped.
pub struct Cloud {
    number: u64,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Breaks every connection.
    cut: Notify,
}

#[derive(Default)]
struct State {
    info: Info,
    is_dead: bool,
    world: World,
    /// The earlier state from which reading calls answer, if any.
    past: Option<World>,
    calls: Vec<String>,
    next: BTreeMap<Call, VecDeque<Fault>>,
    each: BTreeMap<Call, Fault>,
}

impl Default for Cloud {
    fn default() -> Self {
        Self::new()
    }
}

impl Cloud {
    /// An empty cloud with all capabilities.
    pub fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let cloud = Self { number, shared: Arc::default() };
        cloud.state().info = Info {
            name: "testing".to_owned(),
            protocol_version: PROTOCOL_VERSION,
            load_balancers: true,
            instances: true,
            routes: true,
            has_cluster_id: true,
        };
        clouds().insert(number, Arc::downgrade(&cloud.shared));
        cloud
    }

    /// The flag with which an operator in the same test finds it.
    pub fn flag(&self) -> String {
        format!("--cloud-provider-endpoint={}", self.endpoint())
    }

    pub fn endpoint(&self) -> Endpoint {
        Endpoint { address: Address::Memory(self.number), files: Files::default() }
    }

    /// The calls so far, such as `EnsureLoadBalancer default/web [node-0 node-1]`; without those of
    /// [`Call::GetInfo`], which come from time to time.
    pub fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    /// As [`Self::calls`], and forgets them.
    pub fn take_calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state().calls)
    }

    /// Looks at the world, or changes it.
    pub fn world<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        change(&mut self.state().world)
    }

    /// Every Ensure answers with this status from now on.
    pub fn give_status(&self, status: Value) {
        self.world(|world| world.status = Some(status));
    }

    /// What it says about itself from now on.
    pub fn set_info(&self, change: impl FnOnce(&mut Info)) {
        change(&mut self.state().info);
    }

    /// The next call of this kind that has no fault yet has this one.
    pub fn on_next(&self, call: Call, fault: Fault) {
        self.state().next.entry(call).or_default().push_back(fault);
    }

    /// Each call of this kind has this fault from now on, unless [`Self::on_next`] has another one.
    pub fn on_each(&self, call: Call, fault: Fault) {
        self.state().each.insert(call, fault);
    }

    /// No call has a fault any more.
    pub fn heal(&self) {
        let mut state = self.state();
        state.next.clear();
        state.each.clear();
    }

    /// Reading calls answer from this moment on what is true now, until [`Self::wake_up`].
    pub fn fall_asleep(&self) {
        let mut state = self.state();
        state.past = Some(state.world.clone());
    }

    pub fn wake_up(&self) {
        self.state().past = None;
    }

    /// Every connection breaks, and none can be made until [`Self::revive`]. What it knows stays.
    pub fn die(&self) {
        self.state().is_dead = true;
        self.shared.cut.notify_waiters();
    }

    pub fn revive(&self) {
        self.state().is_dead = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        clouds().remove(&self.number);
        self.shared.cut.notify_waiters();
    }
}

fn clouds() -> MutexGuard<'static, BTreeMap<u64, Weak<Shared>>> {
    CLOUDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection to the cloud of this number.
pub(crate) fn connect(number: u64) -> io::Result<DuplexStream> {
    let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
    let shared = clouds().get(&number).and_then(Weak::upgrade).ok_or_else(refused)?;
    if shared.state().is_dead {
        return Err(refused());
    }
    let (near, far) = tokio::io::duplex(PIPE);
    tokio::spawn(async move {
        let cut = shared.cut.notified();
        tokio::select! {
            // The other side sees an error that this one has.
            _ = serve_connection(far, Arc::clone(&shared)) => {}
            () = cut => {}
        }
    });
    Ok(near)
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the call, and does it with the fault that it has.
    async fn call<T>(
        &self,
        call: Call,
        about: String,
        act: impl FnOnce(&mut World) -> Result<T, CloudError>,
    ) -> Result<T, CloudError> {
        sleep(LATENCY).await;
        self.state().calls.push(format!("{call} {about}").trim_end().to_owned());
        self.act(call, |state| act(&mut state.world)).await
    }

    /// Runs a call, with its next fault if there is one.
    async fn act<T>(&self, call: Call, act: impl FnOnce(&mut State) -> Result<T, CloudError>) -> Result<T, CloudError> {
        let fault = {
            let mut state = self.state();
            let next = state.next.get_mut(&call).and_then(VecDeque::pop_front);
            next.or_else(|| state.each.get(&call).cloned())
        };
        match fault {
            None => act(&mut self.state()),
            Some(Fault::Fail(error)) => Err(error),
            Some(Fault::Delay(delay)) => {
                sleep(delay).await;
                act(&mut self.state())
            }
            Some(Fault::Lose) => {
                act(&mut self.state())?;
                self.cut.notify_waiters();
                std::future::pending().await
            }
        }
    }

    /// As [`Self::call`], of what it believes the world to be.
    async fn read<T>(
        &self,
        call: Call,
        about: String,
        read: impl FnOnce(&World) -> Result<T, CloudError>,
    ) -> Result<T, CloudError> {
        let past = self.state().past.clone();
        self.call(call, about, |world| read(past.as_ref().unwrap_or(world))).await
    }
}

impl Provider for Shared {
    async fn info(&self) -> Result<Info, CloudError> {
        self.act(Call::GetInfo, |state| Ok(state.info.clone())).await
    }

    async fn get_load_balancer(&self, _: &str, service: &RawValue) -> Result<LoadBalancer, CloudError> {
        let service = world::read(service)?;
        self.read(Call::GetLoadBalancer, service.key(), |world| world.get_balancer(&service)).await
    }

    async fn ensure_load_balancer(
        &self,
        _: &str,
        service: &RawValue,
        nodes: &[Box<RawValue>],
    ) -> Result<Box<RawValue>, CloudError> {
        let (service, nodes) = (world::read(service)?, world::names(nodes)?);
        let about = format!("{} [{}]", service.key(), nodes.join(" "));
        self.call(Call::EnsureLoadBalancer, about, |world| world.ensure_balancer(&service, nodes)).await
    }

    async fn update_load_balancer(
        &self,
        _: &str,
        service: &RawValue,
        nodes: &[Box<RawValue>],
    ) -> Result<(), CloudError> {
        let (service, nodes) = (world::read(service)?, world::names(nodes)?);
        let about = format!("{} [{}]", service.key(), nodes.join(" "));
        self.call(Call::UpdateLoadBalancer, about, |world| world.update_balancer(&service, nodes)).await
    }

    async fn delete_load_balancer(&self, _: &str, service: &RawValue) -> Result<(), CloudError> {
        let service = world::read(service)?;
        self.call(Call::DeleteLoadBalancer, service.key(), |world| {
            world.balancers.remove(&service.metadata.uid);
            Ok(())
        })
        .await
    }

    async fn instance_exists(&self, node: &RawValue) -> Result<bool, CloudError> {
        let node = world::read(node)?;
        self.read(Call::InstanceExists, node.key(), |world| Ok(world.instance(&node).is_some())).await
    }

    async fn instance_is_shutdown(&self, node: &RawValue) -> Result<bool, CloudError> {
        let node = world::read(node)?;
        let read = |world: &World| {
            world.instance(&node).map(|instance| instance.is_shutdown).ok_or(CloudError::InstanceNotFound)
        };
        self.read(Call::InstanceIsShutdown, node.key(), read).await
    }

    async fn instance_metadata(&self, node: &RawValue) -> Result<Option<InstanceMetadata>, CloudError> {
        let node = world::read(node)?;
        let read = |world: &World| {
            world.instance(&node).map(|instance| instance.metadata.clone()).ok_or(CloudError::InstanceNotFound)
        };
        self.read(Call::InstanceMetadata, node.key(), read).await
    }

    async fn list_routes(&self, _: &str) -> Result<Vec<Route>, CloudError> {
        self.read(Call::ListRoutes, String::new(), |world| Ok(world.routes.clone())).await
    }

    async fn create_route(&self, _: &str, name_hint: &str, route: &Route) -> Result<(), CloudError> {
        let about = format!("{} {}", route.target_node, route.destination_cidr);
        self.call(Call::CreateRoute, about, |world| {
            world.create_route(name_hint, route);
            Ok(())
        })
        .await
    }

    async fn delete_route(&self, _: &str, route: &Route) -> Result<(), CloudError> {
        let about = format!("{} {}", route.target_node, route.destination_cidr);
        self.call(Call::DeleteRoute, about, |world| {
            world.routes.retain(|other| other.name != route.name);
            Ok(())
        })
        .await
    }
}
