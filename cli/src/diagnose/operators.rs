//! Trouble of the operators, from their Leases and answers. Asked only if the object is not at rest, except for
//! `alarm`.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use shared::api::explain::{CacheState, Explanation, KeyState, Outcome};

use crate::cause::Cause;
use crate::cause::operators::Operators;
use crate::cause::refusal::Refusal;
use crate::diagnose::deletion;
use crate::evidence::{Asked, Evidence};
use crate::kinds;
use crate::lookup::Lookup;
use crate::object::Object;
use crate::runner::{self, Runner};

/// A watch sends a bookmark about every minute.
const SILENT: SignedDuration = SignedDuration::from_secs(180);
/// A key is held for a moment after every write.
const HELD: SignedDuration = SignedDuration::from_secs(3);
const QUEUED: SignedDuration = SignedDuration::from_secs(3);
const SLOW: SignedDuration = SignedDuration::from_secs(30);

pub(crate) fn controller_of(operator: &str) -> String {
    format!("{}-controller", operator.strip_suffix("-operator").unwrap_or(operator))
}

pub(crate) fn answer<'a>(asked: &'a Asked, object: Object<'_>) -> Option<&'a Explanation> {
    asked.answers.iter().find(|answer| {
        let about = &answer.object;
        (about.namespace.as_str(), about.name.as_str()) == (object.namespace(), object.name())
            && kinds::is_of(object.kind(), &about.resource)
    })
}

fn concerned<'a>(evidence: &'a Evidence, object: Object<'a>) -> impl Iterator<Item = &'a Asked> {
    let names = kinds::operators_of(object.group(), object.kind());
    evidence.operators.iter().filter(move |asked| names.contains(&asked.operator.as_str()))
}

/// Last error of a failing key, and its next retry.
pub(crate) fn failing_key(evidence: &Evidence, object: Object<'_>) -> Option<(String, Option<Timestamp>)> {
    let keys = concerned(evidence, object).filter_map(|asked| answer(asked, object)).flat_map(|answer| &answer.keys);
    let failing = keys.filter(|key| key.standing.failures > 0).find_map(|key| Some((last_error(key)?, key)));
    failing.map(|(error, key)| (error.to_owned(), key.standing.next_try))
}

/// The object's key, as an operator has it.
fn key<'a>(evidence: &'a Evidence, operator: &str, object: Object<'_>) -> Option<&'a KeyState> {
    let asked = evidence.operators.iter().find(|asked| asked.operator == operator)?;
    answer(asked, object)?.keys.first()
}

/// Whether an operator would decide this case of its reasons now.
pub(crate) fn decides(evidence: &Evidence, operator: &str, object: Object<'_>, case: &str) -> bool {
    let stage = key(evidence, operator, object).and_then(|key| key.now.last());
    stage.is_some_and(|stage| is_case(&stage.reason, case))
}

/// Whether a decision's reason is this case, with fields or without.
pub(crate) fn is_case(reason: &Value, case: &str) -> bool {
    reason.as_str() == Some(case) || reason.get(case).is_some()
}

/// What an operator says about the object: the error of its last sync, or what it would decide now.
pub(crate) fn word_of(evidence: &Evidence, operator: &str, object: Object<'_>) -> Option<String> {
    let key = key(evidence, operator, object)?;
    let error = last_error(key).filter(|_| key.standing.failures > 0);
    error.or_else(|| key.now.last().map(|stage| &*stage.text)).map(str::to_owned)
}

/// What an operator said last about the object: the error of its last sync, or what it decided.
pub(crate) fn latest_word_of(evidence: &Evidence, operator: &str, object: Object<'_>) -> Option<String> {
    let latest = key(evidence, operator, object)?.last.first()?;
    latest.error.clone().or_else(|| latest.stages.last().map(|stage| stage.text.clone()))
}

fn last_error(key: &KeyState) -> Option<&str> {
    let failed = key.last.iter().find(|decision| decision.outcome == Outcome::Failed)?;
    failed.error.as_deref()
}

pub(crate) fn without_role(object: Object<'_>, error: &str) -> Cause {
    let operator = keeper(object).unwrap_or("its operator");
    Operators::WithoutRole { operator: operator.to_owned(), error: error.to_owned() }.into()
}

/// Trouble that matters even for a healthy object: two controllers run, or the object cannot be decoded.
pub(crate) fn alarm(evidence: &Evidence, object: Object<'_>) -> Option<Cause> {
    concerned(evidence, object).find_map(|asked| twice(evidence, asked, object).or_else(|| unreadable(asked, object)))
}

/// What runs the controller of this operator, also judged by who wrote the object's status.
pub(crate) fn runner(evidence: &Evidence, asked: &Asked, object: Object<'_>) -> (Runner, Option<Timestamp>) {
    let since = asked.lease.known().and_then(|lease| lease.acquired);
    let is_its = keeper(object) == Some(asked.operator.as_str());
    let wrote = runner::manager_wrote(object).filter(|wrote| is_its && since.is_some_and(|since| *wrote > since));
    let controller = controller_of(&asked.operator);
    (runner::runner(&asked.lease, &evidence.manager, &controller, wrote.is_some(), evidence.now), wrote)
}

fn twice(evidence: &Evidence, asked: &Asked, object: Object<'_>) -> Option<Cause> {
    let (runner, wrote) = runner(evidence, asked, object);
    let is_its = keeper(object) == Some(asked.operator.as_str());
    let (operator, controller) = (asked.operator.clone(), controller_of(&asked.operator));
    (is_its && runner == Runner::Both).then(|| Operators::RunTwice { operator, controller, wrote }.into())
}

fn unreadable(asked: &Asked, object: Object<'_>) -> Option<Cause> {
    let own = answer(asked, object)?;
    let name = if object.namespace().is_empty() {
        object.name().to_owned()
    } else {
        format!("{}/{}", object.namespace(), object.name())
    };
    let mut found = own.caches.iter().filter(|cache| is_followed(object, &cache.resource));
    let (cache, error) = found.find_map(|cache| Some((cache, cache.unreadable.get(&name)?)))?;
    let (operator, resource) = (asked.operator.clone(), cache.resource.clone());
    Some(Operators::Unreadable { operator, resource, object: name, error: error.clone() }.into())
}

/// Set if the operator of the object is not running: what it recorded may be old.
pub(crate) fn absent(evidence: &Evidence, object: Object<'_>) -> Option<Cause> {
    let name = keeper(object)?;
    let asked = evidence.operators.iter().find(|asked| asked.operator == name)?;
    not_at_work(evidence, asked).map(Cause::from)
}

/// Trouble of the operators of the object and its dependents; with `turn`, of this operator for the object, its
/// owners and what its deletion waits for.
pub(crate) fn problem(evidence: &Evidence, object: Object<'_>, turn: Option<&str>) -> Option<Cause> {
    let others: Vec<Object<'_>> = if turn.is_some() {
        let owners = object.owners().filter_map(|owner| evidence.with_uid(owner.uid));
        deletion::blocking(evidence, object).into_iter().chain(owners).collect()
    } else {
        evidence.owned_by(object.uid()).filter(|owned| owned.kind() != "Pod").collect()
    };
    let all: Vec<(Object<'_>, &Asked)> = std::iter::once(object)
        .chain(others)
        .filter_map(|object| {
            let name = turn.or_else(|| keeper(object))?;
            Some((object, evidence.operators.iter().find(|asked| asked.operator == name)?))
        })
        .collect();
    let found = all.iter().find_map(|(_, asked)| not_at_work(evidence, asked));
    found.or_else(|| all.iter().find_map(|(object, asked)| said(evidence, asked, *object))).map(Cause::from)
}

/// The operator of this kind; the garbage collector has none.
fn keeper(object: Object<'_>) -> Option<&'static str> {
    kinds::operators_of(object.group(), object.kind()).first().copied().filter(|name| *name != kinds::COLLECTOR)
}

fn not_at_work(evidence: &Evidence, asked: &Asked) -> Option<Operators> {
    let controller = controller_of(&asked.operator);
    if runner::runner(&asked.lease, &evidence.manager, &controller, false, evidence.now) != Runner::Nobody {
        return None;
    }
    let operator = asked.operator.clone();
    Some(match &asked.lease {
        Lookup::Found(lease) if lease.holder.is_empty() => Operators::LeaseFree { operator },
        Lookup::Found(lease) => {
            Operators::LeaseExpired { operator, holder: lease.pod().to_owned(), expired: lease.expires() }
        }
        Lookup::Absent | Lookup::Unreadable => Operators::NotRunning { operator, controller },
    })
}

/// The operator's trouble: its failures, then failing caches, then a waiting key.
fn said(evidence: &Evidence, asked: &Asked, object: Object<'_>) -> Option<Operators> {
    let answer = answer(asked, object)?;
    let operator = &answer.operator;
    let fails = answer.keys.iter().find_map(|key| back_off(operator, key));
    // The garbage collector watches every kind, but needs only the object's.
    let is_needed = |cache: &&CacheState| operator != kinds::COLLECTOR || is_followed(object, &cache.resource);
    let caches: Vec<&CacheState> = answer.caches.iter().filter(is_needed).collect();
    let blind = caches.iter().find_map(|cache| failing(operator, cache));
    let unread = caches.iter().find_map(|cache| {
        let is_its = |name: &str| belongs(evidence, (&cache.resource, name), object);
        let (name, error) = cache.unreadable.iter().find(|(name, _)| is_its(name))?;
        let (operator, resource) = (operator.clone(), cache.resource.clone());
        Some(Operators::Unreadable { operator, resource, object: name.clone(), error: error.clone() })
    });
    let silent = caches.iter().filter(|cache| cache.synced).find_map(|cache| {
        let heard = cache.heard.filter(|heard| evidence.now.duration_since(*heard) > SILENT)?;
        Some(Operators::CacheSilent { operator: operator.clone(), resource: cache.resource.clone(), heard })
    });
    let waits = answer.keys.iter().find_map(|key| standing(operator, key, evidence.now));
    fails.or(blind).or(unread).or(silent).or(waits)
}

fn is_followed(object: Object<'_>, resource: &str) -> bool {
    let group = resource.split_once('.').map_or("", |(_, group)| group);
    group == object.group() && kinds::is_of(object.kind(), resource)
}

/// Whether a cached object is this one, or belongs to it by ownership, selector or, if the caller may not read it, by
/// the prefix of its name.
fn belongs(evidence: &Evidence, (resource, called): (&str, &str), object: Object<'_>) -> bool {
    let (namespace, name) = called.split_once('/').unwrap_or(("", called));
    let is_called = |found: &Object<'_>| (found.namespace(), found.name()) == (namespace, name);
    if let Some(found) = evidence.all().find(|found| is_called(found) && is_followed(*found, resource)) {
        let is_below = |found: Object<'_>| found.uid() == object.uid() || found.is_owned_by(object.uid());
        let mut owners = found.owners().filter_map(|owner| evidence.with_uid(owner.uid));
        return is_below(found) || owners.any(is_below) || selects(object, found);
    }
    let plural = resource.split('.').next().unwrap_or_default();
    evidence.unread.iter().any(|hidden| hidden.what == plural)
        && namespace == object.namespace()
        && name.strip_prefix(object.name()).is_some_and(|rest| rest.starts_with('-'))
}

fn selects(service: Object<'_>, pod: Object<'_>) -> bool {
    let selector = service.labels("/spec/selector");
    (service.kind(), pod.kind()) == ("Service", "Pod")
        && !selector.is_empty()
        && pod.labels("/metadata/labels").contains_all(&selector)
}

fn failing(operator: &str, cache: &CacheState) -> Option<Operators> {
    let error = cache.failing.clone()?;
    let operator = operator.to_owned();
    if let Refusal::NotAllowed { message: error } = Refusal::read(&error) {
        return Some(Operators::WithoutRole { operator, error });
    }
    Some(Operators::CacheFailing { operator, resource: cache.resource.clone(), error })
}

fn back_off(operator: &str, key: &KeyState) -> Option<Operators> {
    let (operator, failures, next_try) = (operator.to_owned(), key.standing.failures, key.standing.next_try);
    if failures == 0 {
        return None;
    }
    let error = last_error(key).unwrap_or_default().to_owned();
    if let Refusal::NotAllowed { message: error } = Refusal::read(&error) {
        return Some(Operators::WithoutRole { operator, error });
    }
    Some(Operators::BackOff { operator, failures, error, next_try })
}

fn standing(operator: &str, key: &KeyState, now: Timestamp) -> Option<Operators> {
    let operator = operator.to_owned();
    let standing = &key.standing;
    let is_older = |since: &Timestamp, than: SignedDuration| now.duration_since(*since) > than;
    if let Some(unlisted) = standing.held.iter().find(|held| held.until == "the first list") {
        return Some(Operators::CacheUnsynced { operator, resource: unlisted.resource.clone() });
    }
    let since = standing.processing;
    if !standing.held.is_empty() && since.is_none_or(|since| is_older(&since, HELD)) {
        let until = standing.held.iter().map(|held| format!("{} of {}", held.until, held.resource)).collect();
        return Some(Operators::Held { operator, until, since });
    }
    if let Some(since) = since.filter(|since| standing.held.is_empty() && is_older(since, SLOW)) {
        return Some(Operators::Slow { operator, since });
    }
    let since = standing.queued.filter(|since| is_older(since, QUEUED))?;
    Some(Operators::Queued { operator, since })
}
