//! A whole list as one answer, given object by object as it comes: no more of it is held than one object.
//!
//! One answer comes from the apiserver's memory whatever has been compacted; from the second page on it reads etcd once
//! the state of the first page is gone. A resource whose list does not come so, or not to its end, is listed in pages from
//! then on: there may be more objects than fit in the time that the server, or something between, gives a request.
//! Left out: JSON as one answer, which would have to be held whole; and the pages.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::Method;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use super::page::{Item, PageMeta};
use super::{Accept, Client};
use crate::api::protobuf::{Part, Parts};
use crate::api::resource::Resource;
use crate::api::unreadable::read_alone;
use crate::transport::api_error::ApiError;

/// How long a list that is read as it comes may bring no new object, nor its end.
pub(crate) const LIST_PATIENCE: Duration = Duration::from_secs(60);
/// How long such a list may take: less than a watch that it may be part of, which the server ends by itself.
pub(crate) const LIST_MAX: Duration = Duration::from_secs(240);

/// Why a list did not come as one answer.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The server does not send it as one answer of protobuf, or not to its end.
    NotInOne,
    /// The request failed, or the answer cannot be read.
    Failed(ApiError),
}

/// The resources whose lists come in pages only, as far as we know.
#[derive(Default)]
pub(super) struct Paged(Mutex<BTreeSet<Resource>>);

impl Paged {
    fn has(&self, resource: &Resource) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(resource)
    }

    fn add(&self, resource: &Resource) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(resource.clone());
    }
}

impl Client {
    /// Whether lists of such objects are asked for as one answer.
    pub(crate) fn lists_in_one(&self, accept: Accept, resource: &Resource) -> bool {
        accept.has_protobuf_lists(resource) && !self.paged.has(resource)
    }

    /// Calls a function with each object of a list as it comes, also of one that then does not come to its end. An error
    /// of the function ends the list.
    pub(crate) async fn list_in_one(
        &self,
        path: &str,
        accept: Accept,
        resource: &Resource,
        each: impl FnMut(Item<'_>) -> serde_json::Result<()>,
    ) -> Result<PageMeta, Broken> {
        let listed = match self.streamed_list(path, accept, resource).await {
            Ok(answer) => take_apart(answer, path, each).await,
            Err(error) if error.code() == Some(406) => Err(Broken::NotInOne),
            Err(error) => Err(Broken::Failed(error)),
        };
        if matches!(listed, Err(Broken::NotInOne)) {
            self.paged.add(resource);
        }
        listed
    }
}

async fn take_apart(
    mut answer: impl Stream<Item = Result<Bytes, ApiError>> + Unpin,
    path: &str,
    mut each: impl FnMut(Item<'_>) -> serde_json::Result<()>,
) -> Result<PageMeta, Broken> {
    let unread = |error| Broken::Failed(ApiError::unread(&Method::GET, path)(error));
    let (mut metadata, mut parts) = (PageMeta::default(), Parts::default());
    let ends = Instant::now() + LIST_MAX;
    loop {
        let piece = timeout_at((Instant::now() + LIST_PATIENCE).min(ends), answer.next()).await;
        let Ok(Some(Ok(piece))) = piece else { break };
        parts.push(&piece);
        if parts.is_other_form() == Some(true) {
            return Err(Broken::NotInOne);
        }
        while let Some(part) = read_alone(|| parts.next()).map_err(unread)? {
            match part {
                Part::Metadata(_) => metadata = read_alone(|| PageMeta::deserialize(part.value())).map_err(unread)?,
                Part::Item(..) => each(Item::Protobuf(part.value())).map_err(unread)?,
            }
        }
    }
    // A server may send a page though it was asked for all.
    if parts.is_complete() && metadata.token.is_empty() { Ok(metadata) } else { Err(Broken::NotInOne) }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use serde_json::json;

    use super::*;
    use crate::testing::protobuf;

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_does_not_end_is_given_up() {
        let list = json!({ "kind": "PartialObjectMetadataList", "metadata": {}, "items": [{}, { "metadata": {} }] });
        let whole = protobuf::list(&list).unwrap();
        for (pieces, objects) in [(0, 0), (1, 1)] {
            let answer = stream::iter([Ok(whole.slice(..whole.len() - 1))]).take(pieces).chain(stream::pending());
            let (started, mut seen) = (Instant::now(), 0);
            let each = |_: Item<'_>| {
                seen += 1;
                Ok(())
            };
            let listed = take_apart(Box::pin(answer), "/a", each).await;
            assert!(matches!(listed, Err(Broken::NotInOne)), "{listed:?}");
            assert_eq!((started.elapsed(), seen), (LIST_PATIENCE, objects));
        }
    }
}
