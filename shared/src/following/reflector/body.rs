//! The events of a watch, whole and one after the other, from the pieces of its body.
//!
//! Left out: reading them, which is `wire`'s.

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt};
use memchr::memchr;

use super::Stop;
use crate::api::protobuf::{self, Frame};
use crate::transport::api_error::ApiError;

/// An apiserver refuses objects above 3 MB; an aggregated one may serve larger ones.
pub(super) const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Splits a body into events: lines, or frames.
pub(super) struct Body<S> {
    stream: S,
    buffer: BytesMut,
}

impl<S: Stream<Item = Result<Bytes, ApiError>> + Unpin> Body<S> {
    pub(super) fn of(stream: S) -> Self {
        Self { stream, buffer: BytesMut::new() }
    }

    pub(super) async fn next(&mut self) -> Result<Option<BytesMut>, Stop> {
        let mut searched = 0;
        loop {
            let (end, least) = match protobuf::frame(&self.buffer) {
                Frame::None => {
                    let end = memchr(b'\n', &self.buffer[searched..]).map(|end| searched + end + 1);
                    (end, self.buffer.len())
                }
                Frame::Of(length) => {
                    let whole = Frame::whole(length);
                    (Some(whole).filter(|whole| *whole <= self.buffer.len()), whole)
                }
                Frame::Unknown => (None, 0),
            };
            if let Some(end) = end {
                let event = self.buffer.split_to(end);
                if self.buffer.is_empty() {
                    // Free the memory of a large burst.
                    self.buffer = BytesMut::new();
                }
                return Ok(Some(event));
            }
            searched = self.buffer.len();
            if least > EVENT_BYTES_MAX {
                return Err(Stop::Failed(format!("the watch sent an event of more than {EVENT_BYTES_MAX} bytes")));
            }
            match self.stream.next().await {
                Some(chunk) => self.buffer.extend_from_slice(&chunk?),
                None => return Ok(None),
            }
        }
    }
}
