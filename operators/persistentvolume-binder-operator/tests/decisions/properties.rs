//! Rules for any claims and volumes.

use proptest::prelude::*;
use serde_json::json;
use shared::api::object::Key;

use super::fixtures::{BIND_COMPLETED, BOUND_BY_CONTROLLER, World, claim, claim_in, class, on_host, volume, volume_in};

const SIZES: [&str; 3] = ["1Gi", "2Gi", "3Gi"];
const CLASSES: [&str; 2] = ["", "gold"];
const POLICIES: [&str; 3] = ["Retain", "Delete", "Recycle"];
const PHASES: [&str; 4] = ["", "Available", "Released", "Bound"];

#[derive(Clone, Debug)]
struct AnyVolume {
    size: usize,
    class: usize,
    policy: usize,
    phase: usize,
    /// The claim that it names, and whether with the uid, and whether a controller wrote that.
    claim: Option<(usize, bool, bool)>,
}

#[derive(Clone, Debug)]
struct AnyClaim {
    size: usize,
    class: usize,
    volume: Option<usize>,
    is_completed: bool,
    exists: bool,
}

fn any_volume() -> impl Strategy<Value = AnyVolume> {
    let claim = prop::option::of((0..4_usize, any::<bool>(), any::<bool>()));
    (0..3_usize, 0..2_usize, 0..3_usize, 0..4_usize, claim).prop_map(|(size, class, policy, phase, claim)| AnyVolume {
        size,
        class,
        policy,
        phase,
        claim,
    })
}

fn any_claim() -> impl Strategy<Value = AnyClaim> {
    (0..3_usize, 0..2_usize, prop::option::of(0..4_usize), any::<bool>(), prop::bool::weighted(0.8)).prop_map(
        |(size, class, volume, is_completed, exists)| AnyClaim {
            size,
            class,
            volume,
            is_completed: is_completed && volume.is_some(),
            exists,
        },
    )
}

fn any_world() -> impl Strategy<Value = World> {
    (prop::collection::vec(any_volume(), 0..5), prop::collection::vec(any_claim(), 4)).prop_map(|(volumes, claims)| {
        let volumes = volumes.iter().enumerate().flat_map(|(at, any)| {
            let (uid, claim, annotations) = match any.claim {
                None => (String::new(), String::new(), Vec::new()),
                Some((claim, has_uid, by_controller)) => {
                    let name = format!("c{claim}");
                    let annotations = if by_controller { vec![BOUND_BY_CONTROLLER] } else { Vec::new() };
                    (if has_uid { name.clone() } else { String::new() }, name, annotations)
                }
            };
            let (size, class) = (SIZES[any.size], CLASSES[any.class]);
            let (policy, phase) = (POLICIES[any.policy], PHASES[any.phase]);
            on_host(volume(&format!("v{at}"), size, &uid, &claim, phase, policy, class, &annotations))
        });
        let claims = claims.iter().enumerate().filter(|(_, any)| any.exists).flat_map(|(at, any)| {
            let name = format!("c{at}");
            let volume = any.volume.map(|volume| format!("v{volume}")).unwrap_or_default();
            let annotations = if any.is_completed { vec![BIND_COMPLETED] } else { Vec::new() };
            let phase = if any.is_completed { "Bound" } else { "Pending" };
            claim(&name, &name, SIZES[any.size], &volume, phase, Some(CLASSES[any.class]), &annotations)
        });
        World::of(
            &volumes.collect::<Vec<_>>(),
            &claims.collect::<Vec<_>>(),
            &[class("gold", "csi.example.com", "Immediate")],
        )
    })
}

/// The claims whose binding is complete from both sides, with their volumes.
fn pairs(world: &World) -> Vec<(String, String)> {
    let is_pair = |claim: &&serde_json::Value| {
        let name = claim["spec"]["volumeName"].as_str().unwrap_or_default();
        let volume = volume_in(world, name);
        let reference = volume.as_ref().and_then(|volume| volume.spec.claim_ref.as_ref());
        let uid = reference.and_then(|reference| reference.uid).map(|uid| json!(uid));
        uid.as_ref() == Some(&claim["metadata"]["uid"]) && !claim["metadata"]["annotations"][BIND_COMPLETED].is_null()
    };
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let pairs = world.claims.iter().filter(is_pair);
    pairs.map(|claim| (text(&claim["metadata"]["name"]), text(&claim["spec"]["volumeName"]))).collect()
}

proptest! {
    #[test]
    fn a_complete_binding_stays_and_no_volume_is_given_twice(world in any_world()) {
        let before = pairs(&world);
        let mut after = world.clone();
        after.settle();
        let pairs = pairs(&after);
        for pair in &before {
            prop_assert!(pairs.contains(pair), "{pair:?} of {before:?} is not in {pairs:?}");
        }
        for (at, (_, volume)) in pairs.iter().enumerate() {
            prop_assert!(pairs[..at].iter().all(|(_, other)| other != volume), "{pairs:?}");
        }
    }

    #[test]
    fn a_claim_that_had_a_complete_binding_never_names_another_volume(world in any_world()) {
        let mut after = world.clone();
        after.settle();
        for claim in &world.claims {
            let name = claim["metadata"]["name"].as_str().unwrap();
            if let Some(volume) = claim["spec"]["volumeName"].as_str() {
                prop_assert_eq!(&*claim_in(&after, name).spec.volume_name, volume);
            }
        }
    }

    #[test]
    fn a_new_binding_is_to_a_volume_that_fits_and_is_no_larger_than_needed(world in any_world()) {
        let named = |world: &World, name: &str| claim_in(world, name).spec.volume_name.to_string();
        for claim in &world.claims {
            let name = claim["metadata"]["name"].as_str().unwrap();
            let mut after = world.clone();
            let plan = after.plan_claim(&Key::new("default", name));
            after.apply(&plan);
            let volume = named(&after, name);
            if !named(&world, name).is_empty() || volume.is_empty() {
                continue;
            }
            let (claim, bound) = (claim_in(&world, name), volume_in(&world, &volume).unwrap());
            prop_assert!(bound.capacity() >= claim.requested());
            if bound.is_bound_to(&claim) {
                continue;
            }
            prop_assert!(bound.class() == claim.class() && bound.spec.claim_ref.is_none() && *bound.phase() == "Available");
            for other in &world.volumes {
                let other = volume_in(&world, other["metadata"]["name"].as_str().unwrap()).unwrap();
                let is_held = world.claims.iter().any(|claim| {
                    claim["spec"]["volumeName"] == other.metadata.name()
                        && !claim["metadata"]["annotations"][BIND_COMPLETED].is_null()
                });
                let would_fit = other.spec.claim_ref.is_none() && *other.phase() == "Available"
                    && other.class() == claim.class() && other.capacity() >= claim.requested() && !is_held;
                prop_assert!(!would_fit || other.capacity() >= bound.capacity());
            }
        }
    }

    #[test]
    fn volumes_to_be_retained_are_never_deleted_and_nor_are_those_of_a_claim(world in any_world()) {
        let mut after = world.clone();
        after.settle();
        for volume in &world.volumes {
            let name = volume["metadata"]["name"].as_str().unwrap();
            let before = volume_in(&world, name).unwrap();
            if volume_in(&after, name).is_some() {
                continue;
            }
            prop_assert_eq!(&*before.spec.reclaim_policy, "Delete");
            let reference = before.spec.claim_ref.as_ref().unwrap();
            let is_there = world.claims.iter().any(|claim| {
                reference.uid.is_some_and(|uid| claim["metadata"]["uid"] == json!(uid))
                    && claim["spec"]["volumeName"].as_str().is_none_or(|named| named == name)
            });
            prop_assert!(!is_there, "its claim still exists");
        }
    }

    #[test]
    fn a_volume_to_be_recycled_is_emptied_before_another_claim_gets_it(world in any_world()) {
        let mut after = world.clone();
        after.settle();
        for volume in &world.volumes {
            let name = volume["metadata"]["name"].as_str().unwrap();
            let (before, Some(now)) = (volume_in(&world, name).unwrap(), volume_in(&after, name)) else { continue };
            let reference = before.spec.claim_ref.as_ref().filter(|reference| reference.uid.is_some());
            let Some(reference) = reference else { continue };
            let is_there = world.claims.iter().any(|claim| claim["metadata"]["uid"] == json!(reference.uid));
            let is_given_away = now.spec.claim_ref.as_ref() != Some(reference);
            if before.spec.reclaim_policy == "Recycle" && !is_there && is_given_away {
                prop_assert!(after.emptied.iter().any(|emptied| emptied == name), "{name} of {:?}", after.emptied);
            }
        }
        prop_assert!(after.recyclers.is_empty() && after.own.is_empty());
    }

    #[test]
    fn planning_again_after_applying_changes_nothing(world in any_world()) {
        let mut settled = world;
        settled.settle();
        for claim in &settled.claims {
            let plan = settled.plan_claim(&Key::new("default", claim["metadata"]["name"].as_str().unwrap()));
            prop_assert!(!plan.writes(), "{plan}");
        }
        for volume in &settled.volumes {
            let plan = settled.plan_volume(&Key::new("", volume["metadata"]["name"].as_str().unwrap()));
            prop_assert!(!plan.writes(), "{plan}");
        }
    }
}
