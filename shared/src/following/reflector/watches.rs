//! How the informers of a controller watch: over the controller's own connections, or together with the other controllers
//! of its process.
//!
//! Left out: lists, which every informer makes over its controller's client.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use tokio::time::Instant;

use super::Stop;
use super::body::Body;
use super::hub::{Follower, Hub, Joined, Subscription};
use super::request::{limit, path};
use crate::api::object::ResourceVersion;
use crate::following::source::Source;
use crate::transport::api_error::ApiError;
use crate::transport::client::{Client, ConfigError};

/// How long a controller that fell behind a shared watch uses a watch of its own, before it tries to join again.
pub(super) const CATCH_UP_LIMIT: Duration = Duration::from_secs(30);

/// The client of a controller, and whether it shares its watches; cheap to clone.
#[derive(Clone)]
pub struct Watches {
    pub(crate) client: Client,
    shared: Option<Shared>,
}

#[derive(Clone)]
struct Shared {
    hub: Hub,
    /// The controller's client, on connections that the hub's thread drives, so that a busy controller delays no other.
    client: Client,
}

/// A watch that has begun.
pub(super) struct Watch<S> {
    pub(super) events: Events<S>,
    pub(super) begun: Instant,
    /// For how long it was asked for.
    pub(super) limit: Duration,
}

impl From<Client> for Watches {
    fn from(client: Client) -> Self {
        Self { client, shared: None }
    }
}

impl Watches {
    /// Shares the watches of this client with others of the hub.
    ///
    /// # Errors
    /// When the connection cannot be set up any more.
    pub(crate) fn shared(client: Client, hub: Hub) -> Result<Self, ConfigError> {
        let shared = Shared { client: client.beside(None)?, hub };
        Ok(Self { client, shared: Some(shared) })
    }

    /// Registers a follower of this form, until it is dropped; none without a hub.
    pub(super) fn follow(&self, source: &Source) -> Option<Follower> {
        self.shared.as_ref().map(|shared| shared.hub.follow(source))
    }

    /// Opens a watch from this version on, or joins a shared one that was requested at `since` or later. A shared watch
    /// may send events from before the version again. Without a version the watch begins with a streamed list and is
    /// never shared, and after `is_behind` it is not shared either.
    pub(super) async fn open(
        &self,
        (source, follower): (&Source, Option<&Follower>),
        version: Option<ResourceVersion>,
        since: Option<Instant>,
        is_behind: bool,
    ) -> Result<Watch<impl Stream<Item = Result<Bytes, ApiError>> + Send + Unpin + use<>>, Stop> {
        let mut limit = limit();
        // A version that is not a number cannot be compared.
        let numbered = version.filter(|version| *version != ResourceVersion::default());
        if let (Some(Shared { client, .. }), Some(follower), Some(version)) = (&self.shared, follower, numbered) {
            let joined = if is_behind { Joined::Behind } else { follower.join(client, source, version, since) };
            match joined {
                Joined::Shared(mut subscription) => {
                    let (begun, limit) = (subscription.begun().await?, subscription.limit());
                    return Ok(Watch { events: Events::Shared(subscription), begun, limit });
                }
                Joined::Alone => {}
                Joined::Behind => {
                    tracing::debug!(resource = %source.resource, "behind the shared watch; watching alone for a while");
                    limit = CATCH_UP_LIMIT;
                }
            }
        }
        let path = path(source, &self.client.spoken(&source.resource), version, limit);
        let stream = self.client.watch(&path, source.accept, &source.resource).await;
        let stream = stream.map_err(|error| match error {
            error if version.is_none() && (error.is_invalid() || error.code() == Some(400)) => Stop::NoStreamingList,
            error => error.into(),
        })?;
        Ok(Watch { events: Events::of(stream), begun: Instant::now(), limit })
    }
}

/// The events of a watch of its own, or of one that is shared.
pub(super) enum Events<S> {
    Own(Body<S>),
    Shared(Subscription),
}

impl<S: Stream<Item = Result<Bytes, ApiError>> + Unpin> Events<S> {
    pub(super) fn of(stream: S) -> Self {
        Self::Own(Body::of(stream))
    }

    pub(super) const fn are_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// The next event; `None` at the end of the watch.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Stop> {
        match self {
            Self::Own(body) => Ok(body.next().await?.map(BytesMut::freeze)),
            Self::Shared(subscription) => subscription.next().await,
        }
    }
}
