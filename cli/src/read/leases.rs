//! The Leases of the operators, and which replica holds each.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::Client;

use super::{list, why_not};
use crate::lease::Lease;
use crate::lookup::Lookup;
use crate::object::Object;
use crate::reach::{Leader, Reach};

pub(crate) const MANAGER_NAMESPACE: &str = "kube-system";
pub(crate) const MANAGER: &str = "kube-controller-manager";

/// All Leases of one namespace, by name.
pub(crate) struct Leases {
    namespace: String,
    /// Or why they are not readable.
    found: Result<BTreeMap<String, Lease>, String>,
}

impl Leases {
    pub(crate) async fn read(client: &Client, namespace: &str) -> Self {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        let found = list(client, &path, "").await.map_err(|error| why_not(&error));
        let named =
            |leases: Vec<_>| leases.iter().map(|lease| (Object(lease).name().to_owned(), Lease::read(lease))).collect();
        Self { namespace: namespace.to_owned(), found: found.map(named) }
    }

    pub(crate) fn all(&self) -> Result<&BTreeMap<String, Lease>, &str> {
        self.found.as_ref().map_err(String::as_str)
    }

    pub(crate) fn of(&self, name: &str) -> Lookup<Lease> {
        match self.all() {
            Ok(found) => found.get(name).cloned().map_or(Lookup::Absent, Lookup::Found),
            Err(_) => Lookup::Unreadable,
        }
    }

    /// The name of the Lease of the process with several controllers that holds this operator's.
    pub(crate) fn common<'a>(&self, lease: &'a Lease) -> Option<&'a str> {
        lease.common().filter(|(namespace, _)| *namespace == self.namespace).map(|(_, name)| name)
    }

    /// The replica to ask about this operator. An address that is given for the operator is asked whoever leads.
    pub(crate) fn leader(&self, operator: &str, reach: &Reach) -> Leader {
        let lease = self.of(operator);
        let Some(lease) = lease.known() else { return Leader::of_operator(operator, "") };
        match self.common(lease) {
            Some(common) => {
                let common_lease = self.of(common);
                let pod = common_lease.known().map_or("", Lease::pod);
                if reach.knows(operator) { Leader::of_operator(operator, pod) } else { Leader::of_process(common, pod) }
            }
            None => Leader::of_operator(operator, lease.pod()),
        }
    }

    /// Whether the holder of kube-controller-manager's Lease is the process with several controllers: that renews
    /// operators' Leases in its name, and only while it holds the common one.
    pub(crate) fn are_of_one_process(&self, manager: &Lookup<Lease>, now: Timestamp) -> bool {
        let Some(common) = manager.known().filter(|common| common.is_fresh(now)) else { return false };
        let is_its = |lease: &Lease| {
            lease.common() == Some((MANAGER_NAMESPACE, MANAGER))
                && lease.is_fresh(now)
                && lease.renewed >= common.acquired
        };
        self.found.iter().flat_map(BTreeMap::values).any(is_its)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reach::fakes::{apiserver, refusal};
    use crate::reach::{ReachOptions, parse_server};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn held(holder: &str, acquired: i64, renewed: i64) -> Lease {
        Lease { holder: holder.to_owned(), renewed: Some(at(renewed)), acquired: Some(at(acquired)), seconds: 15 }
    }

    fn leases(found: &[(&str, Lease)]) -> Leases {
        let found = found.iter().map(|(name, lease)| ((*name).to_owned(), lease.clone())).collect();
        Leases { namespace: "kube-system".to_owned(), found: Ok(found) }
    }

    #[tokio::test]
    async fn a_lease_of_one_process_leads_to_the_pod_that_holds_the_common_one() {
        let leases = leases(&[
            (MANAGER, held("one-process-operator-x_1", 0, 5)),
            ("a-operator", held("kube-system/kube-controller-manager", 1, 5)),
            ("b-operator", held("b-operator-x_1", 1, 5)),
            ("c-operator", held("kube-system/gone", 1, 5)),
            ("batch-group-operator", held("batch-group-operator-x_1", 0, 5)),
            ("g-operator", held("kube-system/batch-group-operator", 1, 5)),
            ("d-operator", held("elsewhere/kube-controller-manager", 1, 5)),
            ("f-operator", held("kube-system/kube-controller-manager", 1, 5)),
        ]);
        let (client, _) = apiserver(|_| refusal(404));
        let servers = parse_server("f-operator=https://127.0.0.1:1").into_iter().collect();
        let reach = Reach::new(client, ReachOptions { servers, ..ReachOptions::default() });
        let leader = |operator: &str| leases.leader(operator, &reach);
        assert_eq!(leader("a-operator"), Leader::of_process(MANAGER, "one-process-operator-x"));
        assert_eq!(leader("b-operator"), Leader::of_operator("b-operator", "b-operator-x"));
        assert_eq!(leader("c-operator"), Leader::of_process("gone", ""));
        assert_eq!(leader("g-operator"), Leader::of_process("batch-group-operator", "batch-group-operator-x"));
        assert_eq!(leader("g-operator").account(), "batch-group-operator");
        assert_eq!(leader("d-operator"), Leader::of_operator("d-operator", "elsewhere/kube-controller-manager"));
        assert_eq!(leader("e-operator"), Leader::of_operator("e-operator", ""));
        assert_eq!(leader("f-operator"), Leader::of_operator("f-operator", "one-process-operator-x"));
    }

    #[test]
    fn whoever_renews_operators_leases_in_its_name_is_the_process_of_several() {
        let row = |operator: Lease, manager: Lookup<Lease>, expected: bool| {
            let leases = leases(&[("a-operator", operator.clone())]);
            assert_eq!(leases.are_of_one_process(&manager, at(20)), expected, "{operator:?} {manager:?}");
        };
        let (by_process, by_pod) = ("kube-system/kube-controller-manager", "a-operator-x_1");
        let manager = |acquired, renewed| Lookup::Found(held("node_1", acquired, renewed));
        row(held(by_process, 3, 18), manager(2, 19), true);
        row(held(by_process, 3, 10), manager(12, 19), false);
        row(held(by_process, 3, 2), manager(2, 19), false);
        row(held(by_process, 3, 18), manager(2, 2), false);
        row(held(by_process, 3, 18), Lookup::Absent, false);
        row(held("kube-system/another", 3, 18), manager(2, 19), false);
        row(held(by_pod, 3, 18), manager(2, 19), false);
    }
}
