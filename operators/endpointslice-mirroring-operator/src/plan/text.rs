//! Plans in words, for people.
//!
//! Left out: single addresses.

use std::fmt;

use super::{Changes, CleanUp, Counts, Creation, Deletion, Mirrored, Notice, Plan, Update};

/// A word with an `s` where there is not just one.
pub(super) fn plural(count: usize, word: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {word}{ending}")
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CleanUp(clean_up) => write!(f, "{clean_up}"),
            Self::Mirror(mirrored) => write!(f, "{mirrored}"),
        }
    }
}

/// `delete web-x, web-y (has a selector)`.
impl fmt::Display for CleanUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { why, delete } = self;
        let names: Vec<&str> = delete.iter().map(|deletion| deletion.key.name()).collect();
        if names.is_empty() { write!(f, "nothing ({why})") } else { write!(f, "delete {} ({why})", names.join(", ")) }
    }
}

/// `create IPv4 of 2, update web-x to 3 (1 added), delete web-y (emptied)`.
impl fmt::Display for Mirrored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps: Vec<String> = Vec::new();
        steps.extend(self.create.iter().map(ToString::to_string));
        steps.extend(self.update.iter().map(ToString::to_string));
        steps.extend(self.delete.iter().map(ToString::to_string));
        if self.withheld > 0 {
            steps.push(format!("do not create {} (the endpoints are being deleted)", self.withheld));
        }
        if steps.is_empty() {
            steps.push(format!("nothing ({})", Counts::of(self)));
        }
        steps.extend(self.notices.iter().map(ToString::to_string));
        f.write_str(&steps.join(", "))
    }
}

impl fmt::Display for Creation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "create {} of {}", self.address_type, self.endpoints.len())
    }
}

impl fmt::Display for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Changes { added, updated, removed } = self.changes;
        let counts = [(added, "added"), (updated, "updated"), (removed, "removed")];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let others = [
            (self.ports.is_some(), "ports"),
            (!self.labels.is_empty(), "labels"),
            (!self.annotations.is_empty(), "annotations"),
            (self.is_of_another, "owner"),
        ];
        let others = others.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| what.to_owned());
        let reasons: Vec<String> = counts.chain(others).collect();
        write!(f, "update {}", self.key.name())?;
        if let Some(endpoints) = &self.endpoints {
            write!(f, " to {}", endpoints.len())?;
        }
        write!(f, " ({})", reasons.join(", "))
    }
}

impl fmt::Display for Deletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delete {} ({})", self.key.name(), self.why)
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tell {}", self.reason)
    }
}
