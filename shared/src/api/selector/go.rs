//! A selector as Go prints it, for messages in which upstream formats the whole struct.
//!
//! Left out: reading it back.

use super::{LabelSelector, LabelSelectorRequirement};
use crate::api::intern::Text;

impl LabelSelector {
    /// What Go prints for a pointer to it: `nil`, or the struct with its fields.
    ///
    /// Upstream: `String`, `staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/generated.pb.go`.
    pub fn as_go_prints_it(selector: Option<&Self>) -> String {
        let Some(Self { match_labels, match_expressions }) = selector else { return "nil".to_owned() };
        let labels: Vec<String> = match_labels.iter().map(|(key, value)| format!("{key}: {value},")).collect();
        let requirement = |LabelSelectorRequirement { key, operator, values }: &LabelSelectorRequirement| {
            let values: Vec<&str> = values.iter().map(Text::as_str).collect();
            format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},", values.join(" "))
        };
        let expressions: Vec<String> = match_expressions.iter().map(requirement).collect();
        format!(
            "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{}}},}}",
            labels.concat(),
            expressions.concat()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_prints_as_in_go() {
        assert_eq!(LabelSelector::as_go_prints_it(None), "nil");
        let selector: LabelSelector = serde_json::from_str(
            r#"{"matchLabels":{"b":"2","a":"1"},"matchExpressions":[{"key":"c","operator":"In","values":["x","y"]}]}"#,
        )
        .unwrap();
        assert_eq!(
            LabelSelector::as_go_prints_it(Some(&selector)),
            "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{\
             LabelSelectorRequirement{Key:c,Operator:In,Values:[x y],},},}"
        );
    }
}
