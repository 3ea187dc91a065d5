//! Rules on pages for people and on values that stand in several places, such as versions: links lead somewhere, targets
//! and modules that are named exist.

use crate::tree::{self, File, exists, read};

fn pages() -> Vec<File> {
    let top = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"]
        .map(str::to_owned)
        .into_iter();
    let top = top.map(|path| File { text: read(&path), path });
    let below = ["docs", "operators", "manifests"].iter().flat_map(|folder| tree::files(folder, ".md"));
    top.chain(below).collect()
}

/// Links to files of the project that are not there.
fn check_links(file: &File, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let folder = file.path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let targets = file.text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let local = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    let dead = local.filter(|target| {
        let path = target.split('#').next().unwrap_or_default();
        !exists(&format!("{folder}{path}"))
    });
    dead.map(|target| format!("{}: links to {target}, which is not there", file.path)).collect()
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
    crate::none(pages().iter().flat_map(|page| check_links(page, exists)));
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
    let there = |path: &str| path == "docs/b.md";
    assert!(check_links(&page("[b](b.md), [c](b.md#c), [d](https://d), [e](#e)"), there).is_empty());
    assert_eq!(check_links(&page("[c](c.md)"), there), ["docs/a.md: links to c.md, which is not there"]);
    let makefile = "\nrun: needs\n";
    assert!(check_targets(&page("`make run`, and how to make images\n"), makefile).is_empty());
    assert_eq!(
        check_targets(&page("```\nmake rum\n"), makefile),
        ["docs/a.md: names make rum, which make does not know"]
    );
}
