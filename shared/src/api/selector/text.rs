//! Selectors as text (`app=web,tier in (a,b),!old`), as a scale has them and kubectl takes them.
//!
//! Left out: the path of a field in errors; a text has none, and Go prints that as `<nil>`.
//!
//! Upstream: `Parse`, staging/src/k8s.io/apimachinery/pkg/labels/selector.go.

use std::collections::BTreeSet;

use super::validation::{self, key_faults};
use super::{InvalidSelector, Matching, Requirement, Selector, Test};
use crate::api::intern::Text;

/// The operators between a key and its values, as an error names them.
const BINARY_OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

/// A piece of the text; the empty one is its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token<'a> {
    /// A key or a value; also `in` and `notin`, which are operators where one may stand. Else it is an operator, a comma
    /// or a parenthesis.
    is_word: bool,
    text: &'a str,
}

const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

impl Token<'_> {
    fn is(self, symbol: &str) -> bool {
        !self.is_word && self.text == symbol
    }

    fn is_end_of_requirement(self) -> bool {
        self.is("") || self.is(",")
    }

    /// Whether a requirement may begin so.
    fn is_begin(self) -> bool {
        self.is_word || self.is("!")
    }
}

impl Selector {
    /// Compiles a text.
    ///
    /// # Errors
    /// In upstream's words, when it is none.
    pub fn parse_text(text: &str) -> Result<Self, String> {
        let mut tokens = Tokens { rest: text };
        let mut requirements = Vec::new();
        while !tokens.peek().is("") {
            let next = tokens.peek();
            if !next.is_begin() {
                return Err(format!("found '{}', expected: !, identifier, or 'end of string'", next.text));
            }
            let requirement = tokens.requirement().map_err(|error| format!("unable to parse requirement: {error}"))?;
            requirements.push(requirement);
            let (end, next) = (tokens.next(), tokens.peek());
            if !end.is_end_of_requirement() {
                return Err(format!("found '{}', expected: ',' or 'end of string'", end.text));
            }
            if end.is(",") && !next.is_begin() {
                return Err(format!("found '{}', expected: identifier after ','", next.text));
            }
        }
        requirements.sort_by(|a: &Requirement, b| a.key.cmp(&b.key));
        Ok(Self(Matching::All(requirements.into())))
    }
}

#[derive(Clone, Copy)]
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn peek(self) -> Token<'a> {
        let mut ahead = self;
        ahead.next()
    }

    fn next(&mut self) -> Token<'a> {
        let is_symbol = |char: char| "=!(),<>".contains(char);
        let is_blank = |char: char| " \t\r\n".contains(char);
        self.rest = self.rest.trim_start_matches(is_blank);
        let symbol = SYMBOLS.iter().find(|symbol| self.rest.starts_with(**symbol));
        let end = symbol.map_or_else(
            || self.rest.find(|char| is_symbol(char) || is_blank(char)).unwrap_or(self.rest.len()),
            |symbol| symbol.len(),
        );
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        Token { is_word: symbol.is_none() && !text.is_empty(), text }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let is_negated = self.peek().is("!");
        if is_negated {
            self.next();
        }
        let key = self.word("expected: identifier")?;
        let faults = key_faults(key);
        if !faults.is_empty() {
            return Err(format!("<nil>: Invalid value: {key:?}: {}", faults.join("; ")));
        }
        let test = if is_negated {
            Test::DoesNotExist
        } else if self.peek().is_end_of_requirement() {
            Test::Exists
        } else {
            self.test(key)?
        };
        Ok(Requirement { key: Text::new(key), test })
    }

    fn word(&mut self, expected: &str) -> Result<&'a str, String> {
        let found = self.next();
        if found.is_word { Ok(found.text) } else { Err(format!("found '{}', {expected}", found.text)) }
    }

    fn test(&mut self, key: &str) -> Result<Test, String> {
        match self.next().text {
            "in" => Ok(Test::In(checked(key, self.values()?, true)?)),
            "notin" => Ok(Test::NotIn(checked(key, self.values()?, true)?)),
            "=" | "==" => Ok(Test::Equals(self.value_of(key)?)),
            "!=" => Ok(Test::NotEquals(self.value_of(key)?)),
            ">" => Ok(Test::GreaterThan(self.number_of(key)?)),
            "<" => Ok(Test::LessThan(self.number_of(key)?)),
            other => Err(format!("found '{other}', expected: {BINARY_OPERATORS}")),
        }
    }

    fn value_of(&mut self, key: &str) -> Result<Text, String> {
        let value = if self.peek().is_end_of_requirement() { "" } else { self.word("expected: identifier")? };
        let checked = checked(key, BTreeSet::from([value]), false)?;
        Ok(checked.first().cloned().unwrap_or_default())
    }

    fn number_of(&mut self, key: &str) -> Result<i64, String> {
        let value = self.value_of(key)?;
        let fault = || {
            let value = value.as_str();
            format!("values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer")
        };
        value.parse().map_err(|_| fault())
    }

    /// `(a,b)`; an empty one has the empty value.
    fn values(&mut self) -> Result<BTreeSet<&'a str>, String> {
        let begin = self.next();
        if !begin.is("(") {
            return Err(format!("found '{}' expected: '('", begin.text));
        }
        let mut values = BTreeSet::new();
        loop {
            let next = self.peek();
            let is_empty = next.is(",") || next.is(")");
            values.insert(if is_empty { "" } else { self.word("expected: ',', or identifier")? });
            let end = self.next();
            if end.is(")") {
                return Ok(values);
            }
            if !end.is(",") {
                return Err(format!("found '{}', expected: ',' or ')'", end.text));
            }
        }
    }
}

fn checked(key: &str, values: BTreeSet<&str>, is_set: bool) -> Result<Box<[Text]>, String> {
    let values: Box<[Text]> = values.into_iter().map(Text::new).collect();
    let checked = validation::check(key, &values, is_set.then_some(true));
    checked.map_err(|invalid: InvalidSelector| invalid.to_string())?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::labels::Labels;

    /// Rows of upstream's `TestSelectorParse`.
    #[test]
    fn texts_are_read_as_upstream_reads_them() {
        for (text, printed) in [
            ("", ""),
            ("x=a,y=b,z=c", "x=a,y=b,z=c"),
            ("x!=a,y=b", "x!=a,y=b"),
            ("x=", "x="),
            ("x= ", "x="),
            ("x=,z= ", "x=,z="),
            ("x= ,z= ", "x=,z="),
            ("!x", "!x"),
            ("x>1", "x>1"),
            ("x>1,z<5", "x>1,z<5"),
            ("x==a,!y,z", "x=a,!y,z"),
            ("x in (b,a),y notin (c)", "x in (a,b),y notin (c)"),
            ("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()"),
            ("z=1,a=2", "a=2,z=1"),
            (" x in ( in , notin ) ", "x in (in,notin)"),
        ] {
            assert_eq!(
                Selector::parse_text(text).map(|selector| selector.to_string()),
                Ok(printed.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_none_is_told_in_upstreams_words() {
        for (text, error) in [
            ("cm:b", "unable to parse requirement: <nil>: Invalid value: \"cm:b\": name part must consist of "),
            ("x=a||y=b", "unable to parse requirement: values[0][x]: Invalid value: \"a||y\": "),
            ("x==a==b", "found '==', expected: ',' or 'end of string'"),
            ("!x=a", "found '=', expected: ',' or 'end of string'"),
            ("x<a", "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, "),
            ("x a", "unable to parse requirement: found 'a', expected: in, notin, =, ==, !=, gt, lt"),
            ("x in a", "unable to parse requirement: found 'a' expected: '('"),
            ("x=a,", "found '', expected: identifier after ','"),
            (",x", "found ',', expected: !, identifier, or 'end of string'"),
            ("x in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
        ] {
            let found = Selector::parse_text(text).unwrap_err();
            assert!(found.starts_with(error), "{text}: {found}");
        }
    }

    #[test]
    fn a_selector_of_a_text_selects() {
        let labels = Labels::new([("app", "web"), ("n", "5")]);
        for (text, expected) in [
            ("", true),
            ("app=web", true),
            ("app!=web", false),
            ("tier!=a", true),
            ("app in (db,web)", true),
            ("app notin (db,web)", false),
            ("n>4", true),
            ("n>5", false),
            ("n<6", true),
            ("app>1", false),
            ("!tier,app", true),
        ] {
            assert_eq!(Selector::parse_text(text).unwrap().matches(&labels), expected, "{text}");
        }
    }
}
