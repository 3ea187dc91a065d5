//! Causes of objects that are being deleted and do not go, and of objects with the wrong owner.

use jiff::Timestamp;
use serde::Serialize;

use crate::cause::State;
use crate::words::{line, list, many, when};

/// Why something is not gone, or will be.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "case")]
pub enum Deletion {
    /// Somebody's finalizer is still there.
    Finalizer {
        /// Which one.
        finalizer: String,
        /// The controller or the people that take it away.
        remover: String,
        /// When it was deleted.
        since: Option<Timestamp>,
    },
    /// It was deleted in the foreground, and dependents that block are still there.
    BlockedByDependents {
        /// `replicaset/web-6d4`.
        dependents: Vec<String>,
        /// The one that somebody holds, of these or of those that they wait for in their turn; `""` for none.
        held: String,
        /// Its finalizer; `""` where it is the node that holds it.
        finalizer: String,
        /// The controller or the people that take that away.
        remover: String,
        /// The node that has not let it go, though its grace is over; `""` where it is the finalizer.
        node: String,
        /// Since when.
        since: Option<Timestamp>,
    },
    /// It was deleted in the foreground, and no dependent was seen that blocks it: the garbage collector's turn.
    Foreground {
        /// Since when.
        since: Option<Timestamp>,
    },
    /// Its dependents are being made nobody's.
    Orphaning {
        /// So many are still its.
        dependents: i64,
        /// Since when.
        since: Option<Timestamp>,
    },
    /// A pod's containers may still end by themselves.
    Grace {
        /// On which node; `""` for none.
        node: String,
        /// Until when.
        until: Option<Timestamp>,
    },
    /// A pod's grace is over, and its node has not let it go.
    NodeHolds {
        /// Which node.
        node: String,
        /// Since when.
        since: Option<Timestamp>,
    },
    /// A namespace still has something in it.
    NamespaceContent {
        /// `pods has 1 resource instances`.
        content: String,
        /// `example.com/a in 1 resource instances`, each with its remover.
        finalizers: String,
        /// Since when.
        since: Option<Timestamp>,
    },
    /// The content of a namespace cannot be listed or deleted.
    NamespaceBlocked {
        /// `NamespaceDeletionDiscoveryFailure`.
        condition: String,
        /// The `APIService`s that don't answer, `v1.metrics.example`, where it is that.
        api_services: Vec<String>,
        /// Why not.
        message: String,
    },
    /// A namespace is being emptied.
    NamespaceEmptying {
        /// Since when.
        since: Option<Timestamp>,
    },
    /// Nothing keeps it: it goes.
    Going {
        /// Since when.
        since: Option<Timestamp>,
    },
    /// The owner that it names is not in its namespace.
    OwnerElsewhere {
        /// `deployment/web`.
        owner: String,
        /// The garbage collector's words about it.
        message: String,
    },
    /// The owner that it names is not there: the garbage collector deletes it.
    OwnerAbsent {
        /// `deployment/web`.
        owner: String,
        /// Whether one of that name is there, with another uid.
        is_another: bool,
    },
}

impl Deletion {
    /// Whether anybody has to do something.
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

    /// In words.
    pub fn text(&self, now: Timestamp) -> String {
        let deleted = |since: &Option<Timestamp>| {
            since.map_or_else(|| "deleted".to_owned(), |time| format!("deleted {}", when(time, now)))
        };
        match self {
            Self::Finalizer { finalizer, remover, since } => {
                format!("{}; it waits for the finalizer `{finalizer}`, which {remover} removes", deleted(since))
            }
            Self::BlockedByDependents { dependents, held, finalizer, remover, node, since } => {
                let count = many(i64::try_from(dependents.len()).unwrap_or(i64::MAX), "dependent");
                let holder = holder((dependents, held), (finalizer, remover), node);
                let named = list(dependents);
                format!("{} in the foreground; it waits for {count}: {named}{holder}", deleted(since))
            }
            Self::Foreground { since } => format!(
                "{} in the foreground; no dependent is seen that blocks it, garbage-collector-operator lets it go",
                deleted(since)
            ),
            Self::Orphaning { dependents, since } => {
                let count = many(*dependents, "dependent");
                format!(
                    "{}; garbage-collector-operator makes its {count} nobody's first (finalizer orphan)",
                    deleted(since)
                )
            }
            Self::Grace { node, until } => {
                let until = until.map(|time| format!(", at the latest {}", when(time, now))).unwrap_or_default();
                let node = if node.is_empty() { String::new() } else { format!(" on node {node}") };
                format!("deleted; its containers{node} are ending{until}")
            }
            Self::NodeHolds { node, since } => {
                format!("{}; its grace is over, and node {node} has not let it go", deleted(since))
            }
            Self::NamespaceContent { content, finalizers, since } => {
                let finalizers = if finalizers.is_empty() { String::new() } else { format!("; {finalizers}") };
                format!("{}; it is not empty: {content}{finalizers}", deleted(since))
            }
            Self::NamespaceBlocked { condition, api_services, message } => {
                let what = match &**api_services {
                    [] => "or does not go".to_owned(),
                    [one] => format!("as APIService {one} does not answer"),
                    several => format!("as APIServices {} don't answer", list(several)),
                };
                format!("deleted, but what is in it is not known {what} ({condition}): {}", line(message))
            }
            Self::NamespaceEmptying { since } => format!("{}; it is being emptied", deleted(since)),
            Self::Going { since } => format!("{}; nothing keeps it", deleted(since)),
            Self::OwnerElsewhere { owner, message } => {
                let said = if message.is_empty() { String::new() } else { format!(": {}", line(message)) };
                format!("its owner {owner} is not in its namespace, so nobody owns it and it will be deleted{said}")
            }
            Self::OwnerAbsent { owner, is_another: false } => {
                format!("its owner {owner} is not there: garbage-collector-operator deletes it")
            }
            Self::OwnerAbsent { owner, is_another: true } => {
                format!("its owner {owner} was replaced by another of that name: garbage-collector-operator deletes it")
            }
        }
    }
}

/// The words for the holder of the dependent that is held.
fn holder((dependents, held): (&[String], &str), (finalizer, remover): (&str, &str), node: &str) -> String {
    let is_only = matches!(dependents, [one] if one == held);
    if !finalizer.is_empty() {
        let which = if is_only { ", which".to_owned() } else { format!("; {held}") };
        return format!("{which} has the finalizer `{finalizer}`, which {remover} removes");
    }
    if node.is_empty() {
        return String::new();
    }
    let whose = if is_only { ", whose grace".to_owned() } else { format!("; the grace of {held}") };
    format!("{whose} is over, and node {node} has not let it go")
}
