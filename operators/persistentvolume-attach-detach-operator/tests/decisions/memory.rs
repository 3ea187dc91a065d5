//! What is remembered of a volume on a node.

use std::time::Duration;

use persistentvolume_attach_detach_operator::memory::{Memory, Remembered, Report};
use shared::api::intern::Text;
use shared::transport::clock::instant;

use crate::fixtures::{unneeded_for, volume};

#[test]
fn times_run_on_and_the_default_is_forgotten() {
    let (memory, node, start) = (Memory::default(), Text::new("a"), instant());
    memory.remember(&volume(), &node, unneeded_for(2), start);
    let later = start + Duration::from_mins(3);
    assert_eq!(memory.get(&volume(), &node, later), unneeded_for(5));
    assert_eq!(memory.get(&volume(), &Text::new("b"), later), Remembered::default());
    assert_eq!((memory.nodes_of(&volume()), memory.volumes_on(&node)), (vec![node.clone()], vec![volume()]));
    memory.remember(&volume(), &node, Remembered::default(), later);
    assert_eq!((memory.nodes_of(&volume()), memory.volumes_on(&node)), (vec![], vec![]));
}

#[test]
fn an_acknowledgement_is_not_lost_to_a_decision_before_it() {
    let (memory, node, now) = (Memory::default(), Text::new("a"), instant());
    let withdrawn = Remembered { report: Report::Withdrawn, ..Remembered::default() };
    assert!(!memory.acknowledge(&volume(), &node), "nothing was withdrawn");
    memory.remember(&volume(), &node, withdrawn.clone(), now);
    assert!(memory.acknowledge(&volume(), &node) && !memory.acknowledge(&volume(), &node));
    memory.remember(&volume(), &node, withdrawn.clone(), now);
    assert_eq!(memory.get(&volume(), &node, now).report, Report::Acknowledged);
    // Once it was reported again, only another acknowledgement counts.
    memory.remember(&volume(), &node, Remembered { report: Report::Free, ..unneeded_for(0) }, now);
    memory.remember(&volume(), &node, withdrawn, now);
    assert_eq!(memory.get(&volume(), &node, now).report, Report::Withdrawn);
    memory.forget_all();
    assert_eq!(memory.get(&volume(), &node, now), Remembered::default());
}
