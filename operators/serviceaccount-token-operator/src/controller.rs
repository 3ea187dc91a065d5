//! The operator as a process, and one sync on one screen.

mod changes;

use std::sync::Arc;

use shared::api::explain::{Stage, Subject};
use shared::api::object::Key;
use shared::controllers::root_ca::RootCa;
use shared::process::run::{Names, Operator, Setup};
use shared::working::context::ControllerContext;
use shared::working::decisions::{first_stage, stage};
use shared::working::queue::{Backoff, Cause, Queue};
use shared::working::worker::{Controller, Requeue};

use crate::apply::Writer;
use crate::apply::key::{KeyFile, open_to_others};
use crate::facts::{FACTS, QUEUE};
use crate::flags::Flags;
use crate::objects::SECRETS;
use crate::observe::{Caches, Informers, ObservedReference, live_listing};
use crate::plan::reference::{plan_read, plan_unlisting};
use crate::plan::{Plan, Reason, plan, plan_live_read};

pub struct ServiceAccountTokenOperator;

impl Operator for ServiceAccountTokenOperator {
    const NAMES: Names = FACTS.names;
    type Flags = Flags;

    fn set_up(flags: &Flags, setup: &mut Setup) {
        // Upstream has two queues of this name. Changes of accounts enqueue their Secrets here.
        let queue = setup.queue(QUEUE.name, Backoff::default());
        let ctx = setup.context(&queue);
        let (caches, informers) = Caches::new();
        let caches = Arc::new(caches);
        let root_ca = RootCa::of_flags(&flags.root_ca_file, setup.flags());
        let KeyFile(key_file) = flags.service_account_private_key_file.clone();
        match &key_file {
            None => tracing::info!("Controller is disabled because there is no private key"),
            Some(path) => {
                if let Some(mode) = open_to_others(path) {
                    let (path, mode) = (path.display(), format!("{mode:o}"));
                    tracing::warn!(%path, mode, "key file is readable by others than its owner");
                }
                follow(setup, &queue, &caches, informers);
                let (containing, tokens) = (Arc::clone(&caches), queue.clone());
                root_ca.follow_flags(&flags.root_ca_file, setup, move || {
                    for token in containing.root_ca_changed() {
                        tokens.add(&token, Cause::Event);
                    }
                });
            }
        }
        let controller = TokenController { caches, root_ca, writer: Writer { ctx: ctx.clone(), key_file }, ctx };
        setup.work(Arc::new(controller), &queue, flags.concurrent_serviceaccount_token_syncs);
    }
}

/// Watches tokens, and accounts while there is a token.
fn follow(setup: &mut Setup, queue: &Queue, caches: &Arc<Caches>, informers: Informers) {
    let Informers { mut secrets, mut service_accounts } = informers;
    let noting = Arc::clone(caches);
    secrets.on_change(move |change| noting.note_token(&change));
    let noting = Arc::clone(caches);
    service_accounts.on_change(move |change| noting.note_account(&change));
    let forgetting = Arc::clone(caches);
    setup.on_restore(move || forgetting.deleted_accounts.reset());
    let effects = setup.effects(queue);
    secrets.on_change(effects.with(changes::secret_changed));
    service_accounts.on_change(effects.of(caches, Caches::service_account_changed));
    let need = secrets.need(|_| true);
    setup.watch(secrets);
    setup.watch_while(service_accounts, &need);
}

struct TokenController {
    caches: Arc<Caches>,
    root_ca: Arc<RootCa>,
    writer: Writer,
    ctx: ControllerContext,
}

impl Controller for TokenController {
    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let observed = self.caches.observe(key, self.root_ca.current().as_ref());
        // An observed deletion of the account counts for one sync.
        self.caches.deleted_accounts.clear(key);
        let Some(observed) = observed else { return self.unlist(key).await };
        let observed = match plan_live_read(&observed) {
            None => observed,
            Some(live_read) => {
                self.ctx.decide(key, &live_read);
                self.caches.read_account(self.ctx.control(), observed).await?
            }
        };
        let plan = plan(&observed);
        self.ctx.decide(key, &plan);
        self.writer.apply(&observed, plan).await?;
        Ok(Requeue::Done)
    }

    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&SECRETS)
    }

    fn preview(&self, key: &Key) -> Vec<Stage> {
        if self.writer.key_file.is_none() {
            return vec![stage(&Plan::Keep(Reason::Off))];
        }
        if let Some(observed) = self.caches.observe(key, self.root_ca.current().as_ref()) {
            return vec![first_stage(plan_live_read(&observed), || plan(&observed))];
        }
        let reference = self.caches.observe_reference(key);
        let first = |observed: &ObservedReference| first_stage(plan_read(observed), || plan_unlisting(observed));
        reference.iter().map(first).collect()
    }
}

impl TokenController {
    /// Removes a deleted token from the list of its account.
    async fn unlist(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(mut observed) = self.caches.observe_reference(key) else { return Ok(Requeue::Done) };
        if let Some(live_read) = plan_read(&observed) {
            self.ctx.decide(key, &live_read);
            observed = live_listing(self.ctx.control(), observed).await?;
            if self.caches.deleted_tokens.account(key).is_none() {
                // It was created again meanwhile.
                return Ok(Requeue::Done);
            }
        }
        let plan = plan_unlisting(&observed);
        self.ctx.decide(key, &plan);
        self.writer.unlist(&observed, plan).await?;
        self.caches.deleted_tokens.clear(key, &observed.account);
        Ok(Requeue::Done)
    }
}
