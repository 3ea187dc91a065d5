//! Connections: a number at once, few of them from one address, and always a place for one more.
//!
//! The kubelet probes over a new connection each time. So a newcomer is never turned away: where there is no place, one
//! connection is closed for it. That is one of whoever holds most of them, first one that never asked for anything,
//! then the one that asked longest ago.
//! Left out: what a connection is; this knows when to close it, and its server does.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The most connections at once.
const PLACES: usize = 128;
/// The most connections of one address.
const PLACES_OF_ONE: usize = 32;

/// An IPv6 /64 is one host's to choose addresses from, and counts as one.
const PREFIX: u128 = u128::MAX << 64;

/// All open connections; cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Places(Arc<Mutex<Taken>>);

#[derive(Default)]
struct Taken {
    /// By the order in which they came.
    places: BTreeMap<u64, Place>,
    /// Rises with each connection and each request: only the order matters.
    clock: u64,
}

struct Place {
    peer: IpAddr,
    /// When it last asked for something; none if it never did.
    asked: Option<u64>,
    close: CancellationToken,
}

/// A connection's place, until it is dropped.
pub(super) struct Slot {
    places: Places,
    number: u64,
    peer: IpAddr,
    close: CancellationToken,
}

impl Places {
    /// A place for a newcomer from this address. Closes another connection if there is none.
    pub(super) fn take(&self, address: IpAddr) -> Slot {
        let (peer, close) = (peer(address), CancellationToken::new());
        let mut taken = self.taken();
        if let Some(victim) = taken.victim(peer).and_then(|number| taken.places.remove(&number)) {
            tracing::debug!(peer = %victim.peer, newcomer = %peer, "closing a connection for a new one");
            victim.close.cancel();
        }
        let number = taken.tick();
        taken.places.insert(number, Place { peer, asked: None, close: close.clone() });
        Slot { places: self.clone(), number, peer, close }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The connection to close for one more of this peer, if one must be closed.
    fn victim(&self, peer: IpAddr) -> Option<u64> {
        let mut held = BTreeMap::<IpAddr, usize>::new();
        for place in self.places.values() {
            *held.entry(place.peer).or_default() += 1;
        }
        let own = held.get(&peer).copied().unwrap_or_default();
        let gives_way = |place: &Place| {
            if own >= PLACES_OF_ONE { place.peer == peer } else { held.get(&place.peer) == held.values().max() }
        };
        if own < PLACES_OF_ONE && self.places.len() < PLACES {
            return None;
        }
        let candidates = self.places.iter().filter(|(_, place)| gives_way(place));
        candidates.min_by_key(|(number, place)| (place.asked, **number)).map(|(number, _)| *number)
    }
}

impl Slot {
    pub(super) fn peer(&self) -> IpAddr {
        self.peer
    }

    pub(super) fn asked(&self) {
        let mut taken = self.places.taken();
        let now = taken.tick();
        if let Some(place) = taken.places.get_mut(&self.number) {
            place.asked = Some(now);
        }
    }

    pub(super) async fn closed(&self) {
        self.close.cancelled().await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.places.taken().places.remove(&self.number);
    }
}

fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & PREFIX).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBELET: &str = "10.0.0.1";

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn take(places: &Places, from: &str, number: usize) -> Vec<Slot> {
        (0..number).map(|_| places.take(address(from))).collect()
    }

    /// The slots that other connections have now.
    fn closed(slots: &[Slot]) -> Vec<usize> {
        (0..slots.len()).filter(|at| slots[*at].close.is_cancelled()).collect()
    }

    #[test]
    fn one_address_has_so_many_places_and_gives_up_its_own() {
        let places = Places::default();
        let kubelet = take(&places, KUBELET, 1);
        let other = take(&places, "10.0.0.2", PLACES_OF_ONE);
        assert_eq!(closed(&other), [0; 0]);
        other[0].asked();
        let _more = take(&places, "10.0.0.2", 2);
        assert_eq!((closed(&other), closed(&kubelet)), (vec![1, 2], vec![]));
    }

    #[test]
    fn where_all_places_are_taken_whoever_holds_most_gives_up_the_oldest_that_never_asked() {
        let places = Places::default();
        let kubelet = take(&places, KUBELET, 1);
        let most = take(&places, "10.0.0.2", PLACES_OF_ONE);
        let others: Vec<Slot> =
            (3..=5).flat_map(|host| take(&places, &format!("10.0.0.{host}"), PLACES_OF_ONE - 1)).collect();
        let _last = take(&places, "10.0.0.6", PLACES - 1 - most.len() - others.len());
        most[0].asked();
        assert_eq!(closed(&most), [0; 0]);
        let _newcomer = take(&places, KUBELET, 1);
        assert_eq!((closed(&most), closed(&kubelet), closed(&others)), (vec![1], vec![], vec![]));
    }

    #[test]
    fn where_all_have_asked_the_one_that_asked_longest_ago_makes_room() {
        let places = Places::default();
        let slots = take(&places, "10.0.0.2", PLACES_OF_ONE);
        for slot in slots.iter().rev() {
            slot.asked();
        }
        let _newcomer = take(&places, "10.0.0.2", 1);
        assert_eq!(closed(&slots), [PLACES_OF_ONE - 1]);
    }

    #[test]
    fn a_connection_that_ends_leaves_its_place() {
        let places = Places::default();
        let mut slots = take(&places, KUBELET, PLACES_OF_ONE);
        drop(slots.pop());
        let _again = take(&places, KUBELET, 1);
        assert_eq!(closed(&slots), [0; 0]);
        drop(slots);
        assert_eq!(places.taken().places.len(), 1);
    }

    #[test]
    fn the_addresses_of_one_host_count_as_one() {
        for (text, expected) in [
            ("10.0.0.1", "10.0.0.1"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("2001:db8::1", "2001:db8::"),
            ("2001:db8::ffff:ffff:ffff:ffff", "2001:db8::"),
            ("2001:db8:0:1::1", "2001:db8:0:1::"),
        ] {
            assert_eq!(peer(address(text)), address(expected), "{text}");
        }
    }
}
