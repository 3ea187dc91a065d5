//! Causes in the operators: not running, not permitted, blind, or waiting.

use jiff::Timestamp;
use serde::Serialize;

use crate::cause::refusal::Refusal;
use crate::words::{lasting, line, list, many, when};

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "case")]
pub enum Operators {
    NotRunning {
        operator: String,
        controller: String,
    },
    LeaseFree {
        operator: String,
    },
    LeaseExpired {
        operator: String,
        holder: String,
        expired: Option<Timestamp>,
    },
    /// The operator and kube-controller-manager both run the controller.
    RunTwice {
        operator: String,
        controller: String,
        wrote: Option<Timestamp>,
    },
    WithoutRole {
        operator: String,
        error: String,
    },
    Unreadable {
        operator: String,
        resource: String,
        object: String,
        error: String,
    },
    CacheFailing {
        operator: String,
        resource: String,
        error: String,
    },
    /// A resource is not listed yet.
    CacheUnsynced {
        operator: String,
        resource: String,
    },
    CacheSilent {
        operator: String,
        resource: String,
        heard: Timestamp,
    },
    /// The key waits until caches show its own writes.
    Held {
        operator: String,
        until: Vec<String>,
        since: Option<Timestamp>,
    },
    /// The last syncs failed.
    BackOff {
        operator: String,
        failures: u32,
        error: String,
        next_try: Option<Timestamp>,
    },
    Queued {
        operator: String,
        since: Timestamp,
    },
    Slow {
        operator: String,
        since: Timestamp,
    },
}

impl Operators {
    pub fn text(&self, now: Timestamp) -> String {
        match self {
            Self::NotRunning { operator, controller } => {
                format!("not reconciled: neither {operator} nor kube-controller-manager's {controller} is running")
            }
            Self::LeaseFree { operator } => format!("not reconciled: no replica of {operator} holds its Lease"),
            Self::LeaseExpired { operator, holder, expired } => {
                let expired = expired.map(|time| format!(" {}", when(time, now))).unwrap_or_default();
                format!("not reconciled: the Lease of {operator} expired{expired} (last holder {holder})")
            }
            Self::RunTwice { operator, controller, wrote } => {
                let wrote = wrote
                    .map(|time| format!(" (kube-controller-manager last wrote {})", when(time, now)))
                    .unwrap_or_default();
                format!(
                    "reconciled twice: {operator} and kube-controller-manager's {controller} are both running{wrote}"
                )
            }
            Self::WithoutRole { operator, error } => format!("{operator} lacks a permission: {}", line(error)),
            Self::Unreadable { operator, resource, object, error } => {
                format!("{operator} cannot decode {resource} {object} and uses an older state: {}", line(error))
            }
            Self::CacheFailing { operator, resource, error } => {
                format!("{operator} cannot list or watch {resource}: {}", line(error))
            }
            Self::CacheUnsynced { operator, resource } => {
                format!("{operator} has not listed {resource} yet")
            }
            Self::CacheSilent { operator, resource, heard } => {
                format!("{operator} has received nothing about {resource} {}", lasting(*heard, now))
            }
            Self::Held { operator, until, since } => {
                let since = since.map(|time| format!(" {}", lasting(time, now))).unwrap_or_default();
                format!("{operator} has been waiting{since} for its caches to have {}", list(until))
            }
            Self::BackOff { operator, failures, error, next_try } => {
                let next = next_try.map(|time| format!(", next retry {}", when(time, now))).unwrap_or_default();
                let refusal = Refusal::read(error).to_string();
                let said = if refusal.is_empty() { refusal } else { format!(": {refusal}") };
                format!("{operator} failed {} in a row{next}{said}", many(i64::from(*failures), "time"))
            }
            Self::Queued { operator, since } => format!("queued in {operator} {}", lasting(*since, now)),
            Self::Slow { operator, since } => format!("a sync of {operator} has been running {}", lasting(*since, now)),
        }
    }
}
