//! Rules on the answers that an operator owes about its objects: decisions that `why` and a shadow can show, a page
//! that tells the findings of a shadow, and its place in the plugin's table of kinds.
//!
//! The compiler asks each controller for `key_of` and `preview`, and takes an empty answer; it asks nobody to record
//! anything. Left out: whether an answer is right, which each operator's own tests show.

use std::collections::BTreeSet;

use crate::code::production;
use crate::operators::{section, source};
use crate::tree::{self, File, exists, read};

const NO_RECORD: &str = "records no decision";
const NO_KEY: &str = "has no key for any object";
const NO_PREVIEW: &str = "previews nothing";

/// A controller that owes less than the others.
struct Exception {
    /// Its file.
    path: &'static str,
    lacks: &'static [&'static str],
    why: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        path: "operators/disruption-operator/src/controller/search.rs",
        lacks: &[NO_KEY, NO_PREVIEW],
        why: "it looks at all pods together, live, and the pods that it finds have keys of their own",
    },
    Exception {
        path: "operators/endpoints-operator/src/controller/leftovers.rs",
        lacks: &[NO_RECORD, NO_KEY, NO_PREVIEW],
        why: "it looks at all Endpoints together, and the sync of each key that it finds records its own decision",
    },
    Exception {
        path: "operators/endpointslice-operator/src/controller/zones.rs",
        lacks: &[NO_RECORD, NO_KEY, NO_PREVIEW],
        why: "it looks at all nodes together, and the Services that it wakes record their own decisions",
    },
    Exception {
        path: "operators/job-operator/src/controller/unseen_pods.rs",
        lacks: &[NO_RECORD, NO_KEY, NO_PREVIEW],
        why: "it looks at all pods together, and the sync of each pod that it finds records its own decision",
    },
    Exception {
        path: "operators/node-lifecycle-operator/src/controller/rounds.rs",
        lacks: &[NO_KEY, NO_PREVIEW],
        why: "it looks at all nodes together, and each node that it finds has a key of its own",
    },
    Exception {
        path: "operators/pod-garbage-collector-operator/src/controller/bindings.rs",
        lacks: &[NO_KEY, NO_PREVIEW],
        why: "it looks at all bound pods together, live, and the nodes that it finds missing have keys of their own",
    },
    Exception {
        path: "operators/podcertificaterequest-cleaner-operator/src/controller.rs",
        lacks: &[NO_PREVIEW],
        why: "it follows no request: each is read before anything is decided, which is what its preview says",
    },
    Exception {
        path: "operators/podcertificaterequest-cleaner-operator/src/controller/rounds.rs",
        lacks: &[NO_KEY, NO_PREVIEW],
        why: "it looks at all requests together, live, and each request that it finds has a key of its own",
    },
];

/// The page and the heading about shadows, and the link to it from an operator's page.
const SHADOW_PAGE: &str = "docs/operating.md";
const SHADOW_HEADING: &str = "\n## Shadow: what would a takeover change?\n";
const SHADOW_LINK: &str = "](../../docs/operating.md#shadow-what-would-a-takeover-change)";

/// The plugin's table of kinds and the operators that act on them.
const KINDS: &str = "cli/src/kinds.rs";

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
fn lacks(code: &str) -> Vec<&'static str> {
    // The compiler refuses an argument that nobody reads, unless its name begins so.
    let lacks = [
        (NO_RECORD, !code.contains("decisions.record(")),
        (NO_KEY, code.contains("fn key_of(&self, _")),
        (NO_PREVIEW, code.contains("fn preview(&self, _")),
    ];
    lacks.into_iter().filter(|(_, is_so)| *is_so).map(|(lack, _)| lack).collect()
}

/// Each controller answers, or is an exception; and each exception is one.
fn check_controllers(sources: &[File], exceptions: &[Exception]) -> Vec<String> {
    let codes = sources.iter().map(|file| (file.path.as_str(), production(file)));
    let controllers: Vec<(&str, String)> = codes.filter(|(_, code)| code.contains(" Controller for ")).collect();
    let mut complaints = Vec::new();
    for (path, code) in &controllers {
        let excepted = exceptions.iter().find(|exception| exception.path == *path);
        let excepted = excepted.map_or(&[][..], |exception| exception.lacks);
        let lacks = lacks(code).into_iter().filter(|lack| !excepted.contains(lack));
        complaints.extend(lacks.map(|lack| format!("{path}: its controller {lack}")));
    }
    for Exception { path, lacks: excepted, why } in exceptions {
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
    let is_asked = tests.iter().any(|file| file.text.contains("running.why("));
    (!is_asked).then(|| format!("operators/{operator}/tests: ask no running operator why"))
}

/// The plugin asks the operators that its table names.
fn check_kinds(operator: &str, kinds: &str) -> Option<String> {
    let name = format!("\"{operator}\"");
    let table = kinds.split("const OF_KINDS").nth(1).and_then(|rest| rest.split("\n];").next()).unwrap_or_default();
    let is_collector = kinds.contains(&format!("const COLLECTOR: &str = {name};"));
    (!is_collector && !table.contains(&name)).then(|| format!("{KINDS}: names no kind that {operator} acts on"))
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
    crate::none(check_controllers(&sources, EXCEPTIONS));
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
    let kinds = read(KINDS);
    crate::none(tree::operators().iter().flat_map(|operator| {
        let tests = tree::files(&format!("operators/{operator}/tests"), ".rs");
        check_why(operator, &tests).into_iter().chain(check_kinds(operator, &kinds))
    }));
}

fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

#[test]
fn a_controller_that_does_not_answer_is_seen() {
    let path = "operators/a-operator/src/controller.rs";
    let row = |code: &str, lacks: &'static [&'static str], expected: &[&str]| {
        let exceptions = [Exception { path, lacks, why: "so it is" }];
        let exceptions = if lacks.is_empty() { &[][..] } else { &exceptions[..] };
        assert_eq!(check_controllers(&[file(path, code)], exceptions), expected, "{code}");
    };
    let good = "impl Controller for A {\ndecisions.record(\nfn key_of(&self, object: &A)\nfn preview(&self, key: &Key)";
    let needless = format!("{path}: is more of an exception than it needs to be (so it is)");
    row(good, &[], &[]);
    row("impl Operator for A {", &[], &[]);
    row(&good.replace("decisions", "// decisions"), &[], &[&format!("{path}: its controller {NO_RECORD}")]);
    row(&good.replace("object:", "_object:"), &[], &[&format!("{path}: its controller {NO_KEY}")]);
    row(&good.replace("key:", "_:"), &[], &[&format!("{path}: its controller {NO_PREVIEW}")]);
    row(&good.replace("key:", "_:"), &[NO_PREVIEW], &[]);
    let unexcepted = format!("{path}: its controller {NO_PREVIEW}");
    row(&good.replace("key:", "_:"), &[NO_KEY], &[&unexcepted, &needless]);
    row("", &[NO_KEY], &[&needless]);
}

#[test]
fn each_rule_fires() {
    let page = format!("## Differences from upstream\n\nNone shows in a [shadow{SHADOW_LINK}.\n\n- A.\n");
    assert_eq!(check_differences("a-operator", &page), None);
    let silent = "operators/a-operator/README.md: does not say which differences a shadow shows";
    assert_eq!(check_differences("a-operator", &page.replace("None", "- A.\n\nNone")).as_deref(), Some(silent));
    assert_eq!(check_differences("a-operator", "").as_deref(), Some(silent));

    assert_eq!(check_why("a-operator", &[file("a.rs", "let why = running.why(PATH);")]), None);
    let unasked = "operators/a-operator/tests: ask no running operator why";
    assert_eq!(check_why("a-operator", &[file("a.rs", "plan.why()")]).as_deref(), Some(unasked));

    let kinds = "const OF_KINDS: [A; 1] = [\n(\"A\", &[\"a-operator\"]),\n];\nconst COLLECTOR: &str = \"b-operator\";\n\
                 const REMOVERS: [B; 1] = [\n(\"c\", \"c-operator\"),\n];";
    assert_eq!(["a-operator", "b-operator"].map(|name| check_kinds(name, kinds)), [None, None]);
    let unknown = "cli/src/kinds.rs: names no kind that c-operator acts on";
    assert_eq!(check_kinds("c-operator", kinds).as_deref(), Some(unknown));
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
