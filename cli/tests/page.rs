//! docs/why.md names every field and every case of what is printed as JSON.
//!
//! Left out: whether what it says of them is true.

const PAGE: &str = include_str!("../../docs/why.md");

/// The files whose types are printed.
const SOURCES: [&str; 13] = [
    include_str!("../src/cause/batch.rs"),
    include_str!("../src/cause/cron.rs"),
    include_str!("../src/cause/deletion.rs"),
    include_str!("../src/cause/operators.rs"),
    include_str!("../src/cause/refusal.rs"),
    include_str!("../src/cause/service.rs"),
    include_str!("../src/cause/trouble.rs"),
    include_str!("../src/cause/workload.rs"),
    include_str!("../src/diagnosis.rs"),
    include_str!("../src/preflight.rs"),
    include_str!("../src/status.rs"),
    include_str!("../src/trace.rs"),
    include_str!("../../shared/src/api/explain.rs"),
];

/// As serde writes it.
fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default();
    let first = first[..1].to_lowercase() + &first[1..];
    let rest = parts.map(|part| part[..1].to_uppercase() + &part[1..]);
    std::iter::once(first).chain(rest).collect()
}

/// The fields and cases of the types that are serialized.
fn names(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut is_printed, mut within) = (false, false);
    for line in source.lines() {
        let is_type = line.starts_with("pub struct ") || line.starts_with("pub enum ");
        if line.starts_with("#[derive(") {
            is_printed = line.contains("Serialize");
        } else if is_type {
            within = is_printed;
        } else if line == "}" {
            within = false;
        } else if within && !line.trim_start().starts_with(['/', '#', '}']) {
            let name = line.trim().trim_start_matches("pub ");
            let name = name.split([':', ' ', ',', '(']).next().unwrap_or_default();
            found.extend((!name.is_empty()).then(|| camel(name)));
        }
    }
    found
}

#[test]
fn the_page_names_every_field_and_every_case() {
    let all: Vec<String> = SOURCES.iter().flat_map(|source| names(source)).collect();
    assert!(all.len() > 250 && all.iter().any(|name| name == "nextTry"), "{}: {all:?}", all.len());
    let missing: Vec<&String> = all.iter().filter(|name| !PAGE.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/why.md does not name {missing:?}");
}

#[test]
fn fields_and_cases_are_found() {
    let source = "#[derive(Serialize)]\n#[serde(tag = \"a\")]\npub enum A {\n    /// B.\n    OfB {\n        /// C.\n        of_c: i64,\n    },\n    D,\n}\n\
                  #[derive(Debug)]\npub struct E {\n    pub f: i64,\n}\n";
    assert_eq!(names(source), ["ofB", "ofC", "d"]);
}
