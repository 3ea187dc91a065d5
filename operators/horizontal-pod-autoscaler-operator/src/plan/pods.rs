//! Which pods' values count: not those of pods that are ending, have ended or are starting.
//!
//! Upstream: `groupPods`, `pkg/controller/podautoscaler/replica_calculator.go`, which ignores no Succeeded pods.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::pod::Phase;
use shared::api::time::Time;

use super::Config;
use super::samples::{Sample, Samples};
use crate::objects::Pod;

const CPU: &str = "cpu";

/// The names of pods, by how their values count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups<'a> {
    /// The number of pods with a value that counts.
    pub ready: usize,
    /// Pods that are still starting.
    pub unready: BTreeSet<&'a str>,
    /// Pods without a value.
    pub missing: BTreeSet<&'a str>,
    pub ignored: BTreeSet<&'a str>,
}

/// Groups pods; `resource` is `""` for values that are not of a resource.
pub fn group_pods<'a>(
    pods: &'a [Arc<Pod>],
    samples: &Samples,
    resource: &str,
    config: &Config,
    now: Timestamp,
) -> Groups<'a> {
    let mut groups = Groups::default();
    for pod in pods {
        let name = pod.metadata.name();
        if pod.metadata.is_being_deleted() || pod.has_ended() {
            groups.ignored.insert(name);
        } else if pod.phase == Phase::Pending {
            groups.unready.insert(name);
        } else {
            match samples.get(name) {
                None => drop(groups.missing.insert(name)),
                Some(sample) if resource == CPU && is_unready(pod, sample, config, now) => {
                    groups.unready.insert(name);
                }
                Some(_) => groups.ready += 1,
            }
        }
    }
    groups
}

/// While it may be starting up, a pod counts if it is ready and its value covers a whole window since it became ready.
/// Afterwards it counts unless it was never ready.
fn is_unready(pod: &Pod, sample: &Sample, config: &Config, now: Timestamp) -> bool {
    let (Some(ready), Some(start)) = (pod.ready, pod.start) else { return true };
    let since = instant(ready.since);
    if after(start.timestamp(), config.cpu_initialization_period) > now {
        ready.is_false || instant(sample.timestamp) < after(since, sample.window)
    } else {
        ready.is_false && after(start.timestamp(), config.initial_readiness_delay) > since
    }
}

/// A missing time is before all others.
fn instant(time: Option<Time>) -> Timestamp {
    time.map_or(Timestamp::MIN, Time::timestamp)
}

fn after(instant: Timestamp, time: Duration) -> Timestamp {
    instant.checked_add(time).unwrap_or(Timestamp::MAX)
}
