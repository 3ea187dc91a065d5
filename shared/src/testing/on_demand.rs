//! Tests for each resource that an operator follows on demand: it is followed only while an object needs it, nothing
//! is decided before its first list, and an object that comes again finds what is its own.
//!
//! Left out: watches that stand still, break or expire while an object works with them. What an operator must not do
//! meanwhile is said in its own words.

use std::time::Duration;

use super::apiserver::Server;
use super::objects::ObjectBuilder;
use super::running::{Running, start_at_rest};
use crate::process::run::Operator;

/// How a list can fail.
const REFUSALS: [(u16, &str); 3] = [(403, "Forbidden"), (500, "InternalError"), (410, "Expired")];

/// Shorter than a watch outlives its last need, and longer.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_mins(7), Duration::from_mins(60)];

/// After this long the last need of a watch is forgotten.
const FORGOTTEN: Duration = Duration::from_mins(6);

/// Long enough for a timer of a minute.
const SETTLING: Duration = Duration::from_secs(90);

/// The reads of `resource`, which may say where (`pods default/`), begin with the object that `add` adds, and end after
/// `remove`, each time.
///
/// # Panics
/// Where that does not hold.
pub async fn is_followed_only_while_needed<O: Operator>(
    server: &Server,
    resource: &str,
    add: impl Fn(&Server),
    remove: impl Fn(&Server),
) {
    let plural = resource.split(' ').next().unwrap_or_default();
    let reads_since = |before: usize| {
        let is_read = |line: &String| {
            line.split_once(' ').is_some_and(|(verb, target)| {
                ["list", "watch"].contains(&verb) && target.split(' ').next() == Some(plural)
            })
        };
        server.requests().into_iter().filter(is_read).skip(before).collect::<Vec<String>>()
    };
    let running = start_at_rest::<O>(server, &[]).await;
    assert_eq!(reads_since(0), [""; 0], "nobody needs {plural} yet");
    for _ in 0..2 {
        let before = reads_since(0).len();
        add(server);
        running.pass(SETTLING).await;
        assert_eq!(reads_since(before), ["list", "watch"].map(|verb| format!("{verb} {resource}")));
        remove(server);
        running.pass(FORGOTTEN).await;
        let before = reads_since(0).len();
        running.pass(Duration::from_mins(30)).await;
        assert_eq!(reads_since(before), [""; 0], "nobody needs {plural} any more");
    }
}

/// The first object that needs `resource`, which `add` adds, waits until a list succeeds, however often one fails: an
/// empty cache would say that there is nothing. `then` asserts what becomes of the object.
///
/// # Panics
/// Where that does not hold.
pub async fn the_first_one_waits<O: Operator>(
    flags: &[&str],
    resource: &str,
    add: impl Fn(&Server),
    then: impl Fn(&Server),
) {
    for (code, reason) in REFUSALS {
        let server = Server::new();
        let running = start_at_rest::<O>(&server, flags).await;
        let refused = server.on("list", resource).answer(code, reason, "no");
        add(&server);
        running.pass(SETTLING).await;
        assert!(refused.count() > 1, "{resource} are asked for again: {reason}");
        assert_eq!(server.writes(), [""; 0], "nothing is known of {resource} yet: {reason}");
        refused.times(0);
        running.pass(SETTLING).await;
        then(&server);
    }
}

/// An object (`("deployments", "default/web")`) is deleted, and added again as it was; `meanwhile` happens when nobody
/// needs what the object needs. `then` asserts what holds when it has been there for `settling`.
///
/// # Panics
/// Where that does not hold.
pub async fn it_goes_and_comes_again(
    (server, running): (&Server, &Running),
    (resource, key): (&str, &str),
    meanwhile: impl Fn(&Server),
    settling: Duration,
    then: impl Fn(&Server, Duration),
) {
    for pause in PAUSES {
        #[expect(clippy::unwrap_used, reason = "a test that names what is not there is broken")]
        let object = server.get(resource, key).unwrap();
        server.delete(resource, key);
        running.pass(pause).await;
        meanwhile(server);
        server.add(&ObjectBuilder::of(object));
        running.pass(settling).await;
        then(server, pause);
    }
}
