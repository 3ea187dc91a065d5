//! Reads one request from the cache, and the pools of its driver live: slices and claims are not watched, because a request
//! is answered once.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};
use shared::transport::client::Accept;
use shared::working::control::{Control, Selection};

use crate::objects::{Allocated, Question, RESOURCE_CLAIMS, RESOURCE_SLICES, ResourcePoolStatusRequest, Slice};

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub request: Arc<ResourcePoolStatusRequest>,
    /// The pools that it asks about; none if they were not read.
    pub pools: Option<Pools>,
}

/// The pools that a request asks about, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pools(pub BTreeMap<Text, Pool>);

/// A pool by the slices of its newest generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    pub generation: i64,
    pub slices: i64,
    /// How many slices it has when it is complete.
    pub expected: i64,
    /// The node of all its slices; empty if they have none.
    pub node: Text,
    pub has_one_node: bool,
    pub devices: i64,
    pub allocated: i64,
}

impl Pools {
    /// Adds a slice, if it is of a pool that is asked about. Slices of older generations do not count.
    ///
    /// Upstream: `calculatePoolStatus`, `pkg/controller/resourcepoolstatusrequest/controller.go`.
    pub fn add(&mut self, question: &Question, slice: Slice) {
        let Slice { driver, pool, generation, expected, node, devices } = slice;
        if driver != question.driver || question.pool.as_ref().is_some_and(|wanted| *wanted != pool) {
            return;
        }
        let first =
            Pool { generation, slices: 0, expected, node: node.clone(), has_one_node: true, devices: 0, allocated: 0 };
        let known = self.0.entry(pool).or_insert_with(|| first.clone());
        if known.generation > generation {
            return;
        }
        if known.generation < generation {
            *known = first;
        }
        known.slices += 1;
        known.devices = known.devices.saturating_add(devices);
        known.has_one_node &= known.node == node;
    }

    /// The pools that an answer shows.
    pub fn shown(&self, question: &Question) -> impl Iterator<Item = (&Text, &Pool)> {
        self.0.iter().take(question.limit)
    }

    /// Those of them that lack slices.
    pub fn incomplete(&self, question: &Question) -> impl Iterator<Item = &Text> {
        self.shown(question).filter(|(_, pool)| pool.slices < pool.expected).map(|(name, _)| name)
    }

    /// Counts the devices of a claim.
    pub fn allocate(&mut self, question: &Question, Allocated { devices }: &Allocated) {
        for (_, pool) in devices.iter().filter(|(driver, _)| *driver == question.driver) {
            if let Some(pool) = self.0.get_mut(pool) {
                pool.allocated += 1;
            }
        }
    }
}

pub struct Caches {
    pub requests: Arc<Cache<ResourcePoolStatusRequest>>,
}

impl Caches {
    pub fn new() -> (Self, Informer<ResourcePoolStatusRequest>) {
        let requests = InformerBuilder::new().build();
        (Self { requests: requests.cache() }, requests)
    }

    pub fn observe(&self, key: &Key) -> Option<Observed> {
        let request = self.requests.get(key)?;
        Some(Observed { request, pools: None })
    }
}

/// Adds the pools. No more than a page of slices or claims is in memory. Claims are listed only for an answer.
pub(crate) async fn live_pools(control: &Control, observed: Observed) -> anyhow::Result<Observed> {
    let question = &observed.request.question;
    let mut pools = Pools::default();
    let of_driver = format!("spec.driver={}", question.driver);
    let selection = Selection { field_selector: &of_driver, ..Selection::default() };
    let listed =
        control.list_each(&RESOURCE_SLICES, "", selection, Accept::Json, |slice| pools.add(question, slice)).await;
    listed.context("cannot list the ResourceSlices")?;
    if pools.incomplete(question).next().is_none() {
        let each = |allocated: Allocated| pools.allocate(question, &allocated);
        let listed = control.list_each(&RESOURCE_CLAIMS, "", Selection::default(), Accept::Json, each).await;
        listed.context("cannot list the ResourceClaims")?;
    }
    Ok(Observed { pools: Some(pools), ..observed })
}
