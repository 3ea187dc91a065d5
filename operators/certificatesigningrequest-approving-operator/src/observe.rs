//! Reads one request from the cache, and reviews the access of its requester.
//!
//! The requests seen before a review share it, such as those of many nodes that join with one bootstrap token. Later
//! requests get their own, because a permission may change at any time.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use serde::Serialize;
use shared::api::intern::Text;
use shared::api::object::Key;
use shared::following::answers::Answers;
use shared::following::cache::Cache;
use shared::following::informer::{Informer, InformerBuilder};
use shared::working::control::Control;

use crate::objects::{CertificateSigningRequest, Permission, Requester, State, TO_KUBELET_CLIENT_SIGNER};

#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub request: Arc<CertificateSigningRequest>,
    /// The reviews in their order, up to the first permission that the requester has.
    pub reviews: Vec<Review>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Review {
    pub permission: Permission,
    pub is_allowed: bool,
}

pub struct Caches {
    /// The requests to the signer of kubelets' client certificates.
    pub certificate_signing_requests: Arc<Cache<CertificateSigningRequest>>,
    answers: Answers<(Requester, Permission), bool>,
}

pub(crate) struct Informers {
    pub(crate) certificate_signing_requests: Informer<CertificateSigningRequest>,
}

impl Caches {
    pub(crate) fn new() -> (Self, Informers) {
        let certificate_signing_requests = InformerBuilder::new().fields(TO_KUBELET_CLIENT_SIGNER).build();
        let caches =
            Self { certificate_signing_requests: certificate_signing_requests.cache(), answers: Answers::default() };
        (caches, Informers { certificate_signing_requests })
    }

    /// Reads the request of this key, without reviews; none if it is gone, or another signer's.
    pub fn observe(&self, key: &Key) -> Option<Observed> {
        self.certificate_signing_requests.get(key).map(|request| Observed { request, reviews: Vec::new() })
    }

    /// The same observation with reviews of these permissions, one after the other until the requester has one.
    pub(crate) async fn review(
        &self,
        control: &Control,
        observed: Observed,
        permissions: Vec<Permission>,
    ) -> anyhow::Result<Observed> {
        let Observed { request, reviews: _ } = &observed;
        let (version, mut reviews) = (request.metadata.resource_version, Vec::new());
        let State::Undecided(undecided) = &request.state else { return Ok(observed) };
        for permission in permissions {
            let question = (undecided.requester.clone(), permission);
            let answer = async {
                let spec = Spec::new(&undecided.requester, permission);
                control.review_access(&spec).await.map(|status| status.allowed)
            };
            let seen = self.certificate_signing_requests.progress();
            let is_allowed = self.answers.ask(&question, version, seen, answer).await;
            let is_allowed = is_allowed.context("cannot review the access of the requester")?;
            reviews.push(Review { permission, is_allowed });
            if is_allowed {
                break;
            }
            // The next sync reviews it again.
            self.answers.forget(&question);
        }
        Ok(Observed { reviews, ..observed })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    user: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    groups: &'a [Text],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<&'a str, &'a [Text]>,
    resource_attributes: Attributes,
}

#[derive(Serialize)]
struct Attributes {
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    subresource: &'static str,
    verb: &'static str,
}

impl<'a> Spec<'a> {
    fn new(Requester { username, uid, groups, extra }: &'a Requester, permission: Permission) -> Self {
        let resource_attributes = Attributes {
            group: "certificates.k8s.io",
            version: "*",
            resource: "certificatesigningrequests",
            subresource: permission.subresource(),
            verb: "create",
        };
        let extra = extra.iter().map(|(key, values)| (&**key, &**values)).collect();
        Self { user: username, uid, groups, extra, resource_attributes }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_review_is_about_the_requester_as_the_apiserver_has_noted_it() {
        let mut requester = Requester {
            username: "system:bootstrap:abcdef".into(),
            uid: Text::default(),
            groups: Box::new(["system:bootstrappers".into()]),
            extra: Box::default(),
        };
        let attributes = |subresource: &str| {
            json!({
                "group": "certificates.k8s.io", "version": "*", "resource": "certificatesigningrequests",
                "subresource": subresource, "verb": "create",
            })
        };
        let spec = serde_json::to_value(Spec::new(&requester, Permission::NodeClient)).unwrap();
        let expected = json!({
            "user": "system:bootstrap:abcdef", "groups": ["system:bootstrappers"],
            "resourceAttributes": attributes("nodeclient"),
        });
        assert_eq!(spec, expected);
        requester.uid = "7d0f".into();
        requester.extra = Box::new([("example.com/a".into(), Box::new(["b".into(), "c".into()]))]);
        let spec = serde_json::to_value(Spec::new(&requester, Permission::SelfNodeClient)).unwrap();
        let expected = json!({
            "user": "system:bootstrap:abcdef", "uid": "7d0f", "groups": ["system:bootstrappers"],
            "extra": { "example.com/a": ["b", "c"] }, "resourceAttributes": attributes("selfnodeclient"),
        });
        assert_eq!(spec, expected);
    }
}
