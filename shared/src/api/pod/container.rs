//! Containers in a pod's JSON: which init containers are sidecars, how often each one restarted, and how it ended.
//!
//! Views read these while they decode and keep what they need. Left out: everything that a container is told to do.

use std::borrow::Cow;

use serde::Deserialize;

use crate::api::pod::Restarts;
use crate::api::time::Time;

/// Whether an init container of this `restartPolicy` runs beside the regular containers instead of before them.
pub fn is_sidecar(restart_policy: &str) -> bool {
    restart_policy == "Always"
}

/// One of `spec.initContainers`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InitContainer<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    restart_policy: Cow<'a, str>,
}

/// One of `status.containerStatuses` or `status.initContainerStatuses`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// `restartCount`.
    pub restart_count: i32,
    state: State,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct State {
    terminated: Option<Terminated>,
}

/// `state.terminated` of a container.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    /// 0 for success.
    pub exit_code: i32,
    pub finished_at: Option<Time>,
}

impl ContainerStatus<'_> {
    /// How the container ended; none while it waits or runs.
    pub fn terminated(&self) -> Option<&Terminated> {
        self.state.terminated.as_ref()
    }
}

pub fn sidecars<'s, 'a>(
    containers: Option<&'s [InitContainer<'a>]>,
    statuses: Option<&'s [ContainerStatus<'a>]>,
) -> impl Iterator<Item = &'s ContainerStatus<'a>> {
    let containers = containers.unwrap_or_default();
    let runs_on = |status: &&ContainerStatus<'_>| {
        containers.iter().any(|container| container.name == status.name && is_sidecar(&container.restart_policy))
    };
    statuses.unwrap_or_default().iter().filter(runs_on)
}

impl Restarts {
    /// The highest count among the regular containers, and among the sidecars.
    ///
    /// Upstream: `maxContainerRestarts`, `pkg/controller/controller_utils.go`.
    pub fn highest<'s, 'a: 's>(
        containers: Option<&'s [ContainerStatus<'a>]>,
        sidecars: impl Iterator<Item = &'s ContainerStatus<'a>>,
    ) -> Self {
        let containers = containers.unwrap_or_default().iter().map(|container| container.restart_count);
        let sidecars = sidecars.map(|container| container.restart_count);
        Self { containers: containers.max().unwrap_or(0), sidecars: sidecars.max().unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_init_containers_that_restart_always_are_sidecars() {
        let init =
            r#"[{"name":"once"},{"name":"beside","restartPolicy":"Always"},{"name":"new","restartPolicy":"Odd"}]"#;
        let init: Vec<InitContainer<'_>> = serde_json::from_str(init).unwrap();
        let statuses =
            r#"[{"name":"once","restartCount":9},{"name":"beside","restartCount":2},{"name":"new","restartCount":7}]"#;
        let statuses: Vec<ContainerStatus<'_>> = serde_json::from_str(statuses).unwrap();
        let named: Vec<&str> = sidecars(Some(&init), Some(&statuses)).map(|status| &*status.name).collect();
        assert_eq!(named, ["beside"]);
        let restarts = Restarts::highest(Some(&statuses), sidecars(Some(&init), Some(&statuses)));
        assert_eq!(restarts, Restarts { containers: 9, sidecars: 2 });
        assert_eq!(Restarts::highest(None, sidecars(None, None)), Restarts::default());
    }
}
