//! Whose turn it is: the contestants share one machine, so only one of them is at work.

use tokio::sync::{Mutex, MutexGuard};

/// Turns go to those who wait for them in the order in which they came.
#[derive(Default)]
pub(crate) struct Turns(Mutex<()>);

impl Turns {
    pub(crate) async fn wait(&self) -> Turn<'_> {
        Turn { turns: self, held: Some(self.0.lock().await) }
    }
}

/// A contestant's turn, which ends when this is dropped.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    /// None only while it waits.
    held: Option<MutexGuard<'a, ()>>,
}

impl Turn<'_> {
    /// Lets the others have their turns first.
    pub(crate) async fn pass(&mut self) {
        self.held = None;
        self.held = Some(self.turns.0.lock().await);
    }
}
