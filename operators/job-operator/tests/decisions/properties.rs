//! Properties of every Job, for any fate of its pods, of the process and of its caches: see [`crate::world`].

use proptest::prelude::*;
use shared::api::pod::Phase;
use shared::testing::{ObjectBuilder, properties};

use crate::fixtures::{Spec, case, indexed, job, orphan, pod, pod_of};
use crate::world::{Stopped, World};

#[derive(Clone, Debug)]
enum Event {
    /// A sync that ends after so many writes.
    Sync(usize),
    Restart,
    See(usize),
    Succeed(usize),
    Fail(usize),
    Evict(usize),
    Gone(usize),
    Suspend(bool),
    Parallelism(i32),
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => Just(Event::Sync(usize::MAX)),
        4 => (0..9_usize).prop_map(Event::Sync),
        1 => Just(Event::Restart),
        4 => (0..6_usize).prop_map(Event::See),
        5 => (0..9_usize).prop_map(Event::Succeed),
        4 => (0..9_usize).prop_map(Event::Fail),
        2 => (0..9_usize).prop_map(Event::Evict),
        3 => (0..9_usize).prop_map(Event::Gone),
        1 => any::<bool>().prop_map(Event::Suspend),
        1 => (0..6_i32).prop_map(Event::Parallelism),
    ]
}

fn any_job() -> impl Strategy<Value = ObjectBuilder> {
    let of_kind = prop_oneof![
        (1..5_i32, 1..9_i32).prop_map(|(parallelism, completions)| job(parallelism, completions)),
        (1..5_i32).prop_map(|parallelism| job(parallelism, None)),
        (1..5_i32, 1..9_i32).prop_map(|(parallelism, completions)| indexed(parallelism, completions)),
        (1..5_i32, 1..9_i32, 0..2_i32).prop_map(|(parallelism, completions, limit)| {
            indexed(parallelism, completions).with("backoffLimitPerIndex", limit)
        }),
    ];
    (of_kind, 0..9_i32, any::<bool>()).prop_map(|(job, limit, only_failed)| {
        let policy = if only_failed { "Failed" } else { "TerminatingOrFailed" };
        job.with("backoffLimit", limit).with("podReplacementPolicy", policy)
    })
}

fn take_place(world: &mut World, event: &Event) {
    match *event {
        Event::Sync(writes_max) => {
            if world.sync(writes_max) == Err(Stopped::Crash) {
                world.restart();
            }
        }
        Event::Restart => world.restart(),
        Event::See(states) => world.see(states),
        Event::Succeed(number) => world.end(number, Phase::Succeeded),
        Event::Fail(number) => world.end(number, Phase::Failed),
        Event::Evict(number) => world.evict(number),
        Event::Gone(number) => world.gone(number),
        Event::Suspend(suspend) => world.edit("suspend", suspend),
        Event::Parallelism(parallelism) => world.edit("parallelism", parallelism),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn each_pod_is_counted_once_and_every_job_ends(job in any_job(), events in prop::collection::vec(any_event(), 0..60)) {
        let mut world = World::new(job);
        for event in &events {
            take_place(&mut world, event);
        }
        world.edit("parallelism", 3);
        world.settle();
        world.check_settled();
        let before = world.writes;
        world.restart();
        prop_assert_eq!(world.sync(usize::MAX), Ok(()));
        prop_assert_eq!(world.writes, before, "a finished Job is written again");
    }

    #[test]
    fn a_sync_without_news_writes_nothing(job in any_job(), events in prop::collection::vec(any_event(), 0..40)) {
        let mut world = World::new(job);
        for event in &events {
            take_place(&mut world, event);
        }
        properties::comes_to_rest(12, || {
            world.see(usize::MAX / 2);
            let before = world.writes;
            world.sync(usize::MAX).expect("nobody else writes");
            world.writes > before
        });
    }

    #[test]
    fn the_order_of_the_pods_is_irrelevant(
        job in any_job(),
        phases in prop::collection::vec((prop::sample::select(vec!["Pending", "Running", "Succeeded", "Failed"]), 0..5_i32, any::<bool>()), 0..9),
    ) {
        let pods: Vec<ObjectBuilder> = phases
            .iter()
            .enumerate()
            .map(|(at, (phase, index, is_terminating))| {
                let pod = match (at % 3, *phase) {
                    (0, phase) => pod(&format!("a{at}"), phase),
                    (1, phase) => pod_of(*index, &at.to_string(), phase),
                    (_, phase) => orphan(&format!("o{at}"), phase),
                };
                if *is_terminating { pod.terminating() } else { pod }
            })
            .collect();
        properties::order_is_irrelevant(&pods, |pods| case(job.clone(), pods.iter().cloned()).sync());
    }
}

/// The Job has succeeded by one pod's success; another one, on its way out, is not known to have ended.
#[test]
fn a_pod_that_seems_to_run_when_its_job_succeeds_is_let_go_uncounted() {
    let mut world = World::new(job(2, None).with("podReplacementPolicy", "Failed"));
    assert_eq!(world.sync(usize::MAX), Ok(()));
    world.evict(0);
    world.see(usize::MAX / 2);
    world.end(1, Phase::Succeeded);
    world.see(1);
    world.end(0, Phase::Succeeded);
    assert_eq!(world.sync(usize::MAX), Ok(()));
    world.settle();
    world.check_settled();
    assert_eq!(world.job().status.succeeded, 1);
}

#[test]
fn a_job_of_fifty_survives_a_crash_at_every_write() {
    for job in [job(50, 50), indexed(50, 50)] {
        for writes_max in 1..170 {
            let mut world = World::new(job.clone());
            if world.sync(writes_max) == Err(Stopped::Crash) {
                world.restart();
            }
            world.see(usize::MAX / 2);
            for number in 0..50 {
                world.end(0, if number % 7 == 6 { Phase::Failed } else { Phase::Succeeded });
            }
            world.see(usize::MAX / 2);
            let crashes_in_counting = writes_max.saturating_sub(51);
            if world.sync(crashes_in_counting) == Err(Stopped::Crash) {
                world.restart();
            }
            world.settle();
            world.check_settled();
        }
    }
}
