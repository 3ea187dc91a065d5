//! Which parts of a resource are followed at the moment, when one is let go, and whether it was let go too soon.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::api::intern::Text;
use crate::api::object::ResourceVersion;
use crate::following::cache::{Part, Progress};
use crate::following::collection::Collection;

/// How long a part is followed that nobody needs. Twice as long, if it was needed again soon after it was let go: a
/// first list costs the apiserver more than a watch.
const LINGER_FIRST: Duration = Duration::from_mins(5);
const LINGER_MAX: Duration = Duration::from_mins(80);
/// How many events it may send in that time, and one more for every four objects that would have to be listed again. By
/// then it has cost what it was to save: an event costs the apiserver and us more than four objects of a list do.
const EVENTS_SPARE: u64 = 500;
const OBJECTS_PER_EVENT: u64 = 4;
/// How often these are counted in that time.
const LOOKS: u32 = 30;
/// From how many namespaces on one watch of all is cheaper, and below how many it is not any more.
const NAMESPACES_MAX: usize = 16;
const NAMESPACES_AGAIN: usize = 8;

/// By namespace; the empty one stands for all.
#[derive(Default)]
pub(crate) struct Parts {
    running: BTreeMap<Text, Running>,
    stopped: HashMap<Text, Stopped>,
}

struct Running {
    number: Part,
    collection: Collection,
    task: AbortHandle,
    begun: Instant,
    /// How far it had come when its newest list was in.
    listed: Progress,
    linger: Duration,
    idle: Option<Idle>,
}

/// Since when nobody needs a part, and how many events it had sent by then.
#[derive(Clone, Copy)]
struct Idle {
    since: Instant,
    events: u64,
}

struct Stopped {
    at: Instant,
    linger: Duration,
}

impl Running {
    fn is_listed(&self) -> bool {
        self.collection.is_listed()
    }

    fn progress(&self) -> Progress {
        *self.collection.follow.progress.borrow()
    }

    fn events(&self) -> u64 {
        self.collection.follow.health.events()
    }

    /// Whether it has been followed in vain for long enough, in a cache of so many objects.
    fn is_due(&self, objects: usize, now: Instant) -> bool {
        let Some(Idle { since, events }) = self.idle else { return false };
        let listed = u64::try_from(objects).unwrap_or(u64::MAX);
        let times = self.linger.as_secs() / LINGER_FIRST.as_secs();
        let allowed = EVENTS_SPARE.saturating_add(listed / OBJECTS_PER_EVENT).saturating_mul(times);
        now >= since + self.linger || self.events().saturating_sub(events) > allowed
    }

    fn note_list(&mut self) {
        let progress = self.progress();
        if progress.list != self.listed.list {
            self.listed = progress;
        }
    }

    /// Whether it has seen what others that follow its objects now will never tell: what was gone when they listed.
    fn has_handed_over(&self, listed: ResourceVersion) -> bool {
        !self.is_listed() || self.progress().resource_version >= listed
    }

    fn next_look(&self, now: Instant) -> Option<Instant> {
        let (end, again) = (self.idle?.since + self.linger, now + self.linger / LOOKS);
        // After its end it may still have to hand over.
        Some(if end > now { end.min(again) } else { again })
    }
}

impl Parts {
    fn of(&self, namespace: &Text) -> impl Iterator<Item = &Running> {
        let all = Some(Text::default()).filter(|all| all != namespace);
        [self.running.get(namespace), all.and_then(|all| self.running.get(&all))].into_iter().flatten()
    }

    pub(crate) fn collections(&self) -> impl Iterator<Item = &Collection> {
        self.running.values().map(|part| &part.collection)
    }

    /// Whether a first list of this namespace is in.
    pub(crate) fn have_listed(&self, namespace: &Text) -> bool {
        self.of(namespace).any(Running::is_listed)
    }

    /// Why this namespace cannot be listed.
    pub(crate) fn failing(&self, namespace: &Text) -> Option<String> {
        self.of(namespace).find_map(|part| part.collection.failing())
    }

    /// Whether these namespaces are followed by one watch of all. Those that are not let go yet count too.
    pub(crate) fn are_too_many(&self, needed: &BTreeSet<Text>) -> bool {
        let is_one = self.running.contains_key(&Text::default());
        let lingering = self.running.keys().filter(|namespace| !namespace.is_empty() && !needed.contains(*namespace));
        needed.len() + lingering.count() > if is_one { NAMESPACES_AGAIN } else { NAMESPACES_MAX }
    }

    /// How far the last of these had come when its list was in; none while one is not listed.
    fn listed(&self, places: &BTreeSet<Text>) -> Option<ResourceVersion> {
        places.iter().try_fold(ResourceVersion::default(), |newest, place| {
            let part = self.running.get(place).filter(|part| part.is_listed())?;
            Some(newest.max(part.listed.resource_version))
        })
    }

    /// Stops what was not needed for long, and what is seen by a watch of all. What others follow now is stopped only when
    /// it has handed over, or the deletions that it has yet to see would be told by nobody. Gives what they were in the
    /// cache, which has so many objects.
    pub(crate) fn stop_idle(&mut self, wanted: &BTreeSet<Text>, objects: usize, now: Instant) -> Vec<Part> {
        self.running.values_mut().for_each(Running::note_list);
        let (is_one, listed) = (wanted.contains(&Text::default()), self.listed(wanted));
        self.stopped.retain(|_, stopped| now < stopped.at + stopped.linger);
        let mut numbers = Vec::new();
        self.running.retain(|namespace, part| {
            if wanted.contains(namespace) {
                part.idle = None;
                return true;
            }
            let events = part.events();
            part.idle.get_or_insert(Idle { since: now, events });
            let is_succeeded = is_one || (namespace.is_empty() && !wanted.is_empty());
            if is_succeeded && !listed.is_some_and(|version| part.has_handed_over(version)) {
                return true;
            }
            let is_due = part.is_due(objects, now);
            if is_due {
                self.stopped.insert(namespace.clone(), Stopped { at: now, linger: part.linger });
            }
            let stops = is_due || is_one;
            if stops {
                part.task.abort();
                numbers.push(part.number);
            }
            !stops
        });
        numbers
    }

    /// A number for a part that is to be started; none if it runs already, or too many do.
    pub(crate) fn free_number(&self, namespace: &Text, mut numbers: impl Iterator<Item = Part>) -> Option<Part> {
        let is_used = |number: &Part| self.running.values().any(|part| part.number == *number);
        if self.running.contains_key(namespace) { None } else { numbers.find(|number| !is_used(number)) }
    }

    pub(crate) fn start(
        &mut self,
        namespace: Text,
        number: Part,
        collection: Collection,
        task: AbortHandle,
        now: Instant,
    ) {
        let again = self.stopped.remove(&namespace).filter(|stopped| now < stopped.at + stopped.linger);
        let linger = again.map_or(LINGER_FIRST, |stopped| (stopped.linger * 2).min(LINGER_MAX));
        let listed = Progress::default();
        self.running.insert(namespace, Running { number, collection, task, begun: now, listed, linger, idle: None });
    }

    /// When to look again whether a part is to be stopped, should nobody need it meanwhile.
    pub(crate) fn next_look(&self, now: Instant) -> Option<Instant> {
        self.running.values().filter_map(|part| part.next_look(now)).min()
    }

    /// Stops what is not listed yet and was begun before this moment, to be started again.
    pub(crate) fn abandon_first_lists(&mut self, moment: Instant) {
        self.running.retain(|_, part| {
            let stays = part.is_listed() || part.begun >= moment;
            if !stays {
                part.task.abort();
            }
            stays
        });
    }
}
