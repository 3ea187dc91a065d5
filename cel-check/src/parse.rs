//! From text to an expression. The grammar and the standard macros are the crate `cel`'s, a port of cel-go's parser that
//! knows the offset of each node.

use std::panic;

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, SourceInfo};
use cel::parser::Parser;

use crate::expression::{Builder, Comprehension, Element, Entry, Kind, Literal, Node, Select};
use crate::macros;
use crate::nesting::{MAX_NESTING, nesting};
use crate::source::Source;
use crate::undecided::{MAX_LENGTH, Undecided};

/// An expression that can be checked.
#[derive(Debug)]
pub struct Expression {
    pub(crate) source: Source,
    pub(crate) root: Node,
    /// How many nodes it has.
    pub(crate) nodes: usize,
}

impl Expression {
    /// Parses a text. Deeply nested ones need a [deep stack](crate::with_deep_stack).
    pub fn parse(text: &str) -> Result<Self, Undecided> {
        if text.chars().count() > MAX_LENGTH {
            return Err(Undecided::TooLong);
        }
        if nesting(text) > MAX_NESTING {
            return Err(Undecided::TooDeep);
        }
        let parser = Parser::new()
            .max_recursion_depth(u16::try_from(MAX_NESTING).unwrap_or(u16::MAX))
            .enable_optional_syntax(true);
        // The texts come from outside, and the grammar's runtime is not ours.
        let parsed = panic::catch_unwind(panic::AssertUnwindSafe(|| parser.parse_with_source_info(text)));
        let (root, info) = parsed.map_err(|_| Undecided::Syntax)?.map_err(|_| Undecided::Syntax)?;
        let mut converter = Converter { text, info, builder: Builder::default() };
        let root = converter.convert(root)?;
        Ok(Self { source: Source::new(text), root, nodes: converter.builder.made() })
    }
}

struct Converter<'a> {
    text: &'a str,
    info: SourceInfo,
    builder: Builder,
}

impl Converter<'_> {
    fn convert(&mut self, IdedExpr { id, expr }: IdedExpr) -> Result<Node, Undecided> {
        let (start, _) = self.info.offset_for(id).ok_or(Undecided::Syntax)?;
        let mut at = usize::try_from(start).map_err(|_| Undecided::TooLong)?;
        let kind = match expr {
            Expr::Literal(value) => {
                if is_negative(&value) {
                    at = self.sign_before(at);
                }
                Kind::Literal(literal(value))
            }
            Expr::Ident(name) => Kind::Identifier(name),
            Expr::Select(select) => {
                let how = if select.test { Select::Presence } else { Select::Field };
                Kind::Select(Box::new(self.convert(*select.operand)?), select.field, how)
            }
            Expr::Call(call) => {
                let target = call.target.map(|target| self.convert(*target)).transpose()?;
                let arguments = self.convert_all(call.args)?;
                if let Some(target) = target {
                    return macros::expand(&mut self.builder, at, call.func_name, target, arguments);
                }
                Kind::Call { function: call.func_name, target: None, arguments }
            }
            Expr::List(list) => {
                let optional = list.optional_indices;
                let elements = self.convert_all(list.elements)?.into_iter().enumerate();
                Kind::List(elements.map(|(at, value)| Element { value, is_optional: optional.contains(&at) }).collect())
            }
            Expr::Map(map) => {
                Kind::Map(map.entries.into_iter().map(|entry| self.entry(entry.expr)).collect::<Result<_, _>>()?)
            }
            Expr::Comprehension(comprehension) => Kind::Comprehension(Box::new(Comprehension {
                range: self.convert(comprehension.iter_range)?,
                variable: comprehension.iter_var,
                second_variable: comprehension.iter_var2,
                accumulator: comprehension.accu_var,
                start: self.convert(comprehension.accu_init)?,
                condition: self.convert(comprehension.loop_cond)?,
                step: self.convert(comprehension.loop_step)?,
                result: self.convert(comprehension.result)?,
            })),
            // A message of protocol buffers; no type of a policy can be written so.
            Expr::Struct(_) => return Err(Undecided::Protobuf),
            Expr::Unspecified => return Err(Undecided::Syntax),
        };
        self.builder.node(at, kind)
    }

    fn convert_all(&mut self, expressions: Vec<IdedExpr>) -> Result<Vec<Node>, Undecided> {
        expressions.into_iter().map(|expression| self.convert(expression)).collect()
    }

    fn entry(&mut self, entry: EntryExpr) -> Result<Entry, Undecided> {
        match entry {
            EntryExpr::MapEntry(entry) => Ok(Entry {
                key: self.convert(entry.key)?,
                value: self.convert(entry.value)?,
                is_optional: entry.optional,
            }),
            EntryExpr::StructField(_) => Err(Undecided::Syntax),
        }
    }

    /// The offset of a negative number's sign: cel-go points there, the parser to the first digit.
    fn sign_before(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or("").trim_end_matches([' ', '\t', '\r', '\n', '\u{c}']);
        before.strip_suffix('-').map_or(at, str::len)
    }
}

fn is_negative(value: &LiteralValue) -> bool {
    match value {
        LiteralValue::Int(number) => *number.inner() < 0,
        LiteralValue::Double(number) => number.inner().is_sign_negative(),
        LiteralValue::Boolean(_)
        | LiteralValue::Bytes(_)
        | LiteralValue::Null
        | LiteralValue::String(_)
        | LiteralValue::UInt(_) => false,
    }
}

fn literal(value: LiteralValue) -> Literal {
    match value {
        LiteralValue::Boolean(_) => Literal::Bool,
        LiteralValue::Bytes(_) => Literal::Bytes,
        LiteralValue::Double(_) => Literal::Double,
        LiteralValue::Int(_) => Literal::Int,
        LiteralValue::Null => Literal::Null,
        LiteralValue::String(text) => Literal::String(text.into_inner()),
        LiteralValue::UInt(_) => Literal::Uint,
    }
}
