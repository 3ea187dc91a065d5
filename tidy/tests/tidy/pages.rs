//! Rules on pages for people and on values that stand in several places, such as versions: links lead somewhere, targets
//! and modules that are named exist.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{self, File, exists, read};

/// The pages for people.
pub(crate) fn pages() -> Vec<File> {
    let top = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"]
        .map(str::to_owned)
        .into_iter();
    let top = top.map(|path| File { text: read(&path), path });
    let below = ["docs", "operators", "manifests", "providers"].iter().flat_map(|folder| tree::files(folder, ".md"));
    top.chain(below).collect()
}

/// A part of a page.
pub(crate) enum Part<'a> {
    Text(&'a str),
    /// A fenced block.
    Block {
        language: &'a str,
        code: &'a str,
    },
}

/// The parts of a page, in order.
pub(crate) fn parts(page: &str) -> impl Iterator<Item = Part<'_>> {
    page.split("```").enumerate().map(|(place, part)| {
        if place % 2 == 0 {
            return Part::Text(part);
        }
        let (language, code) = part.split_once('\n').unwrap_or(("", part));
        Part::Block { language: language.trim(), code }
    })
}

/// The links of a page to files of the project, as paths from the root with an anchor, which may be empty.
fn links(file: &File) -> Vec<(String, &str)> {
    let targets = file.text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let local = targets.filter(|target| !target.contains("://"));
    let resolve = |target| {
        let (path, anchor) = str::split_once(target, '#').unwrap_or((target, ""));
        if path.is_empty() {
            return (file.path.clone(), anchor);
        }
        let mut parts: Vec<&str> = file.path.split('/').collect();
        parts.truncate(parts.len().saturating_sub(1));
        for part in path.split('/') {
            if part == ".." {
                parts.truncate(parts.len().saturating_sub(1));
            } else {
                parts.push(part);
            }
        }
        (parts.join("/"), anchor)
    };
    local.map(resolve).collect()
}

/// The anchor of a heading, as GitHub and mdbook form it.
pub(crate) fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

/// The anchors of a page: one for each heading, outside of code.
fn anchors(page: &str) -> BTreeSet<String> {
    let text = parts(page).filter_map(|part| if let Part::Text(text) = part { Some(text) } else { None });
    let headings = text.flat_map(str::lines).filter(|line| line.starts_with('#'));
    headings.map(|line| slug(line.trim_start_matches('#'))).collect()
}

/// The anchors of each page, by its path.
type Anchors = BTreeMap<String, BTreeSet<String>>;

/// Links to files or headings of the project that are not there. Only pages have headings.
fn check_links(file: &File, anchors: &Anchors, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let dead = links(file).into_iter().filter(|(path, anchor)| {
        let found = anchors.get(path);
        if anchor.is_empty() {
            found.is_none() && !exists(path)
        } else {
            found.is_none_or(|found| !found.contains(*anchor))
        }
    });
    let named = |(path, anchor): (String, &str)| if anchor.is_empty() { path } else { format!("{path}#{anchor}") };
    dead.map(|link| format!("{}: links to {}, which is not there", file.path, named(link))).collect()
}

/// The site has every page below `docs` and each page to which one of its pages links.
fn check_site(summary: &File, pages: &[File]) -> Vec<String> {
    let listed: BTreeSet<String> = links(summary).into_iter().map(|(path, _)| path).collect();
    let wanted = pages.iter().filter(|page| page.path.starts_with("docs/") && page.path != summary.path);
    let unlisted = wanted.filter(|page| !listed.contains(&page.path));
    let mut complaints: Vec<String> =
        unlisted.map(|page| format!("{}: does not list {}", summary.path, page.path)).collect();
    for page in pages.iter().filter(|page| listed.contains(&page.path)) {
        let outside = links(page).into_iter().map(|(path, _)| path);
        let outside = outside.filter(|path| (tree::is_a(path, "md") || !path.contains('.')) && !listed.contains(path));
        let outside = outside.filter(|path| path != "LICENSE");
        complaints.extend(outside.map(|path| format!("{}: links to {path}, which the site lacks", page.path)));
    }
    complaints
}

/// Targets of make that the page names in code, and make does not know.
fn check_targets(file: &File, makefile: &str) -> Vec<String> {
    let named = file.text.split("make ").skip(1).filter_map(|rest| {
        let word = rest.split(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit() && c != '-').next()?;
        (!word.is_empty()).then_some(word)
    });
    let in_code =
        |word: &str| file.text.contains(&format!("`make {word}")) || file.text.contains(&format!("\nmake {word}"));
    let unknown = named.filter(|word| in_code(word) && !makefile.contains(&format!("\n{word}:")));
    unknown.map(|word| format!("{}: names make {word}, which make does not know", file.path)).collect()
}

/// How many tests the rows of a table count as passed and as run, in this order. They are its last two columns.
fn results(page: &str) -> (u32, u32) {
    let count = |cell: &str| cell.split(|c: char| !c.is_ascii_digit()).next().and_then(|number| number.parse().ok());
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_suffix(" |")?.split(" | ").collect::<Vec<&str>>();
        let passed = cells.pop().and_then(count)?;
        let ran = cells.pop().filter(|_| cells.len() == 3).and_then(|cell| cell.parse().ok())?;
        Some((passed, ran))
    });
    rows.fold((0, 0), |(passed, ran): (u32, u32), row: (u32, u32)| (passed + row.0, ran + row.1))
}

/// The text after `before` up to the end of its line, without quotation marks.
fn after<'a>(text: &'a str, before: &str) -> &'a str {
    let rest = text.split(before).nth(1).unwrap_or_else(|| panic!("no {before:?}"));
    rest.lines().next().unwrap_or_default().trim_matches('"')
}

#[test]
fn links_lead_somewhere() {
    let pages = pages();
    let anchors = pages.iter().map(|page| (page.path.clone(), anchors(&page.text))).collect();
    crate::none(pages.iter().flat_map(|page| check_links(page, &anchors, exists)));
}

#[test]
fn the_site_has_every_page() {
    let summary = File { path: "docs/SUMMARY.md".to_owned(), text: read("docs/SUMMARY.md") };
    crate::none(check_site(&summary, &pages()));
}

#[test]
fn pages_name_targets_that_make_knows() {
    let makefile = read("Makefile");
    crate::none(pages().iter().flat_map(|page| check_targets(page, &makefile)));
}

/// Where nothing has the name, no test runs, and cargo calls that a success.
#[test]
fn make_knows_the_modules_of_tests_that_wait_for_minutes() {
    let makefile = read("Makefile");
    let module = after(&makefile, "\nMINUTES := ").trim_matches(':');
    let found = tree::files("e2e/tests/suite", &format!("/{module}.rs"));
    assert!(!found.is_empty(), "Makefile: MINUTES names {module}, and the e2e suite has no such file");
}

#[test]
fn the_first_page_counts_upstreams_tests_as_their_page_does() {
    let (passed, ran) = results(&read("docs/conformance.md"));
    let claim = format!("{passed} of {ran} of [Kubernetes' own e2e tests](docs/conformance.md)");
    assert!(read("README.md").contains(&claim), "README.md: does not say {claim:?}");
}

#[test]
fn the_images_are_of_this_version_and_built_by_this_rust() {
    let cargo = read("Cargo.toml");
    let version = after(&cargo, "[workspace.package]\nversion = ");
    let deployment = read("manifests/base/deployment.yaml");
    assert_eq!(after(&deployment, "image: operators.local/operator:"), format!("v{version}"));
    let all_in_one = read("manifests/components/one-image/kustomization.yaml");
    assert_eq!(after(&all_in_one, "image: operators.local/operators:"), format!("v{version}"));
    let static_pod = read("manifests/one-process/static-pod.yaml");
    assert_eq!(after(&static_pod, "image: operators.local/operators:"), format!("v{version}"));
    let rust = read("rust-toolchain.toml");
    let rust = after(&rust, "channel = ");
    assert_eq!(after(&read("Dockerfile"), "FROM rust:"), format!("{rust}-bookworm AS build"));
    assert!(rust.starts_with(after(&cargo, "rust-version = ")), "Cargo.toml: rust-version is not {rust}'s");
}

#[test]
fn anchors_are_those_of_github() {
    assert_eq!(slug("Shadow: what would a takeover change?"), "shadow-what-would-a-takeover-change");
    assert_eq!(slug("`why -o json`"), "why--o-json");
}

#[test]
fn each_rule_fires() {
    let page = |text: &str| File { path: "docs/a.md".to_owned(), text: text.to_owned() };
    let of_both = anchors("# B\n\n## C d?\n\n```\n# x\n```\n");
    let anchors = Anchors::from(["docs/a.md", "docs/b.md"].map(|path| (path.to_owned(), of_both.clone())));
    let there = |path: &str| path == "Makefile";
    let links = page("[b](b.md), [c](../docs/b.md#c-d), [d](https://d), [e](#b), [f](../Makefile)");
    assert!(check_links(&links, &anchors, there).is_empty());
    for (link, dead) in [
        ("c.md", "docs/c.md"),
        ("b.md#x", "docs/b.md#x"),
        ("#e", "docs/a.md#e"),
        ("../b.md", "b.md"),
        ("../Makefile#b", "Makefile#b"),
    ] {
        let expected = format!("docs/a.md: links to {dead}, which is not there");
        assert_eq!(check_links(&page(&format!("[c]({link})")), &anchors, there), [expected]);
    }
    let summary = |text: &str| File { path: "docs/SUMMARY.md".to_owned(), text: text.to_owned() };
    let pages = [page("[b](../B.md), [l](../LICENSE), [p](p.proto)")];
    assert!(check_site(&summary("[a](a.md), [b](../B.md)"), &pages).is_empty());
    assert_eq!(check_site(&summary("[a](a.md)"), &pages), ["docs/a.md: links to B.md, which the site lacks"]);
    assert_eq!(check_site(&summary(""), &pages), ["docs/SUMMARY.md: does not list docs/a.md"]);
    let table = "| tests | date | nodes | ran | passed |\n|---|---|---|---|---|\n| A | d | 1, 2 | 7 | 7 |\n| B | d | 1 | 96 | 95; one alone |\n| c | 3 |\n";
    assert_eq!(results(table), (102, 103));
    let makefile = "\nrun: needs\n";
    assert!(check_targets(&page("`make run`, and how to make images\n"), makefile).is_empty());
    assert_eq!(
        check_targets(&page("```\nmake rum\n"), makefile),
        ["docs/a.md: names make rum, which make does not know"]
    );
}
