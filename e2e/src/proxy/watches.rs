//! The watches that are open: each can be held back, delayed, broken off, or given a line the apiserver never wrote.
//! Left out: changing what the apiserver wrote.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use shared::api::protobuf::{self, Frame};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, sleep_until};

use super::rules::Pattern;

/// The body of an answer, which a watch never ends.
pub(super) type Body = UnsyncBoxBody<Bytes, io::Error>;

#[derive(Clone, Debug)]
pub(super) enum Command {
    Freeze,
    Thaw,
    Delay(Duration),
    Inject(Bytes),
    Cut,
}

#[derive(Default)]
pub(super) struct Watches(Mutex<Registry>);

#[derive(Default)]
struct Registry {
    open: Vec<(String, UnboundedSender<Command>)>,
    frozen: Vec<Pattern>,
}

impl Watches {
    /// A new watch at `path`: where it hears what it is told.
    pub(super) fn open(&self, path: &str) -> UnboundedReceiver<Command> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut registry = self.lock();
        registry.open.retain(|(_, watch)| !watch.is_closed());
        if registry.frozen.iter().any(|pattern| pattern.matches(path)) {
            // The receiver is right here.
            let _ = sender.send(Command::Freeze);
        }
        registry.open.push((path.to_owned(), sender));
        receiver
    }

    /// Tells the open watches at `path`; how many there were.
    pub(super) fn command(&self, path: &Pattern, command: &Command) -> usize {
        let registry = self.lock();
        let told = registry.open.iter().filter(|(at, watch)| path.matches(at) && watch.send(command.clone()).is_ok());
        told.count()
    }

    pub(super) fn freeze(&self, path: Pattern) {
        self.command(&path, &Command::Freeze);
        self.lock().frozen.push(path);
    }

    pub(super) fn thaw(&self) {
        self.lock().frozen.clear();
        self.command(&Pattern::new("**"), &Command::Thaw);
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One watch: the apiserver's bytes on their way to the client, event by event.
struct Watch {
    upstream: BoxStream<'static, io::Result<Bytes>>,
    ended: bool,
    commands: UnboundedReceiver<Command>,
    /// The beginning of an event whose end has not come yet.
    partial: BytesMut,
    /// Events on hold, each with the time at which it may leave.
    held: VecDeque<(Instant, Bytes)>,
    frozen: bool,
    delay: Duration,
}

/// The body the client reads in place of the apiserver's. Events stay whole, lines of JSON and frames of protobuf.
pub(super) fn pass_on(
    upstream: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    commands: UnboundedReceiver<Command>,
) -> Body {
    let watch = Watch::new(upstream.boxed(), commands);
    let frames = stream::unfold(watch, |mut watch| async move {
        let next = watch.next().await?;
        Some((next.map(hyper::body::Frame::data), watch))
    });
    StreamBody::new(frames).boxed_unsync()
}

impl Watch {
    fn new(upstream: BoxStream<'static, io::Result<Bytes>>, commands: UnboundedReceiver<Command>) -> Self {
        Self {
            upstream,
            ended: false,
            commands,
            partial: BytesMut::new(),
            held: VecDeque::new(),
            frozen: false,
            delay: Duration::ZERO,
        }
    }

    /// The next event that leaves; none at the end.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            let due = self.held.front().map(|(at, _)| *at).filter(|_| !self.frozen);
            if due.is_some_and(|at| at <= Instant::now()) {
                return self.held.pop_front().map(|(_, event)| Ok(event));
            }
            if self.ended && self.held.is_empty() {
                return None;
            }
            tokio::select! {
                // An order of the test holds for everything that the apiserver writes afterwards.
                biased;
                command = self.commands.recv() => {
                    if let Err(cut) = self.obey(command.unwrap_or(Command::Cut)) {
                        return Some(Err(cut));
                    }
                }
                bytes = self.upstream.next(), if !self.ended => match bytes {
                    None => self.ended = true,
                    Some(Ok(bytes)) => self.receive(&bytes),
                    Some(Err(error)) => return Some(Err(error)),
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
        }
    }

    /// An error is the end of the connection; what has not left by then is lost.
    fn obey(&mut self, command: Command) -> io::Result<()> {
        match command {
            Command::Freeze => self.frozen = true,
            Command::Thaw => self.frozen = false,
            Command::Delay(delay) => self.delay = delay,
            Command::Inject(line) => {
                let mut event = BytesMut::from(line.as_ref());
                event.extend_from_slice(b"\n");
                self.held.push_back((Instant::now(), event.freeze()));
            }
            Command::Cut => {
                self.ended = true;
                self.held.clear();
                return Err(io::Error::other("the watch is cut"));
            }
        }
        Ok(())
    }

    fn receive(&mut self, bytes: &Bytes) {
        let leaves = Instant::now() + self.delay;
        self.partial.extend_from_slice(bytes);
        let mut whole = 0;
        while let Some(length) = first_event(&self.partial[whole..]) {
            whole += length;
        }
        if whole > 0 {
            self.held.push_back((leaves, self.partial.split_to(whole).freeze()));
        }
    }
}

/// The length of the first event, once all of it is there.
fn first_event(bytes: &[u8]) -> Option<usize> {
    let length = match protobuf::frame(bytes) {
        Frame::Of(length) => Frame::whole(length),
        Frame::Unknown => return None,
        Frame::None => 1 + bytes.iter().position(|byte| *byte == b'\n')?,
    };
    (length <= bytes.len()).then_some(length)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// A watch at `/pods`, and where the apiserver writes.
    fn open(watches: &Watches) -> (Watch, UnboundedSender<io::Result<Bytes>>) {
        let (apiserver, bytes) = mpsc::unbounded_channel();
        let bytes = stream::unfold(bytes, |mut bytes| async { Some((bytes.recv().await?, bytes)) });
        (Watch::new(bytes.boxed(), watches.open("/pods")), apiserver)
    }

    fn write(apiserver: &UnboundedSender<io::Result<Bytes>>, text: &'static str) {
        apiserver.send(Ok(Bytes::from_static(text.as_bytes()))).unwrap();
    }

    async fn read(watch: &mut Watch) -> String {
        String::from_utf8(watch.next().await.unwrap().unwrap().to_vec()).unwrap()
    }

    /// All that it was told and all that was written is there already, so looking once is enough.
    fn is_silent(watch: &mut Watch) -> bool {
        watch.next().now_or_never().is_none()
    }

    #[tokio::test]
    async fn events_stay_whole_and_injected_lines_come_between_them() {
        let watches = Watches::default();
        let (mut watch, apiserver) = open(&watches);
        write(&apiserver, "one\ntw");
        assert_eq!(read(&mut watch).await, "one\n");
        assert_eq!(watches.command(&Pattern::new("/pods"), &Command::Inject(Bytes::from_static(b"{"))), 1);
        assert_eq!(read(&mut watch).await, "{\n");
        write(&apiserver, "o\n");
        assert_eq!(read(&mut watch).await, "two\n");
        write(&apiserver, "\0\0\0\x02\n3\0\0");
        assert_eq!(read(&mut watch).await, "\0\0\0\x02\n3");
        watches.command(&Pattern::new("/pods"), &Command::Inject(Bytes::from_static(b"{")));
        assert_eq!(read(&mut watch).await, "{\n");
        write(&apiserver, "\0\x01f");
        assert_eq!(read(&mut watch).await, "\0\0\0\x01f");
        drop(apiserver);
        assert!(watch.next().await.is_none());
    }

    #[tokio::test]
    async fn frozen_watches_are_silent_until_they_thaw_new_ones_too() {
        let watches = Watches::default();
        let (mut old, old_apiserver) = open(&watches);
        watches.freeze(Pattern::new("/pods"));
        let (mut new, new_apiserver) = open(&watches);
        write(&old_apiserver, "one\n");
        write(&new_apiserver, "two\n");
        assert!(is_silent(&mut old) && is_silent(&mut new));
        watches.thaw();
        assert_eq!(read(&mut old).await + &read(&mut new).await, "one\ntwo\n");
    }

    #[tokio::test]
    async fn a_delayed_event_comes_later_and_a_cut_loses_it() {
        let watches = Watches::default();
        let (mut watch, apiserver) = open(&watches);
        let (begun, delay) = (Instant::now(), Duration::from_millis(20));
        watches.command(&Pattern::new("**"), &Command::Delay(delay));
        write(&apiserver, "one\n");
        assert_eq!(read(&mut watch).await, "one\n");
        assert!(begun.elapsed() >= delay);
        watches.command(&Pattern::new("**"), &Command::Delay(Duration::from_secs(3600)));
        write(&apiserver, "two\n");
        assert!(is_silent(&mut watch));
        watches.command(&Pattern::new("**"), &Command::Cut);
        assert!(watch.next().await.unwrap().is_err());
        assert!(watch.next().await.is_none());
    }
}
