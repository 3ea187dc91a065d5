//! An operator in a test: what a process does without election, serving, telemetry and signals.
//!
//! Left out: catching up with a former leader, for there is none.

use anyhow::anyhow;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use tokio::sync::watch::Receiver;
use tokio::task::JoinSet;

use super::controller::{Face, all_synced, broken};
use super::restore::StartOver;
use super::{Operator, Setup};
use crate::following::cache::Progress;
use crate::process::explain::Explainer;
use crate::process::flags::Flags;
use crate::process::metrics::Metrics;
use crate::process::shadow::Shadow;
use crate::transport::client::Client;
use crate::transport::clock::Clock;
use crate::working::events::Events;
use crate::working::queue::Queue;

pub(crate) struct Alone {
    /// How far its caches have come.
    pub(crate) progress: Vec<Receiver<Progress>>,
    pub(crate) queues: Vec<Queue>,
    /// The answers under `/why`.
    pub(crate) explainer: Explainer,
    pub(crate) shadow: Option<Shadow>,
    pub(crate) start_over: StartOver,
    /// Its work, until this is dropped.
    pub(crate) work: BoxFuture<'static, anyhow::Error>,
}

/// The same as [`main`](super::main) without election, serving and telemetry; call it inside the tokio runtime.
pub(crate) fn alone<O: Operator>(flags: &Flags<O::Flags>, client: Client, clock: Clock) -> Alone {
    let metrics = Metrics::new(O::NAMES.operator);
    let events = Events::start(client.clone(), clock.clone(), metrics.events());
    let mut setup = Setup::new(O::NAMES, &flags.shared, client, clock, metrics, &events);
    setup.declare(|setup| O::set_up(&flags.own, setup));
    let Face { explainer, .. } = Face::of(O::NAMES, &mut setup, String::new());
    let Setup { shadow, informers, progress, followed, on_restore, queues, syncing, starters, workers, .. } = setup;
    let start_over = StartOver { followed, on_restore, queues: queues.clone(), syncing };
    let (caches, woken) = (progress.clone(), queues.clone());
    let work = async move {
        let mut following: JoinSet<anyhow::Result<()>> = informers.into_iter().collect();
        let working = all_synced(caches).then(|()| {
            Queue::start(&woken, || starters.into_iter().for_each(|starter| starter()));
            join_all(workers)
        });
        tokio::select! {
            _ = working => anyhow!("workers stopped"),
            error = broken(&mut following) => error,
        }
    };
    Alone { progress, queues, explainer, shadow, start_over, work: Box::pin(work) }
}
