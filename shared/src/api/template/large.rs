//! What a cache keeps of a template that is too large for it: enough to compare and name the template, and to select
//! its pods.

use serde_json::value::RawValue;

use super::{Outline, canonical};
use crate::api::hash;
use crate::api::intern::Text;
use crate::api::kept::Digest;
use crate::api::labels::Labels;

/// A template without its text.
pub(super) struct Large {
    /// Of the text without the hash label.
    pub(super) digest: Digest,
    /// The labels of its pods but for the hash label.
    pub(super) labels: Labels,
    pub(super) restart_policy: Option<Text>,
    pub(super) canonical: Canonical,
}

impl Large {
    pub(super) fn of(json: &RawValue) -> Self {
        let outline = Outline::of(json);
        Self {
            digest: Digest::of(json.get()),
            restart_policy: outline.restart_policy(),
            labels: Labels::new(outline.labels()),
            canonical: Canonical::of(json),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Canonical {
    pub(super) digest: Digest,
    /// FNV-1a, from which the hash in names continues.
    pub(super) fnv1a_32: u32,
    pub(super) fnv1a_128: u128,
}

impl Canonical {
    pub(super) fn of(json: &RawValue) -> Self {
        let text = canonical::text(json);
        let bytes = || text.bytes();
        Self { digest: Digest::of(&text), fnv1a_32: hash::fnv1a_32(bytes()), fnv1a_128: hash::fnv1a_128(bytes()) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::api::kept::KEPT_BYTES_MAX;
    use crate::api::template::PodTemplate;

    /// A template with an argument of so many bytes.
    fn of_argument(bytes: usize, rest: &Value) -> PodTemplate {
        let mut json = json!({
            "metadata": { "labels": { "app": "web" } },
            "spec": { "containers": [{ "args": ["x".repeat(bytes)] }], "restartPolicy": "OnFailure", "rest": rest },
        });
        if rest.is_null() {
            json["spec"]["nodeSelector"] = json!({});
        }
        PodTemplate::from_json(serde_json::from_value(json).unwrap()).unwrap()
    }

    fn large(rest: &Value) -> PodTemplate {
        of_argument(1_000_000, rest)
    }

    #[test]
    fn a_template_above_the_limit_is_kept_without_its_text() {
        for (bytes, is_left_out) in [(KEPT_BYTES_MAX - 1000, false), (KEPT_BYTES_MAX, true), (1_400_000, true)] {
            let whole = of_argument(bytes, &json!(1));
            let (kept, text) = (whole.clone().kept(), serde_json::to_string(&whole).unwrap());
            assert_eq!(whole.left_out(), 0);
            assert_eq!(kept.left_out(), if is_left_out { text.len() } else { 0 });
            assert_eq!((kept.spec().is_none(), serde_json::to_string(&kept).is_err()), (is_left_out, is_left_out));
            let read: PodTemplate = serde_json::from_str(&text).unwrap();
            assert_eq!(read.left_out(), kept.left_out(), "a view reads what is kept");
        }
    }

    #[test]
    fn what_a_template_is_compared_and_named_by_is_kept() {
        let whole = large(&json!({ "memory": "1Gi" }));
        let kept = whole.clone().kept();
        assert_eq!((kept.labels(), kept.restart_policy()), (whole.labels(), whole.restart_policy()));
        assert_eq!(kept.restart_policy().as_deref(), Some("OnFailure"));
        assert_eq!((kept.hash(None), kept.hash(Some(3))), (whole.hash(None), whole.hash(Some(3))));
        assert_eq!(kept.meaning(), whole.meaning());
        assert_eq!(kept.with_hash("5d4f").meaning(), whole.with_hash("5d4f").meaning());
        assert_eq!(kept.with_hash("5d4f").labels(), whole.with_hash("5d4f").labels());
        assert_eq!(kept, whole);
    }

    #[test]
    fn large_templates_are_equal_as_small_ones_are() {
        let null = large(&Value::Null);
        for (other, equal) in [(large(&Value::Null), true), (large(&json!([])), true), (large(&json!(1)), false)] {
            for (left, right) in [
                (null.clone(), other.clone()),
                (null.clone().kept(), other.clone()),
                (null.clone(), other.clone().kept()),
                (null.clone().kept(), other.clone().kept().with_hash("5d4f")),
            ] {
                assert_eq!(left.equals_ignoring_hash(&right), equal, "{left:?} {right:?}");
                assert_eq!(right.equals_ignoring_hash(&left), equal, "{left:?} {right:?}");
                assert_eq!(left.hash(None) == right.hash(None), equal);
            }
        }
    }

    #[test]
    fn what_was_noted_of_the_text_is_kept() {
        let whole = large(&json!("noted"));
        whole.note(1, [1, 2]);
        let kept = whole.clone().kept();
        assert_eq!((kept.noted(0), kept.noted(1)), (None, Some([1, 2])));
        // Another reader of the same text knew it before.
        whole.note(0, [3, 4]);
        assert_eq!(whole.kept().noted(0), Some([3, 4]));
        assert_eq!(kept.noted(0), Some([3, 4]));
    }
}
