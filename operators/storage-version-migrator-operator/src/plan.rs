//! The next step of a migration: which objects of a page are rewritten, and what follows.
//!
//! The plans of resources are in [`resource`].
//!
//! Upstream: `sync` and `runMigration`, `pkg/controller/storageversionmigrator/storageversionmigrator.go`.

pub mod resource;

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use shared::api::resource::Resource;
use shared::working::decisions::{self, LiveRead, Reasoned};

use crate::objects::progress::Progress;
use crate::objects::{Migration, well_formed};
use crate::observe::Observed;
use crate::observe::live::{Page, Served, Target};

/// How old a migration is at least if it fails because nothing serves its resource: a new definition may take a moment.
///
/// Upstream: `sync`, `pkg/controller/storageversionmigrator/resourceversion.go`.
const UNSERVED_SECONDS: i64 = 60;
/// How often the apiserver is asked until then.
const RETRY: Duration = Duration::from_secs(5);

pub type Next = decisions::Next<Reason, Plan>;

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Write nothing until something changes.
    Nothing(Reason),
    /// Ask again later whether the resource is served.
    Wait {
        left: Duration,
    },
    /// Forget how far it has come, and list from the beginning.
    Restart,
    Rewrite {
        /// Where the objects are.
        resource: Resource,
        /// The objects of the page that may be in another storage version.
        objects: Vec<Target>,
        then: Then,
    },
    Fail {
        message: String,
        why: Failure,
    },
}

/// What follows the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Then {
    /// How far the migration has come after it.
    pub progress: Progress,
    /// How many objects follow, where the apiserver says so.
    pub left: Option<u64>,
    pub is_last: bool,
    /// Whether a person should hear how far it has come.
    pub is_milestone: bool,
}

/// Why a migration fails before it rewrites anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Failure {
    NotServed,
    Unmigratable,
    NotListed,
    BadVersion,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    Finished,
    /// It has no version yet, or another migration of the resource runs.
    NotStarted,
    NotServedYet,
    /// How many objects of the resource were in the pages so far.
    Running {
        resource: String,
        objects: u64,
    },
    Page {
        objects: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        left: Option<u64>,
    },
    /// The continue token has expired.
    Expired,
    Fails(Failure),
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Nothing(reason) => reason.clone(),
            Self::Wait { left: _ } => Reason::NotServedYet,
            Self::Restart => Reason::Expired,
            Self::Rewrite { then, .. } => Reason::Page { objects: then.progress.objects, left: then.left },
            Self::Fail { message: _, why } => Reason::Fails(*why),
        }
    }
}

/// Plans the next stage.
pub fn plan(observed: &Observed, now: Timestamp) -> Next {
    let Observed { migration, served, page } = observed;
    if migration.is_finished() {
        return Next::Execute(Plan::Nothing(Reason::Finished));
    }
    if migration.version.is_empty() {
        return Next::Execute(Plan::Nothing(Reason::NotStarted));
    }
    match (served, page) {
        (None, _) => Next::Ask(LiveRead { step: "discover the resource", reason: running(migration) }),
        (Some(Served::Not), _) => Next::Execute(unserved(migration, now).map_or_else(
            || fails("unable to obtain GVR from discovery", Failure::NotServed),
            |left| Plan::Wait { left },
        )),
        (Some(Served::In(_)), None) => {
            Next::Ask(LiveRead { step: "list the next objects", reason: running(migration) })
        }
        (Some(Served::In(resource)), Some(page)) => Next::Execute(plan_page(migration, resource, page)),
    }
}

/// How long until the apiserver is asked again about a resource that it does not serve; none if the migration fails now.
pub(crate) fn unserved(migration: &Migration, now: Timestamp) -> Option<Duration> {
    let left = migration.metadata.creation?.remaining(UNSERVED_SECONDS, now)?;
    Some(left.min(RETRY))
}

fn running(migration: &Migration) -> Reason {
    Reason::Running { resource: migration.target.to_string(), objects: migration.progress().objects }
}

fn fails(error: &str, why: Failure) -> Plan {
    Plan::Fail { message: failure_message(error), why }
}

/// Upstream: `failMigration`, `pkg/controller/storageversionmigrator/storageversionmigrator.go`.
pub(crate) fn failure_message(error: &str) -> String {
    format!("migration encountered unhandled error: {error}")
}

fn plan_page(migration: &Migration, resource: &Resource, page: &Page) -> Plan {
    let (all, token, left) = match page {
        Page::Objects { objects, token, left } => (objects, token, left),
        Page::Expired => return Plan::Restart,
        Page::Refused(error) => return fails(error, Failure::NotListed),
    };
    let malformed =
        |version: &str| fails(&format!("resource version is not well formed: {version}"), Failure::BadVersion);
    let Some(newest) = well_formed(&migration.version) else { return malformed(&migration.version) };
    let mut objects = Vec::new();
    for object in all {
        match well_formed(&object.version) {
            None => return malformed(&object.version),
            Some(version) if version <= newest => objects.push(object.clone()),
            Some(_) => {}
        }
    }
    let before = migration.progress();
    let seen = u64::try_from(all.len()).unwrap_or(u64::MAX);
    let after = before.objects.saturating_add(seen);
    let is_last = token.is_empty();
    let is_milestone = !is_last && is_milestone(before.objects, after, *left);
    let progress = Progress { token: token.clone(), objects: after, ..before };
    Plan::Rewrite { resource: resource.clone(), objects, then: Then { progress, left: *left, is_last, is_milestone } }
}

/// Whether a tenth of all objects has been passed or, where their number is not known, a hundred thousand.
fn is_milestone(before: u64, after: u64, left: Option<u64>) -> bool {
    let step = left.map_or(100_000, |left| after.saturating_add(left).div_ceil(10).max(1));
    before / step < after / step
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Nothing(_) => write!(f, "nothing ({reason})"),
            Self::Wait { .. } => write!(f, "wait ({reason})"),
            Self::Restart => write!(f, "begin again ({reason})"),
            Self::Rewrite { resource: _, objects, then } => {
                let next = if then.is_last { "succeed" } else { "the next page" };
                write!(f, "rewrite {}, then {next} ({reason})", objects.len())
            }
            Self::Fail { message, why: _ } => write!(f, "fail ({message})"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("finished"),
            Self::NotStarted => f.write_str("not started"),
            Self::NotServedYet => f.write_str("the apiserver does not serve the resource yet"),
            Self::Running { resource, objects } => write!(f, "objects of {resource} so far: {objects}"),
            Self::Page { objects, left: Some(left) } => write!(f, "objects so far: {objects}, left: {left}"),
            Self::Page { objects, left: None } => write!(f, "objects so far: {objects}"),
            Self::Expired => f.write_str("the continue token has expired"),
            Self::Fails(why) => write!(f, "{why}"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotServed => "the apiserver does not serve the resource",
            Self::Unmigratable => "the resource cannot be listed, patched and updated",
            Self::NotListed => "the apiserver refuses to list the resource",
            Self::BadVersion => "a resourceVersion is not a number",
        })
    }
}
