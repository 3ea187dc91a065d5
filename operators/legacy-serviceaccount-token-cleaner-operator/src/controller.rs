//! The operator as a process, and a round over all tokens on one screen.

mod changes;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::process::run::{Names, Operator, Setup};
use shared::transport::api_error::ApiError;
use shared::working::context::ControllerContext;
use shared::working::decisions::stage;
use shared::working::queue::{Backoff, Cause};
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::objects::{CONFIG_MAPS, SECRETS, Token, tracking_key};
use crate::observe::{Caches, Informers, Observed, Uses, live_token, live_tokens};
use crate::plan::{Round, plan, plan_live_read, plan_round};
use changes::{round_key, tracking_changed};

/// Upstream: `DefaultCleanerSyncInterval`.
const INTERVAL: Duration = Duration::from_hours(24);

pub struct LegacyServiceAccountTokenCleanerOperator;

impl Operator for LegacyServiceAccountTokenCleanerOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, Informers { mut config_maps }) = Caches::new();
        config_maps.on_change(setup.effects(&queue).with(tracking_changed));
        setup.watch(config_maps);
        let rounds = queue.clone();
        setup.at_start(move || rounds.add(&round_key(), Cause::Event));
        let controller = CleanerController {
            caches,
            period: flags.legacy_service_account_token_clean_up_period.0,
            writer: Writer { ctx: ctx.clone() },
            ctx,
        };
        setup.work(Arc::new(controller), &queue, 1);
    }
}

struct CleanerController {
    caches: Caches,
    /// `--legacy-service-account-token-clean-up-period`.
    period: Duration,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for CleanerController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let now = self.ctx.now();
        let round = self.round(now);
        self.ctx.decide(key, &round);
        if let Round::Check(_) = round {
            let mut uses = Uses::default();
            for token in live_tokens(self.ctx.control()).await? {
                self.clean(key, token, &mut uses, now).await;
            }
        }
        Ok(Requeue::After(INTERVAL, "the next round"))
    }

    /// A round's object is the tracking ConfigMap. The decision about a token is under that token's key.
    fn key_of(&self, object: &Subject) -> Option<Key> {
        let tracking = object.key_of(&CONFIG_MAPS).filter(|key| *key == tracking_key());
        object.key_of(&SECRETS).or_else(|| tracking.map(|_| round_key()))
    }

    /// Nothing for a token: it is read live in a round.
    fn preview(&self, key: &Key) -> Vec<Stage> {
        if *key == round_key() { vec![stage(&self.round(self.ctx.now()))] } else { Vec::new() }
    }
}

impl CleanerController {
    fn round(&self, now: Timestamp) -> Round {
        plan_round(self.caches.tracking().as_deref(), self.period, now)
    }

    /// Checks one token. A failure leaves it to the next round and does not stop this one.
    async fn clean(&self, round: &Key, token: Token, uses: &mut Uses, now: Timestamp) {
        let key = token.metadata.key.clone();
        let done = self.try_clean(round, Observed::of(token), uses, now).await;
        self.ctx.finish(&key, &done);
        if let Err(error) = done
            && !ApiError::is_shadows(&error)
        {
            tracing::warn!(secret = %key, error = format!("{error:#}"), "token failed; retrying in the next round");
        }
    }

    async fn try_clean(&self, round: &Key, known: Observed, uses: &mut Uses, now: Timestamp) -> anyhow::Result<()> {
        let key = known.token.metadata.key.clone();
        let observed = match plan_live_read(&known, self.period, now) {
            None => known,
            Some(live_read) => {
                self.ctx.decide(&key, &live_read);
                live_token(self.ctx.control(), uses, known).await?
            }
        };
        let plan = plan(&observed, self.period, now);
        self.ctx.decide(&key, &plan);
        self.writer.apply(round, &observed, plan).await
    }
}
