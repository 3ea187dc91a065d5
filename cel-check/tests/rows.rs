//! What upstream's checker says about each row, word for word.

use std::sync::Arc;

use cel_check::{Budget, Definitions, Environment, Expression, SchemaType, Type, Undecided, Verdict, parse_type};

/// The environment of a policy, with [`object.json`](rows/object.json) as the schema of its objects.
fn environment() -> Environment {
    let definitions = Definitions::of(include_bytes!("rows/object.json")).expect("a schema");
    let object = SchemaType::new("Object0", Arc::new(definitions)).expect("a type");
    Environment::policy().schema(&["object", "oldObject"], &object).variable("params", Type::Dyn)
}

fn answer(expression: &str, environment: &Environment) -> Result<String, Undecided> {
    let verdict = Expression::parse(expression)?.check(environment, &mut Budget::of(10_000_000))?;
    Ok(match verdict {
        Verdict::Valid(of) => of.to_string(),
        Verdict::Invalid(errors) => errors,
    })
}

/// The expressions of some rows, each with upstream's answer; a line `+++` declares a variable for the rows below it.
fn check(rows: &str) {
    let mut environment = environment();
    let mut failed = Vec::new();
    let mut lines = rows.lines().filter(|line| !line.starts_with("# ")).peekable();
    while let Some(line) = lines.next() {
        if let Some((name, of)) = line.strip_prefix("+++ ").and_then(|declared| declared.split_once(' ')) {
            environment = environment.variable(name, parse_type(of));
            continue;
        }
        let expression = line.strip_prefix("=== ").expect("a row");
        let expression: String = serde_json::from_str(expression).expect("an expression");
        let mut expected = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("=== ") && !line.starts_with("+++ ")) {
            expected.push(line);
        }
        let (expected, got) = (expected.join("\n"), answer(&expression, &environment));
        if got.as_ref() != Ok(&expected) {
            failed.push(format!("{expression}\nupstream: {expected}\n    here: {got:?}\n"));
        }
    }
    assert!(failed.is_empty(), "{} rows differ:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn expressions_of_policies_are_judged_as_upstream_does() {
    check(include_str!("rows/kubernetes.txt"));
}

#[test]
fn cel_gos_own_rows_are_judged_as_upstream_does() {
    check(include_str!("rows/cel-go.txt"));
}
