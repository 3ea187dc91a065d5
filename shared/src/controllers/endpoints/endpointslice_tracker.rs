//! The own writes of slices: a change by another client needs a sync, and an own write does not.
//!
//! The entries of a Service's slices are dropped with the Service, because the slices may no longer be watched when they
//! are deleted.
//!
//! Upstream: `staging/src/k8s.io/endpointslice/util/endpointslice_tracker.go`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::slice::EndpointSlice;
use crate::api::object::{Key, Uid};

/// The last own write of each slice, by its Service and its uid; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct EndpointSliceTracker(Arc<Mutex<BTreeMap<(Key, Uid), Written>>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Generation(i64),
    Deleted,
}

impl EndpointSliceTracker {
    fn slices(&self) -> MutexGuard<'_, BTreeMap<(Key, Uid), Written>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Record that this process wrote a slice with this generation.
    ///
    /// Upstream: `Update`.
    pub fn wrote(&self, service: &Key, slice: Uid, generation: i64) {
        self.slices().insert((service.clone(), slice), Written::Generation(generation));
    }

    /// Record that this process deleted a slice; its watch event is pending.
    ///
    /// Upstream: `ExpectDeletion`.
    pub fn deleted(&self, service: &Key, slice: Uid) {
        self.slices().insert((service.clone(), slice), Written::Deleted);
    }

    /// The last own write of a slice for the Service in its label.
    fn written<A, T>(&self, slice: &EndpointSlice<A, T>) -> Option<Written> {
        self.slices().get(&(slice.service()?, slice.metadata.uid)).copied()
    }

    /// Whether this process deleted a slice and the watch event is pending.
    pub fn has_deleted<A, T>(&self, slice: &EndpointSlice<A, T>) -> bool {
        self.written(slice) == Some(Written::Deleted)
    }

    /// Whether another client wrote this state of a slice.
    ///
    /// Upstream: `ShouldSync`.
    pub fn is_news<A, T>(&self, slice: &EndpointSlice<A, T>) -> bool {
        match self.written(slice) {
            None => true,
            Some(Written::Generation(own)) => slice.metadata.generation > own,
            Some(Written::Deleted) => false,
        }
    }

    /// Forget a slice whose deletion the watch has shown.
    ///
    /// Upstream: `HandleDeletion`.
    pub fn deletion_observed<A, T>(&self, slice: &EndpointSlice<A, T>) {
        if let Some(service) = slice.service() {
            self.slices().remove(&(service, slice.metadata.uid));
        }
    }

    pub fn start_over(&self) {
        self.slices().clear();
    }

    /// Forget the slices of a Service.
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
