//! Joins decisions by the versions that one wrote and another was caused by. Versions are compared only within one
//! object.

use std::collections::BTreeMap;

use jiff::Timestamp;
use shared::api::explain::{Decision, Version};

use super::story::{Link, Origin, Step, Story, Trace, Writer};
use crate::evidence::Evidence;
use crate::kinds;
use crate::object::Object;

#[derive(Clone, Copy)]
struct Sync<'a> {
    operator: &'a str,
    queue: &'a str,
    key: &'a str,
    decision: &'a Decision,
}

enum Place {
    Below(usize, Link),
    First(Origin),
}

struct Joiner<'a> {
    evidence: &'a Evidence,
    syncs: Vec<Sync<'a>>,
}

pub fn join(evidence: &Evidence) -> Trace {
    let joiner = Joiner { evidence, syncs: syncs(evidence) };
    let mut places: Vec<Place> = (0..joiner.syncs.len()).map(|sync| joiner.place(sync)).collect();
    joiner.break_circles(&mut places);
    let target = &evidence.target;
    let silent = evidence.operators.iter().filter_map(|asked| Some((asked, asked.silence.as_ref()?)));
    let hidden = evidence.unread.iter().map(|hidden| format!("{}: {}", hidden.what, hidden.why));
    Trace {
        subject: format!("{}/{}", target.kind.to_lowercase(), target.name),
        namespace: target.namespace.clone(),
        time: evidence.now,
        stories: joiner.stories(&places),
        missing: silent.map(|(asked, why)| format!("{}: {why}", asked.operator)).chain(hidden).collect(),
    }
}

fn syncs(evidence: &Evidence) -> Vec<Sync<'_>> {
    let mut all: Vec<Sync<'_>> = Vec::new();
    for asked in &evidence.operators {
        for key in asked.answers.iter().flat_map(|answer| &answer.keys) {
            let (operator, queue, name) = (asked.operator.as_str(), key.queue.as_str(), key.key.as_str());
            let is_known = |sync: &Sync<'_>| (sync.operator, sync.queue, sync.key) == (operator, queue, name);
            if !all.iter().any(is_known) {
                all.extend(key.last.iter().map(|decision| Sync { operator, queue, key: name, decision }));
            }
        }
    }
    all.sort_by_key(|sync| (sync.decision.time, sync.operator, sync.key));
    all
}

fn is_same(a: &Version, b: &Version) -> bool {
    (&a.resource, &a.object) == (&b.resource, &b.object)
}

impl<'a> Sync<'a> {
    /// A write without effect returns the existing version, possibly the cause of the sync.
    fn wrote(self) -> impl Iterator<Item = &'a Version> {
        let cause = self.decision.cause.as_ref();
        let is_older =
            move |wrote: &Version| cause.is_some_and(|cause| is_same(cause, wrote) && wrote.version <= cause.version);
        self.decision.wrote.iter().filter(move |wrote| !is_older(wrote))
    }
}

impl<'a> Joiner<'a> {
    fn place(&self, sync: usize) -> Place {
        let Some(cause) = &self.syncs[sync].decision.cause else { return Place::First(Origin::NoChange) };
        let others = self.syncs.iter().enumerate().filter(|(other, _)| *other != sync);
        let writes = others.flat_map(|(other, of)| of.wrote().map(move |wrote| (other, wrote.version, wrote)));
        let before = writes.filter(|(_, version, wrote)| is_same(wrote, cause) && *version <= cause.version);
        // Of two with the same version, the later one changed nothing.
        let last = before.max_by_key(|(other, version, _)| (*version, std::cmp::Reverse(*other)));
        let before = self.syncs[sync].decision.time;
        match last {
            Some((above, version, _)) if version == cause.version => Place::Below(above, Link::Exact),
            Some((above, wrote, _)) => Place::Below(above, Link::Later { wrote, by: self.writer(cause, before) }),
            None => match self.creator(sync, cause) {
                Some(above) => Place::Below(above, Link::Unnamed),
                None => Place::First(self.origin(cause, before)),
            },
        }
    }

    fn object(&self, version: &Version) -> Option<Object<'a>> {
        let (plural, group) = version.resource.split_once('.').unwrap_or((&version.resource, ""));
        let (namespace, name) = version.object.split_once('/').unwrap_or(("", &version.object));
        let fits = |object: &Object<'_>| {
            (object.namespace(), object.name(), object.group()) == (namespace, name, group)
                && kinds::is_of(object.kind(), plural)
        };
        self.evidence.all().find(fits)
    }

    /// The last sync of the owner that created the object without naming it.
    fn creator(&self, sync: usize, cause: &Version) -> Option<usize> {
        let object = self.object(cause)?;
        let owner = object.owners().find(|owner| owner.is_controller)?;
        let (owner, created) = (format!("{}/{}", object.namespace(), owner.name), object.created()?);
        let creates = |other: &Sync<'_>| {
            let decision = other.decision;
            decision.more_written > 0
                && other.key == owner
                && decision.wrote.iter().any(|wrote| wrote.resource == cause.resource)
                && decision.time.as_second() <= created.as_second()
        };
        let others = self.syncs.iter().enumerate().filter(|(other, of)| *other != sync && creates(of));
        others.map(|(other, _)| other).next_back()
    }

    fn origin(&self, cause: &Version, before: Timestamp) -> Origin {
        let object = cause.clone();
        match self.writer(cause, before) {
            Some(by) if by.manager.ends_with("-operator") => Origin::Lost { object, by },
            by => {
                let newest = self.object(cause).filter(|object| is_at(*object, cause));
                let generation = newest.and_then(|object| object.number("/metadata/generation"));
                Origin::Change { object, generation, by }
            }
        }
    }

    fn writer(&self, version: &Version, before: Timestamp) -> Option<Writer> {
        let object = self.object(version)?;
        let entries = object.list("/metadata/managedFields");
        let entries = entries.filter_map(|entry| Some((entry.time("/time")?, entry.text("/manager"))));
        let (time, manager) = entries.filter(|(time, _)| *time <= before).max()?;
        Some(Writer { manager: manager.to_owned(), time, is_inferred: !is_at(object, version) })
    }

    /// A circle is possible only if versions restarted; break it.
    fn break_circles(&self, places: &mut [Place]) {
        for sync in 0..places.len() {
            let mut at = sync;
            for _ in 0..places.len() {
                let Place::Below(above, _) = places[at] else { break };
                at = above;
                if at == sync {
                    let decision = self.syncs[sync].decision;
                    let origin = decision.cause.as_ref().map(|cause| self.origin(cause, decision.time));
                    places[sync] = Place::First(origin.unwrap_or(Origin::NoChange));
                    break;
                }
            }
        }
    }

    fn stories(&self, places: &[Place]) -> Vec<Story> {
        let mut below: BTreeMap<usize, Vec<(usize, &Link)>> = BTreeMap::new();
        for (sync, place) in places.iter().enumerate() {
            if let Place::Below(above, link) = place {
                below.entry(*above).or_default().push((sync, link));
            }
        }
        let mut stories: Vec<Story> = Vec::new();
        for (sync, place) in places.iter().enumerate() {
            let Place::First(origin) = place else { continue };
            let step = self.step(sync, (None, &Link::First), &below);
            let object = |origin: &Origin| match origin {
                Origin::Change { object, .. } | Origin::Lost { object, .. } => Some(object.clone()),
                Origin::NoChange => None,
            };
            let same =
                stories.iter_mut().find(|story| object(&story.origin).is_some_and(|of| object(origin) == Some(of)));
            match same {
                Some(story) => story.syncs.push(step),
                None => stories.push(Story { origin: origin.clone(), syncs: vec![step] }),
            }
        }
        stories
    }

    fn step(
        &self,
        sync: usize,
        (above, link): (Option<usize>, &Link),
        below: &BTreeMap<usize, Vec<(usize, &Link)>>,
    ) -> Step {
        let of = self.syncs[sync];
        let decision = of.decision;
        let since = |above: usize| {
            let above = self.syncs[above].decision.time;
            decision.time.as_millisecond() - above.as_millisecond()
        };
        let stages: Vec<&str> = decision.stages.iter().map(|stage| stage.text.as_str()).collect();
        let followed = below.get(&sync).into_iter().flatten();
        Step {
            operator: of.operator.to_owned(),
            queue: of.queue.to_owned(),
            key: of.key.to_owned(),
            time: decision.time,
            since_cause: above.map(since),
            decided: stages.join("; "),
            count: decision.count,
            outcome: decision.outcome,
            error: decision.error.clone(),
            cause: decision.cause.clone(),
            link: link.clone(),
            wrote: of.wrote().cloned().collect(),
            more_written: decision.more_written,
            followed: followed.map(|(next, link)| self.step(*next, (Some(sync), link), below)).collect(),
        }
    }
}

fn is_at(object: Object<'_>, version: &Version) -> bool {
    object.text("/metadata/resourceVersion").parse() == Ok(version.version)
}
