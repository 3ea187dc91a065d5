//! What uses a protected object, and the words for it.

use std::fmt;

use serde::Serialize;

use crate::api::list::list;

/// What uses an object. It prints as the names of the users.
pub trait Users: Clone + fmt::Debug + fmt::Display + PartialEq + Serialize + Send + Sync {
    const WORDS: Words;

    fn is_empty(&self) -> bool;
}

/// The words for an object's users in the texts of plans.
pub struct Words {
    /// The step that reads the users live.
    pub list: &'static str,
    /// What a sync waits for if only a live read shows users.
    pub another_list: &'static str,
    /// Before the users.
    pub used_by: &'static str,
    /// Before users that are not in the caches.
    pub used_by_others: &'static str,
    /// No user is in the caches.
    pub not_seen: &'static str,
    /// No user exists.
    pub unused: &'static str,
}

/// The pods of an object's namespace that use it, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UsingPods {
    pub pods: Vec<String>,
}

impl<'a> FromIterator<&'a str> for UsingPods {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Self {
        Self { pods: names.into_iter().map(str::to_owned).collect() }
    }
}

impl Users for UsingPods {
    const WORDS: Words = Words {
        list: "list the pods of its namespace",
        another_list: "another list of pods",
        used_by: "used by pods:",
        used_by_others: "used by pods that are not in the cache:",
        not_seen: "no pod in the cache uses it",
        unused: "no pod uses it",
    };

    fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }
}

impl fmt::Display for UsingPods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&list(&self.pods, String::clone))
    }
}
