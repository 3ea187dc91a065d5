//! An operator behind a proxy of its own, and which of its requests are struck.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use e2e::operator::Operator;
use e2e::proxy::{Action, Exchange, Proxy, Rule, Verdict};
use http::Method;
use tokio::sync::watch;

use super::clusters::spec;
use super::scene::Scene;

/// An operator whose every request passes a proxy.
pub(crate) struct Behind {
    pub(crate) operator: Operator,
    pub(crate) proxy: Proxy,
}

impl Behind {
    /// Starts an operator under the name `replica`; with flags, one that elects a leader.
    pub(crate) async fn start(scene: &Scene, name: &str, replica: &str, flags: &[&str]) -> Result<Self> {
        let proxy = Proxy::start(&scene.cluster).await?;
        let mut spec = spec(&scene.cluster, name).await?;
        replica.clone_into(&mut spec.name);
        spec.server = Some(proxy.url());
        spec.leader_elect = !flags.is_empty();
        spec.flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        let mut operator = scene.cluster.start_operator(&spec).await?;
        operator.wait_ready().await?;
        Ok(Self { operator, proxy })
    }

    /// SIGKILL, and a new process in its place, which meets no fault.
    pub(crate) fn kill_and_restart(&mut self) -> Result<()> {
        self.operator.kill();
        self.proxy.clear();
        self.operator.restart()
    }

    /// Strikes every other create, every other patch and so on of what controllers work with, the first one included.
    pub(crate) fn strike_work(&self, action: &Action) {
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let passes = each(2);
            let rule = Rule::new(action.clone()).method(method).when(move |seen| is_work(&seen.path) && !passes(seen));
            self.proxy.add(rule.always());
        }
    }

    /// The writes of what controllers work with.
    pub(crate) fn work(&self) -> Vec<Exchange> {
        let mut writes = self.proxy.writes("**");
        writes.retain(|write| is_work(&write.path));
        writes
    }

    pub(crate) fn count(&self, method: &Method, path: &str) -> usize {
        self.proxy.writes(path).iter().filter(|exchange| exchange.method == *method).count()
    }

    /// How many writes of what controllers work with never arrived.
    pub(crate) fn struck(&self, method: &Method) -> usize {
        self.work().iter().filter(|write| write.method == *method && write.upstream_status.is_none()).count()
    }

    /// How many writes to this path were done and their answers lost.
    pub(crate) fn lost(&self, path: &str) -> usize {
        let writes = self.proxy.writes(path);
        writes.iter().filter(|exchange| exchange.upstream_status.is_some() && exchange.status.is_none()).count()
    }

    /// How many times all of this was asked for: one object alone is how a cache catches up.
    pub(crate) fn lists(&self, path: &str) -> usize {
        self.reads(path, |request| request.is_list() && !request.query.split('&').any(|other| other == "limit=1"))
    }

    /// How many times this was watched from where a list or a watch had ended.
    pub(crate) fn rewatches(&self, path: &str) -> usize {
        self.reads(path, |request| request.query.contains("watch=1") && !request.is_list())
    }

    /// Whether this was asked for, and refused.
    pub(crate) fn refused(&self, path: &str) -> bool {
        self.reads(path, |request| request.status.is_some_and(|status| !status.is_success())) > 0
    }

    fn reads(&self, path: &str, picks: impl Fn(&Exchange) -> bool) -> usize {
        self.proxy.requests().iter().filter(|request| request.path == path && picks(request)).count()
    }
}

/// Holds for every n-th request that it is asked about.
pub(crate) fn each<T>(n: usize) -> impl Fn(&T) -> bool + Send + Sync + 'static {
    let asked = AtomicUsize::new(0);
    move |_| (asked.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(n)
}

/// The n-th write of what controllers work with.
pub(crate) fn nth_work(action: Action, n: u32) -> Rule {
    Rule::new(action).writes().when(|seen| is_work(&seen.path)).nth(n)
}

/// Every such write.
pub(crate) fn all_work(action: Action) -> Rule {
    Rule::new(action).writes().when(|seen| is_work(&seen.path)).always()
}

/// Whether a controller's work is at this path: no events, leases, tokens, or reviews of tokens and access.
fn is_work(path: &str) -> bool {
    !["/events", "/leases", "reviews"].iter().any(|other| path.contains(other)) && !path.ends_with("/token")
}

/// Where a request waits, until its operator is dead or it is let go.
#[derive(Clone)]
pub(crate) struct Gate(Arc<watch::Sender<At>>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Before,
    Held,
    LetGo,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(At::Before)))
    }

    pub(crate) fn is_reached(&self) -> bool {
        *self.0.borrow() != At::Before
    }

    pub(crate) async fn reached(&self) {
        self.until(|at| at != At::Before).await;
    }

    pub(crate) fn let_go(&self) {
        self.0.send_replace(At::LetGo);
    }

    /// Holds a request before it is forwarded: if its operator dies, it never is.
    pub(crate) fn before(&self) -> Action {
        let gate = self.clone();
        Action::before(move |_| gate.clone().hold())
    }

    /// Holds an answer: the write has happened, and nobody is told.
    pub(crate) fn after(&self) -> Action {
        let gate = self.clone();
        Action::after(move |_| gate.clone().hold())
    }

    async fn hold(self) -> Verdict {
        self.0.send_replace(At::Held);
        self.until(|at| at == At::LetGo).await;
        Verdict::Continue
    }

    async fn until(&self, is: impl Fn(At) -> bool) {
        // It never closes: the sender is this gate's own.
        let _ = self.0.subscribe().wait_for(|at| is(*at)).await;
    }
}
