//! The consequences of a change of an object for one queue, as values.
//!
//! Pure methods in an operator's `controller/changes.rs` decide them, and [`Effects`] carries them out; an informer's
//! handler does nothing else.
//! Left out: consequences for a second queue, or for state that only one controller keeps. They need their own handler.

use std::sync::Arc;
use std::time::Duration;

use crate::api::object::{Key, Kind, Uid};
use crate::following::cache::Change;
use crate::working::control::Control;
use crate::working::decisions::Trigger;
use crate::working::expectations::Expectations;
use crate::working::queue::{Cause, Queue};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Enqueue(Key, Cause),
    /// Sync a key after a while, for this purpose: see [`Queue::add_after`].
    EnqueueAfter(Key, Duration, &'static str),
    /// One of the objects that a key waits for has appeared.
    CreationObserved(Key),
    /// The object of this uid is gone or being deleted; the key may have waited for that.
    DeletionObserved(Key, Uid),
    /// The key's object of this uid is gone: its writes and expectations do not count any more.
    Forget(Key, Uid),
}

impl Effect {
    /// The effects of a change of the object that is synced: an edit of its spec overtakes, a status does not, and one
    /// that is gone is synced once more.
    pub fn of_owner<T: Kind>(change: Change<'_, T>) -> Vec<Self> {
        let meta = change.latest().meta();
        let cause = match change {
            Change::Updated { old, new } if old.meta().generation == new.meta().generation => Cause::Event,
            Change::Added(_) | Change::Updated { .. } => Cause::Edit,
            Change::Deleted(_) => {
                return vec![Self::Forget(meta.key.clone(), meta.uid), Self::Enqueue(meta.key.clone(), Cause::Event)];
            }
        };
        vec![Self::Enqueue(meta.key.clone(), cause)]
    }
}

/// Carries out the effects of changes for one queue; cheap to clone.
#[derive(Clone)]
pub struct Effects {
    queue: Queue,
    control: Control,
    expectations: Arc<Expectations>,
}

impl Effects {
    pub fn new(queue: Queue, control: Control, expectations: Arc<Expectations>) -> Self {
        Self { queue, control, expectations }
    }

    /// The handler of an informer: it carries out the effects that `changed` gives for each change.
    pub fn with<T: Kind, F>(&self, changed: F) -> impl Fn(Change<'_, T>) + Send + Sync + use<T, F>
    where
        F: Fn(Change<'_, T>) -> Vec<Effect> + Send + Sync + 'static,
    {
        let effects = self.clone();
        move |change| {
            for effect in changed(change) {
                effects.carry_out(effect, || Trigger::of(&**change.latest()));
            }
        }
    }

    /// As [`Self::with`], for a function that reads caches.
    pub fn of<C, T, F>(&self, caches: &Arc<C>, changed: F) -> impl Fn(Change<'_, T>) + Send + Sync + use<C, T, F>
    where
        C: Send + Sync + 'static,
        T: Kind,
        F: Fn(&C, Change<'_, T>) -> Vec<Effect> + Send + Sync + 'static,
    {
        let caches = Arc::clone(caches);
        self.with(move |change: Change<'_, T>| changed(&caches, change))
    }

    fn carry_out(&self, effect: Effect, trigger: impl FnOnce() -> Trigger) {
        match effect {
            Effect::Enqueue(key, cause) => self.queue.add_for(&key, cause, trigger()),
            Effect::EnqueueAfter(key, delay, purpose) => self.queue.add_after_for(&key, delay, purpose, trigger()),
            Effect::CreationObserved(key) => self.expectations.creations_observed(&key, 1),
            Effect::DeletionObserved(key, uid) => self.expectations.deletion_observed(&key, uid),
            Effect::Forget(key, uid) => {
                self.expectations.forget(&key);
                self.control.forget(&key, Some(uid));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::api::object::{Meta, ResourceVersion};
    use crate::api::resource::PODS;
    use crate::following::informer::InformerBuilder;
    use crate::testing::{NOW, pod, uid};
    use crate::transport::client::{Client, ClientOptions};
    use crate::working::consistency::{Consistency, Watched, Write};
    use crate::working::decisions::Decisions;
    use crate::working::queue::Backoff;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Pod {
        metadata: Meta,
    }

    crate::view!(Pod, PODS);

    /// Adds a pod, which means these effects for a key that waits for a creation, a deletion and a version. Gives the
    /// keys that are synced then, with the seconds until that, and what is still waited for.
    async fn added(effects: Vec<Effect>) -> String {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let options = ClientOptions { user_agent: "test".to_owned(), ..ClientOptions::default() };
        let client = Client::new(&config, options).unwrap();
        let (pods, watched) = (InformerBuilder::<Pod>::new().build(), Watched::default());
        watched.add(pods.follow());
        let control = Control::new(client.clone(), Arc::new(Consistency::new(client, watched)), Decisions::default());
        let (version, created_with) = (ResourceVersion(7), None);
        control.consistency().record(&web(), uid("web"), &PODS, Write { object: &web(), version, created_with });
        let expectations = Arc::new(Expectations::new());
        expectations.expect(&web(), 1, [uid("a")]);
        let queue = Queue::new("test", Backoff::default(), None);
        Queue::start(std::slice::from_ref(&queue), || ());

        let effects_of = Effects::new(queue.clone(), control.clone(), Arc::clone(&expectations));
        let handler = effects_of.with(move |_: Change<'_, Pod>| effects.clone());
        let start = Instant::now();
        handler(Change::Added(&pod("a").build()));

        let mut happened = Vec::new();
        while let Ok(Some(key)) = timeout(Duration::from_secs(60), queue.next()).await {
            happened.push(format!("sync {} after {}s", key.name(), start.elapsed().as_secs()));
        }
        happened.extend(expectations.outstanding(&web(), NOW).map(|outstanding| outstanding.to_string()));
        happened.extend(control.consistency().behind(&web()).map(|_| "a version".to_owned()));
        happened.join(", ")
    }

    fn web() -> Key {
        Key::new("default", "web")
    }

    #[tokio::test(start_paused = true)]
    async fn a_handler_carries_out_every_effect_of_a_change() {
        let later = Effect::EnqueueAfter(web(), Duration::from_secs(5), "a test");
        for (effects, expected) in [
            (vec![], "1 creation and 1 deletion, a version"),
            (
                vec![later, Effect::Enqueue(Key::new("default", "db"), Cause::Event)],
                "sync db after 0s, sync web after 5s, 1 creation and 1 deletion, a version",
            ),
            (vec![Effect::CreationObserved(web()), Effect::DeletionObserved(web(), uid("b"))], "1 deletion, a version"),
            (vec![Effect::DeletionObserved(web(), uid("a"))], "1 creation, a version"),
            (vec![Effect::Forget(web(), uid("web"))], ""),
            // The write was for a former object of the name.
            (vec![Effect::Forget(web(), uid("former"))], "a version"),
        ] {
            assert_eq!(added(effects.clone()).await, expected, "{effects:?}");
        }
    }
}
