//! Causes of objects that are being deleted, or whose owner is gone.

use jiff::Timestamp;
use serde::Serialize;

use crate::cause::state::State;
use crate::words::{line, list, many, when};

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "case")]
pub enum Deletion {
    Finalizer {
        finalizer: String,
        remover: String,
        since: Option<Timestamp>,
    },
    BlockedByDependents {
        dependents: Vec<String>,
        held: String,
        finalizer: String,
        remover: String,
        node: String,
        since: Option<Timestamp>,
    },
    Foreground {
        since: Option<Timestamp>,
    },
    Orphaning {
        dependents: i64,
        since: Option<Timestamp>,
    },
    Grace {
        node: String,
        until: Option<Timestamp>,
    },
    /// A node has not removed a pod after its grace period.
    NodeHolds {
        node: String,
        since: Option<Timestamp>,
    },
    NamespaceContent {
        content: String,
        finalizers: String,
        since: Option<Timestamp>,
    },
    NamespaceBlocked {
        condition: String,
        api_services: Vec<String>,
        message: String,
    },
    NamespaceEmptying {
        since: Option<Timestamp>,
    },
    Going {
        since: Option<Timestamp>,
    },
    /// The owner does not exist in the namespace.
    OwnerElsewhere {
        owner: String,
        message: String,
    },
    OwnerAbsent {
        owner: String,
        is_another: bool,
    },
}

impl Deletion {
    pub fn state(&self) -> State {
        match self {
            Self::Finalizer { .. }
            | Self::NodeHolds { .. }
            | Self::NamespaceBlocked { .. }
            | Self::OwnerElsewhere { .. } => State::Stuck,
            Self::BlockedByDependents { held, .. } if !held.is_empty() => State::Stuck,
            Self::NamespaceContent { finalizers, .. } if !finalizers.is_empty() => State::Stuck,
            Self::BlockedByDependents { .. }
            | Self::NamespaceContent { .. }
            | Self::Foreground { .. }
            | Self::Orphaning { .. }
            | Self::Grace { .. }
            | Self::NamespaceEmptying { .. }
            | Self::Going { .. }
            | Self::OwnerAbsent { .. } => State::InProgress,
        }
    }

    pub fn text(&self, now: Timestamp) -> String {
        let deleted = |since: &Option<Timestamp>| {
            since.map_or_else(|| "deleted".to_owned(), |time| format!("deleted {}", when(time, now)))
        };
        match self {
            Self::Finalizer { finalizer, remover, since } => {
                format!("{}; waiting for finalizer `{finalizer}`, removed by {remover}", deleted(since))
            }
            Self::BlockedByDependents { dependents, held, finalizer, remover, node, since } => {
                let count = many(i64::try_from(dependents.len()).unwrap_or(i64::MAX), "dependent");
                let holder = holder((dependents, held), (finalizer, remover), node);
                let named = list(dependents);
                format!("{} in the foreground; waiting for {count}: {named}{holder}", deleted(since))
            }
            Self::Foreground { since } => format!(
                "{} in the foreground; no blocking dependent found, waiting for garbage-collector-operator",
                deleted(since)
            ),
            Self::Orphaning { dependents, since } => {
                let count = many(*dependents, "dependent");
                format!("{}; garbage-collector-operator orphans its {count} first (finalizer orphan)", deleted(since))
            }
            Self::Grace { node, until } => {
                let until = until.map(|time| format!(" (deadline {})", when(time, now))).unwrap_or_default();
                let node = if node.is_empty() { String::new() } else { format!(" on node {node}") };
                format!("deleted; its containers{node} are terminating{until}")
            }
            Self::NodeHolds { node, since } => {
                format!("{}; past its grace period, but node {node} has not removed it", deleted(since))
            }
            Self::NamespaceContent { content, finalizers, since } => {
                let finalizers = if finalizers.is_empty() { String::new() } else { format!("; {finalizers}") };
                format!("{}; not empty: {content}{finalizers}", deleted(since))
            }
            Self::NamespaceBlocked { condition, api_services, message } => {
                let what = match &**api_services {
                    [] => "cannot be listed or deleted".to_owned(),
                    [one] => format!("is unknown because APIService {one} does not answer"),
                    several => format!("is unknown because APIServices {} do not answer", list(several)),
                };
                format!("deleted, but its content {what} ({condition}): {}", line(message))
            }
            Self::NamespaceEmptying { since } => format!("{}; its content is being deleted", deleted(since)),
            Self::Going { since } => format!("{}; nothing blocks it", deleted(since)),
            Self::OwnerElsewhere { owner, message } => {
                let said = if message.is_empty() { String::new() } else { format!(": {}", line(message)) };
                format!("owner {owner} does not exist in its namespace; it will be garbage-collected{said}")
            }
            Self::OwnerAbsent { owner, is_another: false } => {
                format!("owner {owner} is gone: garbage-collector-operator deletes it")
            }
            Self::OwnerAbsent { owner, is_another: true } => {
                format!(
                    "owner {owner} was replaced by another object of that name: garbage-collector-operator deletes it"
                )
            }
        }
    }
}

/// The dependent that blocks the deletion, and what holds it.
fn holder((dependents, held): (&[String], &str), (finalizer, remover): (&str, &str), node: &str) -> String {
    let is_only = matches!(dependents, [one] if one == held);
    if !finalizer.is_empty() {
        let which = if is_only { ",".to_owned() } else { format!("; {held} is") };
        return format!("{which} held by finalizer `{finalizer}`, removed by {remover}");
    }
    if node.is_empty() {
        return String::new();
    }
    let which = if is_only { ",".to_owned() } else { format!("; {held} is") };
    format!("{which} past its grace period, but node {node} has not removed it")
}
