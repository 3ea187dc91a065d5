//! What becomes of a request, and its answer: upstream's cases, and properties of any slices.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use resourcepoolstatusrequest_operator::apply::{Answer, Outcome};
use resourcepoolstatusrequest_operator::metrics::RequestMetrics;
use resourcepoolstatusrequest_operator::objects::{Allocated, Question, ResourcePoolStatusRequest, Slice};
use resourcepoolstatusrequest_operator::observe::{Observed, Pools};
use resourcepoolstatusrequest_operator::plan::{Next, Plan, plan};
use resourcepoolstatusrequest_operator::status::next_status;
use serde_json::{Value, json};
use shared::process::metrics::Metrics;
use shared::testing::properties::order_is_irrelevant;
use shared::testing::{NOW, ObjectBuilder, ago, object};

const DRIVER: &str = "test.example.com";

/// With this spec besides the driver, so many seconds old.
fn request(spec: Value, age: i64) -> ObjectBuilder {
    object("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest", "test-request")
        .namespace("")
        .set(&["metadata", "creationTimestamp"], ago(age).to_string())
        .set(&["spec"], spec)
        .set(&["spec", "driver"], DRIVER)
}

/// Answered so many seconds ago.
fn answered(age: i64) -> ObjectBuilder {
    let condition = json!({ "type": "Complete", "status": "True", "lastTransitionTime": ago(age).to_string() });
    request(json!({}), age).set(&["status"], json!({ "poolCount": 0, "conditions": [condition] }))
}

/// Slice of a pool in a generation, of which there are `expected`.
fn slice(pool: &str, node: &str, devices: usize, (generation, expected): (i64, i64)) -> Value {
    let devices: Vec<Value> = (0..devices).map(|number| json!({ "name": format!("device-{number}") })).collect();
    let node = if node.is_empty() { Value::Null } else { json!(node) };
    let pool = json!({ "name": pool, "generation": generation, "resourceSliceCount": expected });
    json!({ "metadata": {}, "spec": { "driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices } })
}

fn one(pool: &str, node: &str, devices: usize) -> Value {
    slice(pool, node, devices, (1, 1))
}

fn claim(pool: &str) -> Value {
    let result = json!({ "driver": DRIVER, "pool": pool, "device": "device-0" });
    json!({ "metadata": {}, "status": { "allocation": { "devices": { "results": [result] } } } })
}

fn pools(question: &Question, slices: &[Value], claims: &[Value]) -> Pools {
    let mut pools = Pools::default();
    for slice in slices {
        pools.add(question, serde_json::from_value::<Slice>(slice.clone()).unwrap());
    }
    for claim in claims {
        pools.allocate(question, &serde_json::from_value::<Allocated>(claim.clone()).unwrap());
    }
    pools
}

fn planned(request: &ObjectBuilder, slices: &[Value], claims: &[Value]) -> Plan {
    let request: Arc<ResourcePoolStatusRequest> = request.build();
    let pools = Some(pools(&request.question, slices, claims));
    match plan(&Observed { request, pools }, NOW) {
        Next::Execute(plan) => plan,
        Next::Ask(live_read) => unreachable!("{live_read}"),
    }
}

fn status(plan: Plan) -> Value {
    let Plan::Answer { pools, total } = plan else { unreachable!("{plan}") };
    next_status(&Outcome { answer: Some(Answer { pools, total }), next: None }, NOW).unwrap()
}

/// Each pool as `name@generation on node: allocated/total of slices`.
fn answer(spec: Value, slices: &[Value], claims: &[Value]) -> String {
    let status = status(planned(&request(spec, 0), slices, claims));
    let pools = status["pools"].as_array().unwrap().iter().map(|pool| {
        assert_eq!(pool["unavailableDevices"], 0);
        let node = pool["nodeName"].as_str().unwrap_or("no node");
        let number = |field: &str| pool[field].as_i64().unwrap();
        let (allocated, total) = (number("allocatedDevices"), number("totalDevices"));
        assert_eq!(number("availableDevices"), (total - allocated).max(0));
        let (generation, slices) = (number("generation"), number("resourceSliceCount"));
        format!("{}@{generation} on {node}: {allocated}/{total} of {slices}", pool["poolName"].as_str().unwrap())
    });
    pools.collect::<Vec<_>>().join(", ")
}

/// Upstream: `TestCalculatePoolStatus`, its complete pools.
#[test]
fn complete_pools_are_counted() {
    let row = |case: &str, slices: &[Value], claims: &[Value], expected: &str| {
        assert_eq!(answer(json!({}), slices, claims), expected, "{case}");
    };
    let first = || one("pool-1", "node-1", 4);
    row("single-pool-no-allocations", &[first()], &[], "pool-1@1 on node-1: 0/4 of 1");
    let claims = [claim("pool-1"), claim("pool-1")];
    row("single-pool-with-allocations", &[first()], &claims, "pool-1@1 on node-1: 2/4 of 1");
    let both = [one("pool-2", "node-2", 8), first()];
    row("multiple-pools", &both, &[], "pool-1@1 on node-1: 0/4 of 1, pool-2@1 on node-2: 0/8 of 1");
    let mut foreign = one("pool-2", "node-2", 8);
    foreign["spec"]["driver"] = "other.example.com".into();
    row("filter-by-driver", &[first(), foreign], &[], "pool-1@1 on node-1: 0/4 of 1");
    row("multiple-slices-same-pool", &[first(), first()], &[], "pool-1@1 on node-1: 0/8 of 2");
    row("no-matching-pools", &[], &[claim("pool-1")], "");
    let newer = || slice("pool-1", "node-1", 4, (2, 1));
    let slices = [slice("pool-1", "node-1", 8, (1, 1)), newer(), newer()];
    row("older-generation-slices-ignored", &slices, &[], "pool-1@2 on node-1: 0/8 of 2");
    row("same-node-pool-sets-nodename", &[first(), first()], &[], "pool-1@1 on node-1: 0/8 of 2");
    let mixed = [first(), one("pool-1", "node-2", 4)];
    row("mixed-node-pool-clears-nodename", &mixed, &[], "pool-1@1 on no node: 0/8 of 2");
    let nodeless = [one("pool-1", "", 4), one("pool-1", "", 4)];
    row("nil-nodename-slices-no-nodename", &nodeless, &[], "pool-1@1 on no node: 0/8 of 2");
    let of_two = || slice("pool-1", "node-1", 4, (1, 2));
    row("all-pools-complete-no-validation-errors", &[of_two(), of_two()], &[], "pool-1@1 on node-1: 0/8 of 2");
}

/// Upstream: `TestCalculatePoolStatus`, "filter-by-pool-name" and "limit-pools".
#[test]
fn a_request_is_about_one_pool_or_a_limited_number() {
    let both = [one("pool-1", "node-1", 4), one("pool-2", "node-2", 8)];
    assert_eq!(answer(json!({ "poolName": "pool-1" }), &both, &[]), "pool-1@1 on node-1: 0/4 of 1");
    let limited = status(planned(&request(json!({ "limit": 1 }), 0), &both, &[]));
    assert_eq!((limited["pools"].as_array().unwrap().len(), &limited["poolCount"]), (1, &json!(2)));
    let expected = json!([{
        "type": "Complete", "status": "True", "reason": "CalculationComplete",
        "message": "Calculated status for 1 pools", "lastTransitionTime": NOW.to_string(),
    }]);
    assert_eq!(limited["conditions"], expected);
}

/// Upstream: `TestCalculatePoolStatus`, "incomplete-pool-has-validation-error" and "mix-of-complete-and-incomplete-pools";
/// `TestSyncRequestRequeuesIncompletePool`. No answer shows an incomplete pool, upstream's neither.
#[test]
fn a_pool_without_all_its_slices_is_read_again() {
    let of = |pool: &str, expected: i64| slice(pool, "node-1", 4, (1, expected));
    let incomplete = [of("pool-1", 5), of("pool-1", 5), of("pool-1", 5)];
    let text = |age: i64, slices: &[Value]| planned(&request(json!({}), age), slices, &[]).to_string();
    assert_eq!(text(59, &incomplete), "retry in 5s (pools without all slices: pool-1)");
    assert_eq!(text(60, &incomplete), "retry in 10m0s (pools without all slices: pool-1)");
    let mix = [of("pool-1", 1), of("pool-2", 3), of("pool-2", 3)];
    assert_eq!(text(0, &mix), "retry in 5s (pools without all slices: pool-2)");
    let limited = planned(&request(json!({ "limit": 1 }), 0), &mix, &[]).to_string();
    assert_eq!(limited, "answer with 1 pools (complete pools: 2)", "the other one is not shown");
}

fn text(request: &ObjectBuilder) -> String {
    let observed = Observed { request: request.build(), pools: None };
    plan(&observed, NOW).to_string()
}

/// Upstream: `TestShouldDeleteRequest` and `TestIsOlderThan`; `TestSkipProcessedRequest`.
#[test]
fn a_request_goes_an_hour_after_its_answer_or_a_day_after_its_creation() {
    // "completed-request-not-expired", "recent-time-is-not-older"
    assert_eq!(text(&answered(30 * 60)), "wait 30m0s (kept until 2026-01-01T12:30:00Z)");
    // "completed-request-expired", "old-time-is-older"
    assert_eq!(text(&answered(2 * 3600)), "delete (kept until 2026-01-01T11:00:00Z)");
    // "just-under-boundary-is-not-older"
    assert_eq!(text(&answered(3600 - 60)), "wait 1m0s (kept until 2026-01-01T12:01:00Z)");
    // "pending-request-not-expired"
    let pending = "list ResourceSlices and ResourceClaims (asks about test.example.com)";
    assert_eq!(text(&request(json!({}), 0)), pending);
    // "pending-request-expired"
    assert_eq!(text(&request(json!({}), 25 * 3600)), "delete (kept until 2026-01-01T11:00:00Z)");
    // "zero-time-is-not-older"
    let timeless = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
    assert_eq!(text(&request(json!({}), 25 * 3600).set(&["status"], timeless)), "keep (answered without a time)");
    // A status without such a condition counts from the creation.
    let bare = request(json!({}), 60).set(&["status"], json!({ "poolCount": 0 }));
    assert_eq!(text(&bare), "wait 59m0s (kept until 2026-01-01T12:59:00Z)");
    assert_eq!(text(&answered(2 * 3600).terminating()), "keep (being deleted)");
}

/// Upstream: `TestRequestsProcessed`, `TestRequestProcessingErrors`, `TestRequestProcessingDuration` and `TestRegister`.
#[test]
fn answers_are_counted_by_driver() {
    let metrics = Metrics::new("resourcepoolstatusrequest-operator");
    let own = RequestMetrics::register(&metrics);
    own.processed(DRIVER, Duration::from_millis(3), &Ok(()));
    own.processed(DRIVER, Duration::from_millis(3), &Err(anyhow::anyhow!("no")));
    let text = metrics.to_text();
    let prefix = "resourcepoolstatusrequest_controller_";
    for line in [
        "requests_processed_total{driver_name=\"test.example.com\"} 2\n",
        "request_processing_errors_total{driver_name=\"test.example.com\"} 1\n",
        "request_processing_duration_seconds_count{driver_name=\"test.example.com\"} 2\n",
    ] {
        assert!(text.contains(&format!("{prefix}{line}")), "{text}");
    }
}

proptest! {
    /// Only the slices of the newest generation count, in any order.
    #[test]
    fn the_newest_generation_counts(slices in proptest::collection::vec((0..2_usize, 1..4_i64, 0..5_usize), 0..6)) {
        let values: Vec<Value> = slices.iter().map(|(pool, generation, devices)| {
            slice(["a", "b"][*pool], "node", *devices, (*generation, 1))
        }).collect();
        let question = request(json!({}), 0).build::<ResourcePoolStatusRequest>().question.clone();
        for (at, name) in ["a", "b"].into_iter().enumerate() {
            let of_pool: Vec<_> = slices.iter().filter(|(pool, ..)| *pool == at).collect();
            let newest = of_pool.iter().map(|(_, generation, _)| *generation).max();
            let devices: usize = of_pool.iter().filter(|(_, of, _)| Some(*of) == newest).map(|(.., devices)| devices).sum();
            let found = pools(&question, &values, &[]);
            let found = found.0.get(name).map(|pool| (pool.generation, pool.devices));
            prop_assert_eq!(found, newest.map(|newest| (newest, i64::try_from(devices).unwrap())));
        }
        order_is_irrelevant(&values, |values| pools(&question, values, &[]));
    }
}
