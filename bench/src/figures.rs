//! The costs of a step.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use e2e::usage::Usage;

use crate::audit::READS;
use crate::contestant::Contestant;

pub(crate) struct Measured {
    pub(crate) contestant: Contestant,
    pub(crate) step: &'static str,
    pub(crate) figures: Figures,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) took: Duration,
    pub(crate) cpu: Duration,
    /// The CPU time of the apiserver and etcd meanwhile, also for other clients.
    pub(crate) apiserver_cpu: Duration,
    /// That of kube-scheduler and kwok, who do the same beside every contestant: it tells how fast the machine was.
    pub(crate) others_cpu: Duration,
    pub(crate) peak_bytes: u64,
    /// At its end: the operators' pages, those that several share in proportion, or all of kube-controller-manager's.
    pub(crate) resident_bytes: u64,
    pub(crate) anonymous_bytes: u64,
    /// How many watches the contestant had open at its end.
    pub(crate) watches: f64,
    /// The bytes that the apiserver has sent meanwhile, also to other clients.
    pub(crate) sent_bytes: f64,
    /// The bytes that it has allocated meanwhile: like its CPU, but whatever the machine's speed.
    pub(crate) allocated_bytes: f64,
    /// The usage of each process, by name.
    pub(crate) each: BTreeMap<String, Usage>,
    pub(crate) requests: BTreeMap<String, u64>,
    pub(crate) reactions: Vec<Duration>,
    /// How many pods it ran to their end, where that is what it is about.
    pub(crate) pods: Option<u32>,
}

impl Figures {
    /// The costs of this part of a step and the `next`.
    pub(crate) fn and(mut self, next: Self) -> Self {
        for (name, usage) in next.each {
            let cpu = self.each.get(&name).map_or(Duration::ZERO, |before| before.cpu);
            self.each.insert(name, Usage { cpu: cpu + usage.cpu, ..usage });
        }
        for (verb, count) in next.requests {
            *self.requests.entry(verb).or_default() += count;
        }
        self.reactions.extend(next.reactions);
        self.reactions.sort_unstable();
        Self {
            took: self.took + next.took,
            cpu: self.cpu + next.cpu,
            apiserver_cpu: self.apiserver_cpu + next.apiserver_cpu,
            others_cpu: self.others_cpu + next.others_cpu,
            peak_bytes: self.peak_bytes.max(next.peak_bytes),
            resident_bytes: next.resident_bytes,
            anonymous_bytes: next.anonymous_bytes,
            watches: next.watches,
            sent_bytes: self.sent_bytes + next.sent_bytes,
            allocated_bytes: self.allocated_bytes + next.allocated_bytes,
            pods: self.pods.zip(next.pods).map(|(before, pods)| before + pods),
            ..self
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [took, cpu, apiserver_cpu, others_cpu] =
            [self.took, self.cpu, self.apiserver_cpu, self.others_cpu].map(|it| it.as_secs_f64());
        let allocated = self.allocated_bytes / 1e6;
        let [peak, resident, anonymous] =
            [self.peak_bytes, self.resident_bytes, self.anonymous_bytes].map(|it| it >> 20);
        write!(
            f,
            "{took:.2} s, {cpu:.2} s CPU ({apiserver_cpu:.2} s and {allocated:.0} MB the apiserver's, \
             {others_cpu:.2} s the scheduler's and kwok's), peak {peak} MiB, resident {resident} MiB, anonymous {anonymous} MiB, \
             {} watches, {:?}",
            self.watches, self.requests
        )
    }
}

pub(crate) fn totals(requests: &BTreeMap<String, u64>) -> (u64, u64, u64) {
    let sum = |wanted: &dyn Fn(&str) -> bool| requests.iter().filter(|(verb, _)| wanted(verb)).map(|(_, n)| n).sum();
    let is_event = |verb: &str| verb.ends_with(" event");
    (sum(&|verb| !is_event(verb) && !READS.contains(&verb)), sum(&is_event), sum(&|verb| READS.contains(&verb)))
}

/// Exact up to 2^53, which is more than any figure here.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "there is no other way from u64 to f64")]
pub(crate) fn whole(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(seconds: u64, memory: u64) -> Figures {
        let time = Duration::from_secs(seconds);
        Figures {
            took: time,
            cpu: time,
            apiserver_cpu: time,
            others_cpu: time,
            peak_bytes: memory,
            resident_bytes: memory,
            anonymous_bytes: memory,
            watches: whole(memory),
            sent_bytes: whole(seconds),
            allocated_bytes: whole(seconds),
            each: BTreeMap::from([("job-operator".to_owned(), Usage { cpu: time, pss: memory, ..Usage::default() })]),
            requests: BTreeMap::from([("create".to_owned(), seconds), (format!("patch {memory}"), 1)]),
            reactions: vec![time],
            pods: Some(2),
        }
    }

    #[test]
    fn the_costs_of_parts_add_up_and_what_is_held_is_as_in_the_last() {
        let (long, short) = (Duration::from_secs(3), Duration::from_secs(2));
        let both = part(3, 9).and(part(2, 4));
        assert_eq!([both.took, both.cpu, both.apiserver_cpu, both.others_cpu], [long + short; 4], "{both}");
        assert_eq!((both.sent_bytes, both.allocated_bytes), (5.0, 5.0));
        assert_eq!((both.peak_bytes, both.resident_bytes, both.anonymous_bytes, both.watches), (9, 4, 4, 4.0));
        let used = Usage { cpu: long + short, pss: 4, ..Usage::default() };
        assert_eq!(both.each, BTreeMap::from([("job-operator".to_owned(), used)]));
        let requests = [("create", 5), ("patch 4", 1), ("patch 9", 1)];
        assert_eq!(both.requests, requests.map(|(verb, count)| (verb.to_owned(), count)).into());
        assert_eq!((both.reactions, both.pods), (vec![short, long], Some(4)));
    }
}
