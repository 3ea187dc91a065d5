//! What the provider was last told about each Service, and what it can do.
//!
//! A new process tells the provider everything again, as upstream does.

pub mod pools;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shared::api::kept::Digest;
use shared::api::object::Key;
use tokio::time::Instant;

use crate::objects::Service;

/// The last call about a Service.
#[derive(Clone, Debug)]
pub struct Told {
    /// The state that it was about.
    pub service: Arc<Service>,
    /// The Nodes that the load balancer has; none if a call has failed, or is under way.
    pub nodes: Option<Digest>,
}

/// Whether the provider has load balancers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Capability {
    #[default]
    Unknown,
    Has,
    /// The provider of this name has none.
    Lacks(String),
}

/// The memory; empty at first.
#[derive(Default)]
pub struct Memory(Mutex<State>);

#[derive(Default)]
struct State {
    told: HashMap<Key, Told>,
    capability: Capability,
    /// When the provider was asked for it.
    asked: Option<Instant>,
}

impl Memory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn told(&self, key: &Key) -> Option<Told> {
        self.state().told.get(key).cloned()
    }

    /// The Services that the provider was told about.
    pub fn keys(&self) -> Vec<Key> {
        self.state().told.keys().cloned().collect()
    }

    /// Notes that a call about this state begins: from now on there may be a load balancer.
    pub fn begin(&self, service: &Arc<Service>) {
        let told = Told { service: Arc::clone(service), nodes: None };
        self.state().told.insert(service.metadata.key.clone(), told);
    }

    /// Notes that the load balancer of this key has these Nodes, and the Service its addresses.
    pub fn succeeded(&self, key: &Key, nodes: Digest) {
        if let Some(told) = self.state().told.get_mut(key) {
            told.nodes = Some(nodes);
        }
    }

    /// Notes that the load balancer of this key is not known to be as it should.
    pub fn doubt(&self, key: &Key) {
        if let Some(told) = self.state().told.get_mut(key) {
            told.nodes = None;
        }
    }

    /// As [`Self::doubt`], of all.
    pub fn doubt_all(&self) {
        self.state().told.values_mut().for_each(|told| told.nodes = None);
    }

    /// Notes that there is no load balancer any more.
    pub fn forget(&self, key: &Key) {
        self.state().told.remove(key);
    }

    pub fn capability(&self) -> Capability {
        let state = self.state();
        let is_old = state.asked.is_none_or(|asked| asked.elapsed() >= cloud::REST);
        match &state.capability {
            Capability::Lacks(_) if is_old => Capability::Unknown,
            known @ (Capability::Unknown | Capability::Has | Capability::Lacks(_)) => known.clone(),
        }
    }

    /// Notes what the provider says it can do; gives whether that is new.
    pub fn learn(&self, capability: &Capability) -> bool {
        let mut state = self.state();
        state.asked = Some(Instant::now());
        std::mem::replace(&mut state.capability, capability.clone()) != *capability
    }
}
