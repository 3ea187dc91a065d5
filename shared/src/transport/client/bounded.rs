//! Answers of a bounded size: no server, and nobody between, can fill this process's memory.
//!
//! Left out: watches, whose lines their readers bound.

use std::error::Error;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body;

/// A size that no single object reaches.
pub(super) const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// A page is in memory twice for a moment. Of ordinary objects, 500 need less.
pub(super) const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A `Status` has a few hundred bytes, and a proxy's page a few thousand.
pub(super) const REFUSAL_BYTES_MAX: usize = 1024 * 1024;

/// Why there is no whole body.
pub(super) enum Unread {
    TooLarge,
    Broken(Box<dyn Error + Send + Sync>),
}

/// The whole body, unless it is, or says that it is, longer than `limit`.
pub(super) async fn collect<B>(body: B, limit: usize) -> Result<Bytes, Unread>
where
    B: Body<Error: Into<Box<dyn Error + Send + Sync>>>,
{
    if body.size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX) {
        return Err(Unread::TooLarge);
    }
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(cause) if cause.is::<LengthLimitError>() => Err(Unread::TooLarge),
        Err(cause) => Err(Unread::Broken(cause)),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;

    use super::*;

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        let pieces = |count: usize| {
            let pieces = (0..count).map(|_| Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"ab"))));
            StreamBody::new(stream::iter(pieces))
        };
        assert!(matches!(collect(pieces(2), 4).await, Ok(body) if body == "abab"));
        assert!(matches!(collect(pieces(3), 4).await, Err(Unread::TooLarge)));
        assert!(matches!(collect(pieces(usize::MAX), 4).await, Err(Unread::TooLarge)), "it has no end");
        assert!(matches!(collect(Full::new(Bytes::from_static(b"abcd")), 4).await, Ok(body) if body == "abcd"));
        assert!(matches!(collect(Full::new(Bytes::from_static(b"abcde")), 4).await, Err(Unread::TooLarge)));
    }
}
