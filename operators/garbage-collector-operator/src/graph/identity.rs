//! Which dependents mean which owner, if their references to one uid differ.

use shared::api::intern::Text;

use super::node::Node;
use crate::objects::Identity;

/// How a dependent's references to a uid compare with an owner's identity. Both may be true: it may have several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) agrees: bool,
    pub(super) disagrees: bool,
}

/// Upstream: `partitionDependents`, `pkg/controller/garbagecollector/graph_builder.go`.
pub(super) fn compare(dependent: &Node, owner: &Identity) -> Match {
    if !owner.namespace.is_empty() && owner.namespace != dependent.identity.namespace {
        return Match { agrees: false, disagrees: true };
    }
    dependent.references_to(owner.object.uid).fold(Match::default(), |found, reference| {
        let agrees = reference.owner == owner.object;
        Match { agrees: found.agrees || agrees, disagrees: found.disagrees || !agrees }
    })
}

/// The next identity that a uid may have once `absent` is known not to exist: of the identities that the dependents name,
/// the first after it, or the first of all.
///
/// Upstream: `getAlternateOwnerIdentity`, `pkg/controller/garbagecollector/graph_builder.go`.
pub(super) fn next_identity<'a>(dependents: impl IntoIterator<Item = &'a Node>, absent: &Identity) -> Option<Identity> {
    let is_cluster_scoped = absent.namespace.is_empty();
    let named = dependents.into_iter().flat_map(|dependent| {
        dependent.references_to(absent.object.uid).map(|reference| {
            let same_kind = reference.owner.kind == absent.object.kind;
            let namespace =
                if is_cluster_scoped && same_kind { Text::default() } else { dependent.identity.namespace.clone() };
            Identity { object: reference.owner.clone(), namespace }
        })
    });
    let mut others: Vec<Identity> = named.filter(|identity| identity != absent).collect();
    others.sort_unstable_by(|a, b| order(a).cmp(&order(b)));
    let next = others.iter().position(|identity| order(identity) > order(absent)).unwrap_or(0);
    (next < others.len()).then(|| others.swap_remove(next))
}

/// Upstream: `referenceLessThan`, `pkg/controller/garbagecollector/graph_builder.go`.
fn order(identity: &Identity) -> impl Ord + '_ {
    let object = &identity.object;
    (
        object.kind.kind.as_str(),
        object.kind.api_version.as_str(),
        identity.namespace.as_str(),
        &*object.name,
        object.uid,
    )
}
