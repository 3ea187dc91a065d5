//! The operator as a process, and rounds over all tokens.
//!
//! A round is the same for each cause, so it has one key. Left out: the change that does not wait for the next
//! round, which is in `changes`.

mod changes;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::runtime::api_error::ApiError;
use shared::runtime::clock::Clock;
use shared::runtime::decisions::{Decisions, stage};
use shared::runtime::queue::{Backoff, Cause};
use shared::runtime::run::{Names, Operator, Setup};
use shared::runtime::worker::{Controller, Requeue};

use crate::apply::{Outcome, Writer};
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::objects::{CONFIG_MAPS, SECRETS, Token, tracking_key};
use crate::observe::{Caches, Informers, Observed, Uses, live_token, live_tokens};
use crate::plan::{Round, plan, plan_live_read, plan_round};
use changes::{round_key, tracking_changed};

/// Upstream: `DefaultCleanerSyncInterval`.
const INTERVAL: Duration = Duration::from_hours(24);

/// The operator as a process.
pub struct LegacyServiceAccountTokenCleanerOperator;

impl Operator for LegacyServiceAccountTokenCleanerOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let control = setup.control(&queue);
        let (caches, Informers { mut config_maps }) = Caches::new();
        let caches = Arc::new(caches);
        config_maps.on_change(setup.effects(&queue).of(&caches, |_, change| tracking_changed(change)));
        setup.watch(config_maps);
        let rounds = queue.clone();
        setup.at_start(move || rounds.add(&round_key(), Cause::Event));
        let controller = CleanerController {
            caches,
            writer: Writer { control },
            period: flags.legacy_service_account_token_clean_up_period.0,
            clock: setup.clock(),
            decisions: setup.decisions(&queue),
        };
        setup.work(Arc::new(controller), &queue, 1);
    }
}

/// Looks at all tokens.
struct CleanerController {
    caches: Arc<Caches>,
    writer: Writer,
    period: Duration,
    clock: Clock,
    decisions: Decisions,
}

impl Controller for CleanerController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let now = self.clock.now();
        let round = self.round(now);
        self.decisions.record(now, key, &round);
        if let Round::Look(_) = round {
            let mut uses = Uses::default();
            for token in live_tokens(&self.writer.control).await? {
                self.clean(key, token, &mut uses, now).await;
            }
        }
        Ok(Requeue::After(INTERVAL, "the next round"))
    }

    /// A round has the apiserver's ConfigMap as its object; under a token's key is the decision about that token.
    fn key_of(&self, object: &Subject) -> Option<Key> {
        let tracking = object.key_of(&CONFIG_MAPS).filter(|key| *key == tracking_key());
        object.key_of(&SECRETS).or_else(|| tracking.map(|_| round_key()))
    }

    /// Of a token nothing is known between rounds.
    fn preview(&self, key: &Key) -> Vec<Stage> {
        if *key == round_key() { vec![stage(&self.round(self.clock.now()))] } else { Vec::new() }
    }
}

impl CleanerController {
    fn round(&self, now: Timestamp) -> Round {
        plan_round(self.caches.tracking().as_deref(), self.period, now)
    }

    /// Looks at one token. One that fails is looked at again in the next round, and keeps no other waiting.
    async fn clean(&self, round: &Key, token: Token, uses: &mut Uses, now: Timestamp) {
        let key = token.metadata.key.clone();
        let done = self.try_clean(round, Observed::of(token), uses, now).await;
        match done {
            Ok(()) => self.decisions.finish(&key, Ok(())),
            Err(error) => {
                self.decisions.finish(&key, Err(&format_args!("{error:#}")));
                if !ApiError::is_shadows(&error) {
                    tracing::warn!(secret = %key, error = format!("{error:#}"), "the token is left to the next round");
                }
            }
        }
    }

    async fn try_clean(&self, round: &Key, known: Observed, uses: &mut Uses, now: Timestamp) -> anyhow::Result<()> {
        let key = known.token.metadata.key.clone();
        let observed = match plan_live_read(&known, self.period, now) {
            None => known,
            Some(live_read) => {
                self.decisions.record(now, &key, &live_read);
                live_token(&self.writer.control, uses, known).await?
            }
        };
        let plan = plan(&observed, self.period, now);
        self.decisions.record(now, &key, &plan);
        let Outcome { error } = self.writer.apply(round, &observed, plan).await;
        error.map_or(Ok(()), Err)
    }
}
