//! A parsed expression, its macros expanded: what the checker reads.

use crate::undecided::{MAX_NODES, Undecided};

/// One node of an expression.
#[derive(Debug)]
pub(crate) struct Node {
    /// Its number, by which the checker keeps its type.
    pub(crate) id: usize,
    /// The offset of the byte that messages about it point to.
    pub(crate) at: usize,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Literal(Literal),
    Identifier(String),
    Select(Box<Node>, String, Select),
    Call { function: String, target: Option<Box<Node>>, arguments: Vec<Node> },
    List(Vec<Element>),
    Map(Vec<Entry>),
    Comprehension(Box<Comprehension>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Bool,
    Bytes,
    Double,
    Int,
    Null,
    String(String),
    Uint,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Select {
    /// `a.b`.
    Field,
    /// `has(a.b)`.
    Presence,
}

/// An element of a list.
#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) value: Node,
    /// Whether it is written with a question mark, so it is left out if it has no value.
    pub(crate) is_optional: bool,
}

/// An entry of a map.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Node,
    pub(crate) value: Node,
    pub(crate) is_optional: bool,
}

/// What a macro over a list or map becomes: a variable that collects a result, and one or two for each element.
#[derive(Debug)]
pub(crate) struct Comprehension {
    pub(crate) range: Node,
    pub(crate) variable: String,
    pub(crate) second_variable: Option<String>,
    pub(crate) accumulator: String,
    pub(crate) start: Node,
    pub(crate) condition: Node,
    pub(crate) step: Node,
    pub(crate) result: Node,
}

/// Makes nodes, and counts them.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    made: usize,
}

impl Builder {
    pub(crate) fn made(&self) -> usize {
        self.made
    }

    pub(crate) fn node(&mut self, at: usize, kind: Kind) -> Result<Node, Undecided> {
        let id = self.made;
        self.made += 1;
        if self.made > MAX_NODES { Err(Undecided::TooCostly) } else { Ok(Node { id, at, kind }) }
    }

    /// A copy with ids of its own.
    pub(crate) fn copy(&mut self, node: &Node) -> Result<Node, Undecided> {
        let kind = match &node.kind {
            Kind::Literal(literal) => Kind::Literal(literal.clone()),
            Kind::Identifier(name) => Kind::Identifier(name.clone()),
            Kind::Select(operand, field, select) => Kind::Select(Box::new(self.copy(operand)?), field.clone(), *select),
            Kind::Call { function, target, arguments } => Kind::Call {
                function: function.clone(),
                target: target.as_ref().map(|target| self.copy(target).map(Box::new)).transpose()?,
                arguments: arguments.iter().map(|argument| self.copy(argument)).collect::<Result<_, _>>()?,
            },
            Kind::List(elements) => {
                let copy = |Element { value, is_optional }: &Element| {
                    Ok(Element { value: self.copy(value)?, is_optional: *is_optional })
                };
                Kind::List(elements.iter().map(copy).collect::<Result<_, _>>()?)
            }
            Kind::Map(entries) => {
                let copy = |Entry { key, value, is_optional }: &Entry| {
                    Ok(Entry { key: self.copy(key)?, value: self.copy(value)?, is_optional: *is_optional })
                };
                Kind::Map(entries.iter().map(copy).collect::<Result<_, _>>()?)
            }
            Kind::Comprehension(comprehension) => {
                let Comprehension { range, variable, second_variable, accumulator, start, condition, step, result } =
                    &**comprehension;
                Kind::Comprehension(Box::new(Comprehension {
                    range: self.copy(range)?,
                    variable: variable.clone(),
                    second_variable: second_variable.clone(),
                    accumulator: accumulator.clone(),
                    start: self.copy(start)?,
                    condition: self.copy(condition)?,
                    step: self.copy(step)?,
                    result: self.copy(result)?,
                }))
            }
        };
        self.node(node.at, kind)
    }
}
