//! Rules on Rust files: size, opening words, and the places where names may stand.

use crate::tree::{self, File};

const MAX_LINES: usize = 600;
const MAX_MAIN_LINES: usize = 20;

/// Words that a pure room may not name: it does not wait, read the cluster or a cache, or know the time.
const IMPURE: [&str; 9] = ["async", "await", "Cache", "Client", "Clock", "Control", "SystemTime", "now()", "tokio"];

/// Names that operators leave to the shared crate: the typed client, and every request of their own.
const NOT_FOR_OPERATORS: [&str; 5] = ["kube::", "k8s_openapi", "hyper", "Client", "reqwest"];

/// The part of a file that runs in production: without its tests and comments.
pub(crate) fn production(file: &File) -> String {
    if is_test(&file.path) {
        return String::new();
    }
    let code = file.text.split("\n#[cfg(test)]\n").next().unwrap_or_default();
    code.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code)).collect::<Vec<_>>().join("\n")
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.contains("/src/testing")
}

/// Whether `code` names `word`, on its own or before `::`, `<` and the like.
fn names(code: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back().is_some_and(is_part);
        let after = word.ends_with(is_part) && code[at + word.len()..].chars().next().is_some_and(is_part);
        !before && !after
    })
}

/// The floors of the shared crate, lowest first; each knows only those below it.
const FLOORS: [&str; 6] = ["api", "transport", "following", "working", "process", "controllers"];

/// The floor of the shared crate that a file stands on.
fn floor(path: &str) -> Option<usize> {
    let room = path.strip_prefix("shared/src/")?;
    FLOORS.iter().position(|floor| room.split(['/', '.']).next() == Some(floor))
}

/// A room that decides: it gets all it knows as arguments.
fn is_pure(path: &str) -> bool {
    let Some((_, room)) = path.split_once("/src/") else { return false };
    let parts: Vec<&str> = room.trim_end_matches(".rs").split('/').collect();
    floor(path) == Some(0) || parts.iter().any(|part| ["plan", "status", "graph"].contains(part))
}

fn check_opening(file: &File) -> Option<String> {
    let opens = file.text.starts_with("//!") || file.path.ends_with("/tests.rs");
    (!opens).then(|| format!("{}: opens without a //! that says what it is for", file.path))
}

fn check_size(file: &File) -> Option<String> {
    let code = file.text.split("\n#[cfg(test)]\n").next().unwrap_or_default();
    let lines = code.lines().count();
    let limit = if file.path.ends_with("/main.rs") && file.path.starts_with("operators/") {
        MAX_MAIN_LINES
    } else if is_test(&file.path) {
        return None;
    } else {
        MAX_LINES
    };
    (lines > limit).then(|| format!("{}: {lines} lines, more than {limit}", file.path))
}

fn check_unfinished(file: &File) -> Vec<String> {
    // In two parts, or this file would complain of itself.
    let marks = [("TO", "DO"), ("FIX", "ME"), ("XX", "X"), ("todo", "!"), ("unimplemented", "!")];
    let marks = marks.map(|(front, back)| format!("{front}{back}"));
    marks.iter().filter(|mark| names(&file.text, mark)).map(|mark| format!("{}: {mark}", file.path)).collect()
}

/// A function that follows upstream's cites the code there with one word, by which all citations are found.
fn check_citations(file: &File) -> Option<String> {
    // In two parts, or this file would complain of itself.
    let other_word = concat!("Sour", "ce: ");
    let cites = |line: &str| line.split_once("//").is_some_and(|(_, comment)| comment.contains(other_word));
    file.text.lines().any(cites).then(|| format!("{}: cites with another word than Upstream:", file.path))
}

fn check_purity(file: &File) -> Vec<String> {
    if !is_pure(&file.path) {
        return Vec::new();
    }
    let code = production(file);
    let named = IMPURE.iter().filter(|word| names(&code, word));
    named.map(|word| format!("{}: is pure, and names {word}", file.path)).collect()
}

fn check_layers(file: &File, operators: &[String]) -> Vec<String> {
    let code = production(file);
    if file.path.starts_with("operators/") {
        // That of a cloud's provider sends nothing to the apiserver.
        let is_of_cloud = code.contains("use cloud::") && !code.contains("transport::client");
        let named = NOT_FOR_OPERATORS.iter().filter(|word| names(&code, word) && !(is_of_cloud && **word == "Client"));
        return named.map(|word| format!("{}: is an operator's, and names {word}", file.path)).collect();
    }
    if file.path.starts_with("shared/") {
        let known = operators.iter().flat_map(|name| [name.clone(), name.replace('-', "_")]);
        return known
            .filter(|name| names(&code, name))
            .map(|name| format!("{}: is shared, and knows {name}", file.path))
            .collect();
    }
    Vec::new()
}

/// A floor of the shared crate names no higher one.
fn check_floors(file: &File) -> Vec<String> {
    let Some(own) = floor(&file.path) else { return Vec::new() };
    let code = production(file);
    let higher = FLOORS[own + 1..].iter().filter(|floor| names(&code, &format!("crate::{floor}")));
    higher.map(|floor| format!("{}: names the higher floor {floor}", file.path)).collect()
}

/// Where a file of this room belongs: the folder in which the room is a file or a folder.
fn house<'a>(path: &'a str, room: &str) -> Option<&'a str> {
    let house = path.strip_suffix(&format!("/{room}.rs")).or_else(|| Some(path.split_once(&format!("/{room}/"))?.0))?;
    (!is_test(path)).then_some(house)
}

/// `apply` takes each value that it carries out apart by all its fields, so that a new one cannot be forgotten.
fn check_apply(file: &File) -> Vec<String> {
    if house(&file.path, "apply").is_none() {
        return Vec::new();
    }
    let code = production(file);
    let rest = code.match_indices("..").filter(|(at, _)| code[at + 2..].trim_start().starts_with('}'));
    let name = |at: usize| {
        code[..at]
            .rsplit_once('{')
            .and_then(|(before, _)| before.split(|c: char| !c.is_alphanumeric()).rfind(|word| !word.is_empty()))
    };
    rest.map(|(at, _)| format!("{}: takes {} apart with ..", file.path, name(at).unwrap_or_default())).collect()
}

/// The names of a plan's steps in this file: its structs that have a reason.
fn steps(file: &File) -> Vec<String> {
    let code = production(file);
    let structs = code.split("pub struct ").skip(1).filter_map(|rest| rest.split_once(" {"));
    let has_reason = |fields: &str| ["pub reason:", "pub why:"].iter().any(|field| fields.contains(field));
    structs
        .filter(|(_, rest)| rest.split("\n}").next().is_some_and(has_reason))
        .map(|(name, _)| name.split('<').next().unwrap_or(name).to_owned())
        .collect()
}

/// A step that `apply` names is taken apart there at least once.
fn check_steps(sources: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for plan in sources {
        let Some(of) = house(&plan.path, "plan") else { continue };
        let apply: Vec<String> =
            sources.iter().filter(|file| house(&file.path, "apply") == Some(of)).map(production).collect();
        let apply = apply.join("\n");
        let code: String = apply.lines().filter(|line| !line.starts_with("use ")).collect::<Vec<_>>().join("\n");
        let whole = steps(plan).into_iter().filter(|step| names(&code, step) && !code.contains(&format!("{step} {{")));
        complaints
            .extend(whole.map(|step| format!("{}: {step} is not taken apart where it is carried out", plan.path)));
    }
    complaints
}

/// Other words for types that the shared crate has once: `Effect`, `Effects`, and each operator's `Caches`.
const OTHER_WORDS: [&str; 8] = ["Effect", "Effects", "Gather", "Seat", "Sink", "Sources", "Taker", "Wake"];

/// Whether `code` declares a type of this name.
fn declares(code: &str, name: &str) -> bool {
    ["struct", "enum"].iter().any(|keyword| names(code, &format!("{keyword} {name}")))
}

/// Whether an `apply` borrows the plan that it is to take apart: then somebody reads, or changes, the rest of it.
fn borrows_plan(code: &str) -> bool {
    let signatures = code.split("fn apply").skip(1).filter_map(|rest| Some(rest.split_once('{')?.0));
    let of_plan = |borrowed: &str| {
        let parameter = borrowed.split([',', ')', '<']).next().unwrap_or_default();
        parameter.split_whitespace().last().is_some_and(|name| name.ends_with("Plan"))
    };
    signatures.flat_map(|signature| signature.split('&').skip(1)).any(of_plan)
}

/// The structs whose reason is a text. That of an event is upstream's word, and text.
fn untyped_reasons(code: &str) -> Vec<&str> {
    let structs = code.split("pub struct ").skip(1).filter_map(|rest| rest.split_once(" {"));
    let is_text = |fields: &str| {
        ["&'static str", "String", "Text"].iter().any(|text| fields.contains(&format!("pub reason: {text}")))
    };
    structs
        .filter(|(name, rest)| !name.ends_with("Event") && rest.split("\n}").next().is_some_and(is_text))
        .map(|(name, _)| name)
        .collect()
}

/// The shape that operators' rooms share: the same names, at the same places.
fn check_shape(file: &File) -> Vec<String> {
    let path = &file.path;
    if !path.starts_with("operators/") && !path.starts_with("shared/src/controllers/") {
        return Vec::new();
    }
    let code = production(file);
    let is_room = |room: &str| house(path, room).is_some();
    let own = OTHER_WORDS.iter().filter(|word| declares(&code, word));
    let mut complaints: Vec<String> =
        own.map(|word| format!("{path}: declares {word}, for which there is a name that all use")).collect();
    if declares(&code, "Outcome") && !is_room("apply") {
        complaints.push(format!("{path}: declares Outcome, which is what apply.rs gives"));
    }
    if code.contains("Change<'") && !["changes", "memory", "observe"].into_iter().any(is_room) {
        complaints.push(format!("{path}: says what a change means, which controller/changes.rs does"));
    }
    if is_room("plan") {
        let untyped = untyped_reasons(&code).into_iter();
        complaints.extend(untyped.map(|name| format!("{path}: {name} has a reason that is no enum's case")));
    }
    if borrows_plan(&code) && is_room("apply") {
        complaints.push(format!("{path}: borrows the plan, which goes to apply by value"));
    }
    complaints
}

fn complaints(file: &File, operators: &[String]) -> Vec<String> {
    let mut all = check_unfinished(file);
    all.extend(check_opening(file));
    all.extend(check_citations(file));
    all.extend(check_size(file));
    all.extend(check_apply(file));
    all.extend(check_purity(file));
    all.extend(check_layers(file, operators));
    all.extend(check_floors(file));
    all.extend(check_shape(file));
    all
}

#[test]
fn every_source_file_keeps_the_rules() {
    let operators = tree::operators();
    let is_on_a_floor = |file: &&File| file.path.starts_with("shared/src/") && !is_test(&file.path);
    let sources = tree::sources();
    let off = sources.iter().filter(is_on_a_floor).filter(|file| floor(&file.path).is_none());
    let off: Vec<&str> = off.map(|file| file.path.as_str()).collect();
    assert_eq!(off, ["shared/src/lib.rs"], "on no floor");
    crate::none(sources.iter().flat_map(|file| complaints(file, &operators)).chain(check_steps(&sources)));
}

#[test]
fn each_rule_fires() {
    let row = |path: &str, text: &str, expected: &[&str]| {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        assert_eq!(complaints(&file, &["job-operator".to_owned()]), expected, "{path}: {text}");
    };
    row("shared/src/a.rs", "//! A.\n", &[]);
    row("shared/src/a.rs", "use b;\n", &["shared/src/a.rs: opens without a //! that says what it is for"]);
    row("shared/src/a/tests.rs", "use super::*;\n", &[]);
    row("shared/src/a.rs", &"//!\n".repeat(601), &["shared/src/a.rs: 601 lines, more than 600"]);
    row("shared/src/a.rs", &format!("//!\n#[cfg(test)]\nmod tests {{{}}}", "\n".repeat(601)), &[]);
    row("operators/a/src/main.rs", &"//!\n".repeat(21), &["operators/a/src/main.rs: 21 lines, more than 20"]);
    row("e2e/src/a.rs", concat!("//!\n// TO", "DO: b\n"), &[concat!("e2e/src/a.rs: TO", "DO")]);
    row("e2e/src/a.rs", concat!("//!\n/// Sour", "ce: b\n"), &["e2e/src/a.rs: cites with another word than Upstream:"]);
    row("e2e/src/a.rs", concat!("//!\nlet a: Sour", "ce: b\n"), &[]);
    let pure = "operators/a/src/plan/b.rs";
    row(pure, "//!\nasync fn b() {}", &["operators/a/src/plan/b.rs: is pure, and names async"]);
    row(pure, "//!\nlet a = clock.now();", &["operators/a/src/plan/b.rs: is pure, and names now()"]);
    row(pure, "//! async, as a comment may say\nfn unknown() {} // Clock", &[]);
    row("operators/a/src/status.rs", "//!\nCache<Pod>", &["operators/a/src/status.rs: is pure, and names Cache"]);
    row("shared/src/api/pod.rs", "//!\nuse tokio::a;", &["shared/src/api/pod.rs: is pure, and names tokio"]);
    row("operators/a/src/observe.rs", "//!\nCache<Pod>", &[]);
    let api = "operators/a/src/apply.rs";
    row(api, "//!\nuse kube::Api;", &["operators/a/src/apply.rs: is an operator's, and names kube::"]);
    row(api, "//!\nlet Plan { a, .. } = plan;", &["operators/a/src/apply.rs: takes Plan apart with .."]);
    row(api, "//!\nfn b(Step { a, .. }: Step) {}", &["operators/a/src/apply.rs: takes Step apart with .."]);
    row(api, "//!\nlet Plan { a } = Plan { b, ..c };", &[]);
    let step = |name: &str, reason: &str| format!("//!\npub struct {name} {{\n    pub reason: {reason},\n}}\n");
    row(pure, &step("Deletion", "Text"), &["operators/a/src/plan/b.rs: Deletion has a reason that is no enum's case"]);
    row(pure, &step("Deletion", "Reason"), &[]);
    row(pure, &step("PlannedEvent", "&'static str"), &[]);
    let sub_room = "operators/a/src/apply/b.rs";
    row(sub_room, "//!\nlet Step {\n a,\n ..\n} = b;", &["operators/a/src/apply/b.rs: takes Step apart with .."]);
    row("operators/a/src/apply/tests.rs", "//!\nlet Step { a, .. } = b;", &[]);
    let wake = "operators/a/src/observe.rs: declares Wake, for which there is a name that all use";
    row("operators/a/src/observe.rs", "//!\npub enum Wake {}", &[wake]);
    row("operators/a/src/observe.rs", "//!\npub enum Wakeful {}\nfn a(b: Effect) {}", &[]);
    row("shared/src/working/effect.rs", "//!\npub enum Effect {}", &[]);
    let outcome = "operators/a/src/status.rs: declares Outcome, which is what apply.rs gives";
    row("operators/a/src/status.rs", "//!\npub struct Outcome {}", &[outcome]);
    row(api, "//!\npub struct Outcome {}", &[]);
    row(sub_room, "//!\npub struct Outcome {}", &[]);
    let change = "//!\npub(crate) fn job_changed(&self, change: Change<'_, Job>) -> Vec<Effect> {}";
    let meaning = "operators/a/src/controller.rs: says what a change means, which controller/changes.rs does";
    row("operators/a/src/controller.rs", change, &[meaning]);
    row("operators/a/src/controller/changes.rs", change, &[]);
    row("operators/a/src/observe/edits.rs", change, &[]);
    row("operators/a/src/memory.rs", change, &[]);
    let borrowed = "operators/a/src/apply.rs: borrows the plan, which goes to apply by value";
    row(api, "//!\npub async fn apply(&self, observed: &Observed, plan: &Plan) -> Outcome {}", &[borrowed]);
    row(api, "//!\nfn apply(&self, job: &Job, plan: &mut Plan) -> Outcome {}", &[borrowed]);
    row(api, "//!\nfn apply_missing(\n    &self,\n    plan: &'a MissingPlan,\n) {}", &[borrowed]);
    row(api, "//!\nfn apply(&self, observed: &Observed, plan: Plan) {}\nfn b(plan: &Plan) {}", &[]);
    row("operators/a/src/metrics.rs", "//!\nfn apply(plan: &Plan) {}", &[]);
    row(api, "//!\nfn b(plan: Plan) {}", &[]);
    row("shared/src/a.rs", "//! `job-operator`\nlet a = 1;", &[]);
    row("shared/src/a.rs", "//!\n\"job-operator\"", &["shared/src/a.rs: is shared, and knows job-operator"]);
    row("shared/src/a.rs", "//!\njob_operator::b", &["shared/src/a.rs: is shared, and knows job_operator"]);
}

#[test]
fn a_step_that_is_not_taken_apart_is_seen() {
    let plan = "//!\npub struct Step {\n    pub why: Why,\n}\npub struct Noun {\n    pub key: Key,\n}\n";
    let check = |path: &str, apply: &str, expected: &[&str]| {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let sources = [file("operators/a/src/plan/b.rs", plan), file(path, apply)];
        assert_eq!(check_steps(&sources), expected, "{apply}");
    };
    let apply = "operators/a/src/apply.rs";
    let whole = "operators/a/src/plan/b.rs: Step is not taken apart where it is carried out";
    check(apply, "//!\nuse crate::plan::Step;\nfn a(step: &Step, noun: &Noun) {}\n", &[whole]);
    check("operators/a/src/apply/c.rs", "//!\nfn a(step: &Step) {}\n", &[whole]);
    check(apply, "//!\nfn a(step: &Step) {\n    let Step { why: _ } = step;\n}\n", &[]);
    check(apply, "//!\nuse crate::plan::Step;\n", &[]);
    check("operators/other/src/apply.rs", "//!\nfn a(step: &Step) {}\n", &[]);
}
