//! Assertions that hold for every plan, to call from tests and proptests.
//!
//! Left out: what can only be said with an operator's own types; those properties are in its tests.

use std::fmt::Debug;

/// Asserts that the order in which a cache gives its objects does not change what is decided: every rotation of
/// `items`, forwards and backwards, gives the same.
pub fn order_is_irrelevant<T: Clone, R: PartialEq + Debug>(items: &[T], decide: impl Fn(&[T]) -> R) {
    let first = decide(items);
    let mut reordered = items.to_vec();
    for _ in 0..2 {
        reordered.reverse();
        for _ in items {
            reordered.rotate_left(1);
            assert_eq!(decide(&reordered), first);
        }
    }
}

/// Asserts that carrying out what was planned leaves nothing to plan: `step` plans and applies once and says whether
/// there was anything to do. At most `rounds` rounds may be needed.
pub fn comes_to_rest(rounds: usize, mut step: impl FnMut() -> bool) {
    let busy = (0..rounds).take_while(|_| step()).count();
    assert!(busy < rounds, "still busy after {rounds} rounds");
    assert!(!step(), "busy again after coming to rest");
}
