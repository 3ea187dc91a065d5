//! The choice of a connection for each request and watch.
//!
//! An apiserver limits the streams of one connection, and a stream above the limit waits until another one ends. A watch
//! ends after minutes, and a write may wait for a slow webhook; until then no other request would be answered.
//!
//! Left out: the server's own limit, which the client library does not expose.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Together two less than an apiserver's default limit (`--http2-max-streams-per-connection`): two streams are reserved
/// for the Lease.
const WATCHES_MAX: usize = 48;
const REQUESTS_MAX: usize = 50;
/// The most requests in flight on all connections: client-go's burst of the busiest controllers.
const IN_FLIGHT_MAX: usize = 500;

pub(super) struct Connections<C> {
    first: C,
    open: Mutex<Vec<Connection<C>>>,
    in_flight: Arc<Semaphore>,
}

struct Connection<C> {
    client: C,
    /// Counts the watches: one reference here, and one for each.
    watches: Arc<()>,
    /// Counts the requests: one reference here, and one for each.
    requests: Arc<()>,
}

/// A reserved stream of a connection, until it is dropped.
#[derive(Default)]
pub(super) struct Place {
    _stream: Arc<()>,
    _permit: Option<OwnedSemaphorePermit>,
}

#[derive(Clone, Copy)]
pub(super) enum Purpose {
    Watch,
    Request,
}

impl<C: Clone> Connections<C> {
    pub(super) fn new(first: C) -> Self {
        let open = vec![Connection { client: first.clone(), watches: Arc::default(), requests: Arc::default() }];
        Self { first, open: Mutex::new(open), in_flight: Arc::new(Semaphore::new(IN_FLIGHT_MAX)) }
    }

    /// A place for one watch and one request, which never wait for others.
    pub(super) fn place_ahead(&self) -> (C, Place) {
        (self.first.clone(), Place::default())
    }

    /// The first connection with a free place, or a new one. A request waits while too many are in flight.
    pub(super) async fn place<E>(
        &self,
        purpose: Purpose,
        connect: impl FnOnce() -> Result<C, E>,
    ) -> Result<(C, Place), E> {
        let permit = match purpose {
            Purpose::Watch => None,
            // It is never closed.
            Purpose::Request => Arc::clone(&self.in_flight).acquire_owned().await.ok(),
        };
        let (client, stream) = self.stream(purpose, connect)?;
        Ok((client, Place { _stream: stream, _permit: permit }))
    }

    fn stream<E>(&self, purpose: Purpose, connect: impl FnOnce() -> Result<C, E>) -> Result<(C, Arc<()>), E> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = open.iter().find_map(|connection| connection.place(purpose)) {
            return Ok(place);
        }
        let connection = Connection { client: connect()?, watches: Arc::default(), requests: Arc::default() };
        let streams = connection.streams(purpose).0;
        let place = (connection.client.clone(), Arc::clone(streams));
        open.push(connection);
        Ok(place)
    }
}

impl<C: Clone> Connection<C> {
    fn streams(&self, purpose: Purpose) -> (&Arc<()>, usize) {
        match purpose {
            Purpose::Watch => (&self.watches, WATCHES_MAX),
            Purpose::Request => (&self.requests, REQUESTS_MAX),
        }
    }

    fn place(&self, purpose: Purpose) -> Option<(C, Arc<()>)> {
        let (streams, max) = self.streams(purpose);
        (Arc::strong_count(streams) <= max).then(|| (self.client.clone(), Arc::clone(streams)))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_connection_has_so_many_watches_and_the_next_one_has_the_rest() {
        let connections = Connections::new(0);
        let watch = |connected: Option<u32>| {
            let connect = || connected.ok_or("no connection is needed");
            connections.place(Purpose::Watch, connect).now_or_never().unwrap().unwrap()
        };
        let mut first: Vec<_> = (0..WATCHES_MAX).map(|_| watch(None)).collect();
        assert!(first.iter().all(|(client, _)| *client == 0));
        let second: Vec<_> = (0..WATCHES_MAX).map(|at| watch((at == 0).then_some(1))).collect();
        assert!(second.iter().all(|(client, _)| *client == 1));
        // Where a watch ends there is a place again.
        first.pop();
        let (again, _place) = watch(None);
        assert_eq!((again, watch(Some(2)).0), (0, 2));
    }

    #[test]
    fn requests_have_places_beside_the_watches_and_wait_where_too_many_are_under_way() {
        let connections = Connections::new(0);
        let watch = || connections.place(Purpose::Watch, || Err("down")).now_or_never().unwrap();
        let _watches: Vec<_> = (0..WATCHES_MAX).map(|_| watch().unwrap()).collect();
        let mut made = 0;
        let mut request = || {
            let connect = || {
                made += 1;
                Ok::<_, &str>(made)
            };
            connections.place(Purpose::Request, connect).now_or_never().map(Result::unwrap)
        };
        let mut under_way: Vec<_> = (0..IN_FLIGHT_MAX).map(|_| request().unwrap()).collect();
        let of = |connection: i32| under_way.iter().filter(|(client, _)| *client == connection).count();
        assert_eq!((of(0), of(1), of(9)), (REQUESTS_MAX, REQUESTS_MAX, REQUESTS_MAX));
        assert!(request().is_none(), "it waits");
        under_way.truncate(1);
        assert_eq!(request().unwrap().0, 0, "a place that is free again");
    }

    #[test]
    fn what_goes_ahead_has_a_place_in_the_first_connection_however_many_are_taken() {
        let connections = Connections::new(0);
        let place = |purpose| connections.place(purpose, || Ok::<_, &str>(1)).now_or_never().map(Result::unwrap);
        let _watches: Vec<_> = (0..WATCHES_MAX).map(|_| place(Purpose::Watch).unwrap()).collect();
        let _requests: Vec<_> = (0..IN_FLIGHT_MAX).map(|_| place(Purpose::Request).unwrap()).collect();
        assert!(place(Purpose::Request).is_none());
        assert_eq!(connections.place_ahead().0, 0);
        const { assert!(WATCHES_MAX + REQUESTS_MAX + 2 <= 100, "an apiserver allows so many streams") };
    }

    #[test]
    fn a_connection_that_cannot_be_made_takes_no_place() {
        let connections = Connections::new(0);
        let watch = |connected| connections.place(Purpose::Watch, || connected).now_or_never().unwrap();
        let _places: Vec<_> = (0..WATCHES_MAX).map(|_| watch(Err("down")).unwrap()).collect();
        assert_eq!(watch(Err("down")).err(), Some("down"));
        assert_eq!(watch(Ok(1)).unwrap().0, 1);
    }
}
