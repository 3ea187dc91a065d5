//! The text of a plan.

use std::fmt;

use shared::controllers::endpoints::slice_plan::counted;

use super::{Changes, CleanUp, Counts, Creation, Mirrored, Plan};

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
        let creation =
            |creation: &Creation| format!("create {} of {}", creation.address_type, creation.endpoints.len());
        let mut steps = self.writes.steps(creation, "the endpoints are");
        if steps.is_empty() {
            steps.push(format!("nothing ({})", Counts::of(self)));
        }
        steps.extend(self.events.iter().map(|event| format!("record {}", event.reason)));
        f.write_str(&steps.join(", "))
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { added, updated, removed } = *self;
        f.write_str(&counted(&[(added, "added"), (updated, "updated"), (removed, "removed")]))
    }
}
