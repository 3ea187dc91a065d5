//! Which types the parameters of functions stand for, and whether one type may be assigned to another.
//!
//! Upstream: `checker/types.go` and `checker/mapping.go` of cel-go.

use std::convert::Infallible;
use std::sync::Arc;

use crate::declarations::Overload;
use crate::types::Type;
use crate::undecided::{Budget, MAX_SUBSTITUTED, Undecided};

/// The name of a type's parameter.
type Name = Arc<str>;

/// The types of variables, by number. A failed assignment is rolled back.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    types: Vec<Option<Type>>,
    /// The values that the assignment under way has replaced.
    replaced: Vec<(u32, Option<Type>)>,
}

impl Mapping {
    pub(super) fn new_variable(&mut self) -> Type {
        // The budget ends long before the numbers do.
        let number = u32::try_from(self.types.len()).unwrap_or(u32::MAX);
        self.types.push(None);
        Type::Variable(number)
    }

    fn find(&self, number: u32) -> Option<&Type> {
        self.types.get(usize::try_from(number).ok()?)?.as_ref()
    }

    fn set(&mut self, number: u32, to: Option<Type>) -> Option<Type> {
        let slot = usize::try_from(number).ok().and_then(|number| self.types.get_mut(number));
        slot.and_then(|slot| std::mem::replace(slot, to))
    }

    fn add(&mut self, number: u32, to: Type) {
        let before = self.set(number, Some(to));
        self.replaced.push((number, before));
    }

    /// The arguments and the result of one use of an overload, with fresh variables for its type parameters.
    pub(super) fn instantiate(
        &mut self,
        overload: &Overload,
        budget: &mut Budget,
    ) -> Result<(Vec<Type>, Type), Undecided> {
        let Overload { is_member: _, arguments, result, parameters } = overload;
        let fresh: Vec<(Name, Type)> = parameters.iter().map(|name| (name.clone(), self.new_variable())).collect();
        budget.charge(arguments.len() + 1)?;
        Ok((arguments.iter().map(|argument| with(argument, &fresh)).collect(), with(result, &fresh)))
    }

    pub(super) fn is_assignable(&mut self, from: &Type, to: &Type, budget: &mut Budget) -> Result<bool, Undecided> {
        self.are_assignable(std::slice::from_ref(from), std::slice::from_ref(to), budget)
    }

    /// Whether each type may be assigned to the one at its place. If so, what follows about the variables is kept.
    pub(super) fn are_assignable(
        &mut self,
        from: &[Type],
        to: &[Type],
        budget: &mut Budget,
    ) -> Result<bool, Undecided> {
        self.replaced.clear();
        let fit = self.fit_all(from, to, budget)?;
        if !fit {
            while let Some((number, before)) = self.replaced.pop() {
                self.set(number, before);
            }
        }
        Ok(fit)
    }

    /// Upstream: `internalIsAssignableList`.
    fn fit_all(&mut self, from: &[Type], to: &[Type], budget: &mut Budget) -> Result<bool, Undecided> {
        if from.len() != to.len() {
            return Ok(false);
        }
        for (from, to) in from.iter().zip(to) {
            if !self.fit(from, to, budget)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn fit(&mut self, from: &Type, to: &Type, budget: &mut Budget) -> Result<bool, Undecided> {
        budget.enter()?;
        let fit = self.fit_one(from, to, budget);
        budget.leave();
        fit
    }

    /// Upstream: `internalIsAssignable`.
    fn fit_one(&mut self, from: &Type, to: &Type, budget: &mut Budget) -> Result<bool, Undecided> {
        if let Type::Variable(number) = to {
            match self.substitution(from, *number, budget)? {
                Substitution::Valid => return Ok(true),
                Substitution::Refused => return Ok(false),
                Substitution::Impossible => {}
            }
        }
        if let Type::Variable(number) = from {
            return Ok(self.substitution(to, *number, budget)? == Substitution::Valid);
        }
        if from.is_dyn_or_error() || to.is_dyn_or_error() {
            return Ok(true);
        }
        match (from, to) {
            (Type::Null, other) | (other, Type::Null) => Ok(other.is_nullable()),
            (Type::Type(_), Type::Type(_)) => Ok(true),
            (Type::List(from), Type::List(to)) => self.fit(from, to, budget),
            (Type::Map(from), Type::Map(to)) => {
                Ok(self.fit(&from.0, &to.0, budget)? && self.fit(&from.1, &to.1, budget)?)
            }
            (Type::Opaque(name, from), Type::Opaque(other, to)) => Ok(name == other && self.fit_all(from, to, budget)?),
            (from, to) => Ok(from == to),
        }
    }

    /// Whether a variable may stand for a type.
    ///
    /// Upstream: `isValidTypeSubstitution`.
    fn substitution(&mut self, of: &Type, number: u32, budget: &mut Budget) -> Result<Substitution, Undecided> {
        let variable = Type::Variable(number);
        if *of == variable {
            return Ok(Substitution::Valid);
        }
        let Some(known) = self.find(number).cloned() else {
            if self.occurs(&variable, of, budget)? {
                return Ok(Substitution::Impossible);
            }
            self.add(number, of.clone());
            return Ok(Substitution::Valid);
        };
        if *of == known {
            return Ok(Substitution::Valid);
        }
        if !self.fit(of, &known, budget)? {
            return Ok(Substitution::Refused);
        }
        let general = most_general(of.clone(), known);
        if !self.occurs(&variable, &general, budget)? {
            self.add(number, general);
        }
        Ok(Substitution::Valid)
    }

    /// Whether a variable is part of a type, or of what the type stands for.
    ///
    /// Upstream: `notReferencedIn`, its opposite.
    fn occurs(&self, variable: &Type, within: &Type, budget: &mut Budget) -> Result<bool, Undecided> {
        if variable == within {
            return Ok(true);
        }
        budget.enter()?;
        let mut occurs = false;
        if let Type::Variable(number) = within {
            if let Some(known) = self.find(*number) {
                occurs = self.occurs(variable, known, budget)?;
            }
        } else {
            for part in within.parts() {
                occurs = occurs || self.occurs(variable, part, budget)?;
            }
        }
        budget.leave();
        Ok(occurs)
    }

    /// The type with what its variables stand for; those that stand for nothing become dyn if `to_dyn`.
    pub(super) fn substitute(&self, of: &Type, to_dyn: bool, budget: &mut Budget) -> Result<Type, Undecided> {
        self.substitute_parts(of, to_dyn, &mut 0, budget)
    }

    /// `parts` are those that the whole type has so far.
    fn substitute_parts(
        &self,
        of: &Type,
        to_dyn: bool,
        parts: &mut usize,
        budget: &mut Budget,
    ) -> Result<Type, Undecided> {
        budget.enter()?;
        *parts += 1;
        if *parts > MAX_SUBSTITUTED {
            return Err(Undecided::TooCostly);
        }
        let substituted = if let Type::Variable(number) = of {
            match self.find(*number) {
                Some(known) => self.substitute_parts(known, to_dyn, parts, budget)?,
                None if to_dyn => Type::Dyn,
                None => of.clone(),
            }
        } else if matches!(of, Type::Parameter(_)) && to_dyn {
            // Of the name of a type, such as `list`.
            Type::Dyn
        } else {
            of.with_parts(|part| self.substitute_parts(part, to_dyn, parts, budget))?
        };
        budget.leave();
        Ok(substituted)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Substitution {
    Valid,
    /// The variable stands for a type to which this one may not be assigned.
    Refused,
    /// The variable is part of the type.
    Impossible,
}

/// A type with its parameters replaced.
fn with(of: &Type, fresh: &[(Name, Type)]) -> Type {
    if let Type::Parameter(name) = of {
        let found = fresh.iter().find(|(parameter, _)| parameter == name);
        return found.map_or_else(|| of.clone(), |(_, fresh)| fresh.clone());
    }
    let replaced: Result<Type, Infallible> = of.with_parts(|part| Ok(with(part, fresh)));
    let Ok(replaced) = replaced;
    replaced
}

/// The more general of two types that are known to fit.
pub(super) fn most_general(one: Type, other: Type) -> Type {
    if is_equal_or_less_specific(&one, &other) { one } else { other }
}

fn is_equal_or_less_specific(one: &Type, other: &Type) -> bool {
    let is_open = |of: &Type| of.is_dyn() || matches!(of, Type::Variable(_));
    if is_open(one) {
        return true;
    }
    if is_open(other) {
        return false;
    }
    match (one, other) {
        (Type::Type(_), Type::Type(_)) => true,
        (Type::List(_), Type::List(_)) | (Type::Map(_), Type::Map(_)) => pairwise(one, other),
        (Type::Opaque(name, parameters), Type::Opaque(other_name, others)) => {
            name == other_name && parameters.len() == others.len() && pairwise(one, other)
        }
        (one, other) => one == other,
    }
}

fn pairwise(one: &Type, other: &Type) -> bool {
    one.parts().zip(other.parts()).all(|(one, other)| is_equal_or_less_specific(one, other))
}
