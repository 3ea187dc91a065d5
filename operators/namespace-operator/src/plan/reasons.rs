//! Why a namespace is looked at, emptied, let go, or kept: as values for programs, and in words.
//!
//! Left out: deciding. Of what remains only a few kinds are named, as many as a reason has room for; the conditions
//! name all of them.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use shared::api::list::list;
use shared::api::time::Time;
use shared::runtime::decisions;

use crate::apply::Outcome;

/// So many bytes of names, and of errors, a reason has room for.
const ROOM: usize = 110;
/// Besides its name an entry takes so many.
const ENTRY: usize = 10;
/// The error of a kind is cut after so many, as is why not all kinds are known where that is not all there is to say.
const ERROR: usize = 70;
/// Where it is, after so many.
const ONLY_ERROR: usize = 400;

/// Why a namespace is emptied, or left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// Nobody deletes it.
    NotDeleted,
    /// It has no finalizers: the apiserver removes it.
    Finalized,
    /// It is being deleted.
    BeingDeleted {
        /// When that began.
        since: Time,
    },
}

/// Why these are the kinds of which a namespace is emptied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ContentReason {
    /// They are all that are served.
    Served {
        /// How many, pods among them.
        kinds: usize,
    },
    /// They are all that are known; there may be more.
    PartlyServed {
        /// How many, pods among them.
        kinds: usize,
        /// Why not all are known.
        failure: String,
    },
}

/// The objects and errors that a pass over all kinds has left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Remains {
    /// Whether pods do, so that no other kind was looked at.
    pub waits_for_pods: bool,
    /// How many objects of each kind.
    pub objects: BTreeMap<String, usize>,
    /// How many objects have each finalizer.
    pub finalizers: BTreeMap<String, usize>,
    /// How many kinds and finalizers are not named.
    pub more: usize,
}

/// Why a namespace is let go, or looked at again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NextReason {
    /// Nothing remains.
    Empty {
        /// The finalizers of its spec that are others' and keep it.
        kept: Vec<String>,
    },
    /// Something does, and may be gone later.
    NotEmpty(Remains),
    /// Not all could be discovered, deleted or listed.
    Failed {
        /// Why not all kinds are known.
        #[serde(skip_serializing_if = "Option::is_none")]
        undiscovered: Option<String>,
        /// The kinds that could not be emptied, with the errors.
        kinds: BTreeMap<String, String>,
        /// How many kinds more could not be.
        more: usize,
        /// The remaining objects.
        remains: Remains,
    },
}

impl Remains {
    /// Sums up a pass.
    pub fn of(outcome: &Outcome) -> Self {
        let mut remains = Self { waits_for_pods: outcome.waits_for_pods(), ..Self::default() };
        for kind in outcome.kinds().filter(|kind| kind.remaining > 0) {
            remains.objects.insert(kind.resource.to_string(), kind.remaining);
            for (finalizer, count) in &kind.finalizers {
                *remains.finalizers.entry(finalizer.clone()).or_default() += count;
            }
        }
        remains
    }

    /// As much of it as there is room for.
    pub(super) fn in_short(&self) -> Self {
        let Self { waits_for_pods, objects, finalizers, more } = self;
        let (objects, more_objects) = few(objects, |_| 0);
        let (finalizers, more_finalizers) = few(finalizers, |_| 0);
        Self { waits_for_pods: *waits_for_pods, objects, finalizers, more: more + more_objects + more_finalizers }
    }
}

impl ContentReason {
    /// Of so many kinds, pods among them.
    pub(super) fn of(kinds: usize, undiscovered: Option<&str>) -> Self {
        match undiscovered {
            None => Self::Served { kinds },
            Some(failure) => Self::PartlyServed { kinds, failure: cut(failure, ONLY_ERROR) },
        }
    }
}

impl NextReason {
    /// Of a pass that failed.
    pub(super) fn failed(outcome: &Outcome, remains: &Remains) -> Self {
        let failed = outcome.kinds().filter_map(|kind| Some((kind.resource.to_string(), kind.error.as_deref()?)));
        let (kinds, more) = few(&failed.map(|(kind, error)| (kind, cut(error, ERROR))).collect(), String::len);
        let undiscovered = outcome.undiscovered.as_deref().map(|failure| cut(failure, ERROR));
        Self::Failed { undiscovered, kinds, more, remains: remains.in_short() }
    }
}

fn cut(error: &str, bytes: usize) -> String {
    error[..error.floor_char_boundary(bytes)].to_owned()
}

/// The first entries for which there is room, at least one, and how many there are besides.
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
            Self::Served { kinds: _ } => f.write_str("are served"),
            Self::PartlyServed { kinds: _, failure } => write!(f, "are known to be served; {failure}"),
        }
    }
}

/// `2 configmaps, 1 deployments.apps remain; finalizer example.com/a in 1`.
impl fmt::Display for Remains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { waits_for_pods, objects, finalizers, more: _ } = self;
        if objects.is_empty() {
            return f.write_str("nothing is known to remain");
        }
        let objects: Vec<_> = objects.iter().collect();
        write!(f, "{} remain", list(&objects, |(kind, count)| format!("{count} {kind}")))?;
        if *waits_for_pods {
            f.write_str(", and all else waits for them")?;
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
            Self::Empty { kept } => write!(f, "is empty, but kept by {}", list(kept, String::clone)),
            Self::NotEmpty(remains) => remains.fmt(f),
            Self::Failed { undiscovered, kinds, more: _, remains } => {
                let undiscovered = undiscovered.iter().map(|failure| format!("not all kinds are known: {failure}"));
                let kinds = kinds.iter().map(|(kind, error)| format!("cannot empty of {kind}: {error}"));
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
    use crate::plan::Emptied;

    #[test]
    fn a_reason_names_what_there_is_room_for_and_counts_the_rest() {
        let kind = |at: usize| Emptied {
            remaining: at,
            finalizers: BTreeMap::from([(format!("example.com/finalizer-{at}"), at)]),
            error: Some("é".repeat(300)),
            ..Emptied::nothing(Resource::namespaced("", "v1", "Kind", ["as", "bs", "cs", "ds", "es", "fs", "gs"][at]))
        };
        let outcome = Outcome { undiscovered: Some("x".repeat(300)), pods: None, others: (1..7).map(kind).collect() };
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
