//! Every write of an operator: create, delete, evict, patch, replace; adoption and release; many identical writes at
//! once. And live reads, and the question whether somebody else may do something.
//!
//! A write names the state it was decided on ([`Preconditions`]) and the key whose sync made it. That key is not synced
//! again before the caches have seen the write.
//! Left out: deciding anything, retries (the queue's), and leases and events, which have modules of their own.

mod key;
mod metadata;
mod options;
mod patch;
pub(crate) mod review;

use std::sync::Arc;

use futures::stream::{self, Buffered, Collect, Iter, StreamExt};
use http::Method;

use crate::api::object::{Key, Object, Uid};
use crate::api::resource::Resource;
use crate::api::url::{is_segment, segment};
use crate::transport::api_error::ApiError;
use crate::transport::client::Client;
use crate::working::consistency::Consistency;
use crate::working::decisions::Decisions;

pub use crate::transport::pages::{Rest, Selection};
pub use crate::working::consistency::Written;
pub use key::KeyControl;
pub use options::{DeleteOptions, Preconditions, Propagation};
pub use patch::Patch;
pub use review::AccessStatus;

/// Reads and writes of one controller; cheap to clone.
#[derive(Clone)]
pub struct Control {
    client: Client,
    consistency: Arc<Consistency>,
    decisions: Decisions,
}

impl Control {
    /// Writes through this client, which sends nothing while another replica may lead (`Client::behind`), and
    /// notes each write with the decisions of the same queue.
    pub fn new(client: Client, consistency: Arc<Consistency>, decisions: Decisions) -> Self {
        Self { client, consistency, decisions }
    }

    /// Writes for the sync of this key, whose object has this uid.
    pub fn for_key<'a>(&'a self, key: &'a Key, uid: Uid) -> KeyControl<'a> {
        KeyControl { control: self, key, uid }
    }

    /// Writes for the sync of a key whose object, if it has one, owns nothing that it creates.
    pub fn for_name<'a>(&'a self, key: &'a Key) -> KeyControl<'a> {
        self.for_key(key, Uid::default())
    }

    /// Forgets the writes for a key whose object is gone; with a uid, only those for that object.
    pub fn forget(&self, key: &Key, uid: Option<Uid>) {
        self.consistency.forget(key, uid);
    }

    /// The record of writes by key.
    pub fn consistency(&self) -> &Arc<Consistency> {
        &self.consistency
    }

    /// Refuses a write to a cloud where a write to the apiserver would be refused: in a shadow, which notes it as
    /// `create routes.cloud node-a`, and while another replica may lead.
    pub fn allow(&self, write: Elsewhere, resource: &str, name: &str) -> Result<(), ApiError> {
        let method = match write {
            Elsewhere::Create => Method::POST,
            Elsewhere::Delete => Method::DELETE,
        };
        self.client.may_write(method, &format!("/apis/cloud/v1/{resource}/{}", segment(name)))
    }

    /// The path of an object, or of its subresource, in the version that the apiserver serves.
    fn path(&self, resource: &Resource, key: &Key, subresource: &str) -> String {
        self.client.spoken(resource).object_path(key.namespace(), key.name(), subresource)
    }

    /// The path of a live read. The name may come from a field of another object, where the apiserver takes any text.
    fn read_path(&self, resource: &Resource, key: &Key, subresource: &str) -> Result<String, ApiError> {
        // The name of a cluster-wide object is the whole key, which takes a part before a slash for a namespace.
        let name = if resource.namespaced { key.name().to_owned() } else { key.to_string() };
        if is_segment(&name) { Ok(self.path(resource, key, subresource)) } else { Err(ApiError::InvalidName(name)) }
    }

    /// A live read: the newest state, past every cache.
    pub async fn get<T: Object>(&self, resource: &Resource, key: &Key) -> Result<T, ApiError> {
        self.client.get(&self.read_path(resource, key, "")?).await
    }
}

/// A write that is not the apiserver's, such as one of a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    Create,
    Delete,
}

/// The objects that the owner controls after [`KeyControl::claim`].
#[derive(Debug)]
pub struct Claimed<T> {
    /// The objects that were owned or adopted, by key, as the cache has them.
    pub objects: Vec<Arc<T>>,
    /// The errors of patches that failed; the others were still sent.
    pub errors: Vec<anyhow::Error>,
}

/// One error that holds all of these, or none.
pub fn aggregate(errors: Vec<anyhow::Error>) -> anyhow::Result<()> {
    let mut errors = errors.into_iter();
    let Some(first) = errors.next() else { return Ok(()) };
    let rest: Vec<String> = errors.map(|error| format!("{error:#}")).collect();
    if rest.is_empty() {
        Err(first)
    } else {
        Err(first.context(format!("and {} more: {}", rest.len(), rest.join("; "))))
    }
}

/// How a slow start ended.
#[derive(Debug)]
pub struct SlowStart<T, E> {
    pub succeeded: Vec<T>,
    pub failed: Vec<E>,
    /// How many calls were not made after a batch with a failure.
    pub skipped: usize,
}

/// The most calls in a batch of a slow start.
///
/// Upstream: `MaxBatchSize`, `pkg/controller/statefulset/stateful_set_control.go`.
const BATCH_MAX: usize = 500;

/// How many calls of many are under way at a time. An apiserver works on fewer at once, and each that waits has its
/// body and its buffers in memory.
const AT_ONCE: usize = 100;

/// The bodies of the calls of a slow start that are under way together have at most about this many bytes.
const BODIES_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Calls that are made [`together`].
pub type Together<F> = Collect<Buffered<Iter<std::vec::IntoIter<F>>>, Vec<<F as Future>::Output>>;

/// Makes calls that do not depend on each other. Gives their results in order.
pub fn together<F: Future>(calls: impl IntoIterator<Item = F>) -> Together<F> {
    so_many_together(AT_ONCE, calls)
}

fn so_many_together<F: Future>(at_once: usize, calls: impl IntoIterator<Item = F>) -> Together<F> {
    let calls: Vec<F> = calls.into_iter().collect();
    stream::iter(calls).buffered(at_once).collect()
}

/// Makes `count` calls in batches of 1, 2, 4, …, the calls of a batch [together], and stops after a batch with a failure:
/// where all calls fail alike, such as by a quota, the server sees a few and not hundreds. Where each makes a body of its
/// own of about `body_bytes`, fewer are under way.
///
/// Upstream: `slowStartBatch`, `pkg/controller/replicaset/replica_set.go`.
pub async fn slow_start<T, E, F>(count: usize, body_bytes: usize, mut call: impl FnMut(usize) -> F) -> SlowStart<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let at_once = (BODIES_BYTES_MAX / body_bytes.max(1)).clamp(1, AT_ONCE);
    let mut outcome = SlowStart { succeeded: Vec::new(), failed: Vec::new(), skipped: 0 };
    let (mut done, mut batch) = (0, 1);
    while done < count && outcome.failed.is_empty() {
        let end = count.min(done + batch);
        for result in so_many_together(at_once, (done..end).map(&mut call)).await {
            match result {
                Ok(made) => outcome.succeeded.push(made),
                Err(error) => outcome.failed.push(error),
            }
        }
        (done, batch) = (end, BATCH_MAX.min(batch * 2));
    }
    outcome.skipped = count - done;
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::resource::{PERSISTENT_VOLUMES, PODS};
    use crate::process::leader::Term;
    use crate::transport::api_error::ResultExt;
    use crate::transport::client::ClientOptions;
    use crate::working::consistency::Watched;
    use anyhow::anyhow;
    use futures::FutureExt;
    use serde::de::IgnoredAny;
    use tokio::time::Instant;

    #[track_caller]
    fn check(count: usize, limit: usize, expected: (usize, usize, usize)) {
        let started = std::cell::Cell::new(0);
        let outcome = slow_start(count, 0, |_| {
            started.set(started.get() + 1);
            let result = if started.get() <= limit { Ok(()) } else { Err(()) };
            async move { result }
        })
        .now_or_never()
        .unwrap();
        assert_eq!((outcome.succeeded.len(), outcome.failed.len(), outcome.skipped), expected);
    }

    #[test]
    fn a_slow_start_stops_after_a_batch_with_a_failure() {
        check(0, 0, (0, 0, 0));
        check(10, 10, (10, 0, 0));
        check(10, 0, (0, 1, 9));
        check(10, 2, (2, 1, 7));
        check(100, 10, (10, 5, 85));
        // After 1 + 2 + … + 256 calls, 500 at once.
        check(2000, 1100, (1100, 411, 489));
    }

    #[tokio::test]
    async fn fewer_calls_with_large_bodies_are_under_way() {
        for (body_bytes, expected) in
            [(0, AT_ONCE), (BODIES_BYTES_MAX / 1000, AT_ONCE), (BODIES_BYTES_MAX / 10, 10), (usize::MAX, 1)]
        {
            let (now, most) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
            let call = async |_| {
                now.set(now.get() + 1);
                most.set(now.get().max(most.get()));
                tokio::task::yield_now().await;
                now.set(now.get() - 1);
                Ok::<(), ()>(())
            };
            let outcome = slow_start(1000, body_bytes, call).await;
            assert_eq!((outcome.succeeded.len(), most.get()), (1000, expected));
        }
    }

    /// Reads and writes while `term` lasts, of an apiserver that nobody reaches.
    fn unreached(term: Term) -> Control {
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = Client::new(&config, ClientOptions::default()).unwrap().behind(term);
        let consistency = Arc::new(Consistency::new(client.clone(), Watched::default()));
        Control::new(client, consistency, Decisions::default())
    }

    #[tokio::test]
    async fn what_no_object_can_be_named_is_absent_without_a_request() {
        let control = unreached(Term::of_test(None));
        for (resource, namespace, name, is_absent) in [
            (&PODS, "ns", "web", false),
            (&PODS, "ns", "web/log", true),
            (&PODS, "ns", "..", true),
            (&PODS, "ns", "", true),
            (&PERSISTENT_VOLUMES, "", "a", false),
            (&PERSISTENT_VOLUMES, "", "a/b", true),
            (&PERSISTENT_VOLUMES, "", "", true),
        ] {
            let read = control.get_metadata::<IgnoredAny>(resource, &Key::new(namespace, name)).await;
            let found = read.unless_absent();
            assert_eq!(matches!(found, Ok(None)), is_absent, "{namespace} {name}: {:?}", found.err());
        }
    }

    #[tokio::test]
    async fn a_write_elsewhere_is_refused_while_another_replica_may_lead() {
        let allowed = |term: Term| unreached(term).allow(Elsewhere::Delete, "routes", "a");
        assert!(matches!(allowed(Term::of_test(None)), Err(ApiError::NotLeading)));
        assert!(allowed(Term::of_test(Some(Instant::now()))).is_ok());
    }

    #[test]
    fn an_aggregate_says_all() {
        assert!(aggregate(Vec::new()).is_ok());
        let error = aggregate(vec![anyhow!("a"), anyhow!("b"), anyhow!("c")]).unwrap_err();
        assert_eq!(format!("{error:#}"), "and 2 more: b; c: a");
    }
}
