//! Turns to read owners: an object may name thousands that do not exist, each of which costs reads. A worker reads some
//! of them and goes on with other objects; the object waits for its next turn and keeps what it has learned.
//!
//! Upstream has 40 requests a second for everything that the collector does; here only such reads have a limit.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shared::api::object::Uid;
use tokio::time::Instant;

/// How many owners an object reads at once, whatever others read.
pub(crate) const FREE: usize = 10;
/// How many owners are read in one turn.
pub(crate) const IN_A_TURN: usize = 100;
/// All turns together have 100 reads a second.
const READ: Duration = Duration::from_millis(10);
/// Turns of which nobody made use for so long are still there.
const UNUSED: Duration = Duration::from_secs(1);

/// The turns of all objects; `L` is what an object learned in those before.
pub(crate) struct Turns<L>(Mutex<State<L>>);

struct State<L> {
    over: Option<Instant>,
    waiting: BTreeMap<Uid, Waiting<L>>,
    /// The objects that no monitor has seen and of which only such objects speak, each of which waits to be read itself.
    unseen: BTreeMap<Uid, Instant>,
}

struct Waiting<L> {
    turn: Instant,
    learned: L,
}

impl<L> Default for Turns<L> {
    fn default() -> Self {
        Self(Mutex::new(State { over: None, waiting: BTreeMap::new(), unseen: BTreeMap::new() }))
    }
}

impl<L> State<L> {
    /// The time at which so many reads may begin.
    fn promise(&mut self, reads: usize, now: Instant) -> Instant {
        let unused = now.checked_sub(UNUSED).unwrap_or(now);
        let begin = self.over.map_or(unused, |over| over.max(unused));
        let over = begin + READ * u32::try_from(reads).unwrap_or(u32::MAX);
        self.over = Some(over);
        begin.max(now)
    }
}

impl<L: Default> Turns<L> {
    fn state(&self) -> MutexGuard<'_, State<L>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long an object still waits for its turn.
    pub(crate) fn wait(&self, uid: Uid) -> Option<Duration> {
        let turn = self.state().waiting.get(&uid)?.turn;
        left(turn)
    }

    /// The same of an object that no monitor has seen, which takes a turn of one read if it has none.
    pub(crate) fn wait_unseen(&self, uid: Uid) -> Option<Duration> {
        let mut state = self.state();
        let turn = match state.unseen.get(&uid) {
            Some(turn) => *turn,
            None => state.promise(1, Instant::now()),
        };
        let wait = left(turn);
        match wait {
            Some(_) => state.unseen.insert(uid, turn),
            None => state.unseen.remove(&uid),
        };
        wait
    }

    /// Begins a turn: how many owners the object may read, and what it has learned before.
    pub(crate) fn begin(&self, uid: Uid) -> (usize, L) {
        match self.state().waiting.remove(&uid) {
            Some(Waiting { learned, turn: _ }) => (IN_A_TURN, learned),
            None => (FREE, L::default()),
        }
    }

    pub(crate) fn take(&self, uid: Uid, learned: L) {
        let mut state = self.state();
        let turn = state.promise(IN_A_TURN, Instant::now());
        state.waiting.insert(uid, Waiting { turn, learned });
    }

    /// How long an object waits for either turn.
    pub(crate) fn left(&self, uid: Uid) -> Duration {
        let state = self.state();
        let turns = [state.waiting.get(&uid).map(|waiting| waiting.turn), state.unseen.get(&uid).copied()];
        turns.into_iter().flatten().filter_map(left).max().unwrap_or_default()
    }

    pub(crate) fn forget(&self, uid: Uid) {
        let mut state = self.state();
        state.waiting.remove(&uid);
        state.unseen.remove(&uid);
    }
}

fn left(turn: Instant) -> Option<Duration> {
    Some(turn.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn object(number: u64) -> Uid {
        Uid::parse(&format!("00000000-0000-4000-8000-{number:012}"))
    }

    #[tokio::test(start_paused = true)]
    async fn objects_that_name_many_owners_take_turns_and_keep_what_they_know() {
        let turns = Turns::default();
        advance(UNUSED * 2).await;
        let [a, b] = [1, 2].map(object);
        assert_eq!(turns.begin(a), (FREE, Vec::new()));
        turns.take(a, vec!["a"]);
        assert_eq!(turns.left(a), Duration::ZERO, "nobody reads");
        assert_eq!(turns.begin(a), (IN_A_TURN, vec!["a"]));
        turns.take(a, vec!["a", "b"]);
        assert_eq!(turns.left(a), Duration::ZERO, "nobody has read for a while");
        turns.take(b, Vec::new());
        assert_eq!(turns.left(b), Duration::from_secs(1));
        assert_eq!((turns.wait(a), turns.wait(b)), (None, Some(Duration::from_secs(1))));
        advance(Duration::from_secs(1)).await;
        assert_eq!(turns.wait(b), None);
        assert_eq!(turns.begin(a), (IN_A_TURN, vec!["a", "b"]));
    }

    #[tokio::test(start_paused = true)]
    async fn objects_that_nobody_has_seen_share_the_same_reads() {
        let turns = Turns::<()>::default();
        advance(UNUSED).await;
        let waits: Vec<_> = (0..200).map(|number| turns.wait_unseen(object(number))).collect();
        assert!(waits[..=100].iter().all(Option::is_none), "{waits:?}");
        assert_eq!((waits[101], waits[199]), (Some(READ), Some(READ * 99)));
        assert_eq!(turns.left(object(199)), READ * 99);
        turns.take(object(500), ());
        assert_eq!(turns.left(object(500)), Duration::from_secs(1));
        advance(READ * 99).await;
        assert_eq!(turns.wait_unseen(object(199)), None);
        turns.forget(object(150));
        assert_eq!(turns.wait(object(500)), Some(READ));
        turns.forget(object(500));
        assert_eq!(turns.begin(object(500)), (FREE, ()));
    }
}
