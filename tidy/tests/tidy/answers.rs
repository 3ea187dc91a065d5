//! Rules on the answers that an operator owes about its objects: decisions that `why` and a shadow can show, a page
//! that tells the findings of a shadow, and the kinds that the plugin asks it about.
//!
//! The compiler asks each controller for `key_of` and `preview`, and takes an empty answer; it asks nobody to record
//! anything. Left out: whether an answer is right, which each operator's own tests show.

use std::collections::BTreeSet;

use facts::{Exception, Lack};

use crate::code::production;
use crate::operators::{section, source};
use crate::tree::{self, File, exists, read};

fn complaint(lack: Lack) -> &'static str {
    match lack {
        Lack::Record => "records no decision",
        Lack::Key => "has no key for any object",
        Lack::Preview => "previews nothing",
    }
}

/// The page and the heading about shadows, and the link to it from an operator's page.
const SHADOW_PAGE: &str = "docs/handing-over.md";
const SHADOW_HEADING: &str = "\n## Shadow: what would a takeover change?\n";
const SHADOW_LINK: &str = "](../../docs/handing-over.md#shadow-what-would-a-takeover-change)";

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
        (
            Lack::Record,
            !["decisions.record(", "ctx.decide(", ".decide_in_stages("].iter().any(|call| code.contains(call)),
        ),
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

/// The first words about differences say which of them a shadow shows.
fn check_differences(operator: &str, page: &str) -> Option<String> {
    let opening = section(page, "Differences from upstream").trim_start().split("\n\n").next();
    let is_said = opening.is_some_and(|opening| opening.contains(SHADOW_LINK));
    (!is_said).then(|| format!("operators/{operator}/README.md: does not say which differences a shadow shows"))
}

/// Somebody asks the running operator `why`.
fn check_why(operator: &str, tests: &[File]) -> Option<String> {
    let is_asked =
        |file: &File| ["why", "now", "last"].iter().any(|ask| file.text.contains(&format!("running.{ask}(")));
    (!tests.iter().any(is_asked)).then(|| format!("operators/{operator}/tests: ask no running operator why"))
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
    row(&good.replace("decisions.record(", "self.ctx.decide_in_stages("), &[], &[]);
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
    let page = format!("## Differences from upstream\n\nNone shows in a [shadow{SHADOW_LINK}.\n\n- A.\n");
    assert_eq!(check_differences("a-operator", &page), None);
    let silent = "operators/a-operator/README.md: does not say which differences a shadow shows";
    assert_eq!(check_differences("a-operator", &page.replace("None", "- A.\n\nNone")).as_deref(), Some(silent));
    assert_eq!(check_differences("a-operator", "").as_deref(), Some(silent));

    for ask in ["why", "now", "last"] {
        assert_eq!(check_why("a-operator", &[file("a.rs", &format!("let told = running.{ask}(PATH);"))]), None);
    }
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
