//! The next step of a resource: which of its migrations starts or ends, and up to which version objects are rewritten.
//!
//! One migration of a resource runs at a time.
//!
//! Upstream: `pkg/controller/storageversionmigrator/migrationrunner.go` and `resourceversion.go`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::condition::{FALSE, TRUE};
use shared::api::intern::Text;
use shared::api::object::{Key, ResourceVersion};
use shared::working::control::Preconditions;
use shared::working::decisions::{self, LiveRead, Reasoned};

use super::{Failure, unserved};
use crate::objects::definition::{self, Definition};
use crate::objects::{Migration, State};
use crate::observe::ObservedResource;
use crate::observe::live::{REQUIRED_VERBS, ServedVersion};

pub type Next = decisions::Next<Unknown, Plan>;

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Write nothing until something changes.
    Keep(Reason),
    Start {
        migration: Arc<Migration>,
        /// How many migrations wait for it.
        waiting: usize,
        definition: Option<DefinitionChange>,
    },
    /// Record in the definition that the migration has ended, and then that it does not run any more.
    Finish {
        migration: Arc<Migration>,
        definition: Option<DefinitionChange>,
    },
    /// Record the version up to which objects are rewritten.
    SetVersion {
        migration: Arc<Migration>,
        version: ResourceVersion,
    },
    /// Ask again later whether the resource is served.
    Wait {
        migration: Arc<Migration>,
        left: Duration,
    },
    Fail {
        migration: Arc<Migration>,
        message: String,
        why: Failure,
    },
}

/// What is applied to the status of a CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionChange {
    pub key: Key,
    pub preconditions: Preconditions,
    pub generation: i64,
    pub condition: Migrating,
    /// Always all of them: an apply that leaves them out would remove those of an apply before.
    pub stored_versions: Vec<Text>,
}

/// What the definition says about the migration of its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Migrating {
    Running {
        /// The name of the migration.
        migration: String,
    },
    /// It has succeeded, and the previous versions are dropped.
    Succeeded,
    /// It has succeeded for another generation of the definition.
    Outdated,
    Failed,
}

impl Migrating {
    /// Its condition's status, reason and message.
    ///
    /// Upstream: `markAsActive` and `finishCRDMigration`.
    pub fn texts(&self) -> (&'static str, &'static str, String) {
        let ended = |reason: &'static str, message: &str| (FALSE, reason, message.to_owned());
        match self {
            Self::Running { migration } => (TRUE, "MigrationRunning", format!("Migration {migration} is running")),
            Self::Succeeded => {
                ended("MigrationSucceeded", "The migration has succeeded and the stored versions have been updated")
            }
            Self::Outdated => ended(
                "MigrationSucceeded",
                "The migration has succeeded but the stored versions have not been updated due to a generation mismatch",
            ),
            Self::Failed => ended("MigrationFailed", "The migration has failed"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// No migration of the resource is left.
    Nothing,
    Running {
        migration: String,
    },
    /// It is the oldest one, and none runs.
    Oldest {
        migration: String,
        waiting: usize,
    },
    Succeeded {
        migration: String,
    },
    Failed {
        migration: String,
    },
    /// It runs, and has no version yet.
    Started {
        migration: String,
    },
    NotServedYet {
        migration: String,
    },
    Fails {
        migration: String,
        why: Failure,
    },
}

/// Why the apiserver is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Unknown {
    /// The definition, before a migration of its objects starts or ends.
    Definition { migration: String },
    /// The version of the resource, once a migration runs.
    Version { migration: String },
}

impl decisions::Reason for Reason {}
impl decisions::Reason for Unknown {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        let name = |migration: &Migration| migration.metadata.name().to_owned();
        match self {
            Self::Keep(reason) => reason.clone(),
            Self::Start { migration, waiting, definition: _ } => {
                Reason::Oldest { migration: name(migration), waiting: *waiting }
            }
            Self::Finish { migration, definition: _ } if has_succeeded(migration) => {
                Reason::Succeeded { migration: name(migration) }
            }
            Self::Finish { migration, definition: _ } => Reason::Failed { migration: name(migration) },
            Self::SetVersion { migration, version: _ } => Reason::Started { migration: name(migration) },
            Self::Wait { migration, left: _ } => Reason::NotServedYet { migration: name(migration) },
            Self::Fail { migration, message: _, why } => Reason::Fails { migration: name(migration), why: *why },
        }
    }
}

/// The migration whose turn it is.
enum Turn<'a> {
    Finish(&'a Arc<Migration>),
    SetVersion(&'a Arc<Migration>),
    Keep(&'a Arc<Migration>),
    Start { migration: &'a Arc<Migration>, waiting: usize },
    Nobody,
}

/// Upstream: `getSVMsForResource`.
fn turn(migrations: &[Arc<Migration>]) -> Turn<'_> {
    let running = || migrations.iter().filter(|migration| migration.is_running());
    if let Some(finished) = running().find(|migration| migration.is_finished()) {
        return Turn::Finish(finished);
    }
    if let Some(started) = running().find(|migration| migration.version.is_empty()) {
        return Turn::SetVersion(started);
    }
    if let Some(running) = running().next() {
        return Turn::Keep(running);
    }
    let pending = || migrations.iter().filter(|migration| !migration.is_finished());
    match pending().min_by_key(|migration| (migration.metadata.creation, migration.metadata.name())) {
        Some(migration) => Turn::Start { migration, waiting: pending().count() - 1 },
        None => Turn::Nobody,
    }
}

/// Plans the next stage.
pub fn plan(observed: &ObservedResource, now: Timestamp) -> Next {
    let ObservedResource { migrations, definition, served } = observed;
    let turn = turn(migrations);
    let (migration, waiting) = match turn {
        Turn::Nobody => return Next::Execute(Plan::Keep(Reason::Nothing)),
        Turn::Keep(running) => {
            return Next::Execute(Plan::Keep(Reason::Running { migration: running.metadata.name().to_owned() }));
        }
        Turn::SetVersion(migration) => return plan_version(migration, served.as_ref(), now),
        Turn::Finish(migration) => (migration, None),
        Turn::Start { migration, waiting } => (migration, Some(waiting)),
    };
    let Some(definition) = definition else {
        let reason = Unknown::Definition { migration: migration.metadata.name().to_owned() };
        return Next::Ask(LiveRead { step: "read the definition of the resource", reason });
    };
    let (migration, definition) = (Arc::clone(migration), definition.as_ref());
    Next::Execute(if let Some(waiting) = waiting {
        let definition = definition.map(|definition| started(definition, &migration));
        Plan::Start { migration, waiting, definition }
    } else {
        let definition = definition.and_then(|definition| finished(definition, &migration));
        Plan::Finish { migration, definition }
    })
}

/// The definition whose objects are migrated.
///
/// Upstream: `markAsActive`.
fn started(definition: &Definition, migration: &Migration) -> DefinitionChange {
    let condition = Migrating::Running { migration: migration.metadata.name().to_owned() };
    change(definition, condition, definition.stored_versions.clone())
}

/// The definition after a migration; none if it says so already.
///
/// Upstream: `finishCRDMigration`, which drops the previous versions after a failed migration too, and does not know a
/// condition that it has written before: a second try takes the generation of the first one for that of the migration.
fn finished(definition: &Definition, migration: &Migration) -> Option<DefinitionChange> {
    if definition.migrating.is_some_and(|migrating| !migrating.is_true) {
        return None;
    }
    let started = Some(definition::Migrating { is_true: true, generation: definition.metadata.generation });
    let storage_version = definition.storage_version.clone().filter(|_| definition.migrating == started);
    let stored_versions = definition.stored_versions.clone();
    Some(match (has_succeeded(migration), storage_version) {
        (true, Some(storage_version)) => change(definition, Migrating::Succeeded, vec![storage_version]),
        (true, None) => change(definition, Migrating::Outdated, stored_versions),
        (false, _) => change(definition, Migrating::Failed, stored_versions),
    })
}

fn change(definition: &Definition, condition: Migrating, stored_versions: Vec<Text>) -> DefinitionChange {
    let (metadata, preconditions) = (&definition.metadata, Preconditions::of(&definition.metadata));
    let (key, generation) = (metadata.key.clone(), metadata.generation);
    DefinitionChange { key, preconditions, generation, condition, stored_versions }
}

fn has_succeeded(migration: &Migration) -> bool {
    migration.succeeded == State::True
}

/// Upstream: `sync`, `pkg/controller/storageversionmigrator/resourceversion.go`.
fn plan_version(migration: &Arc<Migration>, served: Option<&ServedVersion>, now: Timestamp) -> Next {
    let fail = |message: String, why: Failure| Plan::Fail { migration: Arc::clone(migration), message, why };
    Next::Execute(match served {
        None => {
            let reason = Unknown::Version { migration: migration.metadata.name().to_owned() };
            return Next::Ask(LiveRead { step: "read the version of the resource", reason });
        }
        Some(ServedVersion::Not) => match unserved(migration, now) {
            Some(left) => Plan::Wait { migration: Arc::clone(migration), left },
            None => fail("resource does not exist in discovery".to_owned(), Failure::NotServed),
        },
        Some(ServedVersion::Unmigratable(resource)) => {
            let (resource, verbs) = (resource.gvr(), REQUIRED_VERBS.join(" "));
            let message = format!("resource {resource:?} does not support discovery operations: [{verbs}]");
            fail(message, Failure::Unmigratable)
        }
        Some(ServedVersion::In { resource, version }) if *version == ResourceVersion::default() => {
            let message = format!(
                "latest resourceVersion for {} is not valid: resource version is not well formed: {version}",
                resource.gvr()
            );
            fail(message, Failure::BadVersion)
        }
        Some(ServedVersion::In { resource: _, version }) => {
            Plan::SetVersion { migration: Arc::clone(migration), version: *version }
        }
    })
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Keep(_) => write!(f, "nothing ({reason})"),
            Self::Start { migration, .. } => write!(f, "start {} ({reason})", migration.metadata.name()),
            Self::Finish { migration: _, definition: Some(definition) } => {
                let versions: Vec<&str> = definition.stored_versions.iter().map(|version| &**version).collect();
                write!(f, "set the stored versions to [{}], then end it ({reason})", versions.join(" "))
            }
            Self::Finish { migration: _, definition: None } => write!(f, "end it ({reason})"),
            Self::SetVersion { migration: _, version } => write!(f, "migrate up to version {version} ({reason})"),
            Self::Wait { .. } => write!(f, "wait ({reason})"),
            Self::Fail { migration: _, message, why: _ } => write!(f, "fail: {message} ({reason})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("no migration is left"),
            Self::Running { migration } => write!(f, "{migration} is running"),
            Self::Oldest { migration, waiting: 0 } => write!(f, "{migration} is the only one"),
            Self::Oldest { migration, waiting } => write!(f, "{migration} is the oldest of {}", waiting + 1),
            Self::Succeeded { migration } => write!(f, "{migration} has succeeded"),
            Self::Failed { migration } => write!(f, "{migration} has failed"),
            Self::Started { migration } => write!(f, "{migration} has no version yet"),
            Self::NotServedYet { migration } => {
                write!(f, "the apiserver does not serve the resource of {migration} yet")
            }
            Self::Fails { migration, why } => write!(f, "{migration}: {why}"),
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Definition { migration } => write!(f, "{migration} starts or ends"),
            Self::Version { migration } => write!(f, "{migration} has no version yet"),
        }
    }
}
