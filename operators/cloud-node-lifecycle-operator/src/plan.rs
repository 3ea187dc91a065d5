//! What becomes of a node by its condition `Ready` and the provider's answers: it is deleted if its instance is gone, and
//! tainted while its instance is shut down.
//!
//! Upstream: `staging/src/k8s.io/cloud-provider/controllers/nodelifecycle/node_lifecycle_controller.go`.

mod reasons;

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::time::Time;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::{Node, SHUTDOWN};
use crate::observe::{Answer, Observed, Others};
pub use reasons::{Question, Reason};

/// The provider must say twice that it does not know a node, this long apart.
const APART: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub step: Step,
    pub absence: Absence,
    /// When the provider is asked again; a node that becomes not ready is asked about at once.
    pub again: Option<Duration>,
    pub reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Keep,
    Taint,
    Untaint,
    Delete,
}

/// What is remembered of the provider's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// There is no answer.
    Unchanged,
    /// The provider does not know the node.
    Noted,
    /// It knows the node, or the node says itself that it is there.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    pub period: Duration,
    /// Whether a node is deleted only if the provider knows another one.
    pub asks_about_others: bool,
}

pub type Next = decisions::Next<Question, Plan>;

/// The next stage for a node: the provider is asked about one that is not ready, and about others before a deletion.
///
/// Upstream: `MonitorNodes`.
pub fn next(observed: &Observed, config: &Config, now: Timestamp) -> Next {
    let Observed { node, absent_since: _, answer, others: _ } = observed;
    let (ready, again) = (node.ready, Some(config.period));
    let keep = |absence, again, reason| Plan { step: Step::Keep, absence, again, reason };
    Next::Execute(match answer {
        Answer::None if !node.is_ready() => {
            return ask("ask whether its instance exists", Question::NotReady { ready });
        }
        Answer::None | Answer::Ready => {
            let step = if node.is_tainted() { Step::Untaint } else { Step::Keep };
            // The cache may never show that it was ready, and so enqueue nothing.
            let again = again.filter(|_| *answer == Answer::Ready);
            Plan { step, ..keep(Absence::Over, again, Reason::Ready) }
        }
        Answer::Gone => keep(Absence::Unchanged, None, Reason::Gone),
        Answer::Exists { is_shut_down: false } => keep(Absence::Over, again, Reason::Exists { ready }),
        Answer::Exists { is_shut_down: true } => {
            let step = if node.is_tainted() { Step::Keep } else { Step::Taint };
            Plan { step, ..keep(Absence::Over, again, Reason::ShutDown { ready }) }
        }
        Answer::Absent if node.metadata.is_being_deleted() => keep(Absence::Unchanged, None, Reason::Deleting),
        Answer::Absent => return next_of_absent(observed, config, now),
        Answer::Later { after, message } => {
            keep(Absence::Unchanged, Some(*after), Reason::Later { message: message.clone() })
        }
        Answer::NotSupported => keep(Absence::Unchanged, Some(cloud::REST), Reason::NotSupported),
    })
}

/// The next stage for a node that the provider does not know. Upstream deletes it at the first answer.
fn next_of_absent(observed: &Observed, config: &Config, now: Timestamp) -> Next {
    let since = observed.absent_since.unwrap_or(now);
    let left = APART.saturating_sub(Duration::try_from(now.duration_since(since)).unwrap_or_default());
    let is_confirmed = left.is_zero();
    let since = Time::of(since);
    let step = match observed.others {
        Others::NotAsked if is_confirmed && config.asks_about_others => {
            return ask("ask about other nodes", Question::Absent { since });
        }
        Others::NotAsked | Others::None | Others::Known if is_confirmed => Step::Delete,
        Others::NotAsked | Others::None | Others::Known | Others::Unknown { .. } => Step::Keep,
    };
    let reason = match observed.others {
        Others::Unknown { nodes } => Reason::Doubtful { since, others: nodes },
        Others::NotAsked | Others::None | Others::Known => Reason::Absent { since },
    };
    let again = if is_confirmed { config.period } else { left };
    Next::Execute(Plan { step, absence: Absence::Noted, again: Some(again), reason })
}

fn ask(step: &'static str, reason: Question) -> Next {
    Next::Ask(LiveRead { step, reason })
}

/// Whether a node needs a sync, by what the cache shows of it.
pub(crate) fn is_news(node: &Node) -> bool {
    !node.is_ready() || node.is_tainted()
}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        &self.reason
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, absence: _, again: _, reason } = self;
        match step {
            Step::Keep => write!(f, "keep ({reason})"),
            Step::Taint => write!(f, "taint {SHUTDOWN} ({reason})"),
            Step::Untaint => write!(f, "untaint {SHUTDOWN} ({reason})"),
            Step::Delete => write!(f, "delete ({reason})"),
        }
    }
}
