//! Properties of any claim with any users, and of any pod with any entries.

use std::collections::BTreeSet;

use proptest::prelude::*;
use resourceclaim_operator::objects::claim::ResourceClaim;
use resourceclaim_operator::plan::{Next, Plan, Release};
use shared::testing::properties::order_is_irrelevant;

use crate::fixtures::*;
use crate::users::{record, steps};
use resourceclaim_operator::plan::users::{UserNext, UserPlan, plan_pod};

/// A user of a claim: how it is now, and what the cache shows of it.
#[derive(Clone, Copy, Debug)]
struct User {
    now: u8,
    cached: u8,
}

impl User {
    /// Gone, running, ended, or another pod of the name.
    fn state(state: u8, name: &str) -> Option<ObjectBuilder> {
        let pod = plain_pod(name).node("node");
        match state {
            0 => None,
            1 => Some(pod.phase("Running")),
            2 => Some(pod.phase("Failed")),
            _ => Some(pod.uid_of(&format!("another-{name}"))),
        }
    }

    /// What a cache may show of such a pod: an end is final, and a cache may lack the pod, or have the one before it.
    fn cached(self, name: &str) -> Option<ObjectBuilder> {
        match (self.now, self.cached) {
            (_, 0) => None,
            (_, 3) => Self::state(3, name),
            (0 | 3 | 1, _) => Self::state(1, name),
            (_, cached) => Self::state(cached, name),
        }
    }

    fn runs(self) -> bool {
        self.now == 1
    }
}

fn any_users() -> impl Strategy<Value = Vec<User>> {
    prop::collection::vec((0..4_u8, 0..4_u8).prop_map(|(now, cached)| User { now, cached }), 0..6)
}

fn released(caches: &Caches, live: &[ObjectBuilder]) -> Option<Release> {
    let (next, _) = claim_stages(caches, "shared", live);
    if let Next::Execute(Plan::Release(release)) = next { Some(release) } else { None }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_running_pod_loses_its_claim_and_nothing_is_left_to_release(users in any_users()) {
        let names: Vec<String> = (0..users.len()).map(|n| format!("web-{n}")).collect();
        let of = |state: &dyn Fn(User, &str) -> Option<ObjectBuilder>| -> Vec<ObjectBuilder> {
            users.iter().zip(&names).filter_map(|(user, name)| state(*user, name)).collect()
        };
        let live = of(&|user, name| User::state(user.now, name));
        let cached = of(&User::cached);
        let all: Vec<ObjectBuilder> = names.iter().map(|name| plain_pod(name)).collect();
        let claim = held(reserved(allocated(claim("shared")), &all.iter().collect::<Vec<_>>()));
        let mut objects = cached.clone();
        objects.push(claim.clone());
        let caches = cluster(gates_off(), &objects);
        let before = claim.build::<ResourceClaim>();
        let gone: BTreeSet<Box<str>> = released(&caches, &live).into_iter().flat_map(|release| release.users).collect();
        let running = users.iter().zip(&before.reserved_for).filter(|(user, _)| user.runs());
        for (_, consumer) in running {
            prop_assert!(!gone.contains(&consumer.uid), "{consumer} runs");
        }
        // An end that the cache does not show yet is found when it does.
        let rest = all.iter().zip(&before.reserved_for).filter(|(_, consumer)| !gone.contains(&consumer.uid));
        let rest: Vec<&ObjectBuilder> = rest.map(|(pod, _)| pod).collect();
        let after = held(reserved(allocated(crate::fixtures::claim("shared")), &rest));
        let after = if rest.is_empty() && !gone.is_empty() { crate::fixtures::claim("shared") } else { after };
        let mut objects = cached;
        objects.push(after);
        prop_assert_eq!(released(&cluster(gates_off(), &objects), &live), None);
        let given_back = released(&caches, &live).is_some_and(|release| release.deallocate && release.remove_finalizer);
        prop_assert_eq!(given_back, rest.is_empty() && !gone.is_empty());
    }

    /// Each entry has no claim, one that is not recorded, one that is, or another owner's.
    #[test]
    fn each_entry_gets_one_claim_and_then_the_pod_is_at_rest(states in prop::collection::vec(0..4_u8, 1..5)) {
        let names: Vec<String> = (0..states.len()).map(|n| format!("e{n}")).collect();
        let entries: Vec<Value> = names.iter().map(|name| templated(name)).collect();
        let pod = with_entries(plain_pod(POD), &entries);
        let named = |entry: &str| json!({ "name": entry, "resourceClaimName": format!("c-{entry}") });
        let statuses: Vec<Value> =
            names.iter().zip(&states).filter(|(_, state)| **state >= 2).map(|(name, _)| named(name)).collect();
        let pod = pod.set(&["status", "resourceClaimStatuses"], json!(statuses));
        let mut objects = vec![pod.clone(), template()];
        for (name, state) in names.iter().zip(&states) {
            let claim = claim(&format!("c-{name}")).annotation(POD_CLAIM_NAME, name);
            match state {
                0 => {}
                3 => objects.push(claim),
                _ => objects.push(claim.owned_by(&*pod.build::<Pod>())),
            }
        }
        let next = |objects: &[ObjectBuilder]| plan_pod(&cluster(gates_off(), objects).observe_pod(&key(POD)).unwrap());
        order_is_irrelevant(&objects, |objects| next(objects));
        let missing = states.iter().filter(|state| matches!(state, 0 | 3)).count();
        if states.iter().all(|state| *state == 2) {
            prop_assert!(matches!(next(&objects), UserNext::Execute(UserPlan::Nothing(_))));
            return Ok(());
        }
        prop_assert_eq!(steps(next(&objects)).create.len(), missing);
        let recorded = record(next(&objects));
        prop_assert_eq!(recorded.len(), names.len(), "a record names all");
        // What was created is found by its owner, and nothing is created again before it is recorded.
        for (name, _) in names.iter().zip(&states).filter(|(_, state)| matches!(state, 0 | 3)) {
            let made = claim(&format!("new-{name}")).annotation(POD_CLAIM_NAME, name);
            objects.push(made.owned_by(&*pod.build::<Pod>()));
        }
        prop_assert_eq!(steps(next(&objects)).create.len(), 0);
        let statuses = names.iter().zip(&states).map(|(name, state)| {
            let prefix = if matches!(state, 0 | 3) { "new" } else { "c" };
            json!({ "name": name, "resourceClaimName": format!("{prefix}-{name}") })
        });
        objects[0] = pod.set(&["status", "resourceClaimStatuses"], statuses.collect::<Vec<_>>());
        prop_assert!(matches!(next(&objects), UserNext::Execute(UserPlan::Nothing(_))));
    }
}
