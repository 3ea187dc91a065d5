//! Rules on pages for people and on values that stand in several places, such as versions: links lead somewhere, targets
//! and modules that are named exist.

use std::collections::BTreeSet;

use crate::differences::slug;
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

/// The anchors of a page: one for each heading, outside of code.
fn anchors(page: &str) -> BTreeSet<String> {
    let text = page.split("\n```").step_by(2);
    let headings = text.flat_map(str::lines).filter(|line| line.starts_with('#'));
    headings.map(|line| slug(line.trim_start_matches('#'))).collect()
}

/// Links to files or headings of the project that are not there. `read` gives the text of a file.
fn check_links(file: &File, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let dead = links(file).into_iter().filter(|(path, anchor)| match read(path) {
        None => true,
        Some(text) => !anchor.is_empty() && !anchors(&text).contains(*anchor),
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

/// The text after `before` up to the end of its line, without quotation marks.
fn after<'a>(text: &'a str, before: &str) -> &'a str {
    let rest = text.split(before).nth(1).unwrap_or_else(|| panic!("no {before:?}"));
    rest.lines().next().unwrap_or_default().trim_matches('"')
}

#[test]
fn links_lead_somewhere() {
    // Folders have no text.
    let read = |path: &str| exists(path).then(|| if tree::is_a(path, "md") { read(path) } else { String::new() });
    crate::none(pages().iter().flat_map(|page| check_links(page, read)));
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
fn each_rule_fires() {
    let page = |text: &str| File { path: "docs/a.md".to_owned(), text: text.to_owned() };
    let there = |path: &str| {
        (path == "docs/b.md" || path == "docs/a.md").then(|| "# B\n\n## C d?\n\n```\n# x\n```\n".to_owned())
    };
    assert!(check_links(&page("[b](b.md), [c](../docs/b.md#c-d), [d](https://d), [e](#b)"), there).is_empty());
    for (link, dead) in [("c.md", "docs/c.md"), ("b.md#x", "docs/b.md#x"), ("#e", "docs/a.md#e"), ("../b.md", "b.md")] {
        let expected = format!("docs/a.md: links to {dead}, which is not there");
        assert_eq!(check_links(&page(&format!("[c]({link})")), there), [expected]);
    }
    let summary = |text: &str| File { path: "docs/SUMMARY.md".to_owned(), text: text.to_owned() };
    let pages = [page("[b](../B.md), [l](../LICENSE), [p](p.proto)")];
    assert!(check_site(&summary("[a](a.md), [b](../B.md)"), &pages).is_empty());
    assert_eq!(check_site(&summary("[a](a.md)"), &pages), ["docs/a.md: links to B.md, which the site lacks"]);
    assert_eq!(check_site(&summary(""), &pages), ["docs/SUMMARY.md: does not list docs/a.md"]);
    let makefile = "\nrun: needs\n";
    assert!(check_targets(&page("`make run`, and how to make images\n"), makefile).is_empty());
    assert_eq!(
        check_targets(&page("```\nmake rum\n"), makefile),
        ["docs/a.md: names make rum, which make does not know"]
    );
}
