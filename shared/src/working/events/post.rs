//! Posts what the correlator says, one event after the other, in the order they happened.
//!
//! Left out: deciding, and a second attempt where the server refused: it would refuse again.
//!
//! Upstream: `recordToSink` and `recordEvent`, staging/src/k8s.io/client-go/tools/record/event.go.

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde::de::IgnoredAny;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::correlator::{Correlator, Event};
use super::{EventMetrics, Occurrence};
use crate::api::json;
use crate::api::object::{ResourceVersion, Uid};
use crate::api::resource::{EVENTS, Resource};
use crate::api::time::Time;
use crate::transport::api_error::ApiError;
use crate::transport::client::{Accept, Client, PatchType, soon_after};
use crate::transport::clock::jitter;

/// `maxTriesPerEvent` and `defaultSleepDuration`.
const TRIES_MAX: u32 = 12;
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// Where Events about objects without a namespace live.
const DEFAULT_NAMESPACE: &str = "default";

pub(super) struct Poster {
    client: Client,
    correlator: Correlator,
    metrics: EventMetrics,
    /// From here on each event is tried once.
    stop: CancellationToken,
    retry_delay: Duration,
}

/// How one attempt ended.
enum Attempt {
    Posted,
    Refused(ApiError),
    Unanswered(ApiError),
}

impl Poster {
    pub(super) fn new(client: Client, metrics: EventMetrics, stop: CancellationToken) -> Self {
        Self { client, correlator: Correlator::new(), metrics, stop, retry_delay: RETRY_DELAY }
    }

    #[cfg(test)]
    pub(super) fn with_retry_delay(self, retry_delay: Duration) -> Self {
        Self { retry_delay, ..self }
    }

    /// Posts until it is stopped, and then what is left in the queue.
    pub(super) async fn run(mut self, mut occurrences: mpsc::Receiver<Box<Occurrence>>) {
        let stop = self.stop.clone();
        loop {
            let next = tokio::select! {
                next = occurrences.recv() => next,
                () = stop.cancelled(), if !occurrences.is_closed() => {
                    occurrences.close();
                    continue;
                }
            };
            let Some(occurrence) = next else { return };
            match self.correlator.correlate(&occurrence) {
                Some(event) => self.post(&event).await,
                None => {
                    self.metrics.filtered.inc();
                }
            }
        }
    }

    async fn post(&self, event: &Event) {
        let (object, reason) = (&event.about.key, event.reason.as_str());
        let mut came_back = self.client.came_back();
        for attempt in 1..=TRIES_MAX {
            let error = match self.attempt(event).await {
                Attempt::Posted => {
                    self.metrics.posted.inc();
                    return;
                }
                Attempt::Refused(error) => {
                    if error.is_already_exists() || error.is_namespace_terminating() {
                        tracing::debug!(%object, reason, %error, "the server refused an event");
                    } else {
                        tracing::warn!(%object, reason, %error, "the server refused an event");
                    }
                    break;
                }
                Attempt::Unanswered(error) => error,
            };
            if self.stop.is_cancelled() || attempt == TRIES_MAX {
                tracing::warn!(%object, reason, attempt, %error, "an event is lost");
                break;
            }
            if attempt == 1 {
                tracing::warn!(%object, reason, %error, "cannot post an event: it and those after it wait");
            }
            // The first wait is a random part, so that clients do not all come back at the same moment.
            let random = jitter(self.retry_delay, 1.0).saturating_sub(self.retry_delay);
            tokio::select! {
                () = tokio::time::sleep(if attempt == 1 { random } else { self.retry_delay }) => {}
                () = soon_after(&mut came_back) => {}
                () = self.stop.cancelled() => {}
            }
        }
        self.metrics.failed.inc();
    }

    async fn attempt(&self, event: &Event) -> Attempt {
        let namespace = match event.about.key.namespace() {
            "" => DEFAULT_NAMESPACE,
            namespace => namespace,
        };
        if event.count > 1 {
            let path = EVENTS.object_path(namespace, &event.name, "");
            let (accept, kind) = (Accept::Metadata, PatchType::StrategicMerge);
            match self.client.patch::<IgnoredAny>(&path, accept, kind, patch_body(event)).await {
                // Events live for an hour only; the count goes on in a new one.
                Err(error) if error.code() == Some(404) => {}
                outcome => return Attempt::of(outcome),
            }
        }
        let body = create_body(event, &self.client.spoken(&event.about.resource), namespace);
        Attempt::of(self.client.create::<IgnoredAny>(&EVENTS.collection_path(namespace), Accept::Metadata, body).await)
    }
}

impl Attempt {
    fn of(outcome: Result<IgnoredAny, ApiError>) -> Self {
        match outcome {
            Ok(IgnoredAny) => Self::Posted,
            Err(error @ ApiError::Status(_)) => Self::Refused(error),
            Err(error) => Self::Unanswered(error),
        }
    }
}

fn is_unknown<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A core/v1 Event, as far as upstream's recorder fills one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewEvent<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata<'a>,
    involved_object: InvolvedObject<'a>,
    reason: &'a str,
    message: &'a str,
    source: Source,
    first_timestamp: Time,
    last_timestamp: Time,
    count: u32,
    r#type: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reporting_component: &'static str,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
    namespace: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InvolvedObject<'a> {
    api_version: String,
    kind: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "is_unknown")]
    uid: Uid,
    #[serde(skip_serializing_if = "is_unknown")]
    resource_version: ResourceVersion,
}

#[derive(Serialize)]
struct Source {
    component: &'static str,
}

/// The kind of the object is served as `spoken`.
fn create_body(event: &Event, spoken: &Resource, namespace: &str) -> Bytes {
    let about = &event.about;
    json(&NewEvent {
        api_version: "v1",
        kind: "Event",
        metadata: Metadata { name: &event.name, namespace },
        involved_object: InvolvedObject {
            api_version: spoken.api_version(),
            kind: &spoken.kind,
            namespace: about.key.namespace(),
            name: about.key.name(),
            uid: about.uid,
            resource_version: about.resource_version,
        },
        reason: &event.reason,
        message: &event.message,
        source: Source { component: event.component },
        first_timestamp: event.first,
        last_timestamp: event.last,
        count: event.count,
        r#type: event.kind.as_str(),
        reporting_component: event.reporting_component,
    })
}

fn patch_body(event: &Event) -> Bytes {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Patch<'a> {
        count: u32,
        last_timestamp: Time,
        message: &'a str,
    }
    json(&Patch { count: event.count, last_timestamp: event.last, message: &event.message })
}
