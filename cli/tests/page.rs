//! docs/why.md names every field and every case of the JSON that is printed, and its table of types names no others.

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
    include_str!("../src/preflight/report.rs"),
    include_str!("../src/status.rs"),
    include_str!("../src/trace/story.rs"),
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
            // A variant with few fields stands on one line.
            let (head, fields) = line.split_once(" { ").unwrap_or((line, ""));
            let fields = fields.trim_end_matches([' ', '}', ',']).split(", ");
            for name in std::iter::once(head).chain(fields) {
                let name = name.trim().trim_start_matches("pub ");
                let name = name.split([':', ' ', ',', '(']).next().unwrap_or_default();
                if let Some((_, names)) = found.last_mut().filter(|_| !name.is_empty()) {
                    names.push(camel(name));
                }
            }
        }
    }
    found
}

/// The fields and cases of the types that are serialized.
fn names(source: &str) -> Vec<String> {
    types(source).into_iter().flat_map(|(_, names)| names).collect()
}

/// The rows of the table of types: each type, and the names that its fields begin with.
fn documented(page: &str) -> Vec<Named> {
    let lines = page.lines().skip_while(|line| *line != "| type | fields |").skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let name = cells.next().unwrap_or_default().to_owned();
        let fields = cells.next().unwrap_or_default().split("; ");
        (name, fields.filter_map(|field| Some(field.split('`').nth(1)?.to_owned())).collect())
    };
    rows.map(row).collect()
}

#[test]
fn the_page_names_every_field_and_every_case() {
    let all: Vec<String> = SOURCES.iter().flat_map(|source| names(source)).collect();
    assert!(all.len() > 250 && all.iter().any(|name| name == "nextTry"), "{}: {all:?}", all.len());
    let missing: Vec<&String> = all.iter().filter(|name| !PAGE.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "missing in docs/why.md: {missing:?}");
}

#[test]
fn each_type_has_its_fields_and_no_others() {
    let types: Vec<Named> = SOURCES.iter().flat_map(|source| types(source)).collect();
    let documented = documented(PAGE);
    assert!(documented.len() >= 25, "{}: {documented:?}", documented.len());
    for (name, mut fields) in documented {
        let (_, mut names) = types.iter().find(|(known, _)| *known == name).cloned().unwrap_or_default();
        fields.sort();
        names.sort();
        names.dedup();
        assert_eq!(fields, names, "the fields of {name} in docs/why.md");
    }
}

#[test]
fn fields_and_cases_are_found() {
    let source = "#[derive(Serialize)]\n#[serde(tag = \"a\")]\npub enum A {\n    /// B.\n    OfB {\n        /// C.\n        of_c: i64,\n    },\n    D,\n    E { f: i64, g: Option<i64> },\n}\n\
                  #[derive(Debug)]\npub struct H {\n    pub i: i64,\n}\n";
    assert_eq!(names(source), ["ofB", "ofC", "d", "e", "f", "g"]);
}

#[test]
fn documented_fields_are_found() {
    let page = "| case | fields |\n|---|---|\n| `x` | `y` |\n\n| type | fields |\n|---|---|\n| A | `b`; `c`: as `d` |\n\n| E | `f` |\n";
    assert_eq!(documented(page), [("A".to_owned(), vec!["b".to_owned(), "c".to_owned()])]);
}
