//! What is wrong with the types in a policy's expressions.
//!
//! Upstream: `Check` and `CheckExpression`, `typechecking.go`. Like there, only validations and their messages get warnings;
//! a variable that is wrong counts as one of any type.

use std::sync::Arc;
use std::{io, iter};

use cel_check::{Budget, Definitions, Environment, Expression, SchemaType, Type, Undecided, Verdict, with_deep_stack};
use serde::Serialize;

use crate::objects::kinds::GroupVersionKind;
use crate::objects::{Spec, Validation, Variable};
use crate::observe::{Live, Observed, Schemas};

/// The steps that the check of one policy may take: about a second.
const STEPS: u64 = 10_000_000;
/// What parsing costs for each byte of an expression; so 250 kB are parsed at most.
const STEPS_OF_BYTE: u64 = 40;
/// The warnings of one status, in bytes. An apiserver accepts no object of more than 1.5 MiB.
const WARNING_BYTES_MAX: usize = 256 * 1024;
/// The type whose fields are a policy's variables.
const VARIABLES: &str = "kubernetes.variables";

/// One of `expressionWarnings`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    pub field_ref: String,
    pub warning: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    pub warnings: Vec<Warning>,
    /// Of how many kinds the schema is known.
    pub kinds: usize,
    pub unknown_kinds: usize,
    /// How many times an expression could not be checked.
    pub undecided: usize,
    /// How many warnings the status has no room for.
    pub omitted: usize,
}

/// The findings about the live policy; none if it was not read, or has no kinds.
///
/// # Errors
/// When no thread can be started.
pub fn check(observed: &Observed) -> io::Result<Findings> {
    match &observed.live {
        Live::Policy { policy, schemas } if !schemas.kinds.is_empty() => {
            with_deep_stack(|| check_spec(&policy.spec, schemas))
        }
        Live::Policy { .. } | Live::NotRead | Live::Gone => Ok(Findings::default()),
    }
}

fn check_spec(spec: &Spec, schemas: &Schemas) -> Findings {
    let mut findings = Findings::default();
    let mut checker = Checker { budget: Budget::of(STEPS), undecided: 0 };
    let params = spec.param_kind();
    let variables: Vec<(&str, Option<Expression>)> =
        spec.variables.iter().map(|Variable { name, expression }| (&**name, checker.parse(expression))).collect();
    let mut environments = Vec::new();
    for (kind, definitions) in &schemas.kinds {
        let Some(environment) = definitions.as_ref().and_then(|of| environment(kind, of, params.as_ref(), schemas))
        else {
            findings.unknown_kinds += 1;
            continue;
        };
        environments.push((kind, checker.with_variables(environment, &variables)));
    }
    findings.kinds = environments.len();
    let mut room = WARNING_BYTES_MAX;
    for (number, Validation { expression, message_expression }) in spec.validations.iter().enumerate() {
        let message =
            Some(message_expression).filter(|message| !message.is_empty()).map(|text| ("messageExpression", text));
        for (field, text) in iter::once(("expression", expression)).chain(message) {
            let Some(warning) = checker.warning(text, &environments) else { continue };
            let field_ref = format!("spec.validations[{number}].{field}");
            match room.checked_sub(warning.len() + field_ref.len()) {
                Some(left) => {
                    room = left;
                    findings.warnings.push(Warning { field_ref, warning });
                }
                None => findings.omitted += 1,
            }
        }
    }
    findings.undecided = checker.undecided;
    findings
}

/// What expressions about objects of a kind can refer to, without the policy's variables; none if the schema cannot be
/// used.
///
/// Upstream: `buildEnvSet`.
fn environment(
    kind: &GroupVersionKind,
    definitions: &Arc<Definitions>,
    param_kind: Option<&GroupVersionKind>,
    schemas: &Schemas,
) -> Option<Environment> {
    // Upstream appends the time of the check, so that two kinds of one name differ.
    let object = SchemaType::new(&format!("{}0", kind.kind), Arc::clone(definitions)).ok()?;
    let environment = Environment::policy().schema(&["object", "oldObject"], &object);
    let Some(GroupVersionKind { kind, .. }) = param_kind else { return Some(environment) };
    let params = schemas.params.as_ref().and_then(|of| SchemaType::new(&format!("{kind}1"), Arc::clone(of)).ok());
    Some(match params {
        Some(params) => environment.schema(&["params"], &params),
        None => environment.variable("params", Type::Dyn),
    })
}

struct Checker {
    budget: Budget,
    undecided: usize,
}

impl Checker {
    fn parse(&mut self, text: &str) -> Option<Expression> {
        let cost = u64::try_from(text.len()).unwrap_or(u64::MAX).saturating_mul(STEPS_OF_BYTE);
        let parsed = self.budget.spend(cost).and_then(|()| Expression::parse(text));
        self.decided(parsed)
    }

    fn decided<T>(&mut self, result: Result<T, Undecided>) -> Option<T> {
        self.undecided += usize::from(result.is_err());
        result.ok()
    }

    /// Upstream: `CompileAndStoreVariables`, `plugin/cel/composition.go`.
    fn with_variables(&mut self, environment: Environment, variables: &[(&str, Option<Expression>)]) -> Environment {
        let mut environment = environment.object(VARIABLES, []).variable("variables", Type::object(VARIABLES));
        for (name, expression) in variables {
            let verdict = expression.as_ref().map(|expression| expression.check(&environment, &mut self.budget));
            let of = match verdict.and_then(|verdict| self.decided(verdict)) {
                Some(Verdict::Valid(of)) => variable_type(&of),
                Some(Verdict::Invalid(_)) | None => Type::Dyn,
            };
            environment.set_field(VARIABLES, name, of);
        }
        environment
    }

    /// What is wrong with an expression, for each kind for which something is.
    fn warning(&mut self, text: &str, environments: &[(&GroupVersionKind, Environment)]) -> Option<String> {
        if environments.is_empty() {
            return None;
        }
        let expression = self.parse(text)?;
        let mut errors = Vec::new();
        let mut bytes = 0;
        for (kind, environment) in environments {
            let verdict = expression.check(environment, &mut self.budget);
            if let Some(Verdict::Invalid(of_kind)) = self.decided(verdict) {
                bytes += of_kind.len();
                errors.push(format!("{kind}: {of_kind}\n"));
            }
            // There is no room for it in any case.
            if bytes > WARNING_BYTES_MAX {
                break;
            }
        }
        (!errors.is_empty()).then(|| errors.join("\n"))
    }
}

/// The type of a variable where another expression uses it. Of an object no more is known than that it has fields.
///
/// Upstream: `convertCelTypeToDeclType`, `plugin/cel/composition.go`.
fn variable_type(of: &Type) -> Type {
    if let Type::List(element) = of {
        return Type::list(variable_type(element));
    }
    if let Type::Map(entry) = of {
        return Type::map(variable_type(&entry.0), variable_type(&entry.1));
    }
    let is_kept = matches!(
        of,
        Type::Any
            | Type::Bool
            | Type::Bytes
            | Type::Double
            | Type::Duration
            | Type::Int
            | Type::Null
            | Type::String
            | Type::Timestamp
            | Type::Uint
    );
    if is_kept { of.clone() } else { Type::Dyn }
}
