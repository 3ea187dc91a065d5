//! Rules on the answers that an operator owes about its objects: decisions that `why` and a shadow can show, a page
//! that tells the findings of a shadow, and the kinds that the plugin asks it about.
//!
//! The compiler asks each controller for `key_of` and `preview`, and takes an empty answer; it asks nobody to record
//! anything. Left out: whether an answer is right, which each operator's own tests show.

use std::collections::BTreeSet;

use facts::{Exception, Lack};
use serde_json::Value;

use crate::code::production;
use crate::operators::{rights, section, source};
use crate::tree::{self, File, exists, read};

fn complaint(lack: Lack) -> &'static str {
    match lack {
        Lack::Record => "records no decision",
        Lack::Key => "has no key for any object",
        Lack::Preview => "previews nothing",
    }
}

/// Statuses that others write as well: of these a shadow cannot tell whose write it sees. A budget's the apiserver writes
/// at each eviction, a quota's at each creation, a Node's its kubelet, and a request's other signers and all who approve.
const SHARED_STATUSES: [&str; 5] = [
    "pods/status",
    "poddisruptionbudgets/status",
    "resourcequotas/status",
    "nodes/status",
    "certificatesigningrequests/status",
];

/// The page and the heading about shadows, and the link to it from an operator's page.
const SHADOW_PAGE: &str = "docs/operating.md";
const SHADOW_HEADING: &str = "\n## Shadow: what would a takeover change?\n";
const SHADOW_LINK: &str = "](../../docs/operating.md#shadow-what-would-a-takeover-change)";

/// The files of an operator, and the shared rooms that it takes as they are.
fn rooms(operator: &str) -> Vec<File> {
    let mut rooms = source(operator);
    let is_taken = |room: &File| {
        let module = room.path.trim_start_matches("shared/src/").trim_end_matches(".rs").replace('/', "::");
        let import = format!("use shared::{module}::");
        rooms.iter().any(|file| file.text.contains(&import))
    };
    let taken: Vec<File> = tree::files("shared/src/controllers", ".rs").into_iter().filter(is_taken).collect();
    rooms.extend(taken);
    rooms
}

/// The duties that a controller with this code does not fulfil towards those who ask.
fn lacks(code: &str) -> Vec<Lack> {
    // The compiler refuses an argument that nobody reads, unless its name begins so.
    let lacks = [
        (Lack::Record, !code.contains("decisions.record(")),
        (Lack::Key, code.contains("fn key_of(&self, _")),
        (Lack::Preview, code.contains("fn preview(&self, _")),
    ];
    lacks.into_iter().filter(|(_, is_so)| *is_so).map(|(lack, _)| lack).collect()
}

/// Each controller answers, or is an exception; and each exception is one.
fn check_controllers(sources: &[File], exceptions: &[(String, Exception)]) -> Vec<String> {
    let codes = sources.iter().map(|file| (file.path.as_str(), production(file)));
    let controllers: Vec<(&str, String)> = codes.filter(|(_, code)| code.contains(" Controller for ")).collect();
    let mut complaints = Vec::new();
    for (path, code) in &controllers {
        let excepted = exceptions.iter().find(|(of, _)| of == path);
        let excepted = excepted.map_or(&[][..], |(_, exception)| exception.lacks);
        let lacks = lacks(code).into_iter().filter(|lack| !excepted.contains(lack));
        complaints.extend(lacks.map(|lack| format!("{path}: its controller {}", complaint(lack))));
    }
    for (path, Exception { file: _, lacks: excepted, why }) in exceptions {
        let code = controllers.iter().find(|(of, _)| of == path).map(|(_, code)| code.as_str());
        let lacks = code.map(lacks).unwrap_or_default();
        if excepted.iter().any(|lack| !lacks.contains(lack)) {
            complaints.push(format!("{path}: is more of an exception than it needs to be ({why})"));
        }
    }
    complaints
}

/// The statuses that roles allow to write.
fn statuses(roles: &str) -> BTreeSet<String> {
    let roles: Vec<Value> = serde_yaml::from_multiple(roles).unwrap_or_default();
    let rules = roles.iter().flat_map(|role| role["rules"].as_array().into_iter().flatten());
    let resources = rules.flat_map(|rule| rule["resources"].as_array().into_iter().flatten());
    resources.filter_map(Value::as_str).filter(|name| name.ends_with("/status")).map(str::to_owned).collect()
}

/// A shadow can time the writes of a status only if a controller says that it is its own.
fn check_status(operator: &str, role: &str, rooms: &[File]) -> Vec<String> {
    if rooms.iter().any(|file| production(file).contains("fn status_of(&self)")) {
        return Vec::new();
    }
    let own = statuses(role).into_iter().filter(|status| !SHARED_STATUSES.contains(&status.as_str()));
    own.map(|status| format!("operators/{operator}: writes {status}, and no controller has a status_of")).collect()
}

/// The first words about differences say which of them a shadow shows.
fn check_differences(operator: &str, page: &str) -> Option<String> {
    let opening = section(page, "Differences from upstream").trim_start().split("\n\n").next();
    let is_said = opening.is_some_and(|opening| opening.contains(SHADOW_LINK));
    (!is_said).then(|| format!("operators/{operator}/README.md: does not say which differences a shadow shows"))
}

/// Somebody asks the running operator `why`.
fn check_why(operator: &str, tests: &[File]) -> Option<String> {
    let is_asked = tests.iter().any(|file| file.text.contains("running.why("));
    (!is_asked).then(|| format!("operators/{operator}/tests: ask no running operator why"))
}

/// The resources that an operator follows, by what its code calls their informers: `replica_sets`, or `owners` where
/// several kinds share the code.
fn followed(operator: &str, rooms: &[File]) -> BTreeSet<String> {
    let own = operator.replace("-operator", "s");
    let code = rooms.iter().map(production).collect::<Vec<String>>().join("\n");
    let calls = code.split("setup.watch").skip(1);
    let informers = calls.filter_map(|call| call.split_once('(')?.1.split([',', ')']).next());
    let names = informers.filter_map(|informer| informer.trim().rsplit('.').next());
    names.map(|name| if name == "owners" { own.clone() } else { name.replace('_', "") }).collect()
}

/// The resources of a page's table under Watches, without their groups.
fn told(page: &str) -> BTreeSet<String> {
    let rows = section(page, "Watches").lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split(['.', '`']).next()).map(str::to_owned).collect()
}

/// The table under Watches has the resources that the wiring follows. Left out: kinds that come from discovery.
fn check_watches(operator: &str, page: &str, rooms: &[File]) -> Vec<String> {
    let (followed, told) = (followed(operator, rooms), told(page));
    if followed.is_empty() && rooms.iter().any(|file| production(file).contains("setup.feeder()")) {
        return Vec::new();
    }
    let untold = followed.difference(&told);
    let untold = untold.map(|name| format!("operators/{operator}/README.md: has no row for {name} under Watches"));
    let idle = told.difference(&followed);
    untold.chain(idle.map(|name| format!("operators/{operator}/src: watches no {name}, as its page says"))).collect()
}

#[test]
fn every_controller_answers_those_who_ask() {
    let sources: Vec<File> =
        ["operators", "shared/src/controllers"].iter().flat_map(|folder| tree::files(folder, ".rs")).collect();
    let exceptions = facts::ALL.iter().flat_map(|facts| {
        let path = move |file: &str| format!("operators/{}/src/{file}", facts.names.operator);
        facts.exceptions.iter().map(move |exception| (path(exception.file), *exception))
    });
    crate::none(check_controllers(&sources, &exceptions.collect::<Vec<_>>()));
}

#[test]
fn every_status_of_its_own_is_said_to_be() {
    crate::none(tree::operators().iter().flat_map(|operator| {
        rights(operator).map_or_else(Vec::new, |path| check_status(operator, &read(&path), &rooms(operator)))
    }));
}

#[test]
fn every_page_says_what_a_shadow_shows_and_what_is_followed() {
    assert!(read(SHADOW_PAGE).contains(SHADOW_HEADING), "{SHADOW_PAGE}: has no section of shadows, as pages say");
    crate::none(tree::operators().iter().flat_map(|operator| {
        let page = format!("operators/{operator}/README.md");
        let page = if exists(&page) { read(&page) } else { String::new() };
        check_watches(operator, &page, &rooms(operator)).into_iter().chain(check_differences(operator, &page))
    }));
}

#[test]
fn every_operator_is_asked_why_and_known_to_the_plugin() {
    crate::none(tree::operators().iter().flat_map(|operator| {
        let tests = tree::files(&format!("operators/{operator}/tests"), ".rs");
        let is_known = facts::of(operator).is_some_and(|facts| !facts.acts_on.is_empty());
        let unknown = (!is_known).then(|| format!("operators/{operator}: FACTS names no kind that it acts on"));
        check_why(operator, &tests).into_iter().chain(unknown)
    }));
}

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

#[test]
fn a_controller_that_does_not_answer_is_seen() {
    let path = "operators/a-operator/src/controller.rs";
    let row = |code: &str, lacks: &'static [Lack], expected: &[&str]| {
        let exceptions = [(path.to_owned(), Exception { file: "", lacks, why: "so it is" })];
        let exceptions = if lacks.is_empty() { &[][..] } else { &exceptions[..] };
        assert_eq!(check_controllers(&[file(path, code)], exceptions), expected, "{code}");
    };
    let good = "impl Controller for A {\ndecisions.record(\nfn key_of(&self, object: &A)\nfn preview(&self, key: &Key)";
    let needless = format!("{path}: is more of an exception than it needs to be (so it is)");
    row(good, &[], &[]);
    row("impl Operator for A {", &[], &[]);
    row(&good.replace("decisions", "// decisions"), &[], &[&format!("{path}: its controller records no decision")]);
    row(&good.replace("object:", "_object:"), &[], &[&format!("{path}: its controller has no key for any object")]);
    row(&good.replace("key:", "_:"), &[], &[&format!("{path}: its controller previews nothing")]);
    row(&good.replace("key:", "_:"), &[Lack::Preview], &[]);
    let unexcepted = format!("{path}: its controller previews nothing");
    row(&good.replace("key:", "_:"), &[Lack::Key], &[&unexcepted, &needless]);
    row("", &[Lack::Key], &[&needless]);
}

#[test]
fn each_rule_fires() {
    let role = "rules:\n- resources: [jobs]\n- resources: [jobs/finalizers, jobs/status]\n";
    let (with, without) = ([file("a.rs", "fn status_of(&self)")], [file("a.rs", "fn preview(&self)")]);
    assert!(check_status("a-operator", role, &with).is_empty());
    assert_eq!(
        check_status("a-operator", role, &without),
        ["operators/a-operator: writes jobs/status, and no controller has a status_of"]
    );
    assert!(check_status("a-operator", &role.replace("jobs/", "pods/"), &without).is_empty());

    let page = format!("## Differences from upstream\n\nNone shows in a [shadow{SHADOW_LINK}.\n\n- A.\n");
    assert_eq!(check_differences("a-operator", &page), None);
    let silent = "operators/a-operator/README.md: does not say which differences a shadow shows";
    assert_eq!(check_differences("a-operator", &page.replace("None", "- A.\n\nNone")).as_deref(), Some(silent));
    assert_eq!(check_differences("a-operator", "").as_deref(), Some(silent));

    assert_eq!(check_why("a-operator", &[file("a.rs", "let why = running.why(PATH);")]), None);
    let unasked = "operators/a-operator/tests: ask no running operator why";
    assert_eq!(check_why("a-operator", &[file("a.rs", "plan.why()")]).as_deref(), Some(unasked));
}

#[test]
fn a_table_that_differs_from_the_wiring_is_seen() {
    let row = |code: &str, table: &str, expected: &[&str]| {
        let page = format!("## Watches\n\n| resource | which | while | for |\n|---|---|---|---|\n{table}\n## Writes\n");
        assert_eq!(check_watches("cronjob-operator", &page, &[file("a.rs", code)]), expected, "{code}");
    };
    let code = "setup.watch(informers.cron_jobs);\nsetup.watch_while_and_beside(pods, &need, &whole);";
    let table = "| `cronjobs.batch` | all |\n| `pods` (metadata) | all |\n| `pods` | some |\n| ended ones | hourly |\n";
    row(code, table, &[]);
    row(&code.replace("informers.cron_jobs", "owners"), table, &[]);
    row(code, "| `pods` |\n", &["operators/cronjob-operator/README.md: has no row for cronjobs under Watches"]);
    row("setup.watch(owners)", table, &["operators/cronjob-operator/src: watches no pods, as its page says"]);
    row("setup.feeder()", table, &[]);
}
