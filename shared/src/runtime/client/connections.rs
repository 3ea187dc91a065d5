//! Which connection a watch goes over: an apiserver lets a client have so many streams on one connection, and what is
//! beyond waits for one of them to end. A watch does so after minutes, and until then nothing else would be answered, not
//! even the renewal of the Lease.
//!
//! Left out: the server's own limit, which the client library does not tell; and connections for requests, which end soon.

use std::sync::{Arc, Mutex, PoisonError};

/// Half of what an apiserver allows unless it is told otherwise (`--http2-max-streams-per-connection`), so that requests
/// have the other half of the first connection.
const WATCHES_MAX: usize = 50;

/// Connections, the first of which is for requests, too.
pub(super) struct Connections<C>(Mutex<Vec<Connection<C>>>);

struct Connection<C> {
    client: C,
    /// Held once by this, and once by each watch.
    watches: Seat,
}

/// A watch's place in a connection, until it is dropped.
pub(super) type Seat = Arc<()>;

impl<C: Clone> Connections<C> {
    pub(super) fn new(first: C) -> Self {
        Self(Mutex::new(vec![Connection { client: first, watches: Arc::default() }]))
    }

    /// The first connection that has a place, or a new one.
    pub(super) fn seat<E>(&self, connect: impl FnOnce() -> Result<C, E>) -> Result<(C, Seat), E> {
        let mut connections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_place = |connection: &&Connection<C>| Arc::strong_count(&connection.watches) <= WATCHES_MAX;
        if let Some(Connection { client, watches }) = connections.iter().find(has_place) {
            return Ok((client.clone(), Arc::clone(watches)));
        }
        let (client, seat) = (connect()?, Seat::default());
        connections.push(Connection { client: client.clone(), watches: Arc::clone(&seat) });
        Ok((client, seat))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_so_many_watches_and_the_next_one_has_the_rest() {
        let connections = Connections::new(0);
        let seat = |connected: Option<u32>| connections.seat(|| connected.ok_or("no connection is needed")).unwrap();
        let mut first: Vec<_> = (0..WATCHES_MAX).map(|_| seat(None)).collect();
        assert!(first.iter().all(|(client, _)| *client == 0));
        let second: Vec<_> = (0..WATCHES_MAX).map(|at| seat((at == 0).then_some(1))).collect();
        assert!(second.iter().all(|(client, _)| *client == 1));
        // Where a watch ends there is a place again.
        first.pop();
        let (again, _seat) = seat(None);
        assert_eq!((again, seat(Some(2)).0), (0, 2));
    }

    #[test]
    fn a_connection_that_cannot_be_made_takes_no_place() {
        let connections = Connections::new(0);
        let _seats: Vec<_> = (0..WATCHES_MAX).map(|_| connections.seat(|| Err("down")).unwrap()).collect();
        assert_eq!(connections.seat(|| Err("down")).err(), Some("down"));
        assert_eq!(connections.seat(|| Ok::<_, &str>(1)).unwrap().0, 1);
    }
}
