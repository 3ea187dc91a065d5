//! Properties of any quota over any objects.

use proptest::prelude::*;
use resourcequota_operator::apply::Outcome;
use resourcequota_operator::objects::{Evaluator, ResourceQuota, Service, ServiceFacts};
use resourcequota_operator::observe::{Known, Objects, Observed};
use resourcequota_operator::plan::{Plan, plan};
use resourcequota_operator::status::next_status;
use serde_json::{Value, json};
use shared::testing::properties::order_is_irrelevant;
use shared::testing::{NOW, object};

use crate::fixtures::{facts, observed, quota};

const NAMES: [&str; 6] =
    ["secrets", "count/secrets", "services", "services.nodeports", "configmaps", "example.com/nobody-counts"];

fn amounts() -> impl Strategy<Value = Value> {
    let amount = prop::sample::select(vec!["0", "1", "500m", "3", "1Ki"]);
    let entries = prop::collection::btree_map(prop::sample::select(NAMES.to_vec()), amount, 0..6);
    entries.prop_map(|entries| json!(entries))
}

fn services() -> impl Strategy<Value = Vec<ServiceFacts>> {
    let service = (prop::sample::select(vec!["NodePort", "LoadBalancer", "ClusterIP"]), 0..4_usize);
    let service = service.prop_map(|(kind, ports)| {
        let spec = json!({ "type": kind, "ports": vec![json!({ "port": 1 }); ports] });
        facts::<Service>(&object("v1", "Service", "s").set(&["spec"], spec))
    });
    prop::collection::vec(service, 0..5)
}

fn known(number: u64) -> Known {
    match number {
        0 => Known::Unserved,
        1 => Known::Unreadable("no".to_owned()),
        number => Known::Listed(Objects::Number(number)),
    }
}

fn of(hard: &Value, status: &Value, used: &Value, kinds: Vec<(Evaluator, Known)>) -> Observed {
    let quota = quota(hard).set(&["status", "hard"], status.clone()).set(&["status", "used"], used.clone());
    observed(&quota, kinds)
}

/// The quota once its next status is written; none if nothing is.
fn written(observed: &Observed) -> Option<ResourceQuota> {
    let Plan { counted, unreadable, behind, recount, .. } = plan(observed, NOW);
    let outcome = Outcome { counted, is_partial: !unreadable.is_empty(), is_behind: !behind.is_empty(), recount };
    let status = next_status(&observed.quota, &outcome)?;
    Some(ResourceQuota { status, ..(*observed.quota).clone() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn once_the_status_is_written_nothing_is_left_to_write_and_usage_has_a_limit(
        (hard, status, used) in (amounts(), amounts(), amounts()),
        services in services(),
        (secrets, config_maps) in (0..5_u64, 0..5_u64),
    ) {
        let kinds = vec![
            (Evaluator::Services, Known::Listed(Objects::Services(services))),
            (Evaluator::of("secrets").remove(0), known(secrets)),
            (Evaluator::of("configmaps").remove(0), known(config_maps)),
        ];
        let observed = of(&hard, &status, &used, kinds);
        if let Some(quota) = written(&observed) {
            prop_assert!(quota.status.used.keys().all(|name| quota.hard.contains_key(name)));
            prop_assert_eq!(&quota.status.hard, &quota.hard);
            prop_assert_eq!(written(&Observed { quota: quota.into(), ..observed }), None);
        }
    }

    #[test]
    fn the_order_of_objects_is_irrelevant(hard in amounts(), services in services()) {
        order_is_irrelevant(&services, |services| {
            let kinds = vec![(Evaluator::Services, Known::Listed(Objects::Services(services.to_vec())))];
            plan(&of(&hard, &hard, &json!({}), kinds), NOW).counted
        });
    }
}
