//! When a namespace is given its ServiceAccount: upstream's cases, seen through the caches that they fill.

use std::sync::Arc;

use proptest::prelude::*;
use serviceaccount_operator::objects::{DEFAULT, Namespace, SERVICE_ACCOUNTS, ServiceAccount};
use serviceaccount_operator::observe::{Caches, Observed};
use serviceaccount_operator::plan::{Plan, plan};
use shared::api::object::Key;
use shared::following::cache::{Cache, Indices};
use shared::testing::{forget, object, store};

/// Caches after the apiserver's selectors: what is not active, or not called `default`, is never in there.
struct Cluster(Caches);

impl Cluster {
    fn empty() -> Self {
        let (namespaces, service_accounts) =
            (Arc::new(Cache::new(Indices::default())), Arc::new(Cache::new(Indices::default())));
        Self(Caches { namespaces, service_accounts })
    }

    fn set_active(&self, namespace: &str, is_active: bool) {
        let json = object("v1", "Namespace", namespace).namespace("");
        let namespace: Arc<Namespace> = json.build();
        if is_active { store(&self.0.namespaces, &namespace) } else { forget(&self.0.namespaces, &namespace) }
    }

    fn set_account(&self, namespace: &str, is_there: bool) {
        let account: Arc<ServiceAccount> = object("v1", "ServiceAccount", DEFAULT).namespace(namespace).build();
        if is_there { store(&self.0.service_accounts, &account) } else { forget(&self.0.service_accounts, &account) }
    }

    fn plan(&self, namespace: &str) -> Plan {
        plan(&self.0.observe(&Key::new("", namespace)))
    }
}

#[track_caller]
fn check(cluster: &Cluster, expected: &str) {
    assert_eq!(cluster.plan("ns").to_string(), expected);
}

/// Upstream: `TestServiceAccountCreation`; its second account, `managed`, is one that only its tests ask for.
#[test]
fn an_active_namespace_has_its_account() {
    // "new active namespace missing serviceaccounts", "updated active namespace missing serviceaccounts"
    let cluster = Cluster::empty();
    cluster.set_active("ns", true);
    check(&cluster, "create default (not there)");
    // "new active namespace with serviceaccounts", "updated active namespace with serviceaccounts"
    cluster.set_account("ns", true);
    check(&cluster, "nothing (default is there)");
    // "deleted serviceaccount with active namespace"
    cluster.set_account("ns", false);
    check(&cluster, "create default (not there)");
    // Another namespace's account is none of this one's.
    cluster.set_account("other", true);
    check(&cluster, "create default (not there)");
    // "deleted serviceaccount with terminating namespace", "updated terminating namespace"
    cluster.set_active("ns", false);
    check(&cluster, "nothing (not active)");
    // "deleted serviceaccount without namespace"
    check(&Cluster::empty(), "nothing (not active)");
}

#[test]
fn the_account_is_a_core_resource() {
    assert_eq!(SERVICE_ACCOUNTS.collection_path("ns"), "/api/v1/namespaces/ns/serviceaccounts");
}

proptest! {
    #[test]
    fn after_applying_there_is_nothing_left_to_plan(steps in proptest::collection::vec((0..3_u8, any::<bool>(), any::<bool>()), 0..30)) {
        let cluster = Cluster::empty();
        for (namespace, is_active, has_account) in steps {
            let namespace = namespace.to_string();
            cluster.set_active(&namespace, is_active);
            cluster.set_account(&namespace, has_account);
            let planned = cluster.plan(&namespace);
            prop_assert_eq!(planned == Plan::Create, is_active && !has_account);
            if planned == Plan::Create {
                cluster.set_account(&namespace, true);
            }
            let is_done = matches!(cluster.plan(&namespace), Plan::Nothing(_));
            prop_assert!(is_done);
        }
    }

    #[test]
    fn nothing_is_created_where_nothing_is_active(has_account: bool) {
        let observed = Observed { namespace: Key::new("", "ns"), is_active: false, has_account };
        let is_nothing = matches!(plan(&observed), Plan::Nothing(_));
        prop_assert!(is_nothing);
    }
}
