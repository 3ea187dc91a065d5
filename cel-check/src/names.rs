//! The names that fields have in expressions.
//!
//! Upstream: `staging/src/k8s.io/apiserver/pkg/cel/escaping.go`.

/// Names that CEL keeps to itself; as a field, each has underscores around it.
///
/// Upstream: `celReservedSymbols`.
pub(crate) fn is_keyword(name: &str) -> bool {
    const KEYWORDS: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    KEYWORDS.contains(&name)
}

/// The name of a property in expressions; none if it cannot be written there.
///
/// Upstream: `Escape`.
pub(crate) fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if is_keyword(name) {
        return Some(format!("__{name}__"));
    }
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/');
    name.chars().all(is_allowed).then(|| {
        name.replace("__", "__underscores__").replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
    })
}

#[cfg(test)]
mod tests {
    use super::escape;

    /// Upstream: `TestEscaping`, `staging/src/k8s.io/apiserver/pkg/cel/escaping_test.go`.
    #[test]
    fn a_property_is_escaped_as_upstream_does() {
        let rows = [
            ("int", Some("int")),
            ("", None),
            ("4a", None),
            ("?", None),
            ("?a", None),
            ("a?b", None),
            ("true", Some("__true__")),
            ("while", Some("__while__")),
            ("namespace", Some("__namespace__")),
            ("_if", Some("_if")),
            ("_if_", Some("_if_")),
            ("__if", Some("__underscores__if")),
            ("has.dot", Some("has__dot__dot")),
            ("has-dash", Some("has__dash__dash")),
            ("has/slash", Some("has__slash__slash")),
            ("has_underscore", Some("has_underscore")),
            ("has__underscores", Some("has__underscores__underscores")),
            ("has__dot__", Some("has__underscores__dot__underscores__")),
            ("___", Some("__underscores___")),
        ];
        for (name, escaped) in rows {
            assert_eq!(escape(name).as_deref(), escaped, "{name}");
        }
    }
}
