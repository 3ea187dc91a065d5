//! What is checked once all types are known and right: that literals have elements of one type, and that the arguments of
//! `format` suit its text.
//!
//! Texts that are wrong whatever the types are, such as those of durations and regular expressions, are left out: the
//! apiserver accepts no policy with one.
//!
//! Upstream: `cel/validator.go` and `stringFormatValidator`, `ext/formatting.go`, of cel-go.

use super::Checker;
use crate::expression::{Comprehension, Element, Entry, Kind, Literal, Node};
use crate::types::Type;
use crate::undecided::Undecided;

/// The function whose arguments may have different types.
const FORMAT: &str = "format";

impl Checker<'_> {
    pub(super) fn validate(&mut self, root: &Node) -> Result<(), Undecided> {
        self.validate_node(root, false)
    }

    /// `is_exempt` within an argument of `format`.
    fn validate_node(&mut self, node: &Node, is_exempt: bool) -> Result<(), Undecided> {
        match &node.kind {
            Kind::Literal(_) | Kind::Identifier(_) => Ok(()),
            Kind::Select(operand, _, _) => self.validate_node(operand, is_exempt),
            Kind::Call { function, target, arguments } => {
                let is_format = function == FORMAT;
                if let Some(target) = target {
                    if is_format {
                        self.validate_format(node, target, arguments)?;
                    }
                    self.validate_node(target, is_exempt || is_format)?;
                }
                arguments.iter().try_for_each(|argument| self.validate_node(argument, is_exempt || is_format))
            }
            Kind::List(elements) => {
                if !is_exempt {
                    self.validate_list(elements)?;
                }
                elements.iter().try_for_each(|element| self.validate_node(&element.value, is_exempt))
            }
            Kind::Map(entries) => {
                if !is_exempt {
                    self.validate_map(entries)?;
                }
                entries.iter().try_for_each(|Entry { key, value, is_optional: _ }| {
                    self.validate_node(key, is_exempt)?;
                    self.validate_node(value, is_exempt)
                })
            }
            Kind::Comprehension(comprehension) => {
                let Comprehension { range, start, condition, step, result, .. } = &**comprehension;
                [range, start, condition, step, result]
                    .into_iter()
                    .try_for_each(|part| self.validate_node(part, is_exempt))
            }
        }
    }

    /// The type of a checked node.
    fn type_of(&mut self, node: &Node) -> Result<Type, Undecided> {
        let of = self.types.get(node.id).and_then(Option::as_ref).ok_or(Undecided::Syntax)?;
        self.mapping.substitute(of, true, self.budget)
    }

    fn value_type(&mut self, node: &Node, is_optional: bool) -> Result<Type, Undecided> {
        let of = self.type_of(node)?;
        match of.within_optional() {
            Some(within) if is_optional => Ok(within.clone()),
            // Upstream reads a parameter that is not there.
            None if is_optional => Err(Undecided::Syntax),
            _ => Ok(of),
        }
    }

    fn validate_list(&mut self, elements: &[Element]) -> Result<(), Undecided> {
        let mut first = None;
        for Element { value, is_optional } in elements {
            let of = self.value_type(value, *is_optional)?;
            let expected = first.get_or_insert_with(|| of.clone());
            if *expected != of {
                let expected = expected.clone();
                self.mismatch(value, &expected, &of);
                break;
            }
        }
        Ok(())
    }

    fn validate_map(&mut self, entries: &[Entry]) -> Result<(), Undecided> {
        let mut first: Option<(Type, Type)> = None;
        for Entry { key, value, is_optional } in entries {
            let types = (self.type_of(key)?, self.value_type(value, *is_optional)?);
            let (keys, values) = first.get_or_insert_with(|| types.clone()).clone();
            if keys != types.0 {
                self.mismatch(key, &keys, &types.0);
            }
            if values != types.1 {
                self.mismatch(value, &values, &types.1);
            }
        }
        Ok(())
    }

    fn validate_format(&mut self, node: &Node, target: &Node, arguments: &[Node]) -> Result<(), Undecided> {
        let (Kind::Literal(Literal::String(text)), [Node { kind: Kind::List(elements), .. }]) =
            (&target.kind, arguments)
        else {
            return Ok(());
        };
        let mut used = 0;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            if character != '%' || characters.next_if_eq(&'%').is_some() {
                continue;
            }
            if characters.next_if_eq(&'.').is_some() {
                while characters.next_if(char::is_ascii_digit).is_some() {}
            }
            // The text itself is wrong.
            let clause = characters.next().and_then(Clause::of).ok_or(Undecided::Syntax)?;
            let Some(Element { value, is_optional: _ }) = elements.get(used) else {
                self.report(node, || format!("index {used} out of range"));
                return Ok(());
            };
            if let Some((culprit, of)) = self.unsuitable(clause, value)? {
                let (wanted, given) = (clause.wanted(), of.runtime_name());
                self.report(culprit, || format!("error during formatting: {wanted}, was given {given}"));
                return Ok(());
            }
            used += 1;
        }
        if elements.len() > used {
            let given = elements.len();
            self.report(node, || {
                format!("too many arguments supplied to string.format (expected {used}, got {given})")
            });
        }
        Ok(())
    }

    /// The part of an argument that a clause cannot write, and its type.
    fn unsuitable<'n>(&mut self, clause: Clause, node: &'n Node) -> Result<Option<(&'n Node, Type)>, Undecided> {
        self.budget.charge(1)?;
        let of = self.type_of(node)?;
        if of != Type::Dyn && !clause.suits(&of) {
            return Ok(Some((node, of)));
        }
        let mut parts: Vec<&Node> = Vec::new();
        if clause == Clause::String {
            if let Kind::List(elements) = &node.kind {
                parts.extend(elements.iter().map(|element| &element.value));
            } else if let Kind::Map(entries) = &node.kind {
                parts.extend(entries.iter().flat_map(|entry| [&entry.key, &entry.value]));
            }
        }
        for part in parts {
            if let Some(culprit) = self.unsuitable(clause, part)? {
                return Ok(Some(culprit));
            }
        }
        Ok(None)
    }
}

/// What a `%` in the text of `format` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clause {
    String,
    Decimal,
    Fixed,
    Scientific,
    Binary,
    Hex,
    Octal,
}

impl Clause {
    fn of(letter: char) -> Option<Self> {
        Some(match letter {
            's' => Self::String,
            'd' => Self::Decimal,
            'f' => Self::Fixed,
            'e' => Self::Scientific,
            'b' => Self::Binary,
            'x' | 'X' => Self::Hex,
            'o' => Self::Octal,
            _ => return None,
        })
    }

    fn suits(self, of: &Type) -> bool {
        match self {
            Self::String => !matches!(of, Type::Any | Type::Error | Type::Object(_) | Type::Opaque(..)),
            Self::Decimal | Self::Octal => matches!(of, Type::Int | Type::Uint),
            Self::Fixed | Self::Scientific => matches!(of, Type::Double | Type::String),
            Self::Binary => matches!(of, Type::Int | Type::Uint | Type::Bool),
            Self::Hex => matches!(of, Type::Int | Type::Uint | Type::String | Type::Bytes),
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Self::String => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, \
                 and timestamps"
            }
            Self::Decimal => "decimal clause can only be used on integers",
            Self::Fixed => "fixed-point clause can only be used on doubles",
            Self::Scientific => "scientific clause can only be used on doubles",
            Self::Binary => "only integers and bools can be formatted as binary",
            Self::Hex => "only integers, byte buffers, and strings can be formatted as hex",
            Self::Octal => "octal clause can only be used on integers",
        }
    }
}
