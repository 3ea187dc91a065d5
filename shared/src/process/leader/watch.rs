//! A watch of one Lease, so that a candidate learns of its release at once.
//!
//! Left out: resuming. A watch that ends is followed by a read and another watch.

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::lease::Lease;
use crate::api::object::{Key, ResourceVersion};
use crate::api::resource::LEASES;
use crate::api::url::with_query;
use crate::transport::api_error::ApiError;
use crate::transport::client::{Accept, Client};

/// The requested duration of a watch: client-go's shortest.
const WATCH_SECONDS: u64 = 300;
/// The largest event that is read. A Lease has less than a thousand bytes.
const EVENT_BYTES_MAX: usize = 1024 * 1024;

pub(super) enum Watched {
    Stored(Lease),
    Deleted,
}

pub(super) struct Events<S> {
    stream: S,
    buffer: BytesMut,
}

pub(super) async fn open(
    client: &Client,
    lease: &Key,
    version: ResourceVersion,
) -> Result<Events<impl Stream<Item = Result<Bytes, ApiError>> + Send + Unpin + use<>>, ApiError> {
    let collection = LEASES.collection_path(lease.namespace());
    let (name, version) = (format!("metadata.name={}", lease.name()), version.to_string());
    let seconds = WATCH_SECONDS.to_string();
    let query = [("watch", "1"), ("fieldSelector", &name), ("resourceVersion", &version), ("timeoutSeconds", &seconds)];
    let path = with_query(&collection, &query);
    Ok(Events { stream: client.stream(&path, Accept::Object).await?, buffer: BytesMut::new() })
}

#[derive(Deserialize)]
struct WatchEvent<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl<S: Stream<Item = Result<Bytes, ApiError>> + Unpin> Events<S> {
    /// The next change; none once the watch has ended for any reason. Safe to drop at any time.
    pub(super) async fn next(&mut self) -> Option<Watched> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                let event: WatchEvent<'_> = serde_json::from_slice(&line).ok()?;
                return match event.r#type {
                    "ADDED" | "MODIFIED" => serde_json::from_str(event.object.get()).ok().map(Watched::Stored),
                    "DELETED" => Some(Watched::Deleted),
                    _ => None,
                };
            }
            let chunk = self.stream.next().await?.ok()?;
            if self.buffer.len() + chunk.len() > EVENT_BYTES_MAX {
                return None;
            }
            self.buffer.extend_from_slice(&chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The holders that a watch of these chunks tells, `-` for a deletion.
    async fn holders(chunks: &[&'static str]) -> Vec<String> {
        let chunks: Vec<_> = chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk.as_bytes()))).collect();
        let mut events = Events { stream: futures::stream::iter(chunks), buffer: BytesMut::new() };
        let mut holders = Vec::new();
        while let Some(event) = events.next().await {
            holders.push(match event {
                Watched::Stored(lease) => lease.spec.holder_identity,
                Watched::Deleted => "-".to_owned(),
            });
        }
        holders
    }

    #[tokio::test]
    async fn reads_events_however_they_are_cut() {
        let first =
            r#"{"type":"MODIFIED","object":{"kind":"Lease","metadata":{"name":"x"},"spec":{"holderIdentity":"a"}}}"#;
        assert_eq!(holders(&[first, "\n", r#"{"type":"DELETED","#, "\"object\":{}}\n"]).await, ["a", "-"]);
        assert_eq!(
            holders(&[first, "\n", "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n", first, "\n"]).await,
            ["a"]
        );
        assert_eq!(holders(&["nonsense\n"]).await, [""; 0]);
    }
}
