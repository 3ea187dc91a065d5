//! An owner `web`, and its pods.

use std::sync::Arc;

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::time::Time;
use shared::controllers::rejections::{Rejection, Rejections};
use shared::controllers::replicas::observe::Observed;
use shared::controllers::replicas::pod::Pod;
use shared::testing::{self, ObjectBuilder};

use crate::{KIND, Owner};

/// Asks for this many pods.
pub(crate) fn web(replicas: i32) -> ObjectBuilder {
    (KIND.object)("web", replicas)
}

/// A pod that matches and has no controller.
pub(crate) fn orphan(name: &str) -> ObjectBuilder {
    testing::pod(name).label("app", "web").label("tier", "front")
}

/// A pod of `web`'s, running, not ready.
pub(crate) fn pod(name: &str) -> ObjectBuilder {
    orphan(name).owned_by(&*web(0).build::<Owner>())
}

/// A pod of somebody else's.
pub(crate) fn foreign(name: &str) -> ObjectBuilder {
    orphan(name).owned_by(&*web(0).uid_of("other").build::<Owner>())
}

/// A pod of `web`'s that was relabelled.
pub(crate) fn relabelled(name: &str) -> ObjectBuilder {
    pod(name).label("app", "debug")
}

/// `count` ready pods of `web`'s.
pub(crate) fn ready_pods(count: usize) -> Vec<ObjectBuilder> {
    (0..count).map(|number| pod(&format!("web-{number}")).ready()).collect()
}

/// So many rejections in a row, seen at this moment.
pub(crate) fn rejections(count: usize, at: Timestamp) -> Rejections {
    let mut rejections = Rejections::default();
    let (template, reason) = (Text::default(), Text::new("OutOfcpu"));
    let rejection = Rejection { template, reason, created: Some(Time::of(at)) };
    for _ in 0..count {
        rejections.note(&rejection, at);
    }
    rejections
}

pub(crate) fn observed(web: &ObjectBuilder, pods: &[ObjectBuilder]) -> Observed<Owner> {
    let pods: Vec<Arc<Pod>> = pods.iter().map(ObjectBuilder::build).collect();
    let (rejections, ended) = Default::default();
    Observed { owner: web.build(), pods, related: Vec::new(), outstanding: None, rejections, ended }
}
