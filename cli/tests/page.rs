//! docs/why.md names every field and every case of what is printed as JSON, and its tables of fields name no others.
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

/// A type or a table, and the names in it.
type Named = (String, Vec<String>);

/// The types that are serialized, each with its fields and cases.
fn types(source: &str) -> Vec<Named> {
    let mut found: Vec<Named> = Vec::new();
    let (mut is_printed, mut within) = (false, false);
    for line in source.lines() {
        let declared = line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub enum "));
        if line.starts_with("#[derive(") {
            is_printed = line.contains("Serialize");
        } else if let Some(declared) = declared {
            within = is_printed;
            let name = declared.split(' ').next().unwrap_or_default();
            found.extend(within.then(|| (name.to_owned(), Vec::new())));
        } else if line == "}" {
            within = false;
        } else if within && !line.trim_start().starts_with(['/', '#', '}']) {
            let name = line.trim().trim_start_matches("pub ");
            let name = name.split([':', ' ', ',', '(']).next().unwrap_or_default();
            if let Some((_, names)) = found.last_mut().filter(|_| !name.is_empty()) {
                names.push(camel(name));
            }
        }
    }
    found
}

/// The fields and cases of the types that are serialized.
fn names(source: &str) -> Vec<String> {
    types(source).into_iter().flat_map(|(_, names)| names).collect()
}

/// The tables of a type's fields or values, under the headings that name the types.
fn tables(page: &str) -> Vec<Named> {
    let mut found: Vec<Named> = Vec::new();
    let (mut heading, mut within) = ("", false);
    for line in page.lines() {
        if line.starts_with('#') {
            heading = line.strip_prefix("### ").unwrap_or_default();
        } else if line.starts_with("| field |") || line.starts_with("| value |") {
            within = !heading.is_empty();
            found.extend(within.then(|| (heading.to_owned(), Vec::new())));
        } else if !line.starts_with('|') {
            within = false;
        } else if let Some((_, names)) = found.last_mut().filter(|_| within) {
            let first = line.split('|').nth(1).unwrap_or_default();
            names.extend(first.split('`').skip(1).step_by(2).map(str::to_owned));
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
fn each_table_of_fields_has_those_of_its_type_and_no_others() {
    let types: Vec<Named> = SOURCES.iter().flat_map(|source| types(source)).collect();
    let tables = tables(PAGE);
    assert!(tables.len() >= 25, "{}: {tables:?}", tables.len());
    for (name, mut documented) in tables {
        let (_, mut names) = types.iter().find(|(known, _)| *known == name).cloned().unwrap_or_default();
        documented.sort();
        names.sort();
        assert_eq!(documented, names, "docs/why.md has not the fields of {name}");
    }
}

#[test]
fn fields_and_cases_are_found() {
    let source = "#[derive(Serialize)]\n#[serde(tag = \"a\")]\npub enum A {\n    /// B.\n    OfB {\n        /// C.\n        of_c: i64,\n    },\n    D,\n}\n\
                  #[derive(Debug)]\npub struct E {\n    pub f: i64,\n}\n";
    assert_eq!(names(source), ["ofB", "ofC", "d"]);
}

#[test]
fn tables_of_fields_are_found() {
    let page = "### A\n\n| field | what |\n|---|---|\n| `b`, `c` | As `d`. |\n\n| from | when |\n|---|---|\n| `e` | f |\n\n\
                ### G\n\n| value | what |\n|---|---|\n| `h` | i |\n\n## J\n\n| field | what |\n|---|---|\n| `k` | l |\n";
    let named = |name: &str, names: &[&str]| -> Named {
        (name.to_owned(), names.iter().map(|name| (*name).to_owned()).collect())
    };
    assert_eq!(tables(page), [named("A", &["b", "c"]), named("G", &["h"])]);
}
