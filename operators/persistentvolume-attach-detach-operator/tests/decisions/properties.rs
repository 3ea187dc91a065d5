//! Rules for all volumes, nodes and pods.

use persistentvolume_attach_detach_operator::memory::{Remembered, Report};
use persistentvolume_attach_detach_operator::observe::{Live, Observed, Place, Wants};
use persistentvolume_attach_detach_operator::plan::{Act, Config, MAX_WAIT_FOR_UNMOUNT, Next, Plan, plan};
use proptest::prelude::*;
use shared::testing::properties;

use crate::fixtures::{
    attached, attachment, node, not_ready, observed, on, out_of_service, place, unneeded_for, used_by, volume, with,
};

fn any_config() -> impl Strategy<Value = Config> {
    (any::<bool>(), any::<bool>()).prop_map(|(forces_on_timeout, verifies)| Config { forces_on_timeout, verifies })
}

fn any_remembered() -> impl Strategy<Value = Remembered> {
    let report = prop::sample::select(vec![Report::Free, Report::Withdrawn, Report::Acknowledged]);
    (report, 0..12_u64, any::<bool>(), any::<bool>()).prop_map(|(report, minutes, is_requested, is_refused)| {
        let unneeded = if minutes < 10 { unneeded_for(minutes) } else { Remembered::default() };
        Remembered { report, is_requested, is_refused, ..unneeded }
    })
}

fn any_live() -> impl Strategy<Value = Live> {
    (any::<bool>(), any::<bool>()).prop_map(|(is_in_use, is_reported)| Live { is_in_use, is_reported })
}

prop_compose! {
    fn any_place(name: &'static str)(
        exists in prop::bool::weighted(0.9), is_ready in any::<bool>(), is_lost in prop::bool::weighted(0.2),
        reports in any::<bool>(), uses in any::<bool>(), live in prop::option::of(any_live()),
        state in 0..4_usize, pods in prop::collection::vec(prop::sample::select(vec![Wants::Attached, Wants::Kept]), 0..3),
        remembered in any_remembered(), is_left_unused in any::<bool>(),
    ) -> Place {
        let volume = volume();
        let (named, none) = ([&volume], []);
        let list = |is_named| if is_named { &named[..] } else { &none[..] };
        let mut built = node(name, list(reports), list(uses));
        if !is_ready {
            built = not_ready(built);
        }
        if is_lost {
            built = out_of_service(built);
        }
        let mut place = if exists { on(&built) } else { place(name) };
        place = match state {
            0 => place,
            1 => with(place, &attachment(name)),
            2 => with(place, &attached(attachment(name))),
            _ => with(place, &attached(attachment(name)).terminating()),
        };
        let each = |(number, wants)| used_by(&format!("{name}-{number}"), wants, false);
        place.uses = pods.into_iter().enumerate().map(each).collect();
        // A live read is made only of a node that gave the volume back.
        let live = live.filter(|_| remembered.report == Report::Acknowledged);
        Place { remembered, live, is_left_unused: !exists && is_left_unused, ..place }
    }
}

fn any_places() -> impl Strategy<Value = Vec<Place>> {
    (any_place("a"), any_place("b"), any_place("c"), 1..=3_usize)
        .prop_map(|(a, b, c, count)| [a, b, c].into_iter().take(count).collect())
}

/// The plan after the live reads that it asks for, which show no use and no unseen attachment.
fn decided(mut places: Vec<Place>, config: Config) -> (Observed, Plan) {
    for _ in 0..2 {
        match plan(&observed(&places), config) {
            Next::Execute(plan) => return (observed(&places), plan),
            Next::Ask(_) => {
                for place in &mut places {
                    place.live.get_or_insert_default();
                    place.remembered.is_requested &= place.attachment.is_some();
                }
            }
        }
    }
    panic!("a live read is asked for twice")
}

proptest! {
    #[test]
    fn a_volume_for_one_node_gets_no_second_attachment(places in any_places(), config in any_config()) {
        let (observed, plan) = decided(places, config);
        let creates = plan.steps.iter().filter(|step| matches!(step.act, Act::Attach { .. }));
        let has_it = observed.places.iter().any(|place| place.attachment.is_some());
        let created: Vec<&str> = creates.map(|step| &*step.node).collect();
        prop_assert!(created.len() <= 1, "{}", plan);
        prop_assert!(created.is_empty() || !has_it, "{}", plan);
    }

    #[test]
    fn nothing_leaves_a_node_that_a_pod_needs_or_that_has_it_mounted(places in any_places(), config in any_config()) {
        let (observed, plan) = decided(places, config);
        for (place, step) in observed.places.iter().zip(&plan.steps) {
            let leaves = matches!(step.act, Act::Withdraw | Act::Detach { .. });
            if !leaves {
                continue;
            }
            prop_assert!(place.uses.is_empty(), "{}", plan);
            let is_mounted = place.state.as_ref().map_or(!place.is_left_unused, |node| node.uses(&observed.volume));
            let is_ready = place.state.as_ref().is_some_and(|node| node.is_ready);
            let had_its_time = place.remembered.unneeded.is_some_and(|unneeded| unneeded >= MAX_WAIT_FOR_UNMOUNT);
            let is_timeout = config.forces_on_timeout && !is_ready && had_its_time;
            let is_lost = place.state.as_ref().is_some_and(|node| node.is_out_of_service);
            prop_assert!(!is_mounted || is_timeout || is_lost, "{}", plan);
            let Act::Detach { forced, .. } = &step.act else { continue };
            prop_assert_eq!(place.remembered.report, Report::Acknowledged);
            prop_assert!(forced.is_some() || place.live == Some(Live::default()), "{}", plan);
        }
    }

    #[test]
    fn planning_again_after_what_was_remembered_tells_nothing_new(places in any_places(), config in any_config()) {
        let (observed, first) = decided(places, config);
        let again: Vec<Place> = observed.places.iter().zip(&first.steps).map(|(place, step)| {
            Place { remembered: step.remember.clone(), ..place.clone() }
        }).collect();
        let (_, second) = decided(again, config);
        for step in &second.steps {
            prop_assert!(step.events.is_empty(), "{} {:?}", second, step.events);
            let is_repeated = matches!(step.act, Act::Nothing | Act::Attach { .. } | Act::Detach { .. });
            prop_assert!(is_repeated, "{}", second);
        }
    }

    #[test]
    fn the_order_of_nodes_is_irrelevant(places in any_places(), config in any_config()) {
        let (observed, _) = decided(places, config);
        properties::order_is_irrelevant(&observed.places, |places| {
            let (_, plan) = decided(places.to_vec(), config);
            let mut acts: Vec<_> = plan.steps.into_iter().map(|step| (step.node, step.act)).collect();
            acts.sort_by(|a, b| a.0.cmp(&b.0));
            acts
        });
    }
}
