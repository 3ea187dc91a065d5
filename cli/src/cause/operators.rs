//! Causes in the operators that should act: one does not run, may not, does not see, or waits.

use jiff::Timestamp;
use serde::Serialize;

use crate::cause::refusal::Refusal;
use crate::words::{lasting, line, list, many, when};

/// Why nobody acts on an object that is not at rest.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "case")]
pub enum Operators {
    /// Nobody runs the controller.
    NotRunning {
        /// Which operator would.
        operator: String,
        /// Upstream's name of the controller.
        controller: String,
    },
    /// The Lease was released, and nobody took it.
    LeaseFree {
        /// Whose.
        operator: String,
    },
    /// The Lease was not renewed.
    LeaseExpired {
        /// Whose.
        operator: String,
        /// The Lease's last holder.
        holder: String,
        /// Until when.
        expired: Option<Timestamp>,
    },
    /// The operator and kube-controller-manager both run the controller.
    RunTwice {
        /// Which operator.
        operator: String,
        /// Upstream's name of the controller.
        controller: String,
        /// When kube-controller-manager last wrote the object's status; none where only its flags say so.
        wrote: Option<Timestamp>,
    },
    /// The apiserver does not let the operator do its work.
    WithoutRole {
        /// Which operator.
        operator: String,
        /// The apiserver's refusal.
        error: String,
    },
    /// The object's newest state cannot be read by the operator.
    Unreadable {
        /// Which operator.
        operator: String,
        /// `pods`.
        resource: String,
        /// `namespace/name`.
        object: String,
        /// Why not.
        error: String,
    },
    /// Something cannot be listed or watched.
    CacheFailing {
        /// By which operator.
        operator: String,
        /// `pods`.
        resource: String,
        /// Why not.
        error: String,
    },
    /// Something was not listed yet.
    CacheUnsynced {
        /// By which operator.
        operator: String,
        /// `pods`.
        resource: String,
    },
    /// Nothing was heard of something for long.
    CacheSilent {
        /// By which operator.
        operator: String,
        /// `pods`.
        resource: String,
        /// The last time.
        heard: Timestamp,
    },
    /// The key waits until caches have seen its own writes.
    Held {
        /// By which operator.
        operator: String,
        /// The caches, and the versions that they are to reach: `pods version 4711`.
        until: Vec<String>,
        /// Since when.
        since: Option<Timestamp>,
    },
    /// The last syncs failed.
    BackOff {
        /// Of which operator.
        operator: String,
        /// How many in a row.
        failures: u32,
        /// The last error.
        error: String,
        /// When it is tried again.
        next_try: Option<Timestamp>,
    },
    /// The key waits in the queue.
    Queued {
        /// Of which operator.
        operator: String,
        /// Since when.
        since: Timestamp,
    },
    /// A sync does not end.
    Slow {
        /// Of which operator.
        operator: String,
        /// Since when.
        since: Timestamp,
    },
}

impl Operators {
    /// In words.
    pub fn text(&self, now: Timestamp) -> String {
        match self {
            Self::NotRunning { operator, controller } => {
                format!("nobody acts on it: neither {operator} nor kube-controller-manager's {controller} runs")
            }
            Self::LeaseFree { operator } => format!("nobody acts on it: no replica of {operator} holds its Lease"),
            Self::LeaseExpired { operator, holder, expired } => {
                let expired = expired.map(|time| format!(" {}", when(time, now))).unwrap_or_default();
                format!("nobody acts on it: the Lease of {operator} expired{expired}, held by {holder}")
            }
            Self::RunTwice { operator, controller, wrote } => {
                let wrote = wrote.map(|time| format!(", which wrote {}", when(time, now))).unwrap_or_default();
                format!("both {operator} and kube-controller-manager's {controller} act on it{wrote}")
            }
            Self::WithoutRole { operator, error } => format!("{operator} may not do what it has to: {}", line(error)),
            Self::Unreadable { operator, resource, object, error } => {
                format!("{operator} cannot read {resource} {object}, and acts on an older state: {}", line(error))
            }
            Self::CacheFailing { operator, resource, error } => {
                format!("{operator} cannot follow {resource}, and waits: {}", line(error))
            }
            Self::CacheUnsynced { operator, resource } => {
                format!("{operator} has not listed {resource} yet, and waits")
            }
            Self::CacheSilent { operator, resource, heard } => {
                format!("{operator} heard nothing of {resource} {}", lasting(*heard, now))
            }
            Self::Held { operator, until, since } => {
                let since = since.map(|time| format!(" {}", lasting(time, now))).unwrap_or_default();
                format!("{operator} holds it{since} until its caches have {}", list(until))
            }
            Self::BackOff { operator, failures, error, next_try } => {
                let next = next_try.map(|time| format!(", next try {}", when(time, now))).unwrap_or_default();
                let refusal = Refusal::read(error);
                let said = if let Refusal::Other { message } = &refusal {
                    if message.is_empty() { String::new() } else { format!(": {message}") }
                } else {
                    format!(": refused by {refusal}")
                };
                format!("{operator} failed {} in a row{next}{said}", many(i64::from(*failures), "time"))
            }
            Self::Queued { operator, since } => format!("it waits in the queue of {operator} {}", lasting(*since, now)),
            Self::Slow { operator, since } => format!("a sync of {operator} runs {}", lasting(*since, now)),
        }
    }
}
