//! Which requests are approved: upstream's cases, and what holds for any answers.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::net::Ipv4Addr;
use std::sync::LazyLock;

use certificatesigningrequest_approving_operator::objects::{KUBELET_CLIENT_SIGNER, Permission};
use certificatesigningrequest_approving_operator::observe::{Observed, Review};
use certificatesigningrequest_approving_operator::plan::{Plan, plan, plan_live_read};
use data_encoding::BASE64;
use proptest::prelude::*;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::{Value, json};
use shared::api::object::ResourceVersion;
use shared::testing::{ObjectBuilder, object, uid};
use shared::working::control::Preconditions;

const USAGES: [&str; 3] = ["key encipherment", "digital signature", "client auth"];
const USAGES_NO_RSA: [&str; 2] = ["digital signature", "client auth"];

/// A request that is made in a test.
struct Asked {
    signer: &'static str,
    common_name: &'static str,
    organization: Option<&'static str>,
    alt_names: Vec<SanType>,
    requester: &'static str,
    usages: Vec<&'static str>,
}

impl Asked {
    /// As a kubelet makes it, with these usages.
    fn by_kubelet(usages: &[&'static str]) -> Self {
        Self {
            signer: KUBELET_CLIENT_SIGNER,
            common_name: "system:node:foo",
            organization: Some("system:nodes"),
            alt_names: Vec::new(),
            requester: "system:node:foo",
            usages: usages.to_vec(),
        }
    }

    fn request(self) -> ObjectBuilder {
        let Self { signer, common_name, organization, alt_names, requester, usages } = self;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        if let Some(organization) = organization {
            params.distinguished_name.push(DnType::OrganizationName, organization);
        }
        params.subject_alt_names = alt_names;
        let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
        let spec = json!({
            "request": BASE64.encode(pem.as_bytes()), "signerName": signer, "usages": usages, "username": requester,
        });
        object("certificates.k8s.io/v1", "CertificateSigningRequest", "a").namespace("").set(&["spec"], spec)
    }
}

static BY_KUBELET: LazyLock<ObjectBuilder> = LazyLock::new(|| Asked::by_kubelet(&USAGES).request());

fn observed(request: &ObjectBuilder, reviews: &[(Permission, bool)]) -> Observed {
    let review =
        |(permission, is_allowed): &(Permission, bool)| Review { permission: *permission, is_allowed: *is_allowed };
    Observed { request: request.build(), reviews: reviews.iter().map(review).collect() }
}

/// The first stage of a sync.
fn first(request: &ObjectBuilder) -> String {
    let observed = observed(request, &[]);
    match plan_live_read(&observed) {
        Some(live_read) => live_read.to_string(),
        None => plan(&observed).to_string(),
    }
}

/// Upstream: `TestRecognizers`.
#[test]
fn a_kubelets_request_is_recognized_with_and_without_the_usage_of_an_rsa_key() {
    for usages in [&USAGES[..], &USAGES_NO_RSA] {
        let row = |change: fn(&mut Asked), expected: &str| {
            let mut asked = Asked::by_kubelet(usages);
            change(&mut asked);
            assert_eq!(first(&asked.request()), expected);
        };
        let both = "review the access of the requester (recognized as selfnodeclient, nodeclient)";
        let any = "review the access of the requester (recognized as nodeclient)";
        row(|_| {}, both);
        row(|asked| asked.requester = "joe", any);
        row(|asked| asked.common_name = "system:node:bar", any);
        let no_node = "nothing (not a kubelet's request: subject common name does not begin with system:node:)";
        row(|asked| asked.common_name = "mike", no_node);
        let other_organization = "nothing (not a kubelet's request: subject organization is not system:nodes)";
        row(|asked| asked.organization = None, other_organization);
        row(|asked| asked.organization = Some("system:master"), other_organization);
        let other_usages =
            "nothing (not a kubelet's request: usages did not match [client auth digital signature key encipherment])";
        row(|asked| asked.usages.push("server auth"), other_usages);
        row(|asked| asked.usages.truncate(1), other_usages);
        row(|asked| asked.signer = "example.com/not-correct", "nothing (for another signer)");
        row(|asked| asked.signer = "kubernetes.io/kubelet-serving", "nothing (for another signer)");
    }
}

#[test]
fn a_kubelets_client_certificate_has_no_alternative_names() {
    let row = |alt_name: SanType, expected: &str| {
        let asked = Asked { alt_names: vec![alt_name], ..Asked::by_kubelet(&USAGES) };
        assert_eq!(first(&asked.request()), format!("nothing (not a kubelet's request: {expected})"));
    };
    row(SanType::DnsName("a.example".try_into().unwrap()), "DNS subjectAltNames are not allowed");
    row(SanType::Rfc822Name("a@example.com".try_into().unwrap()), "Email subjectAltNames are not allowed");
    row(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()), "IP subjectAltNames are not allowed");
    row(SanType::URI("spiffe://a/b".try_into().unwrap()), "URI subjectAltNames are not allowed");
}

/// Upstream: `TestHandle`.
#[test]
fn a_recognized_request_is_approved_if_the_requester_is_allowed_to() {
    use Permission::{NodeClient, SelfNodeClient};
    let decided = |reviews: &[(Permission, bool)]| plan(&observed(&BY_KUBELET, reviews)).to_string();
    assert_eq!(
        decided(&[(SelfNodeClient, false), (NodeClient, false)]),
        "ask again (recognized as selfnodeclient, nodeclient, but subject access review was not approved)"
    );
    assert_eq!(decided(&[(SelfNodeClient, true)]), "approve (the requester may create selfnodeclient)");
    assert_eq!(
        decided(&[(SelfNodeClient, false), (NodeClient, true)]),
        "approve (the requester may create nodeclient)"
    );
    // Unrecognized, and allowed all the same.
    let mike = Asked { common_name: "mike", ..Asked::by_kubelet(&USAGES) }.request();
    let unrecognized = plan(&observed(&mike, &[(NodeClient, true)]));
    assert!(matches!(unrecognized, Plan::Nothing(_)), "{unrecognized}");
}

#[test]
fn an_approval_keeps_all_other_conditions_and_is_for_the_state_that_was_decided_on() {
    let failed = json!({ "type": "Failed", "status": "True", "reason": "SignerValidationFailure", "new": { "a": 1 } });
    let request = BY_KUBELET.clone().set(&["status", "conditions"], vec![failed.clone()]);
    let request = request.set(&["metadata", "resourceVersion"], "77");
    let decided = plan(&observed(&request, &[(Permission::SelfNodeClient, true)]));
    let Plan::Approve { permission, conditions, preconditions } = decided else { unreachable!("it is allowed") };
    let approval = json!({
        "type": "Approved", "status": "True", "reason": "AutoApproved",
        "message": "Auto approving self kubelet client certificate after SubjectAccessReview.",
    });
    assert_eq!((permission, conditions), (Permission::SelfNodeClient, vec![failed, approval]));
    assert_eq!(preconditions, Preconditions { uid: uid("a"), resource_version: Some(ResourceVersion(77)) });
    let message = "Auto approving kubelet client certificate after SubjectAccessReview.";
    assert_eq!(Permission::NodeClient.message(), message);
}

/// Upstream: `TestIsCertificateRequestApproved`.
#[test]
fn a_request_on_which_somebody_has_decided_is_left_alone() {
    let row = |types: &[&str], certificate: &str, expected: &str| {
        let conditions: Vec<Value> = types.iter().map(|type_| json!({ "type": type_ })).collect();
        let status = json!({ "conditions": conditions, "certificate": certificate });
        assert_eq!(first(&BY_KUBELET.clone().set(&["status"], status)), expected, "{types:?}");
    };
    let undecided = "review the access of the requester (recognized as selfnodeclient, nodeclient)";
    row(&[], "", undecided);
    row(&["Failed", "Reviewed"], "", undecided);
    row(&["Denied"], "", "nothing (denied)");
    row(&["Approved"], "", "nothing (already approved)");
    row(&["Approved", "Denied"], "", "nothing (denied)");
    row(&["Approved"], "c2lnbmVk", "nothing (has its certificate)");
}

#[test]
fn a_request_that_cannot_be_read_is_left_to_somebody_else() {
    let odd = BY_KUBELET.clone().set(&["spec", "request"], BASE64.encode(b"odd"));
    let expected = "nothing (cannot be read: not one PEM block of type CERTIFICATE REQUEST and nothing else)";
    assert_eq!(first(&odd), expected);
    let bare = object("certificates.k8s.io/v1", "CertificateSigningRequest", "a").namespace("");
    assert_eq!(first(&bare), "nothing (for another signer)");
}

proptest! {
    #[test]
    fn nothing_is_approved_without_a_permission(answers in proptest::collection::vec(any::<bool>(), 0..3)) {
        let asked = [Permission::SelfNodeClient, Permission::NodeClient];
        let reviews: Vec<_> = asked.into_iter().zip(answers.iter().copied()).collect();
        let decided = plan(&observed(&BY_KUBELET, &reviews));
        let is_approved = matches!(decided, Plan::Approve { .. });
        prop_assert_eq!(is_approved, reviews.iter().any(|(_, is_allowed)| *is_allowed), "{}", decided);
    }
}
