//! How deeply an expression is nested, from its text alone: the parser and the checker recurse that deep, so it must be
//! known before them.

use std::iter::Peekable;
use std::str::CharIndices;

/// The deepest nesting that is parsed. cel-go's parser refuses more than 250 levels of each rule of its grammar.
pub(crate) const MAX_NESTING: usize = 400;

/// An upper bound of an expression's nesting.
pub(crate) fn nesting(text: &str) -> usize {
    let mut scanner = Scanner { characters: text.char_indices().peekable(), text, levels: vec![Level::default()] };
    scanner.run()
}

/// What has been read between two brackets, since something that begins a new branch.
#[derive(Clone, Copy, Default)]
struct Level {
    /// `a ? b : c ? d : …` nests to the right.
    conditionals: usize,
    /// `a + b + …` nests to the left.
    operators: usize,
    /// `a.b[c](d)…` nests to the left too.
    members: usize,
}

impl Level {
    fn depth(self) -> usize {
        self.conditionals + self.operators + self.members
    }
}

struct Scanner<'a> {
    characters: Peekable<CharIndices<'a>>,
    text: &'a str,
    /// One for each open bracket.
    levels: Vec<Level>,
}

impl Scanner<'_> {
    fn run(&mut self) -> usize {
        let (mut outer, mut deepest) = (0, 0);
        let mut previous = ' ';
        while let Some((at, character)) = self.characters.next() {
            let next = self.characters.peek().map_or(' ', |(_, next)| *next);
            match character {
                '/' if next == '/' => while self.characters.next_if(|(_, c)| *c != '\n').is_some() {},
                '"' | '\'' => self.skip_string(at, character),
                '`' => while self.characters.next().is_some_and(|(_, c)| c != '`') {},
                '(' | '[' | '{' => {
                    let level = self.change(|level| level.members += 1);
                    outer += level.depth();
                    self.levels.push(Level::default());
                }
                ')' | ']' | '}' if self.levels.len() > 1 => {
                    self.levels.pop();
                    outer -= self.change(|_| ()).depth();
                }
                '.' => drop(self.change(|level| level.members += 1)),
                ',' => drop(self.change(|level| *level = Level::default())),
                // A conditional, or one of the signs of optional values, for which it is too much.
                '?' => drop(
                    self.change(|level| *level = Level { conditionals: level.conditionals + 1, ..Level::default() }),
                ),
                ':' | '&' | '|' => {
                    self.change(|level| *level = Level { conditionals: level.conditionals, ..Level::default() });
                }
                // The second character of an operator counts nothing.
                '=' if matches!(previous, '=' | '!' | '<' | '>') => {}
                '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' => self.operator(),
                'i' if next == 'n' && !is_word(previous) && self.is_in(at) => self.operator(),
                _ => {}
            }
            previous = character;
            deepest = deepest.max(outer + self.change(|_| ()).depth());
        }
        deepest
    }

    fn operator(&mut self) {
        self.change(|level| {
            level.operators += 1;
            level.members = 0;
        });
    }

    /// Changes the innermost level, and returns it.
    fn change(&mut self, change: impl FnOnce(&mut Level)) -> Level {
        self.levels.last_mut().map_or_else(Level::default, |level| {
            change(level);
            *level
        })
    }

    /// Whether the word `in` begins here.
    fn is_in(&self, at: usize) -> bool {
        let rest = self.text.get(at..).and_then(|rest| rest.strip_prefix("in"));
        rest.is_some_and(|rest| !rest.chars().next().is_some_and(is_word))
    }

    /// Skips the rest of a string that begins with a quote.
    fn skip_string(&mut self, at: usize, quote: char) {
        let before = self.text.get(..at).unwrap_or("");
        let prefix = &before[before.trim_end_matches(is_word).len()..];
        let is_raw = prefix.ends_with(['r', 'R']) && prefix.chars().all(|c| matches!(c, 'r' | 'R' | 'b' | 'B'));
        let quotes: String = [quote; 3].into_iter().collect();
        let is_long = self.text.get(at..).is_some_and(|rest| rest.starts_with(&quotes));
        let mut needed = if is_long { 3 } else { 1 };
        if is_long {
            self.characters.next();
            self.characters.next();
        }
        while needed > 0 {
            match self.characters.next() {
                Some((_, '\\')) if !is_raw => drop(self.characters.next()),
                Some((_, character)) if character == quote => needed -= 1,
                Some(_) => needed = if is_long { 3 } else { 1 },
                None => return,
            }
        }
    }
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}
