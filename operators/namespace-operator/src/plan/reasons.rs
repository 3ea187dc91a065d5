//! Why a namespace is synced, emptied, finalized or kept.
//!
//! A reason names only as many of the remaining kinds as fit; the conditions name all of them.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use shared::api::list::list;
use shared::api::time::Time;
use shared::working::decisions;

use crate::objects::Round;

/// How many bytes of names and of errors fit into a reason.
const ROOM: usize = 110;
/// How many bytes an entry needs beside its name.
const ENTRY: usize = 10;
/// Where the error of a kind, or of discovery beside other errors, is cut.
const ERROR: usize = 70;
/// Where an error of discovery alone is cut.
const ONLY_ERROR: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    NotDeleted,
    /// It has no finalizers: the apiserver removes it.
    Finalized,
    BeingDeleted {
        since: Time,
    },
}

/// Why a namespace is emptied of these kinds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ContentReason {
    Served {
        /// How many, including pods.
        kinds: usize,
    },
    /// They are all known kinds; there may be more.
    PartlyServed {
        /// How many, including pods.
        kinds: usize,
        /// Why not all are known.
        failure: String,
    },
}

/// The remaining objects after a round over all kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Remains {
    pub waits_for_pods: bool,
    /// How many objects of each kind.
    pub objects: BTreeMap<String, usize>,
    /// How many objects have each finalizer.
    pub finalizers: BTreeMap<String, usize>,
    /// How many kinds and finalizers are not named.
    pub more: usize,
}

/// Why a namespace is finalized or synced again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NextReason {
    Empty {
        /// The finalizers of others in its spec, which keep it.
        kept: Vec<String>,
    },
    /// Objects remain, and may be gone later.
    NotEmpty(Remains),
    /// Some kinds could not be discovered, deleted or listed.
    Failed {
        /// Why not all kinds are known.
        #[serde(skip_serializing_if = "Option::is_none")]
        undiscovered: Option<String>,
        /// The kinds that could not be emptied, with the errors.
        kinds: BTreeMap<String, String>,
        /// How many more kinds could not be emptied.
        more: usize,
        remains: Remains,
    },
}

impl Remains {
    pub fn of(outcome: &Round) -> Self {
        let mut remains = Self { waits_for_pods: outcome.waits_for_pods(), ..Self::default() };
        for kind in outcome.kinds().filter(|kind| kind.remaining > 0) {
            remains.objects.insert(kind.resource.to_string(), kind.remaining);
            for (finalizer, count) in &kind.finalizers {
                *remains.finalizers.entry(finalizer.clone()).or_default() += count;
            }
        }
        remains
    }

    pub(super) fn in_short(&self) -> Self {
        let Self { waits_for_pods, objects, finalizers, more } = self;
        let (objects, more_objects) = few(objects, |_| 0);
        let (finalizers, more_finalizers) = few(finalizers, |_| 0);
        Self { waits_for_pods: *waits_for_pods, objects, finalizers, more: more + more_objects + more_finalizers }
    }
}

impl ContentReason {
    /// The reason for this number of kinds, including pods.
    pub(super) fn of(kinds: usize, undiscovered: Option<&str>) -> Self {
        match undiscovered {
            None => Self::Served { kinds },
            Some(failure) => Self::PartlyServed { kinds, failure: cut(failure, ONLY_ERROR) },
        }
    }
}

impl NextReason {
    pub(super) fn failed(outcome: &Round, remains: &Remains) -> Self {
        let failed = outcome.kinds().filter_map(|kind| Some((kind.resource.to_string(), kind.error.as_deref()?)));
        let (kinds, more) = few(&failed.map(|(kind, error)| (kind, cut(error, ERROR))).collect(), String::len);
        let undiscovered = outcome.undiscovered.as_deref().map(|failure| cut(failure, ERROR));
        Self::Failed { undiscovered, kinds, more, remains: remains.in_short() }
    }
}

fn cut(error: &str, bytes: usize) -> String {
    error[..error.floor_char_boundary(bytes)].to_owned()
}

/// The first entries that fit, at least one, and the number of the others.
fn few<T: Clone>(all: &BTreeMap<String, T>, bytes: impl Fn(&T) -> usize) -> (BTreeMap<String, T>, usize) {
    let mut taken = 0;
    let fits = |(name, value): &(&String, &T)| {
        let is_first = taken == 0;
        taken += name.len() + bytes(value) + ENTRY;
        is_first || taken <= ROOM
    };
    let shown: BTreeMap<String, T> =
        all.iter().take_while(fits).map(|(name, value)| (name.clone(), value.clone())).collect();
    let more = all.len() - shown.len();
    (shown, more)
}

impl decisions::Reason for Reason {}
impl decisions::Reason for ContentReason {}
impl decisions::Reason for NextReason {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotDeleted => "is not being deleted",
            Self::Finalized => "has no finalizers",
            Self::BeingDeleted { since: _ } => "is being deleted",
        })
    }
}

impl fmt::Display for ContentReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Served { kinds: _ } => f.write_str("all served kinds"),
            Self::PartlyServed { kinds: _, failure } => write!(f, "known kinds only; {failure}"),
        }
    }
}

/// `2 configmaps, 1 deployments.apps remain; finalizer example.com/a in 1`.
impl fmt::Display for Remains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { waits_for_pods, objects, finalizers, more: _ } = self;
        if objects.is_empty() {
            return f.write_str("no known objects remain");
        }
        let objects: Vec<_> = objects.iter().collect();
        write!(f, "{} remain", list(&objects, |(kind, count)| format!("{count} {kind}")))?;
        if *waits_for_pods {
            f.write_str("; other kinds wait for them")?;
        }
        let finalizers: Vec<_> = finalizers.iter().collect();
        if !finalizers.is_empty() {
            write!(f, "; finalizer {}", list(&finalizers, |(finalizer, count)| format!("{finalizer} in {count}")))?;
        }
        Ok(())
    }
}

impl fmt::Display for NextReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { kept } if kept.is_empty() => f.write_str("is empty"),
            Self::Empty { kept } => write!(f, "is empty; kept by finalizers {}", list(kept, String::clone)),
            Self::NotEmpty(remains) => remains.fmt(f),
            Self::Failed { undiscovered, kinds, more: _, remains } => {
                let undiscovered = undiscovered.iter().map(|failure| format!("not all kinds are known: {failure}"));
                let kinds = kinds.iter().map(|(kind, error)| format!("cannot delete {kind}: {error}"));
                let failures: Vec<String> = undiscovered.chain(kinds).collect();
                write!(f, "{}; {remains}", list(&failures, String::clone))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use shared::api::resource::Resource;

    use super::*;
    use crate::objects::Emptied;

    #[test]
    fn a_reason_names_what_there_is_room_for_and_counts_the_rest() {
        let kind = |at: usize| Emptied {
            remaining: at,
            finalizers: BTreeMap::from([(format!("example.com/finalizer-{at}"), at)]),
            error: Some("é".repeat(300)),
            ..Emptied::nothing(Resource::namespaced("", "v1", "Kind", ["as", "bs", "cs", "ds", "es", "fs", "gs"][at]))
        };
        let outcome = Round { undiscovered: Some("x".repeat(300)), pods: None, others: (1..7).map(kind).collect() };
        let whole = Remains::of(&outcome);
        let remains = whole.in_short();
        assert_eq!(
            (whole.finalizers.len(), remains.objects.len(), remains.finalizers.len(), remains.more),
            (6, 6, 3, 3)
        );
        let reason = NextReason::failed(&outcome, &whole);
        let NextReason::Failed { kinds, more, .. } = &reason else { panic!("{reason}") };
        assert_eq!((kinds.len(), *more), (1, 5));
        let json = serde_json::to_string(&reason).unwrap();
        assert!(json.len() <= 512, "{json}");
    }
}
