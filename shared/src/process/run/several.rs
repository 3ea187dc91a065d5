//! One process with several controllers: a thread and a supervisor for each, one Lease and one port for all.
//!
//! The main thread holds the common Lease, serves, and reads the watches that controllers share. The controllers share
//! nothing with it but values behind locks. If the common Lease is lost, the process ends.
//! Left out: caches that controllers share, and limits of one controller's memory.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use futures::future::{LocalBoxFuture, join_all};
use tokio::sync::watch;
use tokio::time::{interval, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::controller::{Common, Controller, FLUSH_MAX, Face, Surroundings, leadership_lost};
use super::member::{Member, Pulse, State};
use super::{Names, Operator, Setup, connect, exit_code, runtime, start_telemetry, stop_signal, user_agent};
use crate::api::explain::{OperatorStatus, STATUS_PATH};
use crate::api::json;
use crate::following::reflector::hub::Hub;
use crate::process::explain::Explanations;
use crate::process::flags::{self, Exit, Mode, SharedFlags};
use crate::process::leader::{Election, Elector};
use crate::process::metrics::{self, ControllerState, Metrics};
use crate::process::serving::{Checks, JSON, Probe, Server, Site};
use crate::process::telemetry::Verbosity;
use crate::transport::client::account::{Account, Requests};
use crate::transport::client::{self, Access, Client};
use crate::transport::clock::{Clock, instant};
use crate::working::events::Events;

/// The name of this process in user agents, events and metrics: that of the program which it replaces.
const MANAGER: &str = "kube-controller-manager";
/// The namespace of the controllers' accounts, as in manifests/base.
const ACCOUNTS_NAMESPACE: &str = "kube-system";
/// How long after `--controller-shutdown-timeout` the controllers may take to release their Leases and send their events.
const RELEASE_MAX: Duration = Duration::from_secs(5);
/// Between two checks for blocked controllers.
const LOOK_PERIOD: Duration = Duration::from_secs(3);

/// An operator that may run in a process of several.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub names: Names,
    read: fn(Vec<OsString>) -> Result<Declare, Exit>,
}

/// Declares informers, queues and workers of a controller with the flags it was made with.
type Declare = Arc<dyn Fn(&mut Setup) + Send + Sync>;

impl Entry {
    pub const fn of<O: Operator>() -> Self {
        Self { names: O::NAMES, read: read::<O> }
    }
}

fn read<O: Operator>(args: Vec<OsString>) -> Result<Declare, Exit> {
    let program = std::iter::once(OsString::from(O::NAMES.operator));
    let own = flags::parse::<O::Flags>(O::NAMES.operator, program.chain(args))?.own;
    Ok(Arc::new(move |setup| O::set_up(&own, setup)))
}

/// What a process with several controllers runs.
#[derive(Debug)]
pub struct Several {
    pub controllers: Vec<Start>,
    /// The flags of the process itself: election, serving, client and logs.
    pub shared: SharedFlags,
    /// Whether each controller acts as the ServiceAccount of its operator.
    pub own_credentials: bool,
    /// Lines about controllers that do not run and flags without effect, with the reasons.
    pub notes: Vec<String>,
}

/// One controller that runs.
#[derive(Debug)]
pub struct Start {
    pub entry: Entry,
    /// The arguments for the operator's own parser, such as `--concurrent-deployment-syncs=10`.
    pub args: Vec<OsString>,
}

/// Runs the controllers until a signal stops them; the process's exit code says how it ended.
pub fn main(several: Several) -> ExitCode {
    let Several { controllers, shared, own_credentials, notes } = several;
    let declared: Result<Vec<(Names, Declare)>, Exit> =
        controllers.into_iter().map(|Start { entry, args }| Ok((entry.names, (entry.read)(args)?))).collect();
    match declared {
        Ok(declared) => {
            let running = run(declared, shared, own_credentials, notes);
            exit_code(runtime().and_then(|runtime| runtime.block_on(running)))
        }
        Err(exit) => exit.print(),
    }
}

async fn run(
    declared: Vec<(Names, Declare)>,
    shared: SharedFlags,
    own_credentials: bool,
    notes: Vec<String>,
) -> anyhow::Result<()> {
    if declared.is_empty() {
        bail!("--controllers leaves no controller to run");
    }
    if shared.mode == Mode::Shadow {
        bail!("--mode=shadow needs a process for each operator: name one");
    }
    let access = client::load_config(shared.kubeconfig(), shared.master()).await?;
    let clock = Clock::system();
    let telemetry = start_telemetry("operators", &shared, &clock)?;
    for note in notes {
        tracing::warn!(note, "command line");
    }
    let metrics = Metrics::new(MANAGER);
    let client = connect(MANAGER, &shared, &access, &metrics, None)?;
    let events = Events::start(client.clone(), clock.clone(), metrics.events());
    let limit = shared.controller_shutdown_timeout.0 + RELEASE_MAX;
    let mut process = Process::new(shared.clone(), client.clone(), clock, metrics, &events)?;
    for (names, declare) in declared {
        let (flags, access) = (shared.clone(), access.clone());
        let connect: Connect = Box::new(move |metrics| {
            let (flags, access) = (flags.clone(), access.clone());
            Box::pin(async move { connect_as(names, &flags, &access, &metrics, own_credentials).await })
        });
        process.add(names, declare, connect);
    }
    let _server = Server::start(&shared.serving, process.site(telemetry.verbosity().clone()), &client).await?;
    let outcome = process.work(stop_signal()?, limit).await;
    events.stop(FLUSH_MAX).await;
    telemetry.flush(FLUSH_MAX).await;
    outcome
}

/// The flags of the process, and the operator's own Lease.
fn flags_of(names: Names, shared: &SharedFlags) -> SharedFlags {
    let mut flags = shared.clone();
    names.operator.clone_into(&mut flags.leader.leader_elect_resource_name);
    flags
}

/// A client of one controller, on connections of its own.
async fn connect_as(
    names: Names,
    flags: &SharedFlags,
    access: &Access,
    metrics: &Metrics,
    own_credentials: bool,
) -> anyhow::Result<Client> {
    if !own_credentials {
        return connect(names.operator, flags, access, metrics, None);
    }
    let account = Account { namespace: ACCOUNTS_NAMESPACE.to_owned(), name: names.operator.to_owned() };
    let requests = Requests::new(account, access.clone(), user_agent(MANAGER));
    let (tokens, renewing) = requests.start().await?;
    // It ends with the runtime of this life.
    tokio::spawn(renewing);
    connect(names.operator, flags, &access.without_credentials(), metrics, Some(tokens))
}

/// Makes the client of one controller, inside that controller's runtime.
type Connect = Box<dyn Fn(Metrics) -> LocalBoxFuture<'static, anyhow::Result<Client>> + Send + Sync>;

struct Beginning {
    names: Names,
    flags: SharedFlags,
    clock: Clock,
    metrics: Metrics,
    common: Option<Common>,
    hub: Hub,
    declare: Declare,
    connect: Connect,
}

impl Beginning {
    async fn start(self: Arc<Self>) -> anyhow::Result<(Controller, Face)> {
        let metrics = self.metrics.of_controller(self.names.operator);
        let client = (self.connect)(metrics.clone()).await?;
        let (clock, common, hub) = (self.clock.clone(), self.common.clone(), Some(self.hub.clone()));
        let surroundings = Surroundings { client, clock, metrics, common, hub };
        Controller::prepare(self.names, &self.flags, surroundings, |setup| (self.declare)(setup))
    }
}

struct Process {
    shared: SharedFlags,
    client: Client,
    clock: Clock,
    metrics: Metrics,
    checks: Checks,
    elector: Option<Elector>,
    common: Option<Common>,
    hub: Hub,
    acquire: watch::Sender<bool>,
    pulse: Pulse,
    members: Vec<Arc<Member>>,
    stop: CancellationToken,
}

impl Process {
    fn new(
        shared: SharedFlags,
        client: Client,
        clock: Clock,
        metrics: Metrics,
        events: &Events,
    ) -> anyhow::Result<Self> {
        let (checks, acquire) = (Checks::default(), watch::Sender::new(false));
        let mut elector = None;
        if shared.leader.leader_elect {
            let election = Election::new(&shared.leader).context("cannot make an identity for the leader election")?;
            let recorder = events.recorder(MANAGER).at_any_time();
            elector = Some(Elector::new(election, client.ahead(), clock.clone(), recorder, metrics.leader(MANAGER)));
        }
        let common = elector.as_ref().map(|elector| {
            let watchdog = elector.watchdog();
            checks.add(&[Probe::Livez, Probe::Healthz], "leaderElection", move || watchdog.check());
            let holder = elector.lease().to_string();
            Common { holder, term: elector.term(), tried: elector.tried(), acquired: acquire.subscribe() }
        });
        let checked = client.clone();
        checks.add(&[Probe::Livez, Probe::Healthz], "credentials", move || checked.check_credentials());
        let hub = Hub::new(tokio::runtime::Handle::current());
        let (pulse, members, stop) = (Pulse::default(), Vec::new(), CancellationToken::new());
        Ok(Self { shared, client, clock, metrics, checks, elector, common, hub, acquire, pulse, members, stop })
    }

    /// Adds a controller, whose clients this makes.
    fn add(&mut self, names: Names, declare: Declare, connect: Connect) {
        let beginning = Arc::new(Beginning {
            names,
            flags: flags_of(names, &self.shared),
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
            common: self.common.clone(),
            hub: self.hub.clone(),
            declare,
            connect,
        });
        let member =
            Arc::new(Member::new(names, self.pulse, Box::new(move || Box::pin(Arc::clone(&beginning).start()))));
        for probes in [&[Probe::Livez, Probe::Healthz][..], &[Probe::Readyz]] {
            let (asked, probe) = (Arc::clone(&member), probes[0]);
            self.checks.add_graded(probes, names.controller, move || asked.health(probe));
        }
        self.members.push(member);
    }

    /// The pages that a process with one controller serves, for all that run.
    fn site(&self, verbosity: Verbosity) -> Site {
        let (metrics, members) = (self.metrics.clone(), Members(self.members.clone().into()));
        let counted = members.clone();
        metrics.watch_controllers(MANAGER, move || counted.states());
        let [decided, asked, explained, paged] = [&members; 4].map(Members::clone);
        Site::new(self.checks.clone(), verbosity)
            .page("/metrics", metrics::CONTENT_TYPE, move |_| metrics.to_text())
            .page("/debug/decisions", "application/jsonl", move |query| {
                decided.faces().map(|face| face.decisions.to_json_lines(query.value("key"))).collect()
            })
            .page(STATUS_PATH, JSON, move |_| {
                let all: Vec<OperatorStatus> = asked.faces().map(|face| face.explainer.status()).collect();
                String::from_utf8_lossy(&json(&all)).into_owned() + "\n"
            })
            .why(move |object| {
                let all = explained.faces().map(|face| face.explainer.explain(object.clone()));
                Explanations(all.filter(|explanation| !explanation.keys.is_empty()).collect())
            })
            .others(move |path| {
                let mut pages = paged.faces().flat_map(|face| face.pages.clone());
                pages.find(|(known, _)| *known == path).map(|(_, page)| page)
            })
    }

    /// Runs the controllers until they are stopped or the common Lease is lost. It is released last: by then all
    /// controllers have ended, or have had `limit` for it and cannot write any more.
    async fn work(mut self, stopped: impl Future<Output = ()>, limit: Duration) -> anyhow::Result<()> {
        let _ends = self.stop.clone().drop_guard();
        for member in &self.members {
            member.spawn(self.stop.clone(), self.client.came_back()).context("cannot start a thread")?;
        }
        let _looking = AbortOnDropHandle::new(tokio::spawn(report_blocked(self.members.clone())));
        let stopping = async {
            stopped.await;
            tracing::info!("stopping");
            self.stop.cancel();
            sleep(limit).await;
        };
        tokio::select! {
            error = lead(self.elector.as_mut(), &self.acquire) => return Err(error),
            () = ended(&self.members) => {}
            () = stopping => tracing::warn!(?limit, "controllers did not stop in time"),
        }
        if let Some(elector) = self.elector {
            elector.release().await;
        }
        Ok(())
    }
}

/// Acquires and renews the common Lease, and returns why it was lost.
async fn lead(elector: Option<&mut Elector>, acquire: &watch::Sender<bool>) -> anyhow::Error {
    let Some(elector) = elector else { return std::future::pending().await };
    elector.acquire().await;
    acquire.send_replace(true);
    leadership_lost(elector.renew().await)
}

/// Waits until all controllers have ended.
async fn ended(members: &[Arc<Member>]) {
    let each = members.iter().map(|member| async {
        // The member is the sender.
        let _ = member.state().wait_for(|state| matches!(state, State::Ended)).await;
    });
    join_all(each).await;
}

/// Logs which controllers are blocked; `/healthz` fails with them.
async fn report_blocked(members: Vec<Arc<Member>>) {
    let mut blocked = vec![false; members.len()];
    let mut looks = interval(LOOK_PERIOD);
    loop {
        looks.tick().await;
        for (member, was) in members.iter().zip(&mut blocked) {
            let (is, controller) = (member.blocked(instant()).is_some(), member.names.controller);
            match (*was, is) {
                (false, true) => tracing::error!(controller, "controller is blocked"),
                (true, false) => tracing::info!(controller, "controller is no longer blocked"),
                (_, _) => {}
            }
            *was = is;
        }
    }
}

/// The controllers of this process; cheap to clone.
#[derive(Clone)]
struct Members(Arc<[Arc<Member>]>);

impl Members {
    fn faces(&self) -> impl Iterator<Item = Arc<Face>> {
        self.0.iter().filter_map(|member| member.face())
    }

    fn states(&self) -> Vec<ControllerState> {
        let state = |member: &Arc<Member>| ControllerState {
            name: member.names.controller,
            works: member.is_working(),
            restarts: member.restarts(),
        };
        self.0.iter().map(state).collect()
    }
}

#[cfg(test)]
mod tests;
