//! The macros of Kubernetes' environment that the parser does not know: those of optional values, the ones with two
//! variables, and `sortBy`.
//!
//! Upstream: `optMap`, `cel/library.go`; `ext/comprehensions.go`; `sortByMacro`, `ext/lists.go`, of cel-go.

use crate::expression::{Builder, Comprehension, Element, Kind, Literal, Node};
use crate::undecided::Undecided;

pub(crate) const CONDITIONAL: &str = "_?_:_";
const ADD: &str = "_+_";
const MAP_INSERT: &str = "cel.@mapInsert";
const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
/// The collecting variable, which no expression can name.
const ACCUMULATOR: &str = "@result";
/// The variable of a range that has no elements.
const UNUSED: &str = "#unused";
/// The collecting variable's former name, which macros still refuse.
const FORMER_ACCUMULATOR: &str = "__result__";

/// A call with a target, whose arguments have been expanded, and what it becomes.
pub(crate) fn expand(
    builder: &mut Builder,
    at: usize,
    function: String,
    target: Node,
    mut arguments: Vec<Node>,
) -> Result<Node, Undecided> {
    let mut expander = Expander { builder, at };
    match (&*function, arguments.len()) {
        ("optMap", 2) => {
            let (variable, mapped) = variable_and_last(&mut arguments)?;
            let bound = expander.bind_value(&target, variable, mapped)?;
            let some = expander.call("optional.of", vec![bound])?;
            expander.if_value(target, some)
        }
        ("optFlatMap", 2) => {
            let (variable, mapped) = variable_and_last(&mut arguments)?;
            let bound = expander.bind_value(&target, variable, mapped)?;
            expander.if_value(target, bound)
        }
        ("sortBy", 2) => {
            if matches!(target.kind, Kind::Literal(_) | Kind::Map(_)) {
                return Err(Undecided::Syntax);
            }
            let (variable, key) = variable_and_last(&mut arguments)?;
            expander.sort_by(target, variable, key)
        }
        ("all" | "exists" | "existsOne" | "exists_one", 3)
        | ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => {
            let last = arguments.pop().ok_or(Undecided::Syntax)?;
            let mut arguments = arguments.into_iter();
            let first = name(arguments.next())?;
            let second = name(arguments.next())?;
            if first == second {
                return Err(Undecided::Syntax);
            }
            let folded = expander.fold(&function, &first, last, arguments.next())?;
            let Fold { start, condition, step, result } = folded;
            expander.comprehension(Comprehension {
                range: target,
                variable: first,
                second_variable: Some(second),
                accumulator: ACCUMULATOR.to_owned(),
                start,
                condition,
                step,
                result,
            })
        }
        _ => builder.node(at, Kind::Call { function, target: Some(Box::new(target)), arguments }),
    }
}

fn variable_and_last(arguments: &mut Vec<Node>) -> Result<(String, Node), Undecided> {
    let last = arguments.pop().ok_or(Undecided::Syntax)?;
    Ok((name(arguments.pop())?, last))
}

/// The name of a macro's variable. The apiserver accepts no policy with another argument there.
fn name(argument: Option<Node>) -> Result<String, Undecided> {
    match argument {
        Some(Node { kind: Kind::Identifier(name), .. }) if name != ACCUMULATOR && name != FORMER_ACCUMULATOR => {
            Ok(name)
        }
        _ => Err(Undecided::Syntax),
    }
}

struct Fold {
    start: Node,
    condition: Node,
    step: Node,
    result: Node,
}

/// Makes nodes at the place of the call.
struct Expander<'a> {
    builder: &'a mut Builder,
    at: usize,
}

impl Expander<'_> {
    fn node(&mut self, kind: Kind) -> Result<Node, Undecided> {
        self.builder.node(self.at, kind)
    }

    fn identifier(&mut self, name: &str) -> Result<Node, Undecided> {
        self.node(Kind::Identifier(name.to_owned()))
    }

    fn accumulator(&mut self) -> Result<Node, Undecided> {
        self.identifier(ACCUMULATOR)
    }

    fn call(&mut self, function: &str, arguments: Vec<Node>) -> Result<Node, Undecided> {
        self.node(Kind::Call { function: function.to_owned(), target: None, arguments })
    }

    fn member_call(&mut self, function: &str, target: Node, arguments: Vec<Node>) -> Result<Node, Undecided> {
        self.node(Kind::Call { function: function.to_owned(), target: Some(Box::new(target)), arguments })
    }

    fn literal(&mut self, literal: Literal) -> Result<Node, Undecided> {
        self.node(Kind::Literal(literal))
    }

    fn list(&mut self, element: Option<Node>) -> Result<Node, Undecided> {
        self.node(Kind::List(element.into_iter().map(|value| Element { value, is_optional: false }).collect()))
    }

    fn comprehension(&mut self, comprehension: Comprehension) -> Result<Node, Undecided> {
        self.node(Kind::Comprehension(Box::new(comprehension)))
    }

    /// `target.hasValue() ? then : optional.none()`.
    fn if_value(&mut self, target: Node, then: Node) -> Result<Node, Undecided> {
        let has_value = self.member_call("hasValue", target, Vec::new())?;
        let none = self.call("optional.none", Vec::new())?;
        self.call(CONDITIONAL, vec![has_value, then, none])
    }

    /// `result` with the value of `target` as a variable.
    fn bind_value(&mut self, target: &Node, variable: String, result: Node) -> Result<Node, Undecided> {
        let target = self.builder.copy(target)?;
        let value = self.member_call("value", target, Vec::new())?;
        self.bind(variable, value, result)
    }

    /// `result` with a variable, as a comprehension over nothing.
    fn bind(&mut self, variable: String, value: Node, result: Node) -> Result<Node, Undecided> {
        let range = self.list(None)?;
        let condition = self.literal(Literal::Bool)?;
        let step = self.identifier(&variable)?;
        self.comprehension(Comprehension {
            range,
            variable: UNUSED.to_owned(),
            second_variable: None,
            accumulator: variable,
            start: value,
            condition,
            step,
            result,
        })
    }

    fn sort_by(&mut self, target: Node, variable: String, key: Node) -> Result<Node, Undecided> {
        const INPUT: &str = "@__sortBy_input__";
        let start = self.list(None)?;
        let condition = self.literal(Literal::Bool)?;
        let step = self.append(key)?;
        let result = self.accumulator()?;
        let range = self.identifier(INPUT)?;
        let keys = self.comprehension(Comprehension {
            range,
            variable,
            second_variable: None,
            accumulator: ACCUMULATOR.to_owned(),
            start,
            condition,
            step,
            result,
        })?;
        let input = self.identifier(INPUT)?;
        let sorted = self.member_call("@sortByAssociatedKeys", input, vec![keys])?;
        self.bind(INPUT.to_owned(), target, sorted)
    }

    /// `accumulator + [element]`.
    fn append(&mut self, element: Node) -> Result<Node, Undecided> {
        let accumulator = self.accumulator()?;
        let list = self.list(Some(element))?;
        self.call(ADD, vec![accumulator, list])
    }

    /// The parts of a comprehension with two variables, of which `key` is the first.
    fn fold(&mut self, function: &str, key: &str, last: Node, filter: Option<Node>) -> Result<Fold, Undecided> {
        match function {
            "all" => self.quantifier("_&&_", last),
            "exists" => self.quantifier("_||_", last),
            "existsOne" | "exists_one" => self.exists_one(last),
            _ => {
                let start =
                    if function == "transformList" { self.list(None)? } else { self.node(Kind::Map(Vec::new()))? };
                let condition = self.literal(Literal::Bool)?;
                let step = self.transform(function, key, last)?;
                let step = match filter {
                    Some(filter) => {
                        let otherwise = self.accumulator()?;
                        self.call(CONDITIONAL, vec![filter, step, otherwise])?
                    }
                    None => step,
                };
                Ok(Fold { start, condition, step, result: self.accumulator()? })
            }
        }
    }

    fn transform(&mut self, function: &str, key: &str, transform: Node) -> Result<Node, Undecided> {
        if function == "transformList" {
            return self.append(transform);
        }
        let mut arguments = vec![self.accumulator()?];
        if function == "transformMap" {
            arguments.push(self.identifier(key)?);
        }
        arguments.push(transform);
        self.call(MAP_INSERT, arguments)
    }

    fn quantifier(&mut self, operator: &str, predicate: Node) -> Result<Fold, Undecided> {
        let start = self.literal(Literal::Bool)?;
        let mut condition = self.accumulator()?;
        if operator == "_||_" {
            condition = self.call("!_", vec![condition])?;
        }
        let condition = self.call(NOT_STRICTLY_FALSE, vec![condition])?;
        let accumulator = self.accumulator()?;
        let step = self.call(operator, vec![accumulator, predicate])?;
        Ok(Fold { start, condition, step, result: self.accumulator()? })
    }

    fn exists_one(&mut self, predicate: Node) -> Result<Fold, Undecided> {
        let start = self.literal(Literal::Int)?;
        let condition = self.literal(Literal::Bool)?;
        let (accumulator, one) = (self.accumulator()?, self.literal(Literal::Int)?);
        let more = self.call(ADD, vec![accumulator, one])?;
        let same = self.accumulator()?;
        let step = self.call(CONDITIONAL, vec![predicate, more, same])?;
        let (accumulator, one) = (self.accumulator()?, self.literal(Literal::Int)?);
        let result = self.call("_==_", vec![accumulator, one])?;
        Ok(Fold { start, condition, step, result })
    }
}
