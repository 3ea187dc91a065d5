//! Rules on Cargo.toml: every version once, and no dependency that nobody uses.
//!
//! Cargo.toml is read as lines: keys under headings, which is all that is needed and all that the project writes.

use std::collections::BTreeSet;

use crate::tree::{self, File};

/// The one crate that knows the operators.
const ALL_IN_ONE: &str = "all-in-one/Cargo.toml";

const INHERITED: [&str; 5] = ["version", "edition", "rust-version", "license", "publish"];

/// The `key = value` lines under the headings that end so, such as `dependencies]`.
fn entries<'a>(manifest: &'a str, heading_end: &str) -> Vec<(&'a str, &'a str)> {
    let mut within = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            within = line.ends_with(heading_end);
        } else if let Some((key, value)) = line.split_once('=').filter(|_| within) {
            found.push((key.trim(), value.trim()));
        }
    }
    found
}

/// The names of all dependencies of a crate, those of its build and its tests too.
fn dependencies(manifest: &str) -> BTreeSet<&str> {
    let keys = entries(manifest, "dependencies]").into_iter().map(|(key, _)| key);
    keys.map(|key| key.split('.').next().unwrap_or(key)).collect()
}

fn check_manifest(file: &File, operators: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    for key in INHERITED {
        if !entries(&file.text, "[package]").contains(&(&format!("{key}.workspace"), "true")) {
            complaints.push(format!("{}: {key} is not the workspace's", file.path));
        }
    }
    if entries(&file.text, "[lints]") != [("workspace", "true")] {
        complaints.push(format!("{}: the lints are not the workspace's", file.path));
    }
    let is_operator = |key: &str| operators.iter().any(|operator| operator == key);
    let is_all_in_one = file.path == ALL_IN_ONE;
    for (key, value) in entries(&file.text, "dependencies]") {
        if is_all_in_one && is_operator(key) {
            continue;
        }
        if !key.ends_with(".workspace") && !value.contains("workspace = true") {
            complaints.push(format!("{}: {key} has a version of its own", file.path));
        }
    }
    for operator in dependencies(&file.text).into_iter().filter(|name| !is_all_in_one && is_operator(name)) {
        complaints.push(format!("{}: depends on {operator}, and no crate knows an operator", file.path));
    }
    complaints
}

/// Dependencies whose names no source file of the crate contains, nor of the suite that it includes.
fn check_use(file: &File, sources: &[File]) -> Vec<String> {
    let folder = file.path.trim_end_matches("Cargo.toml");
    let own = |source: &File| source.path.starts_with(folder);
    let has_suite = sources.iter().any(|source| own(source) && source.text.contains("shared/tests/replicas/suite.rs"));
    let is_source = |source: &File| own(source) || has_suite && source.path.starts_with("shared/tests/replicas/");
    let used = |name: &str| {
        let name = name.replace('-', "_");
        sources.iter().any(|source| is_source(source) && source.text.contains(&name))
    };
    // A build script names the operators.
    let is_named = |name: &str| file.path == ALL_IN_ONE && name.ends_with("-operator");
    let unused = dependencies(&file.text).into_iter().filter(|name| !used(name) && !is_named(name));
    unused.map(|name| format!("{}: {name} is not used", file.path)).collect()
}

/// Where there are no tests cargo builds and runs none, and where there are some it must.
fn check_harnesses(file: &File, sources: &[File]) -> Vec<String> {
    let folder = file.path.trim_end_matches("Cargo.toml");
    let own: Vec<&File> = sources.iter().filter(|source| source.path.starts_with(&format!("{folder}src/"))).collect();
    let is_library = own.iter().any(|source| source.path == format!("{folder}src/lib.rs"));
    let (program, library): (Vec<&File>, Vec<&File>) =
        own.into_iter().partition(|source| !is_library || source.path.ends_with("src/main.rs"));
    let mut complaints = Vec::new();
    for (heading, sources) in [("[lib]", library), ("[[bin]]", program)] {
        let has_tests = sources.iter().any(|source| source.text.contains("#[cfg(test)]"));
        let says_none = entries(&file.text, heading).contains(&("test", "false"));
        if !sources.is_empty() && has_tests == says_none {
            let wanted = if has_tests { "has tests, so no" } else { "has no tests, so it needs" };
            complaints.push(format!("{}: {heading} {wanted} test = false", file.path));
        }
    }
    if is_library && !entries(&file.text, "[lib]").contains(&("doctest", "false")) {
        complaints.push(format!("{}: [lib] needs doctest = false: examples are tests of their own", file.path));
    }
    complaints
}

fn members() -> Vec<File> {
    let operators = tree::operators().into_iter().map(|name| format!("operators/{name}"));
    let paths =
        ["shared", "cel-check", "cloud", "facts", "all-in-one", "cli", "e2e", "e2e/tools", "bench", "release", "tidy"]
            .map(str::to_owned)
            .into_iter()
            .chain(operators);
    paths.map(|path| format!("{path}/Cargo.toml")).map(|path| File { text: tree::read(&path), path }).collect()
}

#[test]
fn every_crate_inherits_the_workspaces_versions_and_lints() {
    let operators = tree::operators();
    crate::none(members().iter().flat_map(|file| check_manifest(file, &operators)));
}

#[test]
fn no_harness_is_empty() {
    let sources = tree::sources();
    crate::none(members().iter().flat_map(|file| check_harnesses(file, &sources)));
}

#[test]
fn every_dependency_is_used() {
    let (members, sources) = (members(), tree::sources());
    crate::none(members.iter().flat_map(|file| check_use(file, &sources)));
    let workspace = tree::read("Cargo.toml");
    let unused = dependencies(&workspace)
        .into_iter()
        .filter(|name| *name != "shared" && !members.iter().any(|member| dependencies(&member.text).contains(name)));
    crate::none(unused.map(|name| format!("Cargo.toml: no crate depends on {name}")));
}

#[test]
fn each_rule_fires() {
    let good = "[package]\nname = \"a\"\nversion.workspace = true\nedition.workspace = true\n\
                rust-version.workspace = true\nlicense.workspace = true\npublish.workspace = true\n\
                [dependencies]\nanyhow.workspace = true\n[lints]\nworkspace = true\n";
    let row = |text: String, expected: &[&str]| {
        let file = File { path: "a/Cargo.toml".to_owned(), text };
        let sources = [File { path: "a/src/b.rs".to_owned(), text: "anyhow::Error".to_owned() }];
        let mut complaints = check_manifest(&file, &["job-operator".to_owned()]);
        complaints.extend(check_use(&file, &sources));
        assert_eq!(complaints, expected);
    };
    row(good.to_owned(), &[]);
    row(
        good.replace("version.workspace = true\ned", "version = \"1\"\ned"),
        &["a/Cargo.toml: version is not the workspace's"],
    );
    row(good.replace("anyhow.workspace = true", "anyhow = \"1\""), &["a/Cargo.toml: anyhow has a version of its own"]);
    row(good.replace("[lints]\nworkspace", "[lints]\nx"), &["a/Cargo.toml: the lints are not the workspace's"]);
    row(good.replace("anyhow", "bytes"), &["a/Cargo.toml: bytes is not used"]);
    row(
        good.replace("anyhow.w", "job-operator.workspace = true\nanyhow.w"),
        &[
            "a/Cargo.toml: depends on job-operator, and no crate knows an operator",
            "a/Cargo.toml: job-operator is not used",
        ],
    );

    let of_all =
        File { path: ALL_IN_ONE.to_owned(), text: good.replace("anyhow.workspace = true", "job-operator = {}") };
    assert!(check_manifest(&of_all, &["job-operator".to_owned()]).is_empty());
    assert!(check_use(&of_all, &[]).is_empty());
}

#[test]
fn the_rule_on_harnesses_fires() {
    let sources = |library: &str| {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        [file("a/src/lib.rs", library), file("a/src/main.rs", "fn main() {}")]
    };
    let row = |text: &str, library: &str, expected: &[&str]| {
        let file = File { path: "a/Cargo.toml".to_owned(), text: text.to_owned() };
        assert_eq!(check_harnesses(&file, &sources(library)), expected, "{text}");
    };
    let with_tests = "[lib]\ndoctest = false\n[[bin]]\ntest = false\n";
    let without = with_tests.replace("doctest = false", "doctest = false\ntest = false");
    row(with_tests, "#[cfg(test)]", &[]);
    row(&without, "", &[]);
    row(with_tests, "", &["a/Cargo.toml: [lib] has no tests, so it needs test = false"]);
    row(&without, "#[cfg(test)]", &["a/Cargo.toml: [lib] has tests, so no test = false"]);
    row(
        "",
        "#[cfg(test)]",
        &[
            "a/Cargo.toml: [[bin]] has no tests, so it needs test = false",
            "a/Cargo.toml: [lib] needs doctest = false: examples are tests of their own",
        ],
    );
}
