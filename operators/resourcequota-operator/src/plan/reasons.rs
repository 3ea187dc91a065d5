//! Why a quota has this usage, or waits for a list.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use shared::api::list::list;
use shared::working::decisions;

use super::Plan;
use crate::objects::Evaluator;

/// How many bytes of an error are kept.
const ERROR: usize = 80;
/// How many bytes of a name are kept.
const NAME: usize = 50;
/// How many kinds or names are listed.
const NAMED: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    Counted {
        kinds: usize,
        /// The kinds that cannot be counted, and why; their usage stays.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        unreadable: BTreeMap<String, String>,
        /// Limits that are about no kind that is served.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        untracked: Vec<String>,
        /// How many kinds lag behind a charge; they keep their usage.
        #[serde(skip_serializing_if = "is_none")]
        behind: usize,
        /// How many limits keep usage for objects that were charged but not stored yet.
        #[serde(skip_serializing_if = "is_none")]
        unstored: usize,
        /// How many more there are of the kinds and limits that have names here.
        more: usize,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(number: &usize) -> bool {
    *number == 0
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Unlisted {
    Kinds {
        /// The first of them.
        kinds: Vec<String>,
        /// How many more there are.
        more: usize,
    },
}

fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}

impl Reason {
    pub(super) fn of(plan: &Plan) -> Self {
        let Plan { unreadable, behind, unstored, kinds, untracked, .. } = plan;
        let more = unreadable.len().saturating_sub(NAMED) + untracked.len().saturating_sub(NAMED);
        let failed = unreadable.iter().take(NAMED);
        Self::Counted {
            kinds: *kinds,
            unreadable: failed.map(|(kind, error)| (cut(&kind.to_string(), NAME), cut(error, ERROR))).collect(),
            untracked: untracked.iter().take(NAMED).map(|name| cut(name, NAME)).collect(),
            behind: behind.len(),
            unstored: *unstored,
            more,
        }
    }
}

impl Unlisted {
    pub(super) fn of<'a>(unlisted: impl Iterator<Item = &'a Evaluator>) -> Option<Self> {
        let all: Vec<&Evaluator> = unlisted.collect();
        let kinds: Vec<String> = all.iter().take(NAMED).map(|kind| cut(&kind.to_string(), NAME)).collect();
        (!all.is_empty()).then(|| Self::Kinds { more: all.len() - kinds.len(), kinds })
    }
}

impl decisions::Reason for Reason {}
impl decisions::Reason for Unlisted {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Counted { kinds, unreadable, untracked, behind, unstored, more } = self;
        write!(f, "{kinds} kinds are counted")?;
        for (kind, error) in unreadable {
            write!(f, "; {kind} cannot be counted and keep their usage: {error}")?;
        }
        if !untracked.is_empty() {
            write!(f, "; nothing is counted for {}", list(untracked, String::clone))?;
        }
        if *behind > 0 {
            write!(f, "; {behind} lag behind a charge and keep their usage")?;
        }
        if *unstored > 0 {
            write!(f, "; {unstored} limits keep usage for objects that were charged but not stored yet")?;
        }
        if *more > 0 { write!(f, "; and {more} more") } else { Ok(()) }
    }
}

impl fmt::Display for Unlisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Kinds { kinds, more } = self;
        write!(f, "{} not listed yet", list(kinds, String::clone))?;
        if *more > 0 { write!(f, ", and {more} more") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use shared::api::intern::Text;
    use shared::api::object::ResourceVersion;

    use super::*;
    use crate::objects::Amounts;

    #[test]
    fn a_reason_of_long_names_and_errors_is_still_kept() {
        let name = |at: usize| format!("count/{}{at}.example.com", "x".repeat(200));
        let evaluators = (0..9).flat_map(|at| Evaluator::of(&name(at)));
        let plan = Plan {
            notices: Vec::new(),
            counted: Amounts::new(),
            unreadable: evaluators.map(|evaluator| (evaluator, "é".repeat(500))).collect(),
            behind: (0..9)
                .flat_map(|at| Evaluator::of(&name(20 + at)))
                .map(|kind| (kind, ResourceVersion(7)))
                .collect(),
            unstored: 9,
            is_settled: false,
            recount: None,
            kinds: 3,
            untracked: (10..19).map(|at| Text::new(&name(at))).collect::<BTreeSet<_>>(),
        };
        let json = serde_json::to_string(&Reason::of(&plan)).unwrap();
        assert!(json.len() <= 512, "{json}");
        assert!(json.contains("\"more\":14"), "{json}");
    }
}
