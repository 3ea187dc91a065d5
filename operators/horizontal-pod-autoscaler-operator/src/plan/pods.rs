//! Which pods' values count: pods that are on their way out do not, nor those that have just begun.
//!
//! Left out: how they count.
//!
//! Upstream: `groupPods`, `pkg/controller/podautoscaler/replica_calculator.go`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use shared::api::pod::Phase;
use shared::api::time::Time;

use super::Config;
use super::samples::{Sample, Samples};
use crate::objects::Pod;

/// The resource of which a pod takes more than usual when it begins.
const CPU: &str = "cpu";

/// Pods by how their values count, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups<'a> {
    /// How many have a value that counts.
    pub ready: usize,
    /// Those that have begun too lately, or have not.
    pub unready: BTreeSet<&'a str>,
    /// Those without a value.
    pub missing: BTreeSet<&'a str>,
    /// Those that are on their way out.
    pub ignored: BTreeSet<&'a str>,
}

/// Groups them; the resource is `""` for values that are of none.
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
        if pod.metadata.is_being_deleted() || pod.phase == Phase::Failed {
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

/// While it may still be starting up, a pod counts if it is ready and its value is of a whole window since it became
/// so; after that, unless it never was ready.
fn is_unready(pod: &Pod, sample: &Sample, config: &Config, now: Timestamp) -> bool {
    let (Some(ready), Some(start)) = (pod.ready, pod.start) else { return true };
    let since = instant(ready.since);
    if after(start.timestamp(), config.cpu_initialization_period) > now {
        ready.is_false || instant(sample.timestamp) < after(since, sample.window)
    } else {
        ready.is_false && after(start.timestamp(), config.initial_readiness_delay) > since
    }
}

/// A time that nobody says is before all others.
fn instant(time: Option<Time>) -> Timestamp {
    time.map_or(Timestamp::MIN, Time::timestamp)
}

fn after(instant: Timestamp, time: Duration) -> Timestamp {
    instant.checked_add(time).unwrap_or(Timestamp::MAX)
}
