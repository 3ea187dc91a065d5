//! Properties of every owner with any pods: see [`shared::testing::properties`].

use std::collections::{BTreeMap, BTreeSet};
use std::io::Error;

use proptest::prelude::*;
use shared::api::pod::PodView;
use shared::controllers::replicas::apply::Outcome;
use shared::controllers::replicas::observe::Observed;
use shared::controllers::replicas::plan::{BURST_REPLICAS, Plan, plan};
use shared::controllers::replicas::pod::Pod;
use shared::controllers::replicas::status::next_status;
use shared::testing::apiserver::Server;
use shared::testing::running::{A_STATUS, Running, test};
use shared::testing::{NOW, ObjectBuilder, ago, properties, uid};

use super::fixtures::{foreign, observed, orphan, pod, rejections, relabelled, web};
use crate::{Operator, Owner};

/// A pod in any state that can be.
fn any_pod(name: String) -> impl Strategy<Value = (String, ObjectBuilder)> {
    let makers: Vec<fn(&str) -> ObjectBuilder> = vec![pod, orphan, foreign, relabelled];
    let made = prop::sample::select(makers);
    let phase = prop::sample::select(vec!["Pending", "Running", "Unknown", "Succeeded", "Failed", "Odd"]);
    let ready = prop::option::of(0..7200_i64);
    (made, phase, ready, any::<bool>(), prop::bool::weighted(0.2), -2..2_i32).prop_map(
        move |(made, phase, ready, assigned, terminating, cost)| {
            let mut builder = made(&name).phase(phase).deletion_cost(&cost.to_string());
            if let Some(seconds) = ready {
                builder = builder.ready_since(ago(seconds));
            }
            if !assigned {
                builder = builder.node("");
            }
            if terminating {
                builder = builder.terminating();
            }
            (name.clone(), builder)
        },
    )
}

fn any_pods() -> impl Strategy<Value = BTreeMap<String, ObjectBuilder>> {
    let pods: Vec<_> = (0..10).map(|number| prop::option::of(any_pod(format!("web-{number}")))).collect();
    pods.prop_map(|pods| pods.into_iter().flatten().collect())
}

fn any_web() -> impl Strategy<Value = ObjectBuilder> {
    (0..12_i32, prop::bool::weighted(0.1))
        .prop_map(|(replicas, deleted)| if deleted { web(replicas).terminating() } else { web(replicas) })
}

fn decide(web: &ObjectBuilder, pods: &BTreeMap<String, ObjectBuilder>) -> Plan {
    let pods: Vec<ObjectBuilder> = pods.values().cloned().collect();
    plan(&observed(web, &pods), NOW)
}

/// Runs the whole operator until it has nothing to do.
async fn come_to_rest(server: &Server) {
    let running = Running::start::<Operator>(server, &[]);
    running.at_rest().await;
    server.run_pods();
    running.at_rest().await;
    running.pass(A_STATUS).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn an_operator_comes_to_rest_with_as_many_pods_as_wanted(web in any_web(), pods in any_pods()) {
        test(async {
            let server = Server::new();
            pods.values().chain([&web]).for_each(|object| server.add(object));
            come_to_rest(&server).await;
            let writes = server.writes();
            come_to_rest(&server).await;
            assert_eq!(server.writes(), writes, "what is at rest is written again");
            let pods = server.list("pods").into_iter().map(|pod| serde_json::from_value::<Pod>(pod).unwrap());
            let owner = web.build::<Owner>();
            let own = pods.filter(|pod| pod.metadata.is_controlled_by(owner.metadata.uid) && pod.is_active()).count();
            assert!(owner.metadata.is_being_deleted() || own == owner.spec.wanted(), "{own} pods");
        });
    }

    #[test]
    fn the_order_of_the_pods_is_irrelevant(web in any_web(), pods in any_pods()) {
        let pods: Vec<ObjectBuilder> = pods.into_values().collect();
        properties::order_is_irrelevant(&pods, |pods| plan(&observed(&web, pods), NOW).to_string());
    }

    #[test]
    fn the_first_rejections_change_nothing(web in any_web(), pods in any_pods(), count in 0..4_usize) {
        let pods: Vec<ObjectBuilder> = pods.into_values().collect();
        let observed = observed(&web, &pods);
        let rejected = Observed { rejections: rejections(count, NOW), ..observed.clone() };
        prop_assert_eq!(plan(&rejected, NOW), plan(&observed, NOW));
    }

    #[test]
    fn nothing_is_touched_that_is_not_ours(web in any_web(), pods in any_pods()) {
        let plan = decide(&web, &pods);
        let known: BTreeSet<_> = pods.keys().map(|name| uid(name)).collect();
        let me = web.build::<Owner>().metadata.uid;
        for pod in &plan.claim.adopt {
            prop_assert!(pod.metadata.controller.is_none() && pod.is_active());
        }
        for pod in &plan.claim.release {
            prop_assert!(pod.metadata.is_controlled_by(me) && pod.is_active());
        }
        let claimed: BTreeSet<_> = plan.claim.owned.iter().chain(&plan.claim.adopt).map(|pod| pod.metadata.uid).collect();
        for deletion in &plan.delete {
            prop_assert!(known.contains(&deletion.uid) && claimed.contains(&deletion.uid));
        }
    }

    #[test]
    fn a_plan_stays_within_its_bounds(replicas in 0..3000_i32, count in 0..900_usize) {
        let pods: Vec<ObjectBuilder> = (0..count.min(3)).map(|number| pod(&format!("web-{number}"))).collect();
        let plan = plan(&observed(&web(replicas), &pods), NOW);
        prop_assert!(plan.create <= BURST_REPLICAS && plan.delete.len() <= BURST_REPLICAS);
        prop_assert!(plan.create == 0 || plan.delete.is_empty());
        let after = pods.len() + plan.create - plan.delete.len();
        prop_assert!(after <= pods.len().max(usize::try_from(replicas).unwrap()));
    }

    #[test]
    fn a_status_says_of_a_generation_what_it_says_again(web in any_web(), pods in any_pods(), failure in any::<bool>()) {
        let pods: Vec<ObjectBuilder> = pods.into_values().collect();
        let observed = observed(&web, &pods);
        let claim = plan(&observed, NOW).claim;
        let claimed = claim.owned.into_iter().chain(claim.adopt).collect();
        let outcome = Outcome { claimed, failure: failure.then(|| Error::other("quota").into()), error: None };
        let first = next_status(&observed, &outcome, NOW).unwrap();
        prop_assert_eq!(first.observed_generation, observed.owner.metadata.generation);
        prop_assert!(first.available_replicas <= first.ready_replicas && first.ready_replicas <= first.replicas);
        // Written and served again, a minute later: nothing moves, no time of transition either.
        let mut owner = (*observed.owner).clone();
        owner.status = first.clone();
        let mut again = observed;
        again.owner = owner.into();
        let later = NOW + jiff::SignedDuration::from_mins(1);
        prop_assert_eq!(next_status(&again, &outcome, later), Some(first));
    }
}
