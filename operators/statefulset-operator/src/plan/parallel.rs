//! The pods of a StatefulSet in parallel: none waits for another.

use shared::api::pod::Phase;

use super::places::Known;
use super::stuck::Replacement;
use super::{Pods, condemned, replica, rolling, stuck};
use crate::objects::names::MISSING_MAX;

pub(super) fn plan(known: &Known<'_>) -> Pods {
    let places = &known.places;
    let missing = known.spec().ordinals().filter(|at| !places.replicas.contains_key(at));
    let mut ordinals: Vec<i64> = places.replicas.keys().copied().chain(missing.take(MISSING_MAX)).collect();
    ordinals.sort_unstable();
    // Pods that do not run yet, including those whose predecessors this plan deletes.
    let has_rejections = !known.observed.rejections.is_empty();
    let mut under_way = ordinals.iter().filter(|at| has_rejections && places.is_under_way(**at)).count();
    let mut pods = Pods::default();
    for ordinal in ordinals {
        match places.replicas.get(&ordinal) {
            None => pods = pods.and(replica::create(known, ordinal)),
            Some(pod) if pod.phase.is_terminal() => {
                let replaced = replica::replace(known, pod, under_way);
                under_way += usize::from(replaced.is_ok());
                pods = pods.and(replaced);
            }
            Some(pod) => {
                let is_pending = pod.phase == Phase::Pending;
                pods.replicas.extend(replica::create_claims(known, pod));
                pods.replicas.extend(replica::repair(known, pod, is_pending));
            }
        }
    }
    let (condemned_claims, condemned) = (condemned::own_claims(known), condemned::delete_all(known));
    let pods = Pods { condemned_claims, condemned, ..pods };
    let deleted = pods.deleted();
    let (outdated, wait) = rolling::update(known, &deleted);
    let pods = Pods { outdated, ..pods.waits(wait) };
    let Replacement { eviction, waits } = stuck::in_parallel(known, &deleted, pods.outdated.is_empty());
    Pods { stuck: eviction, ..pods.waits(waits) }
}
