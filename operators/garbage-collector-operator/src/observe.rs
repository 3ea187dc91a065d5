//! The reads of one attempt: the object, then its owners, each live, because the graph may lag.
//!
//! An owner is absent only if the apiserver knows its kind and answers that the object does not exist. Any other answer
//! (the kind is not served, its API service is down, its conversion webhook is broken, RBAC refuses) leaves the question
//! open, and the object is not touched.

mod caches;
mod foresee;
mod lookup;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use shared::api::intern::Text;
use shared::api::object::{Key, Uid};
use shared::api::resource::Resource;
use shared::api::url::is_segment;
use shared::transport::discovery::Discovery;
use shared::working::control::Control;

use crate::graph::{Node, Stage};
use crate::memory::turns;
use crate::objects::{Coordinates, FOREGROUND_DELETION, Identity, LiveObject, ObjectKind, OwnerReference};
pub use caches::Caches;
pub(crate) use caches::{Followed, uid_of};
pub use lookup::Unseen;

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub identity: Identity,
    /// The stage of its life that the graph has seen.
    pub stage: Stage,
    pub dependents: Dependents,
    /// Whether a monitor saw that one of its owners was deleted.
    pub saw_owner_go: bool,
    pub live: Live,
    /// The facts learned by the reads.
    pub learned: Learned,
}

/// The facts that an attempt has learned for other attempts and for the next one on the same object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned {
    /// The owners that do not exist, whether just read or known before.
    pub absent: Vec<Identity>,
    /// How often etcd had been restored before they were read.
    pub restores: u64,
    /// The kinds of which a read failed, with the error, or succeeded for the first time since a failure.
    pub reads: Vec<(Resource, Option<String>)>,
    /// The discovery before the first read.
    pub served: Arc<Discovery>,
    /// The owners that were read, if not all were.
    pub owners: Option<ReadOwners>,
    /// How often the object was synced while it waited for a kind to be served.
    pub looks: u32,
}

/// How many of the dependents that block a deletion are known by name.
const FIRST: usize = 3;

/// The state of an object's dependents that decisions need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependents {
    pub any: bool,
    /// Whether one of them deletes its own dependents first.
    pub any_deletes_dependents: bool,
    /// How many of them block this object's foreground deletion.
    pub blocks: usize,
    /// The first of those, by uid.
    pub first_blocking: Vec<Identity>,
    /// Those that block it and do not delete their own dependents yet.
    pub blocking: Vec<Uid>,
}

impl Dependents {
    /// Sums up the dependents of the object of this uid.
    pub fn of<'a>(owner: Uid, dependents: impl Iterator<Item = &'a Node>) -> Self {
        dependents.fold(Self::default(), |mut seen, dependent| {
            let deletes_dependents = dependent.stage == Stage::DeletingDependents;
            let blocks = dependent.blocks(owner);
            seen.any = true;
            seen.any_deletes_dependents |= deletes_dependents;
            seen.blocks += usize::from(blocks);
            if blocks && seen.blocks <= FIRST {
                seen.first_blocking.push(dependent.identity.clone());
            }
            if blocks && !deletes_dependents {
                seen.blocking.push(dependent.identity.object.uid);
            }
            seen
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Live {
    /// Not read, because it is being deleted already.
    NotAsked,
    /// Its kind is not served now.
    Unserved,
    Unread(String),
    /// Not read, because many reads are under way.
    Throttled,
    /// Its kind is namespaced, and its namespace is not known.
    NoNamespace,
    /// References give it a name that no object can have.
    InvalidName,
    /// It does not exist.
    Absent,
    /// Not read, and no monitor has seen it.
    Unseen {
        /// Why its kind cannot be listed or watched, if it cannot.
        failing: Option<String>,
    },
    Present(Box<Present>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Present {
    pub resource: Resource,
    pub live: LiveObject,
    pub owners: Owners,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owners {
    NotAsked,
    Known(Vec<(Arc<OwnerReference>, Owner)>),
    /// The kind of one is not served now.
    Unserved(Arc<ObjectKind>),
    Unread(String),
    /// There are many, and not all were read yet.
    Throttled {
        /// How many are known by now.
        read: usize,
        /// How many there are.
        of: usize,
    },
    /// One cannot exist: its kind is namespaced, and the object is cluster-scoped.
    Namespaced(Arc<OwnerReference>),
    /// One cannot exist: no object can have its name.
    InvalidName(Arc<OwnerReference>),
    /// One was not read, and no monitor has seen it.
    Unseen {
        reference: Arc<OwnerReference>,
        /// Why its kind cannot be listed or watched, if it cannot.
        failing: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Solid,
    Waiting,
    /// It does not exist.
    Dangling,
    /// It does not exist in the dependent's namespace; a monitor has seen it in another one.
    Elsewhere,
}

/// The state of an owner before any request.
enum OwnerPlace {
    /// It is known not to exist.
    Absent(Identity),
    At {
        resource: Resource,
        key: Key,
        identity: Identity,
    },
}

impl Caches {
    /// Observes an object; none if the graph no longer has it.
    ///
    /// # Errors
    /// If this build cannot read an object's owners.
    pub async fn observe(&self, control: &Control, uid: Uid) -> anyhow::Result<Option<Observed>> {
        let mut learned = Learned { looks: self.kinds.looks(uid), served: self.kinds.served(), ..Learned::default() };
        let Some((identity, stage, is_one_of_many)) = self.with_graph(|graph| {
            learned.restores = graph.restores();
            let node = graph.node(uid)?;
            let is_one_of_many = || graph.dependents(uid).all(|dependent| dependent.owners.len() > turns::FREE);
            Some((node.identity.clone(), node.stage, node.stage == Stage::Virtual && is_one_of_many()))
        }) else {
            return Ok(None);
        };
        // An object that was never seen is looked for because others refer to it, and they are not held up.
        let turn = if is_one_of_many { self.turns.wait_unseen(uid) } else { self.turns.wait(uid) };
        let live = match turn {
            _ if stage == Stage::BeingDeleted => Live::NotAsked,
            Some(_) => Live::Throttled,
            None => Reads { caches: self, control, learned: &mut learned }.live(&identity, stage).await?,
        };
        // As late as possible, so that events during the reads count.
        let (dependents, saw_owner_go) =
            self.with_graph(|graph| (Dependents::of(uid, graph.dependents(uid)), graph.saw_owner_go(uid)));
        Ok(Some(Observed { identity, stage, dependents, saw_owner_go, live, learned }))
    }

    /// Stores what an attempt has learned; its object no longer waits for a kind.
    pub(crate) fn remember(
        &self,
        uid: Uid,
        Learned { absent, restores, reads, served: _, owners, looks: _ }: &Learned,
    ) {
        if !absent.is_empty() {
            self.with_graph(|graph| {
                let are_still = graph.restores() == *restores;
                absent.iter().filter(|_| are_still).for_each(|owner| graph.note_absent(owner.clone()));
            });
        }
        for (resource, failure) in reads {
            self.kinds.note_read(resource, failure.as_deref());
        }
        self.kinds.stop_waiting(uid);
        if let Some(owners) = owners {
            self.turns.take(uid, owners.clone());
        }
    }
}

/// What a sync, which reads from the apiserver, and a preview, which reads from the graph, have in common.
impl Caches {
    /// Where an object is; if that is not known, its live state.
    fn place_of(&self, identity: &Identity) -> Result<(Resource, Key), Live> {
        let Some(resource) = self.kinds.resource_of(&identity.object.kind) else { return Err(Live::Unserved) };
        if resource.namespaced && identity.namespace.is_empty() {
            return Err(Live::NoNamespace);
        }
        if !is_segment(&identity.object.name) {
            return Err(Live::InvalidName);
        }
        let key = key_in(&resource, &identity.namespace, &identity.object.name);
        Ok((resource, key))
    }

    /// Where an owner is; if that is not known, the state of all owners.
    fn place_of_owner(&self, dependent: &Identity, reference: &Arc<OwnerReference>) -> Result<OwnerPlace, Owners> {
        if !is_segment(&reference.owner.name) {
            return Err(Owners::InvalidName(Arc::clone(reference)));
        }
        let in_namespace =
            |namespace: &Text| Identity { object: reference.owner.clone(), namespace: namespace.clone() };
        let (anywhere, here) = (in_namespace(&Text::default()), in_namespace(&dependent.namespace));
        let (anywhere_absent, here_absent) =
            self.with_graph(|graph| (graph.is_absent(&anywhere), graph.is_absent(&here)));
        if anywhere_absent || here_absent {
            return Ok(OwnerPlace::Absent(if anywhere_absent { anywhere } else { here }));
        }
        let kind = &reference.owner.kind;
        let Some(resource) = self.kinds.resource_of(kind) else { return Err(Owners::Unserved(Arc::clone(kind))) };
        if resource.namespaced && dependent.namespace.is_empty() {
            return Err(Owners::Namespaced(Arc::clone(reference)));
        }
        let key = key_in(&resource, &dependent.namespace, &reference.owner.name);
        let identity = if resource.namespaced { here } else { anywhere };
        Ok(OwnerPlace::At { resource, key, identity })
    }

    /// The state of an owner that does not exist where its reference says.
    fn absent_owner(&self, dependent: &Identity, reference: &OwnerReference) -> Owner {
        let is_elsewhere = self.with_graph(|graph| {
            let seen = graph.node(reference.owner.uid).filter(|node| node.stage != Stage::Virtual);
            seen.is_some_and(|node| {
                let namespace = &node.identity.namespace;
                !namespace.is_empty() && *namespace != dependent.namespace
            })
        });
        if is_elsewhere { Owner::Elsewhere } else { Owner::Dangling }
    }
}

/// What an object knows of its owners before its next turn to read others. An owner that exists stays so until a monitor
/// sees it go, which is an attempt of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadOwners {
    /// How often etcd had been restored before they were read.
    restores: u64,
    known: BTreeMap<Coordinates, Owner>,
}

struct Reads<'a> {
    caches: &'a Caches,
    control: &'a Control,
    learned: &'a mut Learned,
}

impl Reads<'_> {
    async fn live(&mut self, identity: &Identity, stage: Stage) -> anyhow::Result<Live> {
        let (resource, key) = match self.caches.place_of(identity) {
            Ok(place) => place,
            Err(nowhere) => return Ok(nowhere),
        };
        let live = match self.get(&resource, &key).await {
            Got::Object(live) if live.uid() == identity.object.uid => live,
            Got::Object(_) | Got::Absent => return Ok(Live::Absent),
            Got::Unserved => return Ok(Live::Unserved),
            Got::Failed(error) => return Ok(Live::Unread(error)),
        };
        let owners = if stage == Stage::DeletingDependents {
            Owners::NotAsked
        } else {
            let references = live.owners().with_context(|| format!("cannot read the owners of {identity}"))?;
            self.owners(identity, references).await
        };
        Ok(Live::Present(Box::new(Present { resource, live, owners })))
    }

    async fn owners(&mut self, dependent: &Identity, references: Vec<Arc<OwnerReference>>) -> Owners {
        let (restores, of) = (self.learned.restores, references.len());
        let (mut reads, before) = self.caches.turns.begin(dependent.object.uid);
        let before = if before.restores == restores { before.known } else { BTreeMap::new() };
        let mut known = Vec::with_capacity(of);
        for reference in references {
            if let Some(owner) = before.get(&reference.owner) {
                known.push((reference, *owner));
                continue;
            }
            let (resource, key, identity) = match self.caches.place_of_owner(dependent, &reference) {
                Ok(OwnerPlace::At { resource, key, identity }) => (resource, key, identity),
                Ok(OwnerPlace::Absent(identity)) => {
                    self.learned.absent.push(identity);
                    known.push((Arc::clone(&reference), self.caches.absent_owner(dependent, &reference)));
                    continue;
                }
                Err(open) => return open,
            };
            let Some(left) = reads.checked_sub(1) else {
                let read = known.len();
                let known = known.into_iter().map(|(reference, owner)| (reference.owner.clone(), owner)).collect();
                self.learned.owners = Some(ReadOwners { restores, known });
                return Owners::Throttled { read, of };
            };
            reads = left;
            let owner = match self.get(&resource, &key).await {
                Got::Unserved => return Owners::Unserved(Arc::clone(&reference.owner.kind)),
                Got::Failed(error) => return Owners::Unread(error),
                Got::Object(live) if live.uid() == reference.owner.uid => {
                    let waits = live.is_being_deleted() && live.has_finalizer(FOREGROUND_DELETION);
                    if waits { Owner::Waiting } else { Owner::Solid }
                }
                Got::Object(_) | Got::Absent => {
                    self.learned.absent.push(identity);
                    self.caches.absent_owner(dependent, &reference)
                }
            };
            known.push((reference, owner));
        }
        Owners::Known(known)
    }

    async fn get(&mut self, resource: &Resource, key: &Key) -> Got {
        let got = live_object(self.control, resource, key).await;
        if got.failure().is_some() || self.caches.kinds.is_unreadable(resource) {
            self.learned.reads.push((resource.clone(), got.failure().map(str::to_owned)));
        }
        got
    }
}

pub(crate) enum Got {
    Object(LiveObject),
    Absent,
    /// The path is unknown: the kind was removed since the last discovery.
    Unserved,
    Failed(String),
}

impl Got {
    pub(crate) fn failure(&self) -> Option<&str> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Object(_) | Self::Absent | Self::Unserved => None,
        }
    }
}

pub(crate) async fn live_object(control: &Control, resource: &Resource, key: &Key) -> Got {
    match control.get_metadata(resource, key).await {
        Ok(live) => Got::Object(live),
        Err(error) if error.is_object_not_found() => Got::Absent,
        Err(error) if error.code() == Some(404) => Got::Unserved,
        Err(error) => Got::Failed(format!("cannot read {resource} {key}: {error}")),
    }
}

pub(crate) fn key_in(resource: &Resource, namespace: &str, name: &str) -> Key {
    Key::new(if resource.namespaced { namespace } else { "" }, name)
}

#[cfg(test)]
mod tests {
    use shared::api::resource::{PODS, REPLICA_SETS};

    use super::*;
    use crate::observe::caches::tests::{caches, serving};

    const POD: &str = "11111111-2222-4333-8444-555555555555";
    const OWNER: &str = "0b6cd1a8-9b7e-4a0e-9a53-0c7a3e1f2d4b";

    fn pod_of(owner: &str) -> String {
        format!(
            r#"{{"metadata":{{"name":"a","namespace":"ns","uid":"{POD}","ownerReferences":[
                {{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{owner}","uid":"{OWNER}"}}]}}}}"#
        )
    }

    /// Observes an owner of this name, and a pod that refers to it, while the apiserver does not answer.
    async fn check(name: &str, is_asked_for: bool) {
        let pod = pod_of(name);
        let (caches, control) = caches(&[("v1", "Pod", &pod)]).await;
        caches.set_served(serving(&[PODS, REPLICA_SETS]));
        let owner = caches.observe(&control, Uid::parse(OWNER)).await.unwrap().unwrap();
        assert!(!caches.kinds.is_unreadable(&REPLICA_SETS), "observing writes nothing");
        caches.remember(Uid::parse(OWNER), &owner.learned);
        assert_eq!(caches.kinds.is_unreadable(&REPLICA_SETS), is_asked_for);
        let live: LiveObject = serde_json::from_str(&pod).unwrap();
        let identity = caches.with_graph(|graph| graph.node(Uid::parse(POD)).unwrap().identity.clone());
        let mut learned = Learned::default();
        let mut reads = Reads { caches: &caches, control: &control, learned: &mut learned };
        let owners = reads.owners(&identity, live.owners().unwrap()).await;
        let failed: Vec<String> = learned.reads.iter().map(|(resource, _)| resource.to_string()).collect();
        assert_eq!(failed, if is_asked_for { vec!["replicasets.apps".to_owned()] } else { Vec::new() });
        let seen = (matches!(owner.live, Live::Unread(_)), matches!(owners, Owners::Unread(_)));
        assert_eq!(seen, (is_asked_for, is_asked_for), "{name:?}");
        let seen = (matches!(owner.live, Live::InvalidName), matches!(owners, Owners::InvalidName(_)));
        assert_eq!(seen, (!is_asked_for, !is_asked_for), "{name:?}");
    }

    #[tokio::test]
    async fn an_owner_is_asked_for_by_every_name_that_an_object_can_have_and_by_no_other() {
        for name in ["web", "dev?x", "a b#c", "system:a", "..."] {
            check(name, true).await;
        }
        for name in ["", ".", "..", "a/b", "../../../secrets", "50%", "%2e%2e"] {
            check(name, false).await;
        }
    }
}
