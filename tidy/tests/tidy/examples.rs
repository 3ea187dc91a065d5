//! Rules on the code in pages: what a reader copies from there exists. These are paths, folders for `kubectl apply -k`,
//! subcommands and flags of `kubectl operators`, flags of scripts and of operators, and variables of make; and YAML parses.
//!
//! Left out: the effect of an example. The e2e suite renders and applies manifests, runs the scripts, and compares what
//! `kubectl operators why` prints.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;

use crate::pages::{Part, pages, parts};
use crate::tree::{self, File, exists, read};

/// Code in a page: a fenced block, or a span in a line.
#[derive(Debug, PartialEq)]
struct Code<'a> {
    language: &'a str,
    text: &'a str,
}

/// The blocks and spans of a page, in order.
fn code(page: &str) -> Vec<Code<'_>> {
    let mut found = Vec::new();
    for part in parts(page) {
        match part {
            Part::Block { language, code } => found.push(Code { language, text: code }),
            Part::Text(text) => {
                let spans = text.split("\n\n").flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2));
                found.extend(spans.map(|text| Code { language: "", text }));
            }
        }
    }
    found
}

/// The folders of this repository, without those that a build writes.
static FOLDERS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let names = tree::list("").into_iter().filter(|name| name.ends_with('/'));
    names.filter(|name| !["target/", "dist/", ".git/"].contains(&name.as_str())).collect()
});

/// Paths of the repository in code, without those that have a placeholder.
fn paths(code: &str) -> impl Iterator<Item = &str> {
    let words = code.split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ',' | '[' | ']' | '(' | ')' | '='));
    let words =
        words.map(|word| word.trim_start_matches("../").trim_start_matches("./").trim_end_matches(['.', ':', ';']));
    words.filter(|word| {
        FOLDERS.iter().any(|folder| word.starts_with(folder.as_str())) && !word.contains(['<', '…', '*', '$', '{'])
    })
}

fn check_paths(file: &File, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for Code { text, .. } in code(&file.text) {
        let missing = paths(text).filter(|path| !exists(path));
        complaints.extend(missing.map(|path| format!("{}: names {path}, which is not there", file.path)));
        let applied = text.split("apply -k ").skip(1).filter_map(|rest| paths(rest.lines().next()?).next());
        let empty = applied.filter(|path| exists(path) && !exists(&format!("{path}/kustomization.yaml")));
        complaints.extend(empty.map(|path| format!("{}: applies {path}, which has no kustomization.yaml", file.path)));
    }
    complaints
}

/// The long flags in a text: `--flag`, `--flag=value`.
fn flags(text: &str) -> impl Iterator<Item = &str> {
    text.split("--").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
        let is_pattern = rest[end..].starts_with(['*', '…']);
        let flag = rest[..end].trim_end_matches('-');
        (flag.len() > 1 && flag.starts_with(|c: char| c.is_ascii_lowercase()) && !is_pattern).then_some(flag)
    })
}

/// The long flags that Rust code declares for clap, and those that it writes down as text, outside of comments.
fn declared(source: &str) -> BTreeSet<String> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut flags: BTreeSet<String> = code.flat_map(flags).map(str::to_owned).collect();
    for attribute in source.split("#[arg(").skip(1) {
        let (arguments, rest) = attribute.split_once(")]\n").unwrap_or((attribute, ""));
        if let Some(name) = arguments.split("long = \"").nth(1).and_then(|name| name.split('"').next()) {
            flags.insert(name.to_owned());
        } else if arguments.contains("long") {
            let field = rest.trim_start().split_once(':').map_or("", |(field, _)| field);
            flags.insert(field.rsplit(' ').next().unwrap_or_default().replace('_', "-"));
        }
    }
    flags
}

/// The long flags that a script takes: the patterns of its `case`, as `--a)`, `--a | --b)` or `--a=*)`.
fn taken(script: &str) -> BTreeSet<&str> {
    let patterns = script.lines().filter_map(|line| line.trim_start().split_once(')'));
    let alternatives = patterns.flat_map(|(patterns, _)| patterns.split('|')).map(str::trim);
    let flags = alternatives.filter_map(|pattern| pattern.strip_suffix("=*").unwrap_or(pattern).strip_prefix("--"));
    flags.filter(|flag| flag.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')).collect()
}

/// The arguments of each command of that name in code, up to the end of its line or of the command. A backslash continues
/// a line.
fn commands(code: &str, name: &str) -> Vec<String> {
    let joined = code.replace("\\\n", " ");
    let lines = joined.lines().filter_map(|line| line.split_once(name));
    lines.map(|(_, arguments)| arguments.split(['#', '|', ';']).next().unwrap_or_default().to_owned()).collect()
}

/// The subcommands of the plugin.
fn subcommands(source: &str) -> BTreeSet<String> {
    let body = source.split("enum Command {").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap_or_default();
    let variants =
        body.lines().filter_map(|line| line.strip_prefix("    ")).filter(|line| line.starts_with(char::is_uppercase));
    variants.filter_map(|line| line.split([' ', '(', ',']).next()).map(str::to_lowercase).collect()
}

fn check_plugin(file: &File, source: &str) -> Vec<String> {
    let (subcommands, known) = (subcommands(source), declared(source));
    let mut complaints = Vec::new();
    for Code { text, .. } in code(&file.text) {
        for arguments in commands(text, "kubectl operators ") {
            let subcommand = arguments.split_whitespace().next().unwrap_or_default();
            if !subcommand.starts_with('-') && !subcommand.is_empty() && !subcommands.contains(subcommand) {
                complaints.push(format!("{}: `kubectl operators` has no {subcommand}", file.path));
            }
            let unknown =
                flags(&arguments).filter(|flag| !known.contains(*flag) && !["help", "version"].contains(flag));
            complaints.extend(unknown.map(|flag| format!("{}: `kubectl operators` has no --{flag}", file.path)));
        }
    }
    complaints
}

fn check_scripts(file: &File, read: impl Fn(&str) -> String) -> Vec<String> {
    let mut complaints = Vec::new();
    for Code { text, .. } in code(&file.text) {
        for script in paths(text).filter(|path| tree::is_a(path, "sh")).collect::<BTreeSet<&str>>() {
            let (arguments, source) = (commands(text, script), read(script));
            let known = taken(&source);
            let unknown = arguments.iter().flat_map(|arguments| flags(arguments)).filter(|flag| !known.contains(flag));
            complaints.extend(unknown.map(|flag| format!("{}: {script} has no --{flag}", file.path)));
        }
    }
    complaints
}

/// Flags of programs that are not in this repository; on the page of an operator, also those of other programs here.
const FOREIGN: [(&str, &[&str]); 12] = [
    ("cargo", &["all-targets", "deny"]),
    ("cosign", &["bundle", "insecure-ignore-tlog", "key"]),
    ("curl", &["data", "header", "insecure", "request"]),
    ("helm", &["wait"]),
    ("kube-apiserver", &["kubelet-certificate-authority", "runtime-config", "service-account-key-file"]),
    ("kube-controller-manager", &["enable-hostpath-provisioner"]),
    (
        "kubectl",
        &[
            "all-namespaces",
            "as",
            "audience",
            "field-selector",
            "filename",
            "from-file",
            "namespace",
            "raw",
            "selector",
            "tail",
        ],
    ),
    ("kubectl operators", &["as-service-account"]),
    ("kubelet", &["node-ip"]),
    ("ln", &["symbolic"]),
    ("sha256sum", &["check", "ignore-missing"]),
    ("trivy", &["input"]),
];

fn check_flags(file: &File, known: &BTreeSet<String>) -> Vec<String> {
    let code = code(&file.text);
    let is_foreign = |flag: &&str| FOREIGN.iter().any(|(_, flags)| flags.contains(flag));
    let unknown = code.iter().flat_map(|code| flags(code.text));
    let unknown = unknown.filter(|flag| !known.contains(*flag) && !is_foreign(flag));
    unknown
        .map(|flag| format!("{}: no program here has the flag --{flag}; FOREIGN names those of others", file.path))
        .collect()
}

/// The variables of make in a command: `make image OPERATOR=…`.
fn check_variables(file: &File, known: &str) -> Vec<String> {
    let code = code(&file.text);
    let commands: Vec<String> = code.iter().flat_map(|code| commands(code.text, "make ")).collect();
    let words = commands.iter().flat_map(|arguments| arguments.split_whitespace());
    let names = words.filter_map(|word| word.split_once('=')).map(|(name, _)| name);
    let names = names.filter(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_') && !name.is_empty());
    let unknown = names.filter(|name| !known.contains(&format!("({name})")) && !known.contains(&format!("${{{name}")));
    unknown.map(|name| format!("{}: make and the scripts read no {name}", file.path)).collect()
}

/// Every YAML block parses, and so does every patch in it.
fn check_yaml(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for Code { language, text } in code(&file.text) {
        if language != "yaml" {
            if text.starts_with("apiVersion:") || text.starts_with("resources:") {
                complaints.push(format!("{}: a block is YAML, and its fence does not say so", file.path));
            }
            continue;
        }
        match serde_yaml::from_multiple::<Value>(text) {
            Ok(documents) => {
                let patches = documents.iter().filter_map(|document| document["patches"].as_array()).flatten();
                let invalid = patches
                    .filter_map(|patch| patch["patch"].as_str())
                    .filter(|patch| serde_yaml::from_str::<Value>(patch).is_err());
                complaints.extend(invalid.map(|patch| format!("{}: this patch does not parse: {patch}", file.path)));
            }
            Err(error) => complaints.push(format!("{}: a YAML block does not parse: {error}", file.path)),
        }
    }
    complaints
}

/// The flags of the Rust code in these folders, without tests.
fn flags_in(folders: &[&str]) -> BTreeSet<String> {
    let sources = folders.iter().flat_map(|folder| tree::files(folder, ".rs"));
    let sources = sources.filter(|file| !file.path.contains("/tests/") && !file.path.ends_with("/tests.rs"));
    sources.flat_map(|file| declared(&file.text)).collect()
}

/// All flags that programs and scripts of this repository have.
fn known_flags() -> BTreeSet<String> {
    let mut known =
        flags_in(&["operators", "shared/src", "cloud/src", "all-in-one/src", "cli/src", "e2e/src", "bench/src"]);
    let scripts = tree::files("scripts", ".sh");
    known.extend(scripts.iter().flat_map(|file| taken(&file.text)).map(str::to_owned));
    let accepted = read("all-in-one/src/command_line/accepted.rs");
    known.extend(accepted.split("(\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned));
    known
}

#[test]
fn what_examples_name_is_there() {
    let plugin = read("cli/src/flags.rs");
    let known = known_flags();
    let of_every_operator = flags_in(&["shared/src", "cloud/src"]);
    let mut variables = read("Makefile");
    variables.extend(tree::files("scripts", ".sh").into_iter().map(|file| file.text));
    crate::none(pages().iter().flat_map(|page| {
        let mut complaints = check_paths(page, exists);
        complaints.extend(check_plugin(page, &plugin));
        complaints.extend(check_scripts(page, |path| if exists(path) { read(path) } else { String::new() }));
        let operator = page.path.strip_prefix("operators/").and_then(|path| path.strip_suffix("/README.md"));
        complaints.extend(operator.map_or_else(
            || check_flags(page, &known),
            |operator| check_flags(page, &(&of_every_operator | &flags_in(&[&format!("operators/{operator}/src")]))),
        ));
        complaints.extend(check_variables(page, &variables));
        complaints.extend(check_yaml(page));
        complaints
    }));
}

#[test]
fn code_is_found_in_blocks_and_spans() {
    let page = "Run `make a` now.\n\n```yaml\na: `b`\n```\n\nThen `c`.\n";
    let expected = [("", "make a"), ("yaml", "a: `b`\n"), ("", "c")];
    assert_eq!(code(page), expected.map(|(language, text)| Code { language, text }));
}

#[test]
fn flags_of_clap_are_found() {
    let source = "/// Unlike `--upstream`.\n#[arg(long, value_name = \"FILE\")]\n    pub a_file: x,\n#[arg(long = \"b\")]\nc: y,\n#[arg(required)]\nd: z,\nlet e = \"--e-f\";";
    assert_eq!(declared(source), ["a-file", "b", "e-f"].map(str::to_owned).into());
    assert_eq!(
        subcommands("enum Command {\n    /// A.\n    Why {\n        x: y,\n    },\n    Status(S),\n}\n"),
        ["status", "why"].map(str::to_owned).into()
    );
}

#[test]
fn each_rule_fires() {
    let page = |text: &str| File { path: "docs/a.md".to_owned(), text: text.to_owned() };
    let there =
        |path: &str| ["scripts/a.sh", "manifests/a", "manifests/b", "manifests/b/kustomization.yaml"].contains(&path);
    assert!(
        check_paths(
            &page("`scripts/a.sh --b`, `../manifests/a`, `manifests/<operator>`, `kubectl apply -k manifests/b`"),
            there
        )
        .is_empty()
    );
    assert_eq!(
        check_paths(&page("```\nscripts/b.sh\n```"), there),
        ["docs/a.md: names scripts/b.sh, which is not there"]
    );
    assert_eq!(
        check_paths(&page("`kubectl apply -k manifests/a`"), there),
        ["docs/a.md: applies manifests/a, which has no kustomization.yaml"]
    );

    let plugin = "#[arg(long)]\n    trace: bool,\npub enum Command {\n    Why {\n    },\n}\n";
    assert!(
        check_plugin(&page("`kubectl operators why x --trace # --yy`, `kubectl operators --help`"), plugin).is_empty()
    );
    assert_eq!(check_plugin(&page("`kubectl operators who`"), plugin), ["docs/a.md: `kubectl operators` has no who"]);
    assert_eq!(
        check_plugin(&page("`kubectl operators why --yy`"), plugin),
        ["docs/a.md: `kubectl operators` has no --yy"]
    );

    let script = |_: &str| "--force) force=1 ;;\n--bb | --cc=*) kubectl --wait ;;\n".to_owned();
    let continued = page("`scripts/a.sh --force`\n\n```\nscripts/a.sh \\\n  --bb --cc=d # --ee\n```");
    assert!(check_scripts(&continued, script).is_empty());
    assert_eq!(check_scripts(&page("`scripts/a.sh --wait`"), script), ["docs/a.md: scripts/a.sh has no --wait"]);
    assert_eq!(
        check_scripts(&page("```\nscripts/a.sh --bb \\\n  --dd\n```"), script),
        ["docs/a.md: scripts/a.sh has no --dd"]
    );
    assert_eq!(check_scripts(&page("`scripts/a.sh --farce x`"), script), ["docs/a.md: scripts/a.sh has no --farce"]);

    let known = BTreeSet::from(["a-syncs".to_owned()]);
    assert!(check_flags(&page("`--a-syncs=5`, `--leader-*`, `--deny`"), &known).is_empty());
    assert_eq!(
        check_flags(&page("```yaml\nvalue: --b-syncs=20\n```"), &known),
        ["docs/a.md: no program here has the flag --b-syncs; FOREIGN names those of others"]
    );

    let makefile = "x: $(OPERATOR)\nprocesses=${PROCESSES:-1}\n";
    assert!(check_variables(&page("`make image OPERATOR=a`, `make b PROCESSES=6`, `make c`"), makefile).is_empty());
    assert_eq!(
        check_variables(&page("`make image OPERATORS=a`"), makefile),
        ["docs/a.md: make and the scripts read no OPERATORS"]
    );

    let overlay = "```yaml\npatches:\n  - patch: |-\n      - {op: add}\n```";
    assert!(check_yaml(&page(overlay)).is_empty());
    assert_eq!(check_yaml(&page(&overlay.replace("op: add}", "op: add"))).len(), 1);
    assert_eq!(check_yaml(&page("```yaml\na: [\n```")).len(), 1);
    assert_eq!(
        check_yaml(&page("```\nresources: [a]\n```")),
        ["docs/a.md: a block is YAML, and its fence does not say so"]
    );
}
