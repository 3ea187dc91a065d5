//! The brake on deletions for which a driver's taints are the only cause: a driver that taints everything at once is doubted.
//!
//! Its units are claims, and its groups are the claims of each driver. A claim that has lost its devices because its pods
//! were deleted still counts for ten minutes, or until it is allocated again.

use std::collections::BTreeSet;
use std::sync::Arc;

use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::controllers::brake::{Brake, Limits};
use shared::process::run::Setup;
use shared::working::context::ControllerContext;
use shared::working::worker::Requeue;

use crate::objects::ResourceClaim;
use crate::observe::Caches;
use crate::plan::Suspect;

/// At least the pods of this many claims of a driver may be deleted at once.
const LEAST: usize = 10;

pub(super) struct Doubts {
    brake: Brake<Uid>,
    caches: Arc<Caches>,
}

fn group(driver: &Text) -> String {
    format!("claims of {driver}")
}

impl Doubts {
    pub(super) fn new(setup: &Setup, ctx: ControllerContext, share: f64, caches: &Arc<Caches>) -> Arc<Self> {
        let brake = Brake::new(setup, ctx, Limits { share, least: LEAST });
        Arc::new(Self { brake, caches: Arc::clone(caches) })
    }

    /// When to retry a deletion that the brake delays.
    pub(super) fn hold_back(&self, key: &Key, suspect: &Suspect) -> Option<Requeue> {
        let Suspect { driver, claim } = suspect;
        self.brake.ask(key, (&group(driver), claim), || self.caches.claims_of_driver(driver), None)
    }

    /// Others need not wait for a deletion that is not wanted any more.
    pub(super) fn withdraw(&self, claim: Uid) {
        self.brake.withdraw(&claim);
    }

    /// A claim that loses its devices counts as gone until it has devices again. The states are those in which it has some,
    /// before a change and after it.
    pub(super) fn note_allocation(&self, states: [Option<&Arc<ResourceClaim>>; 2]) {
        match states {
            [Some(before), None] => self.note_lost(before),
            [None, Some(now)] => {
                let uid = now.metadata.uid;
                for driver in drivers(now) {
                    self.brake.member_back(&group(driver), &uid);
                }
            }
            [None, None] | [Some(_), Some(_)] => {}
        }
    }

    fn note_lost(&self, claim: &ResourceClaim) {
        let uid = claim.metadata.uid;
        self.withdraw(uid);
        // Most claims lose devices that have no taint.
        if self.caches.is_tainted(claim) {
            for driver in drivers(claim) {
                self.brake.member_gone(&group(driver), &uid);
            }
        }
    }
}

/// The drivers of a claim's devices.
fn drivers(claim: &ResourceClaim) -> BTreeSet<&Text> {
    claim.devices.iter().map(|device| &device.id.pool.driver).collect()
}
