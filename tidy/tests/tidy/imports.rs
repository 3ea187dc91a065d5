//! Circles of imports: in a folder no room uses another that uses it in turn, by whatever detour.
//!
//! A room is a file together with the folder of its name. A file and the files in its own folder are one room and may
//! use each other. Left out: imports of tests, and of other crates.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{self, File};

/// A module by its path in the crate: `["following", "informer", "filter"]`; the root is `[]`.
type Module = Vec<String>;

/// The production code of one crate.
#[derive(Default)]
struct Crate {
    code: BTreeMap<Module, String>,
}

impl Crate {
    /// The files below `source`, such as `shared/src`.
    fn new<'a>(source: &str, files: impl IntoIterator<Item = &'a File>) -> Self {
        let mut modules = Self::default();
        let mut tests = BTreeSet::new();
        for File { path, text } in files {
            let Some(module) = module(source, path) else { continue };
            let code = without_tests(text);
            tests.extend(test_modules(&code).map(|name| [&module[..], &[name.to_owned()]].concat()));
            modules.code.insert(module, code);
        }
        modules.code.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        modules
    }

    /// The modules that the code of this one names.
    fn named_by(&self, module: &Module) -> BTreeSet<Module> {
        let Some(code) = self.code.get(module) else { return BTreeSet::new() };
        self.paths(module, code).iter().map(|path| self.resolve(module, path)).collect()
    }

    /// All paths in this code that begin at this crate's root, at a relative of the module, or at its child.
    fn paths(&self, module: &Module, code: &str) -> Vec<Vec<String>> {
        let tokens = tokens(code);
        let is_child = |name: &str| self.code.contains_key(&[&module[..], &[name.to_owned()]].concat());
        let begins = |at: usize| {
            tokens.get(at + 1) == Some(&"::")
                && (at == 0 || tokens[at - 1] != "::")
                && (["crate", "self", "super"].contains(&tokens[at]) || is_child(tokens[at]))
        };
        let mut paths = Vec::new();
        for at in (0..tokens.len()).filter(|at| begins(*at)) {
            read_path(&tokens, at, &[], &mut paths);
        }
        paths
    }

    /// The module of what a path names: a parent that only hands on the names of its children is passed through.
    fn resolve(&self, from: &Module, path: &[String]) -> Module {
        let mut at = from.clone();
        for (index, segment) in path.iter().enumerate() {
            match segment.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()),
                _ => {
                    let child = [&at[..], std::slice::from_ref(segment)].concat();
                    if self.code.contains_key(&child) {
                        at = child;
                        continue;
                    }
                    let Some(mut whole) = self.handed_on(&at, segment) else { return at };
                    whole.extend_from_slice(&path[index + 1..]);
                    return self.resolve(&at, &whole);
                }
            }
        }
        at
    }

    /// The path under which a module's `pub use` takes this name from one of its children.
    fn handed_on(&self, module: &Module, name: &str) -> Option<Vec<String>> {
        let code = self.code.get(module)?;
        let exports = ["pub ", "pub(crate) ", "pub(super) "]
            .into_iter()
            .flat_map(|keyword| code.split(keyword))
            .filter_map(|rest| rest.strip_prefix("use "));
        let exports = exports.filter_map(|rest| rest.split_once(';'));
        let paths = exports.flat_map(|(path, _)| self.paths(module, path));
        let is_of_child = |path: &Vec<String>| !["crate", "super"].contains(&path[0].as_str());
        paths.filter(is_of_child).find(|path| path.last().is_some_and(|last| last == name))
    }

    /// For each folder, by its module, its rooms and the rooms that each names.
    fn folders(&self) -> BTreeMap<Module, BTreeMap<&str, BTreeSet<String>>> {
        let mut folders: BTreeMap<Module, BTreeMap<&str, BTreeSet<String>>> = BTreeMap::new();
        for from in self.code.keys() {
            for to in self.named_by(from) {
                let depth = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
                if let (Some(room), Some(named)) = (from.get(depth), to.get(depth)) {
                    let rooms = folders.entry(from[..depth].to_vec()).or_default();
                    rooms.entry(room).or_default().insert(named.clone());
                }
            }
        }
        folders
    }

    /// The circles: the folder of each, and its rooms in order.
    fn circles(&self, source: &str) -> Vec<(String, Vec<String>)> {
        let folders = self.folders().into_iter();
        folders
            .flat_map(|(folder, rooms)| {
                let folder = [&[source.to_owned()][..], &folder].concat().join("/");
                circles_of(&rooms).into_iter().map(move |circle| (folder.clone(), circle))
            })
            .collect()
    }
}

/// The module of a file below `source`; none for tests.
fn module(source: &str, path: &str) -> Option<Module> {
    let room = path.strip_prefix(source)?.strip_prefix('/')?.strip_suffix(".rs")?;
    let module: Module = room.split('/').map(str::to_owned).collect();
    match room {
        "lib" | "main" => Some(Vec::new()),
        _ => (!module.iter().any(|part| part == "tests")).then_some(module),
    }
}

/// Code without the tests at its end, and without comments.
fn without_tests(text: &str) -> String {
    let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
    code.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code)).collect::<Vec<_>>().join("\n")
}

/// The modules that are declared for tests alone.
fn test_modules(code: &str) -> impl Iterator<Item = &str> {
    let declared = code.split("#[cfg(test)]\n").skip(1);
    declared
        .filter_map(|rest| rest.strip_prefix("mod ").or(rest.strip_prefix("pub mod "))?.split_once(';'))
        .map(|it| it.0)
}

/// Names, `::`, and single characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while !rest.is_empty() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let name = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let length = match name {
            0 if rest.starts_with("::") => 2,
            0 => rest.chars().next().map_or(0, char::len_utf8),
            name => name,
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// Reads the path that begins here, with all its branches; gives the place after it.
fn read_path(tokens: &[&str], mut at: usize, before: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(at) {
        if *token == "{" && !path.is_empty() {
            at += 1;
            while tokens.get(at).is_some_and(|token| *token != "}") {
                at = read_path(tokens, at, &path, paths).max(at + 1);
                at += usize::from(tokens.get(at) == Some(&","));
            }
            return at + 1;
        }
        if !token.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            break;
        }
        path.push((*token).to_owned());
        at += 1;
        if tokens.get(at) != Some(&"::") {
            break;
        }
        at += 1;
    }
    // A name that is given another one here.
    if tokens.get(at) == Some(&"as") {
        at += 2;
    }
    paths.push(path);
    at
}

/// The sets of rooms of which each reaches every other.
fn circles_of(rooms: &BTreeMap<&str, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let circle = |room: &str| -> Vec<String> {
        let others = reached(rooms, room).into_iter();
        others.filter(|other| reached(rooms, other).contains(room)).map(str::to_owned).collect()
    };
    rooms.keys().map(|room| circle(room)).filter(|circle| circle.len() > 1).collect()
}

/// The rooms that this one uses, by whatever detour.
fn reached<'a>(rooms: &'a BTreeMap<&str, BTreeSet<String>>, from: &'a str) -> BTreeSet<&'a str> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(room) = next.pop() {
        let named = rooms.get(room).into_iter().flatten().map(String::as_str);
        next.extend(named.filter(|named| reached.insert(*named)));
    }
    reached
}

#[test]
fn no_rooms_import_each_other() {
    let sources = tree::sources();
    let crates = tree::operators()
        .into_iter()
        .map(|name| format!("operators/{name}"))
        .chain(["shared", "cel-check", "cloud", "cli", "e2e", "bench", "facts"].map(str::to_owned));
    let circles = crates.flat_map(|name| {
        let source = format!("{name}/src");
        Crate::new(&source, &sources).circles(&source)
    });
    crate::none(circles.map(|(folder, rooms)| format!("{folder}: {} import each other", rooms.join(", "))));
}

#[test]
fn circles_are_found() {
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        let file = |(path, text): &(&str, &str)| File { path: format!("a/src/{path}.rs"), text: (*text).to_owned() };
        let files: Vec<File> = files.iter().map(file).collect();
        let circles = Crate::new("a/src", &files).circles("a/src");
        let circles: Vec<String> =
            circles.iter().map(|(folder, rooms)| format!("{folder} {}", rooms.join(" "))).collect();
        assert_eq!(circles, expected, "{:?}", files.iter().map(|file| &file.text).collect::<Vec<_>>());
    };
    check(&[("lib", "pub mod b;"), ("b", "use crate::c::D;"), ("c", "")], &[]);
    check(&[("b", "use crate::c::D;"), ("c", "use crate::b::{self, D};")], &["a/src b c"]);
    check(&[("b", "use super::c::D;"), ("c", "fn d() -> crate::b::D {}")], &["a/src b c"]);
    check(&[("b", "use crate::{c::D, e::F};"), ("c", "use crate::e;"), ("e", "use crate::b::D;")], &["a/src b c e"]);
    // A room with its folder is one.
    check(&[("b", "mod c;\nuse c::D;"), ("b/c", "use super::E;")], &[]);
    check(&[("b/c", "use super::d::E;"), ("b/d", "use crate::b::c::F;"), ("b", "")], &["a/src/b c d"]);
    check(&[("b/c", "use crate::e::F;"), ("e", "use crate::b::F;"), ("b", "")], &["a/src b e"]);
    // A parent that hands a name on is passed through.
    let parent = ("b", "pub use c::F;\npub use d::{E, G};");
    check(&[parent, ("b/c", "use crate::b::E;"), ("b/d", "use super::F;")], &["a/src/b c d"]);
    check(&[parent, ("b/c", "use crate::b::E;"), ("b/d", "")], &[]);
    // Tests and comments import what they like.
    let test = "#[cfg(test)]\nmod fixtures;\nuse crate::c::D;\n#[cfg(test)]\nmod tests { use crate::e::F; }";
    check(&[("b", test), ("c", "// crate::b::D"), ("e", "use crate::b;"), ("b/fixtures", "use crate::e::F;")], &[]);
}
