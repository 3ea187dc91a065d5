//! Write of a status: throttled if it has nothing new but counts, and retried as upstream retries it.

use std::time::Duration;

use anyhow::Context;

use super::status_throttle::{NEXT_STATUS, StatusThrottle};
use crate::api::object::{Key, ResourceVersion, Uid};
use crate::api::resource::Resource;
use crate::runtime::api_error::ApiError;
use crate::runtime::clock::Clock;
use crate::runtime::control::{Control, Patch, Preconditions, Written};

/// The failures after which a status is written once more, on the live state: its counts are current, whatever changed
/// the object in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// None: the next sync writes the status.
    Never,
    /// A newer version of the object.
    OnConflict,
    /// Every failure.
    OnError,
}

/// The status that a sync wants to write.
#[derive(Debug)]
pub struct NewStatus<'a> {
    /// The object.
    pub key: &'a Key,
    /// The object's identity.
    pub uid: Uid,
    /// The version of the object that the status was decided on.
    pub version: ResourceVersion,
    /// The change.
    pub patch: Patch,
    /// Whether it has nothing new but counts on the way to the end state, and the sync has not failed.
    pub can_wait: bool,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusWrite {
    /// The status is written, with this version.
    Stored(ResourceVersion),
    /// The status is to be written by a sync after this time.
    Waits(Duration),
    /// The object is gone and needs no status.
    Gone,
}

impl StatusWrite {
    /// The timer of the next write.
    pub fn timer(self) -> Option<(Duration, &'static str)> {
        match self {
            Self::Waits(delay) => Some((delay, NEXT_STATUS)),
            Self::Stored(_) | Self::Gone => None,
        }
    }
}

/// Writes the statuses of one kind.
pub struct StatusWriter {
    resource: Resource,
    retry: Retry,
    control: Control,
    clock: Clock,
    throttle: StatusThrottle,
}

impl StatusWriter {
    /// A writer for the objects of this resource.
    pub fn new(resource: Resource, retry: Retry, control: Control, clock: Clock) -> Self {
        Self { resource, retry, control, clock, throttle: StatusThrottle::default() }
    }

    /// Write a status, unless it can wait and has to.
    pub async fn write(&self, status: NewStatus<'_>) -> anyhow::Result<StatusWrite> {
        let NewStatus { key, uid, version, patch, can_wait } = status;
        let wait = self.throttle.wait(key, self.clock.now());
        if let Some(delay) = wait.filter(|_| can_wait) {
            return Ok(StatusWrite::Waits(delay));
        }
        let control = self.control.for_key(key, uid);
        let at = |version| Preconditions { uid, resource_version: Some(version) };
        let written = match control.patch(&self.resource, key, at(version), patch.clone()).await {
            Err(error) if self.is_retried(&error) => {
                tracing::debug!(object = %key, %error, "status not written; retrying on the live state");
                match control.get::<Written>(&self.resource, key).await {
                    Ok(live) => control.patch(&self.resource, key, at(live.metadata.resource_version), patch).await,
                    Err(error) => Err(error),
                }
            }
            written => written,
        };
        match written {
            Ok(Written { metadata }) => {
                self.throttle.wrote(key, self.clock.now());
                Ok(StatusWrite::Stored(metadata.resource_version))
            }
            Err(error) if error.is_not_found() => Ok(StatusWrite::Gone),
            Err(error) => Err(error).context("cannot write the status"),
        }
    }

    fn is_retried(&self, error: &ApiError) -> bool {
        match self.retry {
            Retry::Never => false,
            Retry::OnConflict => error.is_conflict(),
            Retry::OnError => !error.is_not_found(),
        }
    }
}
