//! Gives each node of an expression its type, and reports what does not fit, as cel-go's checker does.
//!
//! Upstream: `checker/checker.go` of cel-go. A function names its counterpart where the name differs.

mod mapping;
mod validators;

use crate::declarations::{KUBERNETES, Overload};
use crate::environment::{Environment, Field};
use crate::expression::{Comprehension, Element, Entry, Kind, Literal, Node, Select};
use crate::parse::Expression;
use crate::source::Errors;
use crate::types::Type;
use crate::undecided::{Budget, MAX_WEIGHT, Undecided};
use mapping::Mapping;

/// What is known about an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Valid(Type),
    /// The errors, as cel-go prints them.
    Invalid(String),
}

impl Expression {
    /// Checks the expression. It recurses as deeply as the expression is nested.
    pub fn check(&self, environment: &Environment, budget: &mut Budget) -> Result<Verdict, Undecided> {
        budget.surface();
        let mut checker = Checker {
            environment,
            scopes: Vec::new(),
            types: vec![None; self.nodes],
            errors: Errors::default(),
            mapping: Mapping::default(),
            budget,
        };
        let result = checker.check(&self.root)?;
        if checker.errors.is_empty() {
            checker.validate(&self.root)?;
        }
        if checker.errors.is_empty() {
            return checker.mapping.substitute(&result, true, checker.budget).map(Verdict::Valid);
        }
        checker.errors.display(&self.source).map(Verdict::Invalid)
    }
}

struct Checker<'a> {
    environment: &'a Environment,
    /// The variables of macros, the innermost last.
    scopes: Vec<(&'a str, Type)>,
    /// By the number of their node.
    types: Vec<Option<Type>>,
    errors: Errors,
    mapping: Mapping,
    budget: &'a mut Budget,
}

/// A call whose function is known.
struct Call<'n> {
    node: &'n Node,
    function: &'n str,
    /// Whether the first type is that of a target.
    is_member: bool,
    arguments: &'n [Node],
}

impl<'a> Checker<'a> {
    fn check(&mut self, node: &'a Node) -> Result<Type, Undecided> {
        self.budget.charge(1)?;
        let of = match &node.kind {
            Kind::Literal(literal) => literal_type(literal),
            Kind::Identifier(name) => match self.identifier(name)? {
                Some(known) => known,
                None => self.undeclared(node, name),
            },
            Kind::Select(operand, field, how) => self.select(node, operand, field, *how)?,
            Kind::Call { function, target, arguments } => self.call(node, function, target.as_deref(), arguments)?,
            Kind::List(elements) => self.list(elements)?,
            Kind::Map(entries) => self.map(entries)?,
            Kind::Comprehension(comprehension) => self.comprehension(comprehension)?,
        };
        // Parts may be shared, so a small type can take a long time to read.
        let weight = of.weight(MAX_WEIGHT);
        self.budget.charge(weight)?;
        if weight >= MAX_WEIGHT {
            return Err(Undecided::TooCostly);
        }
        if let Some(slot) = self.types.get_mut(node.id) {
            *slot = Some(of.clone());
        }
        Ok(of)
    }

    fn report(&mut self, node: &Node, message: impl FnOnce() -> String) {
        self.errors.report(node.at, message);
    }

    fn undeclared(&mut self, node: &Node, name: &str) -> Type {
        self.report(node, || format!("undeclared reference to '{name}' (in container '')"));
        Type::Error
    }

    fn mismatch(&mut self, node: &Node, expected: &Type, found: &Type) {
        self.report(node, || format!("expected type '{expected}' but found '{found}'"));
    }

    fn substitute(&mut self, of: &Type) -> Result<Type, Undecided> {
        self.mapping.substitute(of, false, self.budget)
    }

    fn is_assignable(&mut self, from: &Type, to: &Type) -> Result<bool, Undecided> {
        self.mapping.is_assignable(from, to, self.budget)
    }

    /// Upstream: `LookupIdent`.
    fn identifier(&self, name: &str) -> Result<Option<Type>, Undecided> {
        let name = absolute(name);
        match self.scopes.iter().rev().find(|(declared, _)| *declared == name) {
            Some((_, of)) => Ok(Some(of.clone())),
            None => self.environment.identifier(name),
        }
    }

    fn select(&mut self, node: &Node, operand: &'a Node, field: &str, how: Select) -> Result<Type, Undecided> {
        if how == Select::Field
            && let Some(prefix) = qualified_name(operand)
            && let Some(known) = self.identifier(&format!("{prefix}.{field}"))?
        {
            return Ok(known);
        }
        let of = self.select_field(node, operand, field, false)?;
        if how == Select::Presence { Ok(Type::Bool) } else { self.substitute(&of) }
    }

    /// Upstream: `checkSelectField`.
    fn select_field(
        &mut self,
        node: &Node,
        operand: &'a Node,
        field: &str,
        is_optional: bool,
    ) -> Result<Type, Undecided> {
        let operand = self.check(operand)?;
        let operand = self.substitute(&operand)?;
        let within = operand.within_optional();
        let target = within.unwrap_or(&operand);
        let of = if let Type::Map(entry) = target {
            entry.1.clone()
        } else if let Type::Object(object) = target {
            self.object_field(node, object, field)?
        } else {
            if matches!(target, Type::Variable(_)) {
                self.is_assignable(&Type::Dyn, target)?;
            } else if !target.is_dyn_or_error() {
                self.report(node, || format!("type '{target}' does not support field selection"));
            }
            Type::Dyn
        };
        Ok(if is_optional || within.is_some() { Type::optional(of) } else { of })
    }

    /// Upstream: `lookupFieldType`.
    fn object_field(&mut self, node: &Node, object: &str, field: &str) -> Result<Type, Undecided> {
        match self.environment.field(object, field, self.budget)? {
            Field::Of(of) => return Ok(of),
            Field::Undefined => self.report(node, || format!("undefined field '{field}'")),
            Field::NoObject => self.report(node, || format!("unexpected failed resolution of '{object}'")),
        }
        Ok(Type::Error)
    }

    fn call(
        &mut self,
        node: &Node,
        function: &str,
        target: Option<&'a Node>,
        arguments: &'a [Node],
    ) -> Result<Type, Undecided> {
        if function == "_?._" {
            return self.optional_select(node, target, arguments);
        }
        let mut types = Vec::with_capacity(arguments.len() + 1);
        for argument in arguments {
            types.push(self.check(argument)?);
        }
        let Some(target) = target else {
            let call = Call { node, function: absolute(function), is_member: false, arguments };
            return match KUBERNETES.function(call.function) {
                Some(overloads) => self.resolve(&call, overloads, types),
                None => Ok(self.undeclared(node, function)),
            };
        };
        // `a.b.c()` is the function `a.b.c`, or `c` of `a.b`.
        if let Some(prefix) = qualified_name(target) {
            let qualified = format!("{prefix}.{function}");
            let call = Call { node, function: absolute(&qualified), is_member: false, arguments };
            if let Some(overloads) = KUBERNETES.function(call.function) {
                return self.resolve(&call, overloads, types);
            }
        }
        types.insert(0, self.check(target)?);
        match KUBERNETES.function(function) {
            Some(overloads) => self.resolve(&Call { node, function, is_member: true, arguments }, overloads, types),
            None => Ok(self.undeclared(node, function)),
        }
    }

    /// Upstream: `checkOptSelect`.
    fn optional_select(
        &mut self,
        node: &Node,
        target: Option<&Node>,
        arguments: &'a [Node],
    ) -> Result<Type, Undecided> {
        let (None, [operand, Node { kind: Kind::Literal(Literal::String(field)), .. }]) = (target, arguments) else {
            return Err(Undecided::Syntax);
        };
        let of = self.select_field(node, operand, field, true)?;
        self.substitute(&of)
    }

    /// Upstream: `resolveOverload`.
    fn resolve(&mut self, call: &Call<'_>, overloads: &[Overload], mut types: Vec<Type>) -> Result<Type, Undecided> {
        let Call { node, function, is_member, arguments } = *call;
        if matches!(function, "_&&_" | "_||_") {
            return self.logic(&types, arguments);
        }
        let mut result: Option<Type> = None;
        for overload in overloads.iter().filter(|overload| overload.is_member == is_member) {
            let (parameters, returned) = self.mapping.instantiate(overload, self.budget)?;
            if !self.mapping.are_assignable(&types, &parameters, self.budget)? {
                continue;
            }
            let returned = self.substitute(&returned)?;
            result = Some(match result {
                None => returned,
                Some(result) if result.is_dyn() || result == returned => result,
                Some(_) => Type::Dyn,
            });
        }
        if let Some(result) = result {
            return Ok(result);
        }
        for of in &mut types {
            *of = self.mapping.substitute(of, true, self.budget)?;
        }
        self.report(node, || {
            let signature = signature(&types, is_member);
            format!("found no matching overload for '{function}' applied to '{signature}'")
        });
        Ok(Type::Error)
    }

    fn logic(&mut self, types: &[Type], arguments: &[Node]) -> Result<Type, Undecided> {
        let mut result = Type::Bool;
        for (argument, of) in arguments.iter().zip(types) {
            if !self.is_assignable(of, &Type::Bool)? {
                self.mismatch(argument, &Type::Bool, of);
                result = Type::Error;
            }
        }
        Ok(result)
    }

    fn list(&mut self, elements: &'a [Element]) -> Result<Type, Undecided> {
        let mut joined = None;
        for Element { value, is_optional } in elements {
            let of = self.check(value)?;
            let of = self.unwrap(value, of, *is_optional);
            joined = Some(self.join(joined, of)?);
        }
        Ok(Type::list(joined.unwrap_or_else(|| self.mapping.new_variable())))
    }

    fn map(&mut self, entries: &'a [Entry]) -> Result<Type, Undecided> {
        let mut joined = None;
        for Entry { key, value, is_optional } in entries {
            let (keys, values) = joined.map_or((None, None), |(keys, values)| (Some(keys), Some(values)));
            let key_type = self.check(key)?;
            let keys = self.join(keys, key_type)?;
            let of = self.check(value)?;
            let of = self.unwrap(value, of, *is_optional);
            joined = Some((keys, self.join(values, of)?));
        }
        let (keys, values) = joined.unwrap_or_else(|| (self.mapping.new_variable(), self.mapping.new_variable()));
        Ok(Type::map(keys, values))
    }

    /// The type of an element that is written with a question mark: what its optional type contains.
    fn unwrap(&mut self, node: &Node, of: Type, is_optional: bool) -> Type {
        if !is_optional {
            return of;
        }
        if let Some(within) = of.within_optional() {
            return within.clone();
        }
        if !of.is_dyn() {
            self.mismatch(node, &Type::optional(of.clone()), &of);
        }
        of
    }

    /// The type of elements of both types. Elements that do not fit together make it dyn; [`validators`] reports them once
    /// all types are known, as Kubernetes' environment has it.
    ///
    /// Upstream: `joinTypes`.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Result<Type, Undecided> {
        let Some(previous) = previous else { return Ok(current) };
        let fit = self.is_assignable(&previous, &current)?;
        Ok(if fit { mapping::most_general(previous, current) } else { Type::Dyn })
    }

    fn comprehension(&mut self, comprehension: &'a Comprehension) -> Result<Type, Undecided> {
        let Comprehension { range, variable, second_variable, accumulator, start, condition, step, result } =
            comprehension;
        let range_type = self.check(range)?;
        let accumulated = self.check(start)?;
        let range_type = self.substitute(&range_type)?;
        let outer = self.scopes.len();
        self.scopes.push((accumulator, accumulated.clone()));
        let (first, second) = self.element_types(range, &range_type, second_variable.is_some())?;
        self.scopes.push((variable, first));
        if let Some(name) = second_variable {
            self.scopes.push((name, second));
        }
        let condition_type = self.check(condition)?;
        self.assert(condition, &condition_type, &Type::Bool)?;
        let step_type = self.check(step)?;
        self.assert(step, &step_type, &accumulated)?;
        self.scopes.truncate(outer + 1);
        let of = self.check(result)?;
        self.scopes.truncate(outer);
        self.substitute(&of)
    }

    /// The types of a comprehension's variables.
    fn element_types(&mut self, node: &Node, range: &Type, has_two: bool) -> Result<(Type, Type), Undecided> {
        if let Type::List(element) = range {
            let element = element.as_ref().clone();
            return Ok(if has_two { (Type::Int, element) } else { (element, Type::Dyn) });
        }
        if let Type::Map(entry) = range {
            return Ok((entry.0.clone(), entry.1.clone()));
        }
        if matches!(range, Type::Dyn | Type::Error | Type::Variable(_)) {
            self.is_assignable(&Type::Dyn, range)?;
            return Ok((Type::Dyn, Type::Dyn));
        }
        self.report(node, || {
            format!("expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)")
        });
        Ok((Type::Error, Type::Error))
    }

    /// Upstream: `assertType`.
    fn assert(&mut self, node: &Node, of: &Type, expected: &Type) -> Result<(), Undecided> {
        if !self.is_assignable(expected, of)? {
            self.mismatch(node, expected, of);
        }
        Ok(())
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Bool => Type::Bool,
        Literal::Bytes => Type::Bytes,
        Literal::Double => Type::Double,
        Literal::Int => Type::Int,
        Literal::Null => Type::Null,
        Literal::String(_) => Type::String,
        Literal::Uint => Type::Uint,
    }
}

/// A name without the dot that makes it absolute; Kubernetes' environment has no containers.
fn absolute(name: &str) -> &str {
    name.strip_prefix('.').unwrap_or(name)
}

/// The dotted name that a node spells.
///
/// Upstream: `ToQualifiedName`, `common/containers/container.go` of cel-go.
fn qualified_name(mut node: &Node) -> Option<String> {
    let mut fields = Vec::new();
    while let Kind::Select(operand, field, Select::Field) = &node.kind {
        fields.push(&**field);
        node = operand;
    }
    let Kind::Identifier(name) = &node.kind else { return None };
    fields.push(name);
    fields.reverse();
    Some(fields.join("."))
}

/// Upstream: `formatFunctionDeclType`, `checker/format.go`.
fn signature(types: &[Type], is_member: bool) -> String {
    let (target, arguments) = types.split_at(usize::from(is_member));
    let target = target.first().map_or_else(String::new, |target| format!("{target}."));
    let arguments: Vec<String> = arguments.iter().map(Type::to_string).collect();
    format!("{target}({})", arguments.join(", "))
}
