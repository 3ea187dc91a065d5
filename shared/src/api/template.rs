//! Pod templates as raw JSON: kept, compared, hashed and changed without losing a field this build does not know.
//!
//! Templates are most of what a workload controller would have in memory, and most of them are copies of each other: a
//! Deployment and its ReplicaSet differ by one label. So that label is kept apart, and equal rest is one allocation.
//! The text of a template above [`KEPT_BYTES_MAX`] is not kept at all.
//! Left out: a typed template. A controller that needs a field of the spec reads it from [`PodTemplate::spec`].

mod canonical;
mod large;
mod raw;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::api::hash;
use crate::api::intern::{Interner, Text};
use crate::api::kept::{Digest, KEPT_BYTES_MAX};
use crate::api::labels::Labels;

use large::{Canonical, Large};

pub use raw::with_match_label;

/// The label by which the pods of one ReplicaSet of a Deployment differ from those of another.
pub const POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// A pod template as the apiserver served it. A copy is two pointers.
#[derive(Clone)]
pub struct PodTemplate {
    shared: Arc<Shared>,
    pod_template_hash: Option<Text>,
}

/// All of a template but its hash label.
struct Shared {
    content: Content,
    fingerprint: OnceLock<u128>,
    /// See [`PodTemplate::noted`]. Most templates have none.
    noted: [OnceLock<Box<[u128; 2]>>; 2],
}

enum Content {
    Whole(Box<RawValue>),
    Large(Box<Large>),
}

static TEMPLATES: LazyLock<Interner<Shared>> = LazyLock::new(Interner::new);

impl PodTemplate {
    /// Reads a template, however large it is.
    ///
    /// Its metadata must be an object and its labels texts; nothing else is looked at.
    pub fn from_json(json: Box<RawValue>) -> serde_json::Result<Self> {
        let outline: Option<Outline<'_>> = serde_json::from_str(json.get())?;
        let hash = outline.unwrap_or_default().metadata.and_then(|metadata| metadata.labels?.remove(POD_TEMPLATE_HASH));
        match hash {
            Some(hash) => {
                let rest = raw::without_label(&json, POD_TEMPLATE_HASH);
                Ok(Self::of(rest, Some(Text::new(&hash))))
            }
            None => Ok(Self::of(json, None)),
        }
    }

    /// For `deserialize_with`: a template however large it is, for a view that reads more of it before it is
    /// [kept](Self::kept).
    pub fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(Deserialize::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }

    fn of(json: Box<RawValue>, pod_template_hash: Option<Text>) -> Self {
        let shared = Shared::new(Content::Whole(json));
        // The text of a large one is not kept, so nobody shares it.
        let shared = if shared.content.is_large() { Arc::new(shared) } else { TEMPLATES.intern_owned(shared) };
        Self { shared, pod_template_hash }
    }

    /// The template as a cache keeps it: without its text if that is too large. The labels and all comparisons stay;
    /// annotations, finalizers and spec are gone, and it cannot be serialized.
    #[must_use]
    pub fn kept(self) -> Self {
        let Content::Whole(json) = &self.shared.content else { return self };
        if !self.is_large() {
            return self;
        }
        let shared = TEMPLATES.intern_owned(Shared::new(Content::Large(Box::new(Large::of(json)))));
        for (kept, noted) in shared.noted.iter().zip(&self.shared.noted) {
            if let Some(noted) = noted.get() {
                kept.get_or_init(|| noted.clone());
            }
        }
        Self { shared, pod_template_hash: self.pod_template_hash }
    }

    /// Whether the text is too large for a cache.
    pub fn is_large(&self) -> bool {
        self.shared.content.is_large()
    }

    pub fn bytes(&self) -> usize {
        match &self.shared.content {
            Content::Whole(json) => json.get().len(),
            Content::Large(large) => large.digest.bytes,
        }
    }

    /// The bytes of the text that were not kept; 0 if it is here.
    pub fn left_out(&self) -> usize {
        match &self.shared.content {
            Content::Whole(_) => 0,
            Content::Large(large) => large.digest.bytes,
        }
    }

    /// Whether both describe the same pods, `pod-template-hash` left out of account.
    ///
    /// As upstream: an empty list or map equals none, quantities are equal by value and times by instant, and an empty
    /// object is something else than none (`emptyDir: {}`). Fields this build does not know count too.
    ///
    /// Upstream: `EqualIgnoreHash`, `pkg/controller/deployment/util/deployment_util.go`, and `Semantic`,
    /// `staging/src/k8s.io/apimachinery/pkg/api/equality/semantic.go`.
    pub fn equals_ignoring_hash(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
            || (self.shared.fingerprint() == other.shared.fingerprint()
                && self.shared.content.means_the_same(&other.shared.content))
    }

    /// At most 10 characters for a name: the same for equal templates, another one after a collision.
    ///
    /// Upstream: `ComputeHash`, `pkg/controller/controller_utils.go`. It hashes a dump of Go structs, which differs between
    /// its releases and even between its decoders; here it is the canonical text.
    pub fn hash(&self, collision_count: Option<i32>) -> String {
        match &self.shared.content {
            Content::Whole(json) => hash::safe_hash(&canonical::text(json), collision_count),
            Content::Large(large) => hash::safe_hash_after(large.canonical.fnv1a_32, collision_count),
        }
    }

    /// The same number for templates that describe the same pods by the rules of [`Self::equals_ignoring_hash`] and have
    /// the same value of `pod-template-hash`.
    pub fn meaning(&self) -> u128 {
        let hash = self.pod_template_hash().unwrap_or_default();
        hash::fnv1a_128_after(self.shared.fingerprint(), [0_u8].into_iter().chain(hash.bytes()))
    }

    /// Two numbers that somebody has made of the text, which takes long, and noted in this place of two: they hold for
    /// all that have the text. None are noted of a template with a hash label.
    pub fn noted(&self, place: usize) -> Option<[u128; 2]> {
        self.place(place)?.get().map(|noted| **noted)
    }

    pub fn note(&self, place: usize, numbers: [u128; 2]) {
        if let Some(place) = self.place(place) {
            place.get_or_init(|| Box::new(numbers));
        }
    }

    fn place(&self, place: usize) -> Option<&OnceLock<Box<[u128; 2]>>> {
        self.shared.noted.get(place).filter(|_| self.pod_template_hash.is_none())
    }

    /// The value of the label `pod-template-hash`.
    pub fn pod_template_hash(&self) -> Option<&str> {
        self.pod_template_hash.as_deref()
    }

    pub fn labels(&self) -> Labels {
        let hash = self.pod_template_hash.as_deref().map(|hash| (POD_TEMPLATE_HASH, hash));
        match &self.shared.content {
            Content::Whole(json) => {
                let labels = Outline::of(json).labels();
                Labels::new(labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).chain(hash))
            }
            Content::Large(large) => Labels::new(large.labels.iter().chain(hash)),
        }
    }

    /// The annotations of its pods, as they are served.
    pub fn annotations(&self) -> Option<&RawValue> {
        self.metadata()?.annotations
    }

    /// The finalizers of its pods, as they are served.
    pub fn finalizers(&self) -> Option<&RawValue> {
        self.metadata()?.finalizers
    }

    /// The spec of its pods, as it is served.
    pub fn spec(&self) -> Option<&RawValue> {
        self.outline().spec
    }

    /// When the containers of its pods are restarted in place.
    pub fn restart_policy(&self) -> Option<Text> {
        match &self.shared.content {
            Content::Whole(json) => Outline::of(json).restart_policy(),
            Content::Large(large) => large.restart_policy.clone(),
        }
    }

    fn metadata(&self) -> Option<Metadata<'_>> {
        self.outline().metadata
    }

    fn outline(&self) -> Outline<'_> {
        match &self.shared.content {
            Content::Whole(json) => Outline::of(json),
            Content::Large(_) => Outline::default(),
        }
    }

    /// This template with another hash label. All else is the same text.
    #[must_use]
    pub fn with_hash(&self, hash: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), pod_template_hash: Some(Text::new(hash)) }
    }

    /// This template without its hash label. All else is the same text.
    #[must_use]
    pub fn without_hash(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), pod_template_hash: None }
    }
}

impl Shared {
    fn new(content: Content) -> Self {
        Self { content, fingerprint: OnceLock::new(), noted: Default::default() }
    }

    fn fingerprint(&self) -> u128 {
        match &self.content {
            Content::Whole(json) => *self.fingerprint.get_or_init(|| hash::fnv1a_128(canonical::text(json).bytes())),
            Content::Large(large) => large.canonical.fnv1a_128,
        }
    }
}

impl Content {
    fn means_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole(json), Self::Whole(other)) => canonical::text(json) == canonical::text(other),
            (Self::Whole(_) | Self::Large(_), _) => self.canonical().digest == other.canonical().digest,
        }
    }

    fn canonical(&self) -> Canonical {
        match self {
            Self::Whole(json) => Canonical::of(json),
            Self::Large(large) => large.canonical,
        }
    }

    fn is_large(&self) -> bool {
        match self {
            Self::Whole(json) => json.get().len() > KEPT_BYTES_MAX,
            Self::Large(_) => true,
        }
    }

    /// The digest of the text, if that is too large to keep.
    fn digest_of_large(&self) -> Option<Digest> {
        match self {
            Self::Whole(json) => self.is_large().then(|| Digest::of(json.get())),
            Self::Large(large) => Some(large.digest),
        }
    }
}

impl PartialEq for Shared {
    fn eq(&self, other: &Self) -> bool {
        match (&self.content, &other.content) {
            (Content::Whole(json), Content::Whole(other)) => json.get() == other.get(),
            (Content::Whole(_) | Content::Large(_), _) => {
                self.content.digest_of_large() == other.content.digest_of_large()
            }
        }
    }
}

impl Eq for Shared {}

impl Hash for Shared {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match (&self.content, self.content.digest_of_large()) {
            (Content::Whole(json), None) => json.get().hash(state),
            (Content::Whole(_) | Content::Large(_), digest) => digest.hash(state),
        }
    }
}

impl Default for PodTemplate {
    fn default() -> Self {
        Self::of(Box::default(), None)
    }
}

/// Equal as texts. Whether two describe the same pods is [`PodTemplate::equals_ignoring_hash`].
impl PartialEq for PodTemplate {
    fn eq(&self, other: &Self) -> bool {
        // Equal texts are one allocation, but for those that are too large to keep.
        let are_equal_texts = Arc::ptr_eq(&self.shared, &other.shared) || self.shared == other.shared;
        are_equal_texts && self.pod_template_hash == other.pod_template_hash
    }
}

impl Eq for PodTemplate {}

impl fmt::Debug for PodTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shared.content {
            Content::Whole(json) => f.write_str(json.get()),
            Content::Large(large) => large.digest.fmt(f),
        }?;
        self.pod_template_hash.as_ref().map_or(Ok(()), |hash| write!(f, " {POD_TEMPLATE_HASH}={hash}"))
    }
}

impl Serialize for PodTemplate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (&self.shared.content, &self.pod_template_hash) {
            (Content::Whole(json), Some(hash)) => raw::with_label(json, POD_TEMPLATE_HASH, hash).serialize(serializer),
            (Content::Whole(json), None) => json.serialize(serializer),
            (Content::Large(_), _) => Err(serde::ser::Error::custom("the text of the template was not kept")),
        }
    }
}

/// As a cache [keeps](PodTemplate::kept) it.
impl<'de> Deserialize<'de> for PodTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::whole(deserializer).map(Self::kept)
    }
}

#[derive(Default, Deserialize)]
struct Outline<'a> {
    #[serde(borrow, default)]
    metadata: Option<Metadata<'a>>,
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
}

impl<'a> Outline<'a> {
    /// Of a template that was read before.
    fn of(json: &'a RawValue) -> Self {
        serde_json::from_str(json.get()).unwrap_or_default()
    }

    fn labels(self) -> BTreeMap<String, String> {
        self.metadata.and_then(|metadata| metadata.labels).map(|labels| labels.0).unwrap_or_default()
    }

    fn restart_policy(&self) -> Option<Text> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Spec {
            restart_policy: Option<Text>,
        }
        serde_json::from_str::<Spec>(self.spec?.get()).ok()?.restart_policy
    }
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(default)]
    labels: Option<OwnedLabels>,
    #[serde(borrow, default)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow, default)]
    finalizers: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct OwnedLabels(BTreeMap<String, String>);

impl OwnedLabels {
    fn remove(mut self, key: &str) -> Option<String> {
        self.0.remove(key)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn template(json: &str) -> PodTemplate {
        serde_json::from_str(json).unwrap()
    }

    fn of_spec(spec: &str) -> PodTemplate {
        template(&format!(r#"{{"metadata":{{"labels":{{"app":"web"}}}},"spec":{spec}}}"#))
    }

    fn check(left: &str, right: &str, equal: bool) {
        let (left, right) = (of_spec(left), of_spec(right));
        assert_eq!(left.equals_ignoring_hash(&right), equal, "{left:?} {right:?}");
        assert_eq!(right.equals_ignoring_hash(&left), equal, "{right:?} {left:?}");
        assert_eq!(left.hash(None) == right.hash(None), equal, "hashes of {left:?} {right:?}");
    }

    #[test]
    fn the_hash_label_makes_no_difference_and_costs_no_copy() {
        let deployment = of_spec(r#"{"containers":[{"name":"c","image":"i"}]}"#);
        let json = r#"{"metadata":{"labels":{"app":"web","pod-template-hash":"5d4f"}},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
        let replica_set = template(json);
        assert!(deployment.equals_ignoring_hash(&replica_set));
        assert!(Arc::ptr_eq(&deployment.shared, &replica_set.shared));
        assert_ne!(deployment, replica_set);
        assert_eq!(replica_set.pod_template_hash(), Some("5d4f"));
        assert_eq!(serde_json::to_string(&replica_set).unwrap(), json);
        assert_eq!(deployment.with_hash("5d4f"), replica_set);
        assert_eq!(replica_set.without_hash(), deployment);
    }

    /// Upstream: `TestEqualIgnoreHash`.
    #[test]
    fn labels_other_than_the_hash_count() {
        let of_labels = |labels: &str| template(&format!(r#"{{"metadata":{{"labels":{labels}}}}}"#));
        for (left, right, equal) in [
            (r#"{"pod-template-hash":"1"}"#, "{}", true),
            (r#"{"pod-template-hash":"1"}"#, "null", true),
            (r#"{"pod-template-hash":"1"}"#, r#"{"pod-template-hash":"2"}"#, true),
            (r#"{"pod-template-hash":"1","a":"1"}"#, r#"{"a":"1"}"#, true),
            (r#"{"pod-template-hash":"1","a":"1"}"#, r#"{"pod-template-hash":"1","a":"2"}"#, false),
            (r#"{"a":"1"}"#, r#"{"a":"1","b":"1"}"#, false),
            (r#"{"pod-template-hash":"1"}"#, r#"{"other":"1"}"#, false),
        ] {
            assert_eq!(of_labels(left).equals_ignoring_hash(&of_labels(right)), equal, "{left} {right}");
        }
        for empty in [template("{}"), template("null"), PodTemplate::default()] {
            assert!(empty.equals_ignoring_hash(&of_labels("{}")));
            let labelled: PodTemplate =
                serde_json::from_str(&serde_json::to_string(&empty.with_hash("1")).unwrap()).unwrap();
            assert_eq!(labelled.labels(), Labels::new([(POD_TEMPLATE_HASH, "1")]));
        }
    }

    #[test]
    fn an_empty_list_or_map_equals_none() {
        check(r#"{"volumes":[]}"#, "{}", true);
        check(r#"{"volumes":null}"#, "{}", true);
        check(r#"{"nodeSelector":{}}"#, "{}", true);
        check(r#"{"containers":[{"resources":{"limits":{}}}]}"#, r#"{"containers":[{}]}"#, true);
        check(r#"{"containers":[{"resources":{}}]}"#, r#"{"containers":[{}]}"#, true);
        check(r#"{"containers":[{}]}"#, "{}", false);
        check(r#"{"containers":[{"args":[""]}]}"#, r#"{"containers":[{}]}"#, false);
    }

    #[test]
    fn an_empty_object_that_is_a_pointer_in_go_differs_from_none() {
        check(r#"{"volumes":[{"name":"v","emptyDir":{}}]}"#, r#"{"volumes":[{"name":"v"}]}"#, false);
        check(r#"{"securityContext":{}}"#, "{}", false);
        check(r#"{"resources":{}}"#, "{}", false);
        check(r#"{"securityContext":{"supplementalGroups":[]}}"#, r#"{"securityContext":{}}"#, true);
    }

    #[test]
    fn quantities_are_equal_by_value() {
        let memory = |text: &str| format!(r#"{{"containers":[{{"resources":{{"limits":{{"memory":{text}}}}}}}]}}"#);
        check(&memory(r#""1Gi""#), &memory(r#""1073741824""#), true);
        check(&memory(r#""0.5""#), &memory(r#""500m""#), true);
        check(&memory("1"), &memory(r#""1""#), true);
        check(&memory(r#""1Gi""#), &memory(r#""1G""#), false);
        check(&memory(r#""odd""#), &memory(r#""odd""#), true);
        check(&memory(r#""0""#), r#"{"containers":[{}]}"#, false);
        check(r#"{"overhead":{"cpu":"1"}}"#, r#"{"overhead":{"cpu":"1000m"}}"#, true);
        let size = |text: &str| format!(r#"{{"volumes":[{{"emptyDir":{{"sizeLimit":"{text}"}}}}]}}"#);
        check(&size("1Gi"), &size("1024Mi"), true);
        check(&size("0"), r#"{"volumes":[{"emptyDir":{}}]}"#, false);
        let divisor = |text: &str| format!(r#"{{"resourceFieldRef":{{"resource":"limits.cpu"{text}}}}}"#);
        check(&divisor(r#","divisor":"0""#), &divisor(""), true);
        check(&divisor(r#","divisor":"1""#), &divisor(r#","divisor":"1000m""#), true);
        check(&divisor(r#","divisor":"1m""#), &divisor(""), false);
    }

    #[test]
    fn texts_of_the_user_are_never_taken_for_quantities() {
        let annotations =
            |value: &str| format!(r#"{{"metadata":{{"annotations":{{"divisor":"{value}","limits":"1"}}}}}}"#);
        assert!(!template(&annotations("1")).equals_ignoring_hash(&template(&annotations("1000m"))));
        check(r#"{"nodeSelector":{"sizeLimit":"1"}}"#, r#"{"nodeSelector":{"sizeLimit":"1.0"}}"#, false);
        check(r#"{"nodeSelector":{"a":""}}"#, "{}", false);
    }

    #[test]
    fn times_are_equal_by_instant() {
        let created = |time: &str| template(&format!(r#"{{"metadata":{{"creationTimestamp":{time}}}}}"#));
        assert!(created("null").equals_ignoring_hash(&template("{}")));
        let utc = created(r#""2026-01-02T03:04:05Z""#);
        assert!(utc.equals_ignoring_hash(&created(r#""2026-01-02T04:04:05+01:00""#)));
        assert!(!utc.equals_ignoring_hash(&created(r#""2026-01-02T03:04:06Z""#)));
    }

    #[test]
    fn a_field_this_build_does_not_know_counts() {
        check(r#"{"newField":{"a":1}}"#, r#"{"newField":{"a":2}}"#, false);
        check(r#"{"newField":{"a":1}}"#, "{}", false);
        check(r#"{"newField":{"a":1,"b":[2]}}"#, r#"{"newField":{"b":[2],"a":1}}"#, true);
        check(r#"{"containers":[{"name":"a"},{"name":"b"}]}"#, r#"{"containers":[{"name":"b"},{"name":"a"}]}"#, false);
        check(r#"{"a":{"b":"c"}}"#, r#"{"a":{"b\":\"c":""}}"#, false);
    }

    #[test]
    fn what_pod_creation_needs_is_read_as_served() {
        let template = template(
            r#"{"metadata":{"name":"n","labels":{"app":"web","pod-template-hash":"1"},"annotations":{"a":"\u00e9"},"finalizers":["f"]},"spec":{"new":1.0}}"#,
        );
        assert_eq!(template.labels(), Labels::new([("app", "web"), ("pod-template-hash", "1")]));
        assert_eq!(template.annotations().map(RawValue::get), Some(r#"{"a":"\u00e9"}"#));
        assert_eq!(template.finalizers().map(RawValue::get), Some(r#"["f"]"#));
        assert_eq!(template.spec().map(RawValue::get), Some(r#"{"new":1.0}"#));
        let empty: PodTemplate = serde_json::from_str("{}").unwrap();
        assert!(empty.labels().is_empty() && empty.spec().is_none() && empty.finalizers().is_none());
    }

    #[test]
    fn what_is_noted_of_a_text_is_known_wherever_it_comes_again() {
        let first = of_spec(r#"{"noted":true}"#);
        assert_eq!(first.noted(0), None);
        first.note(0, [1, 2]);
        let again = of_spec(r#"{"noted":true}"#);
        assert_eq!((again.noted(0), again.noted(1), of_spec("{}").noted(0)), (Some([1, 2]), None, None));
        let hashed = again.with_hash("1");
        hashed.note(1, [3, 4]);
        assert_eq!((hashed.noted(0), again.noted(1)), (None, None), "another label is another template");
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for json in ["1", r#"{"metadata":1}"#, r#"{"metadata":{"labels":{"a":1}}}"#] {
            assert!(serde_json::from_str::<PodTemplate>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn the_hash_of_a_template_never_changes() {
        // Another value would give every existing ReplicaSet a second name.
        let template = of_spec(r#"{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"500m"}}}]}"#);
        assert_eq!(template.hash(None), "74f594874b");
        assert_eq!(template.hash(Some(1)), "6b8ccb4f59");
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            "[a-z0-9.]{0,4}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let key = prop_oneof![
                "[a-c]{1,2}",
                Just("limits".to_owned()),
                Just("labels".to_owned()),
                Just("divisor".to_owned())
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map(key, inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn equality_agrees_with_the_hash_and_survives_the_hash_label(left in json(), right in json()) {
            let of = |spec: &serde_json::Value| of_spec(&spec.to_string());
            let (left, right) = (of(&left), of(&right));
            prop_assert!(left.equals_ignoring_hash(&left.with_hash("x")));
            let canonical = |template: &PodTemplate| template.shared.content.canonical();
            prop_assert_eq!(left.equals_ignoring_hash(&right), canonical(&left) == canonical(&right));
            let served_again: PodTemplate = serde_json::from_str(&serde_json::to_string(&left).unwrap()).unwrap();
            prop_assert_eq!(served_again, left);
        }
    }
}
