//! The rules of a test for requests: refused, changed, their answer lost, or held for a while.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

use super::request::Call;
use super::store::Refusal;

/// A rule for requests of one verb for one resource. It counts them; without an action it does nothing else.
#[derive(Clone)]
pub struct Rule {
    state: Arc<Mutex<State>>,
    released: watch::Sender<bool>,
    met: watch::Sender<usize>,
}

struct State {
    verb: String,
    target: String,
    action: Action,
    /// How many requests more; none for all.
    left: Option<usize>,
}

/// The action of a rule.
#[derive(Clone)]
pub(super) enum Action {
    Pass,
    Answer { code: u16, reason: String, message: String },
    Lose,
    Hold(watch::Receiver<bool>),
    Change(fn(&mut Value)),
}

#[expect(clippy::return_self_not_must_use, reason = "a rule holds whether or not a test looks at it again")]
impl Rule {
    pub(super) fn new(verb: &str, target: &str) -> Self {
        let (verb, target) = (verb.to_owned(), target.to_owned());
        let state = State { verb, target, action: Action::Pass, left: None };
        Self { state: Arc::new(Mutex::new(state)), released: watch::Sender::new(false), met: watch::Sender::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with(self, action: Action) -> Self {
        self.state().action = action;
        self
    }

    /// Refuses, such as `(500, "InternalError", "failed calling webhook")`; nothing is stored.
    pub fn answer(self, code: u16, reason: &str, message: &str) -> Self {
        self.with(Action::Answer { code, reason: reason.to_owned(), message: message.to_owned() })
    }

    /// Does what is asked for and loses the answer.
    pub fn lose(self) -> Self {
        self.with(Action::Lose)
    }

    /// Changes what is sent, as a webhook does, and does that.
    pub fn change(self, change: fn(&mut Value)) -> Self {
        self.with(Action::Change(change))
    }

    /// Holds requests back until [`Self::release`], and then does what they ask for.
    pub fn hold(self) -> Self {
        let released = self.released.subscribe();
        self.with(Action::Hold(released))
    }

    /// Only the next request.
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Only the next requests.
    pub fn times(self, count: usize) -> Self {
        self.state().left = Some(count);
        self
    }

    /// Lets go what is held, and whatever comes.
    pub fn release(&self) {
        self.released.send_replace(true);
    }

    /// How many requests it has met.
    pub fn count(&self) -> usize {
        *self.met.borrow()
    }

    /// Waits until it has met a request.
    pub async fn arrived(&self) {
        // The sender lives as long as this rule.
        let _ = self.met.subscribe().wait_for(|met| *met > 0).await;
    }

    /// The action for this request, if the rule is about it.
    pub(super) fn meet(&self, call: &Call) -> Option<Action> {
        let mut state = self.state();
        if state.verb != call.verb || state.target != call.target() || state.left == Some(0) {
            return None;
        }
        state.left = state.left.map(|left| left - 1);
        self.met.send_modify(|met| *met += 1);
        Some(state.action.clone())
    }
}

impl Action {
    /// Waits where it holds, and gives the refusal where it refuses.
    pub(super) async fn before(&self, call: &Call) -> Result<(), Refusal> {
        match self {
            Self::Pass | Self::Lose | Self::Change(_) => Ok(()),
            Self::Answer { code, reason, message } => Err(call.refusal(*code, reason, message)),
            Self::Hold(released) => {
                // A rule lives as long as its server, and so longer than any request.
                let _ = released.clone().wait_for(|released| *released).await;
                Ok(())
            }
        }
    }
}
