//! Write of a status: throttled if it has nothing new but counts, and retried as upstream retries it.

use std::time::Duration;

use anyhow::Context;

use super::status_throttle::{NEXT_STATUS, StatusThrottle};
use crate::api::object::{Key, ResourceVersion, Uid};
use crate::api::resource::Resource;
use crate::transport::api_error::{ApiError, ResultExt};
use crate::working::context::ControllerContext;
use crate::working::control::{Patch, Preconditions, Written};

/// The failures after which a status is written once more, on the live state: its counts are current, whatever changed
/// the object in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// None: the next sync writes the status.
    Never,
    OnConflict,
    OnError,
}

#[derive(Debug)]
pub struct NewStatus<'a> {
    pub key: &'a Key,
    pub uid: Uid,
    /// The version of the object that the status was decided on.
    pub version: ResourceVersion,
    pub patch: Patch,
    /// Whether it has nothing new but counts on the way to the end state, and the sync has not failed.
    pub can_wait: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusWrite {
    Stored(ResourceVersion),
    /// The status is to be written by a sync after this time.
    Waits(Duration),
    Gone,
}

impl StatusWrite {
    pub fn timer(self) -> Option<(Duration, &'static str)> {
        match self {
            Self::Waits(delay) => Some((delay, NEXT_STATUS)),
            Self::Stored(_) | Self::Gone => None,
        }
    }
}

pub struct StatusWriter {
    resource: Resource,
    retry: Retry,
    ctx: ControllerContext,
    throttle: StatusThrottle,
}

impl StatusWriter {
    pub fn new(resource: Resource, retry: Retry, ctx: ControllerContext) -> Self {
        Self { resource, retry, ctx, throttle: StatusThrottle::default() }
    }

    /// Write a status, unless it can wait and has to.
    pub async fn write(&self, status: NewStatus<'_>) -> anyhow::Result<StatusWrite> {
        let NewStatus { key, uid, version, patch, can_wait } = status;
        let wait = self.throttle.wait(key, self.ctx.now());
        if let Some(delay) = wait.filter(|_| can_wait) {
            return Ok(StatusWrite::Waits(delay));
        }
        let control = self.ctx.for_key(key, uid);
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
        let Some(Written { metadata }) = written.unless_gone().context("cannot write the status")? else {
            return Ok(StatusWrite::Gone);
        };
        self.throttle.wrote(key, self.ctx.now());
        Ok(StatusWrite::Stored(metadata.resource_version))
    }

    fn is_retried(&self, error: &ApiError) -> bool {
        match self.retry {
            Retry::Never => false,
            Retry::OnConflict => error.is_conflict(),
            Retry::OnError => !error.is_not_found(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use http::Method;

    use super::*;
    use crate::api::resource::REPLICA_SETS;
    use crate::process::serving::loopback;
    use crate::testing::NOW;
    use crate::transport::client::{Client, ClientOptions};
    use crate::transport::clock::Clock;
    use crate::working::consistency::{Consistency, Watched};
    use crate::working::control::Control;
    use crate::working::decisions::Decisions;
    use crate::working::events::Recorder;

    /// A writer, and the methods of its requests. The server answers patches with these codes, in order, and then 200.
    async fn writer(retry: Retry, codes: &[u16]) -> (StatusWriter, Arc<Mutex<Vec<Method>>>) {
        let methods: Arc<Mutex<Vec<Method>>> = Arc::default();
        let (log, codes) = (Arc::clone(&methods), Mutex::new(codes.to_vec()));
        let address = loopback::serve(move |request| {
            log.lock().unwrap().push(request.method().clone());
            let mut codes = codes.lock().unwrap();
            let code = if request.method() == Method::PATCH && !codes.is_empty() { codes.remove(0) } else { 200 };
            let reason = match code {
                404 => "NotFound",
                409 => "Conflict",
                _ => "Forbidden",
            };
            let refused = format!(r#"{{"kind":"Status","status":"Failure","code":{code},"reason":"{reason}"}}"#);
            let stored = r#"{"metadata":{"name":"web","resourceVersion":"7"}}"#.to_owned();
            loopback::answer(code, if code == 200 { stored } else { refused })
        })
        .await;
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let client = Client::new(&config, ClientOptions::default()).unwrap();
        let consistency = Arc::new(Consistency::new(client.clone(), Watched::default()));
        let control = Control::new(client, consistency, Decisions::default());
        let ctx = ControllerContext::new(control, Clock::new(|| NOW), Recorder::default(), Decisions::default());
        (StatusWriter::new(REPLICA_SETS, retry, ctx), methods)
    }

    async fn write(writer: &StatusWriter, can_wait: bool) -> anyhow::Result<StatusWrite> {
        let (key, uid) = (Key::new("default", "web"), Uid::default());
        let patch = Patch::status(&BTreeMap::from([("status", BTreeMap::from([("replicas", 1)]))]));
        writer.write(NewStatus { key: &key, uid, version: ResourceVersion(1), patch, can_wait }).await
    }

    #[tokio::test]
    async fn a_failed_write_is_retried_as_upstream_does() {
        const STORED: Option<StatusWrite> = Some(StatusWrite::Stored(ResourceVersion(7)));
        for (retry, codes, expected, requests) in [
            (Retry::Never, vec![409], None, 1),
            (Retry::OnConflict, vec![409], STORED, 3),
            (Retry::OnConflict, vec![409, 409], None, 3),
            (Retry::OnConflict, vec![403], None, 1),
            (Retry::OnError, vec![403], STORED, 3),
            (Retry::OnError, vec![404], Some(StatusWrite::Gone), 1),
            (Retry::OnError, vec![409, 404], Some(StatusWrite::Gone), 3),
        ] {
            let (writer, methods) = writer(retry, &codes).await;
            assert_eq!(write(&writer, false).await.ok(), expected, "{retry:?} {codes:?}");
            assert_eq!(methods.lock().unwrap().len(), requests, "{retry:?} {codes:?}");
        }
    }

    #[tokio::test]
    async fn only_counts_wait_and_only_after_a_status_that_was_written() {
        let (writer, methods) = writer(Retry::Never, &[409]).await;
        assert!(write(&writer, true).await.is_err());
        assert!(matches!(write(&writer, true).await.unwrap(), StatusWrite::Stored(_)));
        let waits = write(&writer, true).await.unwrap();
        assert_eq!(waits.timer(), Some((Duration::from_secs(1), NEXT_STATUS)));
        assert!(matches!(write(&writer, false).await.unwrap(), StatusWrite::Stored(_)));
        assert_eq!(methods.lock().unwrap().len(), 3);
    }
}
