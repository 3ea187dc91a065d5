//! Objects as nobody should write them, clocks that go back, and Jobs of the largest size: a sync of them ends, and does
//! nothing that the next one could not put right.

use std::collections::BTreeSet;
use std::sync::Arc;

use job_operator::memory::backoff::BackoffRecord;
use job_operator::objects::Job;
use job_operator::objects::pod::{JobAnnotations, Pod};
use job_operator::observe::Observed;
use job_operator::plan::indexed::OrderedIntervals;
use job_operator::plan::new_pod::NewPods;
use job_operator::plan::scale::MAX_POD_CREATE_DELETE_PER_SYNC;
use job_operator::plan::tracking::{Executed, MAX_UNCOUNTED_PODS, plan_tracking};
use job_operator::plan::{Plan, Pods, plan};
use job_operator::status::next_status;
use proptest::prelude::*;
use serde_json::json;
use shared::api::object::{Key, Meta};
use shared::testing::{NOW, ObjectBuilder, ago, uid};

use crate::fixtures::{FAILURES, IGNORED, INDEX, Spec, all_released, case, check, indexed, job, pod, pod_of};

fn any_number() -> impl Strategy<Value = Option<i32>> {
    let extreme = prop::sample::select(vec![i32::MIN, -1, 0, 1, 499, 501, i32::MAX]);
    prop_oneof![1 => Just(None), 3 => extreme.prop_map(Some), 3 => (0..9_i32).prop_map(Some)]
}

fn any_job() -> impl Strategy<Value = ObjectBuilder> {
    let numbers = prop::collection::vec(any_number(), 8);
    let texts = ("[0-9,x-]{0,20}", "[0-9,x-]{0,20}");
    let mode = prop::sample::select(vec!["NonIndexed", "Indexed"]);
    let start = prop::sample::select(vec!["0001-01-01T00:00:00Z", "2026-01-01T12:00:00Z", "9999-12-31T23:59:59Z"]);
    let seconds = prop::sample::select(vec![None, Some(i64::MIN), Some(-1), Some(0), Some(9), Some(i64::MAX)]);
    (numbers, texts, mode, prop::option::of(start), seconds, any::<bool>()).prop_map(
        |(numbers, (completed, failed), mode, start, seconds, suspend)| {
            let fields = ["completions", "backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes"];
            let counters = ["active", "succeeded", "failed"];
            let mut job = job(numbers[7].unwrap_or(1), None).with("completionMode", mode).with("suspend", suspend);
            for (field, number) in fields.iter().zip(&numbers) {
                job = if *field == "backoffLimit" && number.is_none() { job } else { job.with(field, *number) };
            }
            for (field, number) in counters.iter().zip(&numbers[4..]) {
                job = job.said(field, number.unwrap_or(0));
            }
            job.with("activeDeadlineSeconds", seconds)
                .said("completedIndexes", completed)
                .said("failedIndexes", failed)
                .said("startTime", start)
        },
    )
}

fn any_pods() -> impl Strategy<Value = Vec<ObjectBuilder>> {
    let phase = prop::sample::select(vec!["Pending", "Running", "Succeeded", "Failed", "Unknown", "Odd"]);
    let number = "([+-]?[0-9]{1,22}|one|)";
    prop::collection::vec((phase, prop::option::of(number), number, number, any::<bool>()), 0..9).prop_map(|pods| {
        let built = pods.into_iter().enumerate().map(|(at, (phase, index, failures, ignored, is_going))| {
            let built = pod(&format!("p{at}"), phase).annotation(FAILURES, &failures).annotation(IGNORED, &ignored);
            let built = index.into_iter().fold(built, |built, index| built.annotation(INDEX, &index));
            if is_going { built.terminating() } else { built }
        });
        built.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_a_job_says_a_sync_of_it_ends_and_keeps_the_bounds(job in any_job(), pods in any_pods()) {
        let case = case(job, pods);
        case.sync();
        let observed = case.observed();
        if let Pods::Create(new) = plan(&observed, NOW).pods {
            let (spec, status) = (&observed.job.spec, &observed.job.status);
            prop_assert!(new.len() <= MAX_POD_CREATE_DELETE_PER_SYNC);
            prop_assert!(i64::try_from(new.len()).unwrap() <= i64::from(spec.parallelism), "more than may run");
            let indexes: BTreeSet<i32> = new.iter().filter_map(|pod| pod.index).collect();
            if observed.job.is_indexed() {
                prop_assert_eq!(indexes.len(), new.len(), "an index is run twice");
                let completions = spec.completions.unwrap_or(0);
                let done = OrderedIntervals::parse(&status.completed_indexes, completions);
                prop_assert!(indexes.iter().all(|index| (0..completions).contains(index) && !done.has(*index)));
            }
        }
    }
}

#[test]
fn numbers_at_their_ends_are_no_trouble() {
    check([
        ("as many as there are numbers", case(job(i32::MAX, i32::MAX), []), "create 500\nsaid: active 500"),
        (
            "the last index",
            case(
                indexed(i32::MAX, i32::MAX).said("completedIndexes", "0-2147483640").said("succeeded", 2_147_483_641),
                [],
            ),
            "create 6 (index 2147483641-2147483646)\nsaid: active 6, succeeded 2147483641, completed [0-2147483640]",
        ),
        (
            "one more than can be counted",
            case(job(1, 1).said("succeeded", i32::MAX).started(ago(9)), [pod("a", "Succeeded")]),
            "nothing (0 of 0 active)\nsaid: succeeded 2147483647, +(a), SuccessCriteriaMet CompletionsReached\nlet go a\nsaid: succeeded 2147483647, SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, completed",
        ),
        ("fewer than none", case(job(-3, 5), []), "nothing (0 of 0 active)\nsaid: all zero"),
        (
            "indexes that nobody counted",
            case(job(2, None).with("completionMode", "Indexed"), [pod_of(0, "a", "Running")]),
            "delete pi-0a (index out of range)\nsaid: terminating 1",
        ),
        (
            "indexes that are none",
            case(
                indexed(4, 4),
                ["99999999999", "99999999999999999999", "1.5", "0x1"]
                    .iter()
                    .zip(["a", "b", "c", "d"])
                    .map(|(index, name)| pod(name, "Running").annotation(INDEX, index)),
            ),
            "delete b (no index), c (no index), d (no index), a (index out of range)\nsaid: terminating 4",
        ),
        (
            "a status that says one index twice, and backwards",
            case(indexed(9, 6).said("completedIndexes", "3-1,2,0-2,1").started(ago(9)), []),
            "create 3 (index 3-5)\nsaid: active 3, succeeded 3, completed [0-2]",
        ),
    ]);
}

#[test]
fn a_clock_that_has_gone_back_delays_and_does_nothing_else() {
    let failed_later = || pod("a", "Failed").created(ago(-3600));
    check([
        (
            "it started in an hour",
            case(job(1, 1).with("activeDeadlineSeconds", 1).started(ago(-3600)), [pod("a", "Running")]),
            "nothing (1 of 1 active)\nsaid: active 1",
        ),
        (
            "a pod failed in an hour",
            case(job(1, 1), [failed_later()]),
            "nothing (waiting 3610s after failures)\nsaid: -(a)\nlet go a\nsaid: failed 1",
        ),
        (
            "its replacement is there",
            case(job(1, 1), [failed_later(), pod("b", "Succeeded")]),
            "nothing (0 of 0 active)\nsaid: +(b), -(a), SuccessCriteriaMet CompletionsReached\nlet go a b\nsaid: succeeded 1, failed 1, SuccessCriteriaMet CompletionsReached, Complete CompletionsReached, completed",
        ),
    ]);
}

#[test]
fn what_is_missing_or_unknown_is_read() {
    let bare: Job = serde_json::from_value(json!({ "metadata": { "name": "a" }, "spec": {} })).unwrap();
    assert!(NewPods::of(&bare).is_err(), "without a template there are no pods to make");
    let odd = json!({
        "parallelism": 1, "completionMode": null, "template": null, "podReplacementPolicy": "Odd",
        "podFailurePolicy": { "rules": [
            { "action": "Odd", "onExitCodes": { "operator": "Odd", "values": null } },
            { "action": "Count", "onPodConditions": null },
        ] },
        "successPolicy": { "rules": null },
    });
    let odd = job(1, 1).set(&["spec"], odd);
    let read = odd.build::<Job>();
    assert_eq!(read.spec.pod_failure_policy.as_ref().map(|policy| policy.rules.len()), Some(2));
    assert_eq!(plan(&case(odd, []).observed(), NOW).to_string(), "nothing (unable to create pods, no labels)");
}

const MANY: i32 = 100_000;

/// So many pods of an Indexed Job, as `change` wants them.
fn many(change: impl Fn(i32, &mut Pod)) -> Vec<Arc<Pod>> {
    let first: Arc<Pod> = pod_of(0, "", "Running").build();
    let pods = (0..MANY).map(|index| {
        let mut pod = Pod::clone(&first);
        let name = format!("pi-{index:06}");
        let annotations = JobAnnotations { index: Some(index), ..JobAnnotations::default() };
        let key = Key::new("default", &name);
        pod.metadata = Meta { key, uid: uid(&name), annotations, ..pod.metadata };
        change(index, &mut pod);
        Arc::new(pod)
    });
    pods.collect()
}

/// Each of these ends in the time that a sync of a hundred times fewer pods may take; were one step of them quadratic, this
/// test would take minutes.
#[test]
fn a_job_of_a_hundred_thousand_is_planned_as_one_of_a_hundred_is() {
    let odd_indexes: Vec<String> = (0..MANY).filter(|index| index % 2 == 1).map(|index| index.to_string()).collect();
    let whole_sync = |job: &ObjectBuilder, pods: Vec<Arc<Pod>>| {
        let (released, backoff) = (BTreeSet::new(), BackoffRecord::default());
        let observed = Observed { job: job.build(), pods, outstanding: None, released, backoff };
        let plan = plan(&observed, NOW);
        let planned = plan.to_string();
        let Plan { claim: _, pods, reason: _, ending, outstanding: _, wake: _, counts } = plan;
        let created = if let Pods::Create(new) = &pods { new.len() } else { 0 };
        let executed = Executed { counts, ending, created, ..Executed::default() };
        let tracking = plan_tracking(&observed, &executed, NOW).unwrap();
        let (released, status) = (tracking.release.len(), tracking.status.clone());
        (planned, released, next_status(&all_released(tracking), NOW).map_or(status, |last| last.status))
    };
    let half_done = indexed(MANY, MANY).said("completedIndexes", odd_indexes.join(","));
    let (planned, ..) = whole_sync(&half_done, Vec::new());
    assert!(planned.starts_with("create 500 (index 0,2,4,"), "{planned}");

    let running = many(|_, _| ());
    let (planned, released, status) = whole_sync(&indexed(MANY, MANY), running.clone());
    assert_eq!((&*planned, released, status.active), ("nothing (100000 of 100000 active)", 0, MANY));
    let (planned, ..) = whole_sync(&indexed(1, MANY), running.clone());
    assert!(planned.starts_with("delete ") && planned.ends_with("and 495 more"), "{planned}");
    let (planned, ..) = whole_sync(&indexed(MANY, MANY).with("suspend", true), running);
    assert!(planned.ends_with("and 99995 more"), "{planned}");

    let done = many(|_, pod| pod.phase = shared::api::pod::Phase::Succeeded);
    let (_, released, status) = whole_sync(&indexed(MANY, MANY), done.clone());
    assert_eq!((released, &*status.completed_indexes), (MAX_UNCOUNTED_PODS, "0-99999"));
    let (_, released, status) = whole_sync(&job(MANY, MANY), done);
    assert_eq!((released, status.succeeded), (MAX_UNCOUNTED_PODS, 500));

    let failed = many(|index, pod| {
        pod.phase = shared::api::pod::Phase::Failed;
        pod.metadata.annotations.failures = index % 3;
    });
    let limited = indexed(MANY, MANY).with("backoffLimitPerIndex", 2).with("backoffLimit", i32::MAX);
    let (planned, released, status) = whole_sync(&limited, failed);
    assert_eq!((&*planned, released), ("nothing (waiting 10s after failures)", MAX_UNCOUNTED_PODS));
    assert_eq!(OrderedIntervals::parse(status.failed_indexes.as_deref().unwrap(), MANY).total(), 33_333);
}
