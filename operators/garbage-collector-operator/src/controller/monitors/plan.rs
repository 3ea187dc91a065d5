//! Which monitors start and stop, by the served resources.

use std::collections::{BTreeMap, BTreeSet};

use shared::api::resource::Resource;
use shared::transport::discovery::Discovery;

/// The verbs that a kind must support.
const VERBS: [&str; 3] = ["delete", "list", "watch"];
/// Events have no dependents and are many: group and plural. Upstream: `DefaultIgnoredResources`,
/// `pkg/controller/garbagecollector/graph_builder.go`.
const IGNORED: [(&str, &str); 2] = [("", "events"), ("events.k8s.io", "events")];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) start: Vec<Resource>,
    pub(super) stop: Vec<Resource>,
}

/// `running` has each monitor, and whether it is synced. A synced monitor stays while its group version cannot be
/// discovered. None if nothing at all is served.
///
/// Upstream: `Sync` and `GetDeletableResources`, `pkg/controller/garbagecollector/garbagecollector.go`.
pub(super) fn plan(running: &BTreeMap<&Resource, bool>, discovery: &Discovery) -> Option<Plan> {
    let deletable = discovery.preferred().filter(|served| served.has_verbs(&VERBS)).map(|served| &served.resource);
    let wanted: BTreeSet<&Resource> =
        deletable.filter(|resource| !IGNORED.contains(&(&*resource.group, &*resource.plural))).collect();
    if wanted.is_empty() {
        // Every cluster serves some kinds, so this is an unreported failure.
        return None;
    }
    let stays = |resource: &Resource, synced: bool| {
        wanted.contains(resource) || (synced && discovery.failed.contains_key(&resource.api_version()))
    };
    let stop = running.iter().filter(|(resource, synced)| !stays(resource, **synced));
    Some(Plan {
        stop: stop.map(|(resource, _)| (*resource).clone()).collect(),
        start: wanted.into_iter().filter(|resource| !running.contains_key(resource)).cloned().collect(),
    })
}

#[cfg(test)]
mod tests {
    use shared::api::intern::Text;
    use shared::transport::discovery::Served;

    use super::*;

    const ALL: &str = "create delete get list watch";

    /// `group/version/plural verb verb …`
    fn served(line: &str) -> Served {
        let (name, verbs) = line.split_once(' ').unwrap_or((line, ALL));
        Served { resource: resource(name), verbs: verbs.split(' ').map(Text::new).collect(), is_preferred: true }
    }

    fn resource(name: &str) -> Resource {
        let parts: Vec<String> = name.split('/').map(str::to_owned).collect();
        let [group, version, plural] = &parts[..] else { panic!("{name}") };
        Resource {
            group: group.clone().into(),
            version: version.clone().into(),
            kind: plural.clone().into(),
            plural: plural.clone().into(),
            namespaced: true,
        }
    }

    /// Running monitors that are not synced have a question mark.
    #[track_caller]
    fn check(running: &[&str], lines: &[&str], failed: &[&str], expected: &str) {
        let discovery = Discovery {
            served: lines.iter().map(|line| served(line)).collect(),
            failed: failed.iter().map(|group_version| ((*group_version).to_owned(), "down".to_owned())).collect(),
        };
        let running: Vec<(Resource, bool)> =
            running.iter().map(|name| (resource(name.trim_end_matches('?')), !name.ends_with('?'))).collect();
        let plan = plan(&running.iter().map(|(resource, synced)| (resource, *synced)).collect(), &discovery);
        let Some(Plan { start, stop }) = plan else { return assert_eq!("nothing is served", expected) };
        let text = |resources: &[Resource]| {
            resources.iter().map(|r| format!("{}/{}", r.api_version(), r.plural)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(format!("start {} stop {}", text(&start), text(&stop)), expected);
    }

    #[test]
    fn kinds_come_and_go() {
        check(&[], &["/v1/pods", "apps/v1/deployments"], &[], "start v1/pods apps/v1/deployments stop ");
        check(&["/v1/pods", "g/v1/gone"], &["/v1/pods"], &[], "start  stop g/v1/gone");
        check(&["g/v1beta1/a"], &["g/v1/a"], &[], "start g/v1/a stop g/v1beta1/a");
    }

    #[test]
    fn events_and_what_cannot_be_deleted_or_watched_have_no_monitor() {
        check(
            &[],
            &["/v1/pods", "/v1/events", "events.k8s.io/v1/events", "/v1/bindings create", "g/v1/a delete list"],
            &[],
            "start v1/pods stop ",
        );
    }

    #[test]
    fn a_group_that_cannot_be_discovered_keeps_its_monitors_if_they_were_synced() {
        check(&["/v1/pods", "g/v1/a", "g/v1/b?"], &["/v1/pods"], &["g/v1"], "start  stop g/v1/b");
        check(&["/v1/pods", "g/v1/a"], &["/v1/pods", "g/v1beta1/a"], &["g/v1"], "start g/v1beta1/a stop ");
        check(&["/v1/pods", "g/v1/a"], &["/v1/pods"], &["other/v1"], "start  stop g/v1/a");
    }

    #[test]
    fn an_apiserver_that_serves_nothing_is_not_believed() {
        check(&["/v1/pods"], &[], &[], "nothing is served");
    }
}
