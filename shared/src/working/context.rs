//! What a controller needs to decide and to write: its clock, its writes, its decisions and its events.
//!
//! Left out: what only some controllers need, such as caches, queues and expectations.

use std::ops::Deref;

use jiff::Timestamp;

use crate::api::object::Key;
use crate::transport::clock::Clock;
use crate::working::control::Control;
use crate::working::decisions::{Decisions, Next, Reason, Reasoned};
use crate::working::events::{PlannedEvent, Recorder};

/// Clock, writes, decisions and events of one queue's syncs; cheap to clone. Reads and writes as its [`Control`] does.
#[derive(Clone)]
pub struct ControllerContext {
    control: Control,
    clock: Clock,
    recorder: Recorder,
    decisions: Decisions,
}

impl Deref for ControllerContext {
    type Target = Control;
    fn deref(&self) -> &Control {
        &self.control
    }
}

impl ControllerContext {
    pub fn new(control: Control, clock: Clock, recorder: Recorder, decisions: Decisions) -> Self {
        Self { control, clock, recorder, decisions }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn decide(&self, key: &Key, plan: &impl Reasoned) {
        self.decisions.record(self.now(), key, plan);
    }

    /// Plans stage by stage until a plan can be executed, and notes each stage. Gives the plan with what it is about.
    ///
    /// # Errors
    /// When a live read fails.
    pub async fn decide_in_stages<O, R: Reason, P: Reasoned, F: Future<Output = anyhow::Result<O>>>(
        &self,
        key: &Key,
        mut observed: O,
        plan: impl Fn(&O) -> Next<R, P>,
        read: impl Fn(O) -> F,
    ) -> anyhow::Result<(O, P)> {
        loop {
            match plan(&observed) {
                Next::Ask(live_read) => {
                    self.decide(key, &live_read);
                    observed = read(observed).await?;
                }
                Next::Execute(plan) => {
                    self.decide(key, &plan);
                    return Ok((observed, plan));
                }
            }
        }
    }

    /// Closes the record of a decision about another key than that of the running sync.
    pub fn finish(&self, key: &Key, done: &anyhow::Result<()>) {
        match done {
            Ok(()) => self.decisions.finish(key, Ok(())),
            Err(error) => self.decisions.finish(key, Err(&format_args!("{error:#}"))),
        }
    }

    /// Posts an event; never blocks.
    pub fn event(&self, event: PlannedEvent) {
        let PlannedEvent { about, kind, reason, message } = event;
        self.recorder.event(&about, kind, reason, message);
    }

    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The event recorder, for code that is shared with other controllers.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }
}
