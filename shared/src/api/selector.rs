//! Label selectors: the serde form of the API, the text form of a scale, and the compiled form that matches.
//!
//! Left out: field selectors, which informers have as texts.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::api::intern::Text;
use crate::api::labels::Labels;
use crate::api::object::null_as_default;

mod go;
pub mod query;
pub mod text;
mod validation;

/// A selector as the API serves it; `{}` matches everything.
///
/// Upstream: `LabelSelector`, `staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Each pair is a requirement that the label has exactly this value.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub match_labels: Labels,
    /// Requirements on sets of values, all of which must hold too.
    #[serde(skip_serializing_if = "<[_]>::is_empty", deserialize_with = "null_as_default")]
    pub match_expressions: Box<[LabelSelectorRequirement]>,
}

impl LabelSelector {
    /// Whether it is `{}`, which selects everything.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }
}

/// One entry of `matchExpressions`, unchecked.
///
/// Upstream: `LabelSelectorRequirement`, `staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct LabelSelectorRequirement {
    pub key: Text,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: Text,
    /// The set: not empty for `In` and `NotIn`, empty for the others.
    #[serde(skip_serializing_if = "<[_]>::is_empty", deserialize_with = "null_as_default")]
    pub values: Box<[Text]>,
}

/// Why a selector cannot be used, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSelector {
    /// `matchExpressions` names an operator that does not exist.
    #[error("{0:?} is not a valid label selector operator")]
    Operator(String),
    /// One requirement has these faults; there is at least one.
    #[error("{}", one_or_list(.0))]
    Requirement(Vec<String>),
}

impl Serialize for InvalidSelector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn one_or_list(faults: &[String]) -> String {
    match faults {
        [fault] => fault.clone(),
        faults => format!("[{}]", faults.join(", ")),
    }
}

/// A compiled selector: requirements sorted by key, all of which must hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selector(Matching);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Matching {
    Nothing,
    All(Box<[Requirement]>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Requirement {
    key: Text,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Test {
    Equals(Text),
    NotEquals(Text),
    GreaterThan(i64),
    LessThan(i64),
    In(Box<[Text]>),
    NotIn(Box<[Text]>),
    Exists,
    DoesNotExist,
}

impl Selector {
    /// Compiles a selector of the API; the error is that of the first requirement with a fault, `matchLabels` first.
    ///
    /// Upstream: `LabelSelectorAsSelector`, `staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go`.
    pub fn parse(selector: &LabelSelector) -> Result<Self, InvalidSelector> {
        let equalities = selector.match_labels.iter().map(|(key, value)| {
            let value = Text::new(value);
            validation::check(key, std::slice::from_ref(&value), None)?;
            Ok(Requirement { key: Text::new(key), test: Test::Equals(value) })
        });
        let expressions = selector.match_expressions.iter().map(Requirement::parse);
        let mut requirements: Vec<_> = equalities.chain(expressions).collect::<Result<_, _>>()?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self(Matching::All(requirements.into())))
    }

    /// The selector of a plain map, as a `ReplicationController` or Service has it: not validated; empty matches everything.
    ///
    /// Upstream: `SelectorFromSet`, `staging/src/k8s.io/apimachinery/pkg/labels/selector.go`.
    pub fn from_labels(labels: &Labels) -> Self {
        let equal = |(key, value)| Requirement { key: Text::new(key), test: Test::Equals(Text::new(value)) };
        Self(Matching::All(labels.iter().map(equal).collect()))
    }

    /// Matches no object: what a selector that is absent means.
    pub const fn nothing() -> Self {
        Self(Matching::Nothing)
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        match &self.0 {
            Matching::Nothing => false,
            Matching::All(requirements) => requirements.iter().all(|requirement| requirement.matches(labels)),
        }
    }

    /// Whether only objects with this label, of whatever value, can be selected.
    pub fn requires(&self, key: &str) -> bool {
        match &self.0 {
            Matching::Nothing => true,
            Matching::All(requirements) => requirements.iter().any(|requirement| requirement.requires(key)),
        }
    }

    /// A label that every selected object has; none if the selector asks for no certain one.
    pub fn anchor(&self) -> Option<(&str, &str)> {
        let Matching::All(requirements) = &self.0 else { return None };
        requirements.iter().find_map(|Requirement { key, test }| match test {
            Test::Equals(value) => Some((key.as_str(), value.as_str())),
            Test::In(values) => match &**values {
                [value] => Some((key.as_str(), value.as_str())),
                _ => None,
            },
            Test::NotEquals(_)
            | Test::GreaterThan(_)
            | Test::LessThan(_)
            | Test::NotIn(_)
            | Test::Exists
            | Test::DoesNotExist => None,
        })
    }

    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Matching::Nothing => false,
            Matching::All(requirements) => requirements.is_empty(),
        }
    }
}

impl Requirement {
    fn parse(requirement: &LabelSelectorRequirement) -> Result<Self, InvalidSelector> {
        let values = requirement.values.clone();
        let (test, wants_values) = match requirement.operator.as_str() {
            "In" => (Test::In(values), true),
            "NotIn" => (Test::NotIn(values), true),
            "Exists" => (Test::Exists, false),
            "DoesNotExist" => (Test::DoesNotExist, false),
            unknown => return Err(InvalidSelector::Operator(unknown.to_owned())),
        };
        validation::check(&requirement.key, &requirement.values, Some(wants_values))?;
        Ok(Self { key: requirement.key.clone(), test })
    }

    fn requires(&self, key: &str) -> bool {
        let is_there = match &self.test {
            Test::Equals(_) | Test::GreaterThan(_) | Test::LessThan(_) | Test::In(_) | Test::Exists => true,
            Test::NotEquals(_) | Test::NotIn(_) | Test::DoesNotExist => false,
        };
        is_there && self.key == *key
    }

    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::Equals(wanted) => value == Some(wanted.as_str()),
            Test::NotEquals(wanted) => value != Some(wanted.as_str()),
            Test::GreaterThan(least) => number().is_some_and(|number| number > *least),
            Test::LessThan(most) => number().is_some_and(|number| number < *most),
            Test::In(values) => value.is_some_and(|value| values.iter().any(|wanted| *wanted == *value)),
            Test::NotIn(values) => !value.is_some_and(|value| values.iter().any(|wanted| *wanted == *value)),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
        }
    }
}

/// As upstream prints it: `app=web,tier in (a,b),!old`; `""` for one that matches everything or nothing.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Matching::All(requirements) = &self.0 else { return Ok(()) };
        for (at, requirement) in requirements.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.test {
            Test::Equals(value) => write!(f, "{key}={value}"),
            Test::NotEquals(value) => write!(f, "{key}!={value}"),
            Test::GreaterThan(number) => write!(f, "{key}>{number}"),
            Test::LessThan(number) => write!(f, "{key}<{number}"),
            Test::In(values) => write!(f, "{key} in ({})", sorted(values)),
            Test::NotIn(values) => write!(f, "{key} notin ({})", sorted(values)),
            Test::Exists => write!(f, "{key}"),
            Test::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

fn sorted(values: &[Text]) -> String {
    let mut values: Vec<&str> = values.iter().map(Text::as_str).collect();
    values.sort_unstable();
    values.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> LabelSelector {
        serde_json::from_str(json).unwrap()
    }

    fn check(json: &str, printed: &str, matching: &[&[(&str, &str)]], other: &[&[(&str, &str)]]) {
        let selector = Selector::parse(&read(json)).unwrap();
        assert_eq!(selector.to_string(), printed);
        for labels in matching {
            assert!(selector.matches(&Labels::new(labels.iter().copied())), "{printed} selects {labels:?}");
        }
        for labels in other {
            assert!(!selector.matches(&Labels::new(labels.iter().copied())), "{printed} leaves {labels:?}");
        }
    }

    #[test]
    fn requires_a_label_only_where_no_object_without_it_is_selected() {
        let requires = |json: &str| Selector::parse(&read(json)).unwrap().requires("a");
        let expression = |operator: &str, values: &str| {
            requires(&format!(r#"{{"matchExpressions":[{{"key":"a","operator":"{operator}"{values}}}]}}"#))
        };
        assert!(requires(r#"{"matchLabels":{"a":"1","b":"2"}}"#));
        assert!(expression("In", r#","values":["1"]"#));
        assert!(expression("Exists", ""));
        assert!(Selector::nothing().requires("a"));
        assert!(!requires(r#"{"matchLabels":{"b":"2"}}"#));
        assert!(!requires("{}"));
        assert!(!expression("NotIn", r#","values":["1"]"#));
        assert!(!expression("DoesNotExist", ""));
    }

    #[test]
    fn an_anchor_is_a_label_that_all_selected_objects_have() {
        for (json, anchor) in [
            (r#"{"matchLabels":{"b":"2","a":"1"}}"#, Some(("a", "1"))),
            (r#"{"matchLabels":{"b":"2"},"matchExpressions":[{"key":"a","operator":"Exists"}]}"#, Some(("b", "2"))),
            (r#"{"matchExpressions":[{"key":"a","operator":"In","values":["1"]}]}"#, Some(("a", "1"))),
            (r#"{"matchExpressions":[{"key":"a","operator":"In","values":["1","2"]}]}"#, None),
            (r#"{"matchExpressions":[{"key":"a","operator":"NotIn","values":["1"]}]}"#, None),
            ("{}", None),
        ] {
            assert_eq!(Selector::parse(&read(json)).unwrap().anchor(), anchor, "{json}");
        }
        assert_eq!(Selector::nothing().anchor(), None);
    }

    #[test]
    fn matches_and_prints_as_upstream() {
        check("{}", "", &[&[], &[("a", "b")]], &[]);
        check(r#"{"matchLabels":null,"matchExpressions":null}"#, "", &[&[]], &[]);
        check(
            r#"{"matchLabels":{"b":"2","a":"1"}}"#,
            "a=1,b=2",
            &[&[("a", "1"), ("b", "2"), ("c", "3")]],
            &[&[], &[("a", "1")], &[("a", "1"), ("b", "1")]],
        );
        check(
            r#"{"matchExpressions":[{"key":"a","operator":"In","values":["y","x",""]}]}"#,
            "a in (,x,y)",
            &[&[("a", "x")], &[("a", "")]],
            &[&[], &[("a", "z")], &[("b", "x")]],
        );
        check(
            r#"{"matchExpressions":[{"key":"a","operator":"NotIn","values":["x"]}]}"#,
            "a notin (x)",
            &[&[], &[("a", "z")]],
            &[&[("a", "x")]],
        );
        check(r#"{"matchExpressions":[{"key":"a","operator":"Exists"}]}"#, "a", &[&[("a", "")]], &[&[], &[("b", "")]]);
        check(
            r#"{"matchLabels":{"z":"1"},"matchExpressions":[{"key":"a","operator":"DoesNotExist"}]}"#,
            "!a,z=1",
            &[&[("z", "1")]],
            &[&[("z", "1"), ("a", "")]],
        );
    }

    #[test]
    fn a_plain_map_is_not_validated() {
        let selector = Selector::from_labels(&Labels::new([("not a key", "1")]));
        assert!(selector.matches(&Labels::new([("not a key", "1")])));
        assert_eq!(selector.to_string(), "not a key=1");
        assert!(Selector::from_labels(&Labels::default()).is_empty());
    }

    #[test]
    fn nothing_is_not_everything() {
        assert!(!Selector::nothing().is_empty());
        assert!(!Selector::nothing().matches(&Labels::default()));
    }

    #[test]
    fn faults_are_told_in_upstreams_words() {
        let error = |json: &str| Selector::parse(&read(json)).unwrap_err().to_string();
        assert_eq!(
            error(r#"{"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]}"#),
            r#""Gt" is not a valid label selector operator"#
        );
        assert_eq!(
            error(r#"{"matchExpressions":[{"key":"a","operator":"In"}]}"#),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
        );
        assert_eq!(
            error(r#"{"matchExpressions":[{"key":"a/b/c","operator":"Exists","values":["x","-"]}]}"#),
            "[key: Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric characters, '-', '_' or '.', \
             and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex \
             used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix \
             and '/' (e.g. 'example.com/MyName'), \
             values: Invalid value: [\"x\",\"-\"]: values set must be empty for exists and does not exist, \
             values[1][a/b/c]: Invalid value: \"-\": a valid label must be an empty string or consist of alphanumeric \
             characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
             'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')]"
        );
    }

    #[test]
    fn serves_what_it_was_given() {
        let json = r#"{"matchLabels":{"a":"1"},"matchExpressions":[{"key":"b","operator":"In","values":["z","y"]}]}"#;
        let selector = read(json);
        assert_eq!(serde_json::to_string(&selector).unwrap(), json);
        assert_eq!(serde_json::to_string(&LabelSelector::default()).unwrap(), "{}");
    }
}
