//! The memory of a process of its own writes of slices: what others change asks for a sync, and those do not.
//!
//! What is kept of a Service's slices goes with the Service: nobody may follow them any more when they go.
//! Left out: waiting for own writes, which [`crate::runtime::consistency`] does.
//!
//! Upstream: `staging/src/k8s.io/endpointslice/util/endpointslice_tracker.go`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::slice::EndpointSlice;
use crate::api::object::{Key, Uid};

/// The last that this process wrote of each slice, by the Service that it was written for, and the slice's uid; cheap to
/// clone.
#[derive(Clone, Debug, Default)]
pub struct EndpointSliceTracker(Arc<Mutex<BTreeMap<(Key, Uid), Written>>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// This generation of it.
    Generation(i64),
    /// Its end.
    Deleted,
}

impl EndpointSliceTracker {
    fn slices(&self) -> MutexGuard<'_, BTreeMap<(Key, Uid), Written>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This process wrote this generation of a slice.
    ///
    /// Upstream: `Update`.
    pub fn wrote(&self, service: &Key, slice: Uid, generation: i64) {
        self.slices().insert((service.clone(), slice), Written::Generation(generation));
    }

    /// This process deleted a slice, and its event is still to come.
    ///
    /// Upstream: `ExpectDeletion`.
    pub fn deleted(&self, service: &Key, slice: Uid) {
        self.slices().insert((service.clone(), slice), Written::Deleted);
    }

    /// The last that this process wrote of a slice for the Service that it names.
    fn written<A, T>(&self, slice: &EndpointSlice<A, T>) -> Option<Written> {
        self.slices().get(&(slice.service()?, slice.metadata.uid)).copied()
    }

    /// Whether this process deleted a slice whose event is still to come.
    pub fn has_deleted<A, T>(&self, slice: &EndpointSlice<A, T>) -> bool {
        self.written(slice) == Some(Written::Deleted)
    }

    /// Whether somebody else wrote this state of a slice.
    ///
    /// Upstream: `ShouldSync`.
    pub fn is_news<A, T>(&self, slice: &EndpointSlice<A, T>) -> bool {
        match self.written(slice) {
            None => true,
            Some(Written::Generation(own)) => slice.metadata.generation > own,
            Some(Written::Deleted) => false,
        }
    }

    /// The event of a slice's deletion has come.
    ///
    /// Upstream: `HandleDeletion`.
    pub fn deletion_observed<A, T>(&self, slice: &EndpointSlice<A, T>) {
        if let Some(service) = slice.service() {
            self.slices().remove(&(service, slice.metadata.uid));
        }
    }

    /// Forgets what was written: a restored etcd may have older states of slices, and those that were deleted.
    pub fn start_over(&self) {
        self.slices().clear();
    }

    /// Forgets the slices of a Service: whoever changes them, it does not matter.
    ///
    /// Upstream: `DeleteService`.
    pub fn forget(&self, service: &Key) {
        let from = (service.clone(), Uid::default());
        let mut slices = self.slices();
        let of_service = slices.range(from..).map(|(slice, _)| slice).take_while(|(of, _)| of == service);
        for slice in of_service.cloned().collect::<Vec<_>>() {
            slices.remove(&slice);
        }
    }
}
