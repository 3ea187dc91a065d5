//! Whether a request is answered, kept or deleted.
//!
//! Upstream: `syncRequest` and `shouldDeleteRequest`, `pkg/controller/resourcepoolstatusrequest/controller.go`.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::intern::Text;
use shared::api::list::list;
use shared::api::object::Uid;
use shared::api::time::Time;
use shared::process::flags::GoDuration;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::{Answered, ResourcePoolStatusRequest};
use crate::observe::{Observed, Pool, Pools};

/// For how long an answered request stays. Upstream: `completedRequestTTL`.
const ANSWERED_SECONDS: i64 = 60 * 60;
/// For how long a request waits for its answer. Upstream: `pendingRequestTTL`.
const PENDING_SECONDS: i64 = 24 * 60 * 60;

/// How old a request is at most whose pools are read often: a driver publishes the slices of a pool together.
const NEW_SECONDS: i64 = 60;
/// How often the pools of a new request are read until they are complete.
const SOON: Duration = Duration::from_secs(5);
/// How often those of an older one are.
const LATER: Duration = Duration::from_mins(10);

pub type Next = decisions::Next<Reason, Plan>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Write nothing: it is being deleted, or never ends.
    Keep(Reason),
    /// Sync an answered request again at its end.
    Wait {
        /// The time until then.
        left: Duration,
        until: Time,
    },
    Delete {
        uid: Uid,
        since: Time,
    },
    /// Read the pools again.
    Retry {
        after: Duration,
        incomplete: Vec<Text>,
    },
    Answer {
        pools: Vec<PoolAnswer>,
        /// How many pools there are, with those beyond the limit.
        total: usize,
    },
}

/// One pool of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolAnswer {
    pub driver: Text,
    pub name: Text,
    pub pool: Pool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    BeingDeleted,
    /// Its answer has no time.
    Timeless,
    Answered {
        until: Time,
    },
    Over {
        since: Time,
    },
    /// It has no answer.
    Pending {
        driver: Text,
    },
    /// These pools lack slices.
    Incomplete {
        pools: Vec<Text>,
    },
    Complete {
        pools: usize,
    },
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Keep(reason) => reason.clone(),
            Self::Wait { left: _, until } => Reason::Answered { until: *until },
            Self::Delete { uid: _, since } => Reason::Over { since: *since },
            Self::Retry { after: _, incomplete } => Reason::Incomplete { pools: incomplete.clone() },
            Self::Answer { pools: _, total } => Reason::Complete { pools: *total },
        }
    }
}

/// Plans the next stage.
pub fn plan(observed: &Observed, now: Timestamp) -> Next {
    let Observed { request, pools } = observed;
    let ResourcePoolStatusRequest { metadata, question, answered } = &**request;
    if metadata.is_being_deleted() {
        return Next::Execute(Plan::Keep(Reason::BeingDeleted));
    }
    let (begin, seconds) = match answered {
        Some(Answered { time }) => (*time, ANSWERED_SECONDS),
        None => (metadata.creation, PENDING_SECONDS),
    };
    let end = begin.map(|begin| Time::from_second(begin.second().saturating_add(seconds)));
    let left = end.map(|end| (end, end.remaining(0, now)));
    if let Some((since, None)) = left {
        return Next::Execute(Plan::Delete { uid: metadata.uid, since });
    }
    match (answered, left, pools) {
        (Some(_), Some((until, Some(left))), _) => Next::Execute(Plan::Wait { left, until }),
        (Some(_), _, _) => Next::Execute(Plan::Keep(Reason::Timeless)),
        (None, _, None) => {
            let reason = Reason::Pending { driver: question.driver.clone() };
            Next::Ask(LiveRead { step: "list ResourceSlices and ResourceClaims", reason })
        }
        (None, _, Some(pools)) => Next::Execute(plan_answer(request, pools, now)),
    }
}

/// Upstream: `calculatePoolStatus`, `pkg/controller/resourcepoolstatusrequest/controller.go`.
fn plan_answer(request: &ResourcePoolStatusRequest, pools: &Pools, now: Timestamp) -> Plan {
    let question = &request.question;
    let incomplete: Vec<Text> = pools.incomplete(question).cloned().collect();
    if incomplete.is_empty() {
        let answer = |(name, pool): (&Text, &Pool)| PoolAnswer {
            driver: question.driver.clone(),
            name: name.clone(),
            pool: pool.clone(),
        };
        return Plan::Answer { pools: pools.shown(question).map(answer).collect(), total: pools.0.len() };
    }
    let is_new = request.metadata.creation.is_some_and(|creation| creation.remaining(NEW_SECONDS, now).is_some());
    Plan::Retry { after: if is_new { SOON } else { LATER }, incomplete }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Keep(_) => write!(f, "keep ({reason})"),
            Self::Wait { left, until: _ } => write!(f, "wait {} ({reason})", GoDuration(*left)),
            Self::Delete { .. } => write!(f, "delete ({reason})"),
            Self::Retry { after, incomplete: _ } => write!(f, "retry in {} ({reason})", GoDuration(*after)),
            Self::Answer { pools, .. } => write!(f, "answer with {} pools ({reason})", pools.len()),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeingDeleted => f.write_str("being deleted"),
            Self::Timeless => f.write_str("answered without a time"),
            Self::Answered { until: end } | Self::Over { since: end } => write!(f, "kept until {end}"),
            Self::Pending { driver } => write!(f, "asks about {driver}"),
            Self::Incomplete { pools } => write!(f, "pools without all slices: {}", list(pools, ToString::to_string)),
            Self::Complete { pools } => write!(f, "complete pools: {pools}"),
        }
    }
}
