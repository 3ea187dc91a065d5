//! Where each kind is served, and in which namespaces it is watched.

use std::collections::{BTreeMap, BTreeSet};

use shared::api::intern::Text;
use shared::api::pod::LIVE;
use shared::api::resource::Resource;
use shared::transport::discovery::{Discovery, Served};

use crate::objects::Evaluator;
use crate::observe::Wanted;
use crate::observe::feeds::{Place, Target};

/// The verbs that a kind must allow. Upstream: `GetQuotableResources`.
const VERBS: [&str; 4] = ["create", "delete", "list", "watch"];
/// Kinds that are never counted: group and plural. Upstream: `DefaultIgnoredResources`, `pkg/quota/v1/install/registry.go`.
const IGNORED: [(&str, &str); 10] = [
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("events.k8s.io", "events"),
];
/// The version of DRA's claims that this build reads.
const RESOURCE_CLAIMS_VERSION: &str = "v1";
/// Above this number of namespaces one watch of all of them is cheaper.
const NAMESPACES: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Served(Resource),
    /// It is not served, or never counted.
    Unserved,
    Unknown(String),
}

pub(super) fn find(evaluator: &Evaluator, discovery: &Discovery) -> Found {
    let wanted = evaluator.group_resource();
    let is_it = |served: &&Served| {
        let Served { resource, verbs: _, is_preferred } = served;
        let is_version = match evaluator {
            Evaluator::ResourceClaims | Evaluator::DeviceClasses => resource.version == RESOURCE_CLAIMS_VERSION,
            Evaluator::Pods | Evaluator::Services | Evaluator::Claims | Evaluator::Objects(_) => *is_preferred,
        };
        is_version && wanted.is(resource)
    };
    if let Some(served) = discovery.served.iter().find(is_it) {
        let resource = &served.resource;
        let is_ignored = IGNORED.contains(&(&*resource.group, &*resource.plural));
        let is_namespaced = resource.namespaced || *evaluator == Evaluator::DeviceClasses;
        let is_counted = is_namespaced && served.has_verbs(&VERBS) && !is_ignored;
        return if is_counted { Found::Served(resource.clone()) } else { Found::Unserved };
    }
    match discovery.failed.iter().find(|(group_version, _)| group_of(group_version) == &*wanted.group) {
        Some((group_version, error)) => Found::Unknown(format!("{group_version} cannot be discovered: {error}")),
        None => Found::Unserved,
    }
}

fn group_of(group_version: &str) -> &str {
    group_version.split_once('/').map_or("", |(group, _)| group)
}

/// Where to watch each served kind. Ended pods are watched only where a quota counts them.
pub(super) fn targets(
    wanted: &BTreeMap<Evaluator, Wanted>,
    served: &BTreeMap<Evaluator, Resource>,
) -> BTreeMap<Place, Target> {
    let mut targets = BTreeMap::new();
    for (evaluator, resource) in served {
        let Some(Wanted { namespaces, ended_pods }) = wanted.get(evaluator) else { continue };
        let everywhere = BTreeSet::from([Text::default()]);
        let is_split = namespaces.len() <= NAMESPACES;
        let places = if is_split { namespaces } else { &everywhere };
        for namespace in places {
            let with_ended = if is_split { ended_pods.contains(namespace) } else { !ended_pods.is_empty() };
            let fields = if *evaluator == Evaluator::Pods && !with_ended { LIVE } else { "" };
            targets.insert((evaluator.clone(), namespace.clone()), Target { resource: resource.clone(), fields });
        }
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "create delete get list watch";

    /// `group/version/plural verb verb …`
    fn served(line: &str) -> Served {
        let (name, verbs) = line.split_once(' ').unwrap_or((line, ALL));
        let parts: Vec<String> = name.split('/').map(str::to_owned).collect();
        let [group, version, plural] = &parts[..] else { panic!("{name}") };
        let resource = Resource {
            group: group.clone().into(),
            version: version.clone().into(),
            kind: plural.clone().into(),
            plural: plural.clone().into(),
            namespaced: plural != "nodes",
        };
        Served { resource, verbs: verbs.split(' ').map(Text::new).collect(), is_preferred: version != "v1beta1" }
    }

    #[track_caller]
    fn check(name: &str, lines: &[&str], failed: &[&str], expected: &str) {
        let discovery = Discovery {
            served: lines.iter().map(|line| served(line)).collect(),
            failed: failed.iter().map(|group_version| ((*group_version).to_owned(), "down".to_owned())).collect(),
        };
        let found = match find(&Evaluator::of(name)[0], &discovery) {
            Found::Served(resource) => format!("{}/{}", resource.api_version(), resource.plural),
            Found::Unserved => "unserved".to_owned(),
            Found::Unknown(error) => error,
        };
        assert_eq!(found, expected, "{name}");
    }

    #[test]
    fn a_kind_is_looked_up_in_its_preferred_version() {
        let lines = ["/v1/secrets", "apps/v1beta1/deployments", "apps/v1/deployments"];
        check("secrets", &lines, &[], "v1/secrets");
        check("count/deployments.apps", &lines, &[], "apps/v1/deployments");
        check("count/deployments", &lines, &[], "unserved");
        let claims = ["resource.k8s.io/v1beta1/resourceclaims", "resource.k8s.io/v1/resourceclaims"];
        check("count/resourceclaims.resource.k8s.io", &claims, &[], "resource.k8s.io/v1/resourceclaims");
        check("count/resourceclaims.resource.k8s.io", &claims[..1], &[], "unserved");
    }

    #[test]
    fn some_kinds_are_counted_by_nobody() {
        check("count/events", &["/v1/events"], &[], "unserved");
        check("count/nodes", &["/v1/nodes"], &[], "unserved");
        check("count/as.g", &["g/v1/as create list watch"], &[], "unserved");
    }

    #[test]
    fn a_kind_of_a_group_that_cannot_be_discovered_may_be_served() {
        check("count/as.g", &["g/v1/bs"], &["g/v2"], "g/v2 cannot be discovered: down");
        check("count/as.g", &["g/v1/as"], &["g/v2"], "g/v1/as");
        check("count/as.g", &[], &["other/v1"], "unserved");
    }

    #[track_caller]
    fn check_targets(namespaces: usize, ended: &[usize], expected: &[(&str, &str)]) {
        let name = |at: usize| Text::new(&at.to_string());
        let all = Wanted {
            namespaces: (0..namespaces).map(name).collect(),
            ended_pods: ended.iter().map(|at| name(*at)).collect(),
        };
        let wanted = BTreeMap::from([(Evaluator::Pods, all)]);
        let served = Evaluator::Pods.resource().map(|pods| (Evaluator::Pods, pods)).into_iter().collect();
        let targets = targets(&wanted, &served);
        let found: Vec<_> = targets.iter().map(|((_, place), target)| (place.as_str(), target.fields)).collect();
        assert_eq!(found, expected);
        assert!(super::targets(&wanted, &BTreeMap::new()).is_empty());
    }

    #[test]
    fn pods_are_followed_in_few_namespaces_or_in_all_and_ended_ones_where_they_count() {
        check_targets(2, &[], &[("0", LIVE), ("1", LIVE)]);
        check_targets(2, &[1], &[("0", LIVE), ("1", "")]);
        check_targets(17, &[], &[("", LIVE)]);
        check_targets(17, &[3], &[("", "")]);
    }
}
