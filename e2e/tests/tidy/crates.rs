//! Rules on Cargo.toml: every version once, and no dependency that nobody uses.
//!
//! Cargo.toml is read as lines: keys under headings, which is all that is needed and all that the project writes.

use std::collections::BTreeSet;

use crate::tree::{self, File};

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

/// The names of what a crate depends on, for whatever purpose.
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
    for (key, value) in entries(&file.text, "dependencies]") {
        if !key.ends_with(".workspace") && !value.contains("workspace = true") {
            complaints.push(format!("{}: {key} has a version of its own", file.path));
        }
    }
    for operator in dependencies(&file.text).into_iter().filter(|name| operators.iter().any(|other| other == name)) {
        complaints.push(format!("{}: depends on {operator}, and no crate knows an operator", file.path));
    }
    complaints
}

/// Dependencies whose names no source file of the crate contains.
fn check_use(file: &File, sources: &[File]) -> Vec<String> {
    let folder = file.path.trim_end_matches("Cargo.toml");
    let used = |name: &str| {
        let name = name.replace('-', "_");
        sources.iter().any(|source| source.path.starts_with(folder) && source.text.contains(&name))
    };
    let unused = dependencies(&file.text).into_iter().filter(|name| !used(name));
    unused.map(|name| format!("{}: {name} is not used", file.path)).collect()
}

fn members() -> Vec<File> {
    let operators = tree::operators().into_iter().map(|name| format!("operators/{name}"));
    let paths = ["shared".to_owned(), "e2e".to_owned()].into_iter().chain(operators);
    paths.map(|path| format!("{path}/Cargo.toml")).map(|path| File { text: tree::read(&path), path }).collect()
}

#[test]
fn every_crate_inherits_the_workspaces_versions_and_lints() {
    let operators = tree::operators();
    crate::none(members().iter().flat_map(|file| check_manifest(file, &operators)));
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
}
