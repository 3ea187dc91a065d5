//! One watch for several controllers of a process that follow the same resource in the same form.
//!
//! Each controller lists by itself, as its own account. Then it joins the shared watch, or opens it, and reads events at its
//! own pace. A controller that falls behind uses a watch of its own until it has caught up. The only follower of a form
//! does so always, because a shared watch needs a second connection.
//! Left out: decoding, because controllers keep different fields; errors and expired versions, after which a shared watch
//! ends and each reflector does what it does without a hub.
//!
//! See docs/decisions/0015-shared-watches.md.

mod ring;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::time::Instant;

use self::ring::{Ending, SharedWatch};
use super::body::Body;
use super::request::{limit, path};
use crate::api::object::ResourceVersion;
use crate::api::resource::Resource;
use crate::following::source::Source;
use crate::transport::client::{Accept, Client};
pub(super) use ring::Subscription;

/// The shared watches of a process; cheap to clone.
#[derive(Clone)]
pub(crate) struct Hub(Arc<State>);

struct State {
    /// Reads the watches, independently of the controllers' threads.
    runtime: Handle,
    followed: Mutex<BTreeMap<Form, Followed>>,
}

/// What must be the same for two controllers to share a watch.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    /// Resource, namespace and selectors.
    path: String,
    accept: Accept,
}

/// The followers of a form and their watch.
#[derive(Default)]
struct Followed {
    followers: usize,
    /// The watch to join.
    watch: Option<Arc<SharedWatch>>,
}

/// A follower of a form, until this is dropped.
pub(super) struct Follower {
    hub: Hub,
    form: Form,
}

/// How a follower has to watch.
pub(super) enum Joined {
    /// The shared watch, with all events after the version and some before it.
    Shared(Subscription),
    /// There is no other follower.
    Alone,
    /// The shared watch no longer has the events after the version.
    Behind,
}

impl Hub {
    /// A hub whose watches this runtime reads.
    pub(crate) fn new(runtime: Handle) -> Self {
        Self(Arc::new(State { runtime, followed: Mutex::default() }))
    }

    pub(super) fn follow(&self, source: &Source) -> Follower {
        let form =
            Form { path: source.watch_path(&source.resource, &[]), accept: source.accept.of_watch(&source.resource) };
        self.followed().entry(form.clone()).or_default().followers += 1;
        Follower { hub: self.clone(), form }
    }

    fn followed(&self) -> MutexGuard<'_, BTreeMap<Form, Followed>> {
        self.0.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower {
    /// Whether the form has other followers.
    pub(super) fn is_shared(&self) -> bool {
        self.hub.followed().get(&self.form).is_some_and(|followed| followed.followers > 1)
    }

    /// Joins the shared watch from this version on, if it was requested at `since` or later. If there is none, this client
    /// opens it.
    pub(super) fn join(
        &self,
        client: &Client,
        source: &Source,
        version: ResourceVersion,
        since: Option<Instant>,
    ) -> Joined {
        let mut followed = self.hub.followed();
        let Followed { followers, watch } = followed.entry(self.form.clone()).or_default();
        let known = watch.take().filter(|watch| !watch.has_ended());
        if let Some(known) = known.filter(|known| since.is_none_or(|since| known.asked() >= since)) {
            let joined = known.join(version);
            *watch = Some(known);
            return joined.map_or(Joined::Behind, Joined::Shared);
        }
        if *followers < 2 {
            return Joined::Alone;
        }
        let limit = limit();
        let (opened, subscription) = SharedWatch::open(version, limit);
        let reading = read(
            Ending::of(&opened),
            client.clone(),
            path(source, &client.spoken(&source.resource), Some(version), limit),
            (source.accept, source.resource.clone()),
        );
        opened.is_read_by(self.hub.0.runtime.spawn(reading).abort_handle());
        *watch = Some(opened);
        Joined::Shared(subscription)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut followed = self.hub.followed();
        let Some(of_form) = followed.get_mut(&self.form) else { return };
        of_form.followers -= 1;
        if of_form.followers == 0 {
            followed.remove(&self.form);
        }
    }
}

/// Reads a watch to its end. [`Ending`] ends it after a panic too, because its subscribers would wait for ever.
async fn read(watch: Ending, client: Client, path: String, (accept, resource): (Accept, Resource)) {
    let stop = match client.watch(&path, accept, &resource).await {
        Err(error) => Some(error.into()),
        Ok(stream) => {
            watch.begins();
            let mut events = Body::of(stream);
            loop {
                match events.next().await {
                    Ok(Some(event)) => watch.push(&event),
                    Ok(None) => break None,
                    Err(stop) => break Some(stop),
                }
            }
        }
    };
    watch.end(stop);
}

#[cfg(test)]
mod tests;
