//! The size of the cluster, remembered between syncs: where two boundaries overlap, the right one depends on the last.
//!
//! Upstream: `pkg/controller/ttl/ttl_controller.go`.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A range of numbers of Nodes and the time to live in it. Neighbours overlap, so that a cluster at an edge does not
/// switch back and forth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary {
    min: usize,
    max: usize,
    ttl_seconds: u32,
}

const SMALLEST: Boundary = Boundary { min: 0, max: 100, ttl_seconds: 0 };

/// Upstream: `ttlBoundaries`.
const BOUNDARIES: [Boundary; 5] = [
    SMALLEST,
    Boundary { min: 90, max: 500, ttl_seconds: 15 },
    Boundary { min: 450, max: 1000, ttl_seconds: 30 },
    Boundary { min: 900, max: 2000, ttl_seconds: 60 },
    Boundary { min: 1800, max: usize::MAX, ttl_seconds: 300 },
];

impl Default for Boundary {
    fn default() -> Self {
        SMALLEST
    }
}

impl Boundary {
    /// The boundary for this number of Nodes in a cluster that was within this one: the same while the number fits, and
    /// otherwise the nearest.
    ///
    /// Upstream: `addNode` and `deleteNode`, which see one Node at a time and therefore never skip a boundary.
    #[must_use]
    pub fn after(self, nodes: usize) -> Self {
        let nearest = if nodes > self.max {
            BOUNDARIES.iter().find(|higher| nodes <= higher.max)
        } else {
            BOUNDARIES.iter().rfind(|lower| lower.min <= self.min && nodes >= lower.min)
        };
        nearest.copied().unwrap_or(self)
    }

    /// How many seconds a kubelet may cache an object.
    pub fn ttl_seconds(self) -> u32 {
        self.ttl_seconds
    }
}

/// The boundary of the number of Nodes at its last change.
#[derive(Default)]
pub struct Size(Mutex<Boundary>);

impl Size {
    pub fn boundary(&self, nodes: usize) -> Boundary {
        self.last().after(nodes)
    }

    pub fn note(&self, nodes: usize) {
        let mut last = self.last();
        *last = last.after(nodes);
    }

    fn last(&self) -> MutexGuard<'_, Boundary> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
