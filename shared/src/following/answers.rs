//! The apiserver's latest answers to questions that several keys ask: one live read is for all of them.
//!
//! An answer is for the objects that had been seen, in their present state, when it was asked for: to these it says what
//! a question of their own would have said then. An object that came later may be about something that came later, and
//! asks anew.
//! Left out: errors. Whoever waits for an answer that fails asks for itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::api::object::ResourceVersion;
use crate::following::cache::Progress;

/// How long an answer counts: long enough for keys that wait for each other's places, and hardly longer than a read and
/// the write after it may take.
const KEPT: Duration = Duration::from_secs(1);

/// The answers of the last second.
pub struct Answers<Q, A>(Mutex<BTreeMap<Q, Arc<Question<A>>>>);

struct Question<A> {
    asked: Instant,
    /// How far the cache had come of the objects that it is asked for.
    seen: Progress,
    answer: OnceCell<A>,
}

impl<A> Question<A> {
    fn is_new(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.asked) < KEPT
    }

    /// Versions can be compared within one history only, and a list may have begun another one.
    fn is_for(&self, object: ResourceVersion, seen: Progress) -> bool {
        self.seen.list == seen.list && object <= self.seen.resource_version
    }
}

impl<Q, A> Default for Answers<Q, A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<Q: Ord + Clone, A: Clone> Answers<Q, A> {
    /// The answer that `read` gives now, or has given for another object. This one has the version `object`, and its
    /// cache has come as far as `seen`.
    pub async fn ask<E>(
        &self,
        question: &Q,
        object: ResourceVersion,
        seen: Progress,
        read: impl Future<Output = Result<A, E>>,
    ) -> Result<A, E> {
        let asked = self.asked(question, object, seen);
        asked.answer.get_or_try_init(|| read).await.cloned()
    }

    fn asked(&self, question: &Q, object: ResourceVersion, seen: Progress) -> Arc<Question<A>> {
        let (mut questions, now) = (self.questions(), Instant::now());
        questions.retain(|_, asked| asked.is_new(now));
        if let Some(asked) = questions.get(question).filter(|asked| asked.is_for(object, seen)) {
            return Arc::clone(asked);
        }
        let asked = Arc::new(Question { asked: now, seen, answer: OnceCell::new() });
        questions.insert(question.clone(), Arc::clone(&asked));
        asked
    }

    pub fn forget(&self, question: &Q) {
        self.questions().remove(question);
    }

    fn questions(&self) -> MutexGuard<'_, BTreeMap<Q, Arc<Question<A>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const FIRST_LIST: u64 = 1;

    fn seen(version: u64) -> Progress {
        Progress { synced: true, resource_version: ResourceVersion(version), list: FIRST_LIST }
    }

    /// Asks for an object of this version; gives how often the apiserver was asked.
    async fn reads(answers: &Answers<&str, bool>, object: u64, seen: Progress) -> usize {
        let mut reads = 0;
        let read = async {
            reads += 1;
            Ok::<_, ()>(true)
        };
        assert_eq!(answers.ask(&"robot", ResourceVersion(object), seen, read).await, Ok(true));
        reads
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_for_the_objects_that_had_been_seen_and_for_a_second() {
        let answers = Answers::default();
        assert_eq!(reads(&answers, 7, seen(9)).await, 1);
        assert_eq!(reads(&answers, 9, seen(12)).await, 0);
        assert_eq!(reads(&answers, 10, seen(12)).await, 1, "it came after the first question");
        advance(KEPT).await;
        assert_eq!(reads(&answers, 7, seen(12)).await, 1, "the answer is old");
        let restored = Progress { list: FIRST_LIST + 1, ..seen(8) };
        assert_eq!(reads(&answers, 7, restored).await, 1, "the version may be of another history");
        answers.forget(&"robot");
        assert_eq!(reads(&answers, 7, restored).await, 1);
    }

    #[tokio::test]
    async fn who_waits_for_an_answer_that_fails_asks_for_itself() {
        let answers = Answers::default();
        let ask = async |answer| answers.ask(&"robot", ResourceVersion(7), seen(9), async { answer }).await;
        let (failed, asked) = tokio::join!(ask(Err("etcd is down")), ask(Ok(false)));
        assert_eq!((failed, asked), (Err("etcd is down"), Ok(false)));
    }
}
