//! The written parts of statuses: the claims of a pod or PodGroup, and who a claim is reserved for.

use serde::Serialize;
use shared::api::object::Key;

use crate::objects::claim::Consumer;

/// The configuration of `status.resourceClaimStatuses` for server-side apply: each entry with the name of its claim.
/// It names all of them, because an entry that this field manager leaves out is removed.
pub(crate) fn resource_claim_statuses<'a>(
    user: &'a Key,
    claims: &'a [(Box<str>, Box<str>)],
) -> impl Serialize + use<'a> {
    let statuses = claims.iter().map(|(name, claim)| ClaimStatus { name, resource_claim_name: claim });
    Configuration {
        metadata: Metadata::of(user),
        status: ClaimStatuses { resource_claim_statuses: statuses.collect() },
    }
}

/// The strategic merge patch that takes a claim from the users with these uids, and its devices if it is deallocated;
/// none if it stays as it is.
pub(crate) fn released(users: &[Box<str>], deallocate: bool) -> Option<impl Serialize + use<'_>> {
    let gone = users.iter().map(|uid| GoneConsumer { directive: "delete", uid });
    let status = Released { reserved_for: gone.collect(), allocation: deallocate.then_some(()) };
    (!users.is_empty() || deallocate).then_some(Status { status })
}

/// The strategic merge patch that reserves a claim for one more user. The list is merged by uid.
pub(crate) fn reserved(consumer: &Consumer) -> impl Serialize + use<'_> {
    Status { status: Reserved { reserved_for: [consumer] } }
}

#[derive(Serialize)]
struct Configuration<'a> {
    metadata: Metadata<'a>,
    status: ClaimStatuses<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Metadata<'a> {
    fn of(key: &'a Key) -> Self {
        Self { namespace: key.namespace(), name: key.name() }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClaimStatuses<'a> {
    resource_claim_statuses: Vec<ClaimStatus<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClaimStatus<'a> {
    name: &'a str,
    resource_claim_name: &'a str,
}

#[derive(Serialize)]
struct Status<S> {
    status: S,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Released<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reserved_for: Vec<GoneConsumer<'a>>,
    /// As `null`, which removes the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    allocation: Option<()>,
}

#[derive(Serialize)]
struct GoneConsumer<'a> {
    #[serde(rename = "$patch")]
    directive: &'static str,
    uid: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reserved<'a> {
    reserved_for: [&'a Consumer; 1],
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn value(body: &impl Serialize) -> Value {
        serde_json::to_value(body).unwrap()
    }

    #[test]
    fn a_release_names_what_goes_and_nothing_else() {
        let users: [Box<str>; 2] = ["a".into(), "b".into()];
        let gone = json!([{ "$patch": "delete", "uid": "a" }, { "$patch": "delete", "uid": "b" }]);
        let both = json!({ "status": { "reservedFor": gone, "allocation": null } });
        assert_eq!(released(&users, true).map(|body| value(&body)), Some(both));
        let users_only = json!({ "status": { "reservedFor": gone } });
        assert_eq!(released(&users, false).map(|body| value(&body)), Some(users_only));
        let devices_only = json!({ "status": { "allocation": null } });
        assert_eq!(released(&[], true).map(|body| value(&body)), Some(devices_only));
        assert!(released(&[], false).is_none());
    }
}
