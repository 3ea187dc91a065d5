//! The pods of a StatefulSet in order: each pod waits for those before it.

use std::collections::BTreeSet;

use super::places::Known;
use super::stuck::Replacement;
use super::{Pods, Wait, condemned, replica, rolling, stuck};

pub(super) fn plan(known: &Known<'_>) -> Pods {
    let (mut replicas, mut waiting) = (Vec::new(), None);
    for ordinal in known.spec().ordinals() {
        let Some(pod) = known.places.replicas.get(&ordinal) else {
            return Pods { replicas, waiting, ..Pods::default() }.and(replica::create(known, ordinal));
        };
        // Before its claims: one that is on its way out may wait for the end of this very pod.
        let Replacement { eviction, waits } = stuck::in_order(known, pod);
        waiting = waiting.or(waits);
        if eviction.is_some() {
            return Pods { replicas, waiting, stuck: eviction, ..Pods::default() };
        }
        if pod.phase.is_terminal() {
            return Pods { replicas, waiting, ..Pods::default() }.and(replica::replace(known, pod, 0));
        }
        replicas.extend(replica::create_claims(known, pod));
        if let Some(until) = known.obstacle(pod) {
            return Pods { replicas, waiting: waiting.or(Some(Wait::on(pod, until))), ..Pods::default() };
        }
        replicas.extend(replica::repair(known, pod, false));
    }
    let pods = Pods { replicas, waiting, condemned_claims: condemned::own_claims(known), ..Pods::default() };
    match condemned::delete_highest(known) {
        Some(Ok(step)) => Pods { condemned: vec![step], ..pods },
        Some(Err(wait)) => pods.waits(Some(wait)),
        None => {
            let (outdated, wait) = rolling::update(known, &BTreeSet::new());
            Pods { outdated, ..pods.waits(wait) }
        }
    }
}
