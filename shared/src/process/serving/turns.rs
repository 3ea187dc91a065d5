//! Places for reviews, taken in turn by the peers that wait for one.
//!
//! Each peer has one request in the line, and its others stand behind that one. So a peer that asks for much waits for
//! itself, and another waits for at most one request of each peer.
//! Left out: a limit on the waiting, which a peer's connections have.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{AcquireError, Mutex as Line, OwnedSemaphorePermit, Semaphore};

pub(super) struct Turns {
    /// First come, first served.
    places: Arc<Semaphore>,
    lines: Mutex<BTreeMap<IpAddr, Arc<Line<()>>>>,
}

impl Turns {
    pub(super) fn new(places: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(places)), lines: Mutex::default() }
    }

    /// A place for this peer, once it is its turn.
    pub(super) async fn take(&self, peer: IpAddr) -> Result<OwnedSemaphorePermit, AcquireError> {
        let line = self.line(peer);
        let _first = line.lock().await;
        Arc::clone(&self.places).acquire_owned().await
    }

    fn line(&self, peer: IpAddr) -> Arc<Line<()>> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|_, line| Arc::strong_count(line) > 1);
        Arc::clone(lines.entry(peer).or_default())
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_peer_waits_for_one_request_of_each_other_peer() {
        let turns = Turns::new(1);
        let [greedy, modest] = [1, 2].map(|host| IpAddr::from([10, 0, 0, host]));
        let taken = turns.take(greedy).await.unwrap();
        let mut crowd: Vec<_> = (0..30).map(|_| Box::pin(turns.take(greedy))).collect();
        for waiting in &mut crowd {
            assert!(waiting.now_or_never().is_none());
        }
        let mut last = Box::pin(turns.take(modest));
        assert!((&mut last).now_or_never().is_none());
        drop(taken);
        assert!((&mut last).now_or_never().is_none(), "it came later");
        drop((&mut crowd[0]).now_or_never().expect("the first of the crowd").unwrap());
        drop((&mut last).now_or_never().expect("before the second of the crowd").unwrap());
        drop((&mut crowd[1]).now_or_never().expect("nobody else waits").unwrap());
    }

    #[tokio::test]
    async fn whoever_leaves_the_line_holds_nobody_up() {
        let turns = Turns::new(1);
        let peer = IpAddr::from([10, 0, 0, 1]);
        let taken = turns.take(peer).await.unwrap();
        let mut leaves = Box::pin(turns.take(peer));
        assert!((&mut leaves).now_or_never().is_none());
        let mut next = Box::pin(turns.take(peer));
        assert!((&mut next).now_or_never().is_none());
        drop((leaves, taken));
        drop((&mut next).now_or_never().expect("a place").unwrap());
        drop(next);
        assert!(turns.take([10, 0, 0, 2].into()).await.is_ok());
        assert_eq!(turns.lines.lock().unwrap().len(), 1, "peers that wait for nothing are forgotten");
    }
}
