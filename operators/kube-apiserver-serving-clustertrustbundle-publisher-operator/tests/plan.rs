//! The plan for the signer's bundles: upstream's cases, and the properties of any bundles.

use std::sync::Arc;

use kube_apiserver_serving_clustertrustbundle_publisher_operator::objects::{
    CLUSTER_TRUST_BUNDLES, ClusterTrustBundle, SIGNER, bundle_name, is_of_signer,
};
use kube_apiserver_serving_clustertrustbundle_publisher_operator::observe::Observed;
use kube_apiserver_serving_clustertrustbundle_publisher_operator::plan::{
    Deletion, Plan, Publish, plan, plan_live_read,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::resource::Resource;
use shared::testing::properties::order_is_irrelevant;
use shared::testing::{ObjectBuilder, object, uid};

const CA: &str = "fake-root-ca";
/// The name of its bundle, by `sha256sum`.
const NAME: &str = "kubernetes.io:kube-apiserver-serving:44e531b7517f083233486af6";
const OTHER: &str = "kubernetes.io:kube-apiserver-serving:name2";

fn bundle(name: &str, content: &str) -> ObjectBuilder {
    let spec = json!({ "signerName": SIGNER, "trustBundle": content });
    object("certificates.k8s.io/v1beta1", "ClusterTrustBundle", name).namespace("").set(&["spec"], spec)
}

/// As it is where the cache is right, and the CA's bundle is read anew.
fn observed(bundles: &[ObjectBuilder]) -> Observed {
    let live = bundles.iter().find(|bundle| bundle.json()["metadata"]["name"] == NAME);
    let live = live.map(|bundle| bundle.json().clone());
    let mut bundles: Vec<Arc<ClusterTrustBundle>> = bundles.iter().map(ObjectBuilder::build).collect();
    bundles.sort_by(|a, b| a.metadata.key.cmp(&b.metadata.key));
    Observed { served: Some(CLUSTER_TRUST_BUNDLES), ca: Some(Text::new(CA)), bundles, live }
}

#[track_caller]
fn check(bundles: &[ObjectBuilder], expected: &str) {
    assert_eq!(plan(&observed(bundles)).to_string(), expected);
}

/// Upstream: `TestCTBPublisherSync`. Bundles of other signers are not observed.
#[test]
fn the_ca_has_its_bundle_and_the_signer_has_no_other() {
    // "no CTBs exist", "no CTBs for the current signer exist"
    check(&[], "create the CA's bundle (the CA has no bundle)");
    // "CTB for the signer exists with different content"
    check(&[bundle(NAME, "olddata")], &format!("update {NAME} (the CA's bundle has other content)"));
    // "multiple CTBs for the signer"
    let delete = format!("delete {OTHER}");
    let more = "; other bundles of the signer: 1";
    check(&[bundle(NAME, CA), bundle(OTHER, CA)], &format!("{delete} (the CA's bundle is right{more})"));
    // "multiple CTBs for the signer - the one with the proper name needs changing"
    check(
        &[bundle(NAME, "olddata"), bundle(OTHER, CA)],
        &format!("update {NAME}, {delete} (the CA's bundle has other content{more})"),
    );
    // "another CTB with a different name exists for the signer"
    check(&[bundle(OTHER, CA)], &format!("create the CA's bundle, {delete} (the CA has no bundle{more})"));
    // "CTB at the correct state - noop"
    check(&[bundle(NAME, CA)], "nothing (the CA's bundle is right)");
}

#[test]
fn nothing_is_written_where_no_bundle_is_served_or_no_ca_is_known() {
    let there = observed(&[bundle(NAME, "olddata"), bundle(OTHER, CA)]);
    let unserved = Observed { served: None, ..there.clone() };
    assert_eq!(plan(&unserved).to_string(), "nothing (the apiserver serves no bundles)");
    let nameless = Observed { ca: None, ..there };
    assert_eq!(plan(&nameless).to_string(), "nothing (no CA to publish; set --root-ca-file)");
    assert_eq!((plan_live_read(&unserved), plan_live_read(&nameless)), (None, None));
}

#[test]
fn a_new_bundle_is_upstreams_in_the_version_that_is_served() {
    for version in ["v1", "v1beta1", "v1alpha1"] {
        let served = Some(Resource { version: version.into(), ..CLUSTER_TRUST_BUNDLES });
        let Publish::Create(body) = plan(&Observed { served, ..observed(&[]) }).publish else {
            unreachable!("there is none")
        };
        let expected = json!({
            "apiVersion": format!("certificates.k8s.io/{version}"), "kind": "ClusterTrustBundle",
            "metadata": { "name": NAME },
            "spec": { "signerName": "kubernetes.io/kube-apiserver-serving", "trustBundle": CA },
        });
        assert_eq!(body, expected);
    }
    assert!(is_of_signer(NAME) && !is_of_signer("kubernetes.io:kube-apiserver-serving-other:a"));
}

#[test]
fn what_the_apiserver_has_is_decided_on_where_the_cache_is_behind() {
    let spoilt = observed(&[bundle(NAME, "olddata"), bundle(OTHER, CA)]);
    let reading = plan_live_read(&spoilt).map(|read| read.to_string());
    let reason = "the CA's bundle has other content; other bundles of the signer: 1";
    assert_eq!(reading, Some(format!("reread the CA's bundle ({reason})")));
    let behind = |live: Option<Value>| plan(&Observed { live, ..spoilt.clone() }).to_string();
    let right = format!("delete {OTHER} (the CA's bundle is right; other bundles of the signer: 1)");
    assert_eq!(behind(Some(bundle(NAME, CA).json().clone())), right);
    // The others stay until there is one again.
    assert_eq!(behind(None), "nothing (the CA's bundle was deleted)");
}

#[test]
fn all_else_in_a_bundle_stays() {
    let others = bundle(NAME, "olddata").label("a", "b").annotation("c", "d").set(&["spec", "notKnownYet"], 1);
    let mut expected = others.json().clone();
    expected["spec"]["trustBundle"] = CA.into();
    let Publish::Update { key, body } = plan(&observed(&[others])).publish else { unreachable!("it is wrong") };
    assert_eq!((key.as_str(), body), (NAME, expected));
}

#[test]
fn a_bundle_that_a_finalizer_keeps_is_not_deleted_again() {
    check(&[bundle(NAME, CA), bundle(OTHER, CA).terminating()], "nothing (the CA's bundle is right)");
}

fn any_bundles() -> impl Strategy<Value = Vec<ObjectBuilder>> {
    let name = prop_oneof![Just(NAME.to_owned()), "[a-c]".prop_map(|rest| format!("{}{rest}", &NAME[..37]))];
    let content = prop_oneof![Just(CA.to_owned()), Just(String::new()), "[a-z]{1,3}"];
    let bundles = proptest::collection::btree_map(name, (content, any::<bool>()), 0..4);
    bundles.prop_map(|bundles| {
        let built = bundles.into_iter().map(|(name, (content, is_deleted))| {
            let built = bundle(&name, &content);
            if is_deleted { built.terminating() } else { built }
        });
        built.collect()
    })
}

/// The bundles after the plan for them was executed.
fn after(bundles: &[ObjectBuilder], plan: Plan) -> Vec<ObjectBuilder> {
    let Plan { publish, delete, reason: _ } = plan;
    let is_there = |bundle: &&ObjectBuilder| {
        let of = bundle.json()["metadata"]["name"].as_str().unwrap_or_default();
        !delete.iter().any(|Deletion { key, uid: _ }| key.as_str() == of)
    };
    let mut left: Vec<ObjectBuilder> = bundles.iter().filter(is_there).cloned().collect();
    match publish {
        Publish::Nothing => {}
        Publish::Create(body) => left.push(bundle(NAME, body["spec"]["trustBundle"].as_str().unwrap_or_default())),
        Publish::Update { key, body } => {
            left.retain(|bundle| bundle.json()["metadata"]["name"] != key.as_str());
            left.push(bundle(key.as_str(), body["spec"]["trustBundle"].as_str().unwrap_or_default()));
        }
    }
    left
}

proptest! {
    #[test]
    fn after_a_plan_there_is_nothing_left_to_plan(bundles in any_bundles()) {
        let observed_now = observed(&bundles);
        let left = after(&bundles, plan(&observed_now));
        let again = plan(&observed(&left));
        let is_done = again.publish == Publish::Nothing && again.delete.is_empty();
        prop_assert!(is_done, "{}", again);
        prop_assert_eq!(plan_live_read(&observed(&left)), None);
        let is_there = left.iter().any(|bundle| bundle.json()["metadata"]["name"] == NAME);
        prop_assert!(is_there, "the CA has no bundle");
    }

    #[test]
    fn what_goes_is_what_was_observed_and_never_the_bundle_of_the_ca(bundles in any_bundles()) {
        for Deletion { key, uid: of } in plan(&observed(&bundles)).delete {
            prop_assert_ne!(key.as_str(), NAME);
            prop_assert_eq!(of, uid(key.as_str()));
        }
        let in_order = |all: &[ObjectBuilder]| {
            let plan = plan(&observed(all));
            (plan.to_string(), plan.delete)
        };
        order_is_irrelevant(&bundles, in_order);
    }

    #[test]
    fn a_name_is_the_signer_and_a_short_hash(ca in ".{0,50}") {
        let name = bundle_name(&ca);
        let hash = &name[37..];
        prop_assert!(is_of_signer(&name) && hash.len() == 24, "{}", name);
        prop_assert!(hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{}", name);
    }
}
