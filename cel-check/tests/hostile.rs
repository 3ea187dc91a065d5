//! Expressions, schemas and documents that try to take time or memory.
#![expect(clippy::unwrap_used, clippy::unwrap_in_result, reason = "helpers of tests")]

use std::fmt::Write as _;
use std::sync::Arc;

use cel_check::{
    Budget, Definitions, Document, Environment, Expression, SchemaType, Type, Undecided, Verdict, with_deep_stack,
};
use proptest::prelude::*;

fn check(expression: &str, environment: &Environment) -> Result<Verdict, Undecided> {
    with_deep_stack(|| Expression::parse(expression)?.check(environment, &mut Budget::of(1_000_000))).unwrap()
}

/// Ways to nest to a depth.
fn nested(depth: usize) -> [String; 9] {
    [
        format!("{}1{}", "(".repeat(depth), ")".repeat(depth)),
        format!("{}1{}", "[".repeat(depth), "]".repeat(depth)),
        format!("{}1{}", "{1: ".repeat(depth), "}".repeat(depth)),
        format!("{}1{}", "size(".repeat(depth / 2), ")".repeat(depth / 2)),
        format!("a{}", ".b".repeat(depth)),
        format!("a{}", "[0]".repeat(depth)),
        format!("1{}", " + 1".repeat(depth)),
        format!("{}1", "true ? 1 : ".repeat(depth)),
        format!("{}true{}", "[1].all(b, ".repeat(depth / 3), ")".repeat(depth / 3)),
    ]
}

#[test]
fn an_expression_of_the_deepest_allowed_nesting_is_checked() {
    let environment = Environment::default().variable("a", Type::Dyn);
    for expression in nested(380) {
        let verdict = check(&expression, &environment);
        assert!(verdict.is_ok() || verdict == Err(Undecided::TooCostly), "{expression}: {verdict:?}");
    }
}

#[test]
fn a_deeper_one_is_left_alone() {
    for depth in [1_500, 20_000] {
        for expression in nested(depth).into_iter().filter(|expression| expression.len() < 50_000) {
            assert_eq!(check(&expression, &Environment::default()), Err(Undecided::TooDeep), "{expression}");
        }
    }
}

#[test]
fn brackets_in_strings_and_comments_are_not_nesting() {
    let brackets = "(".repeat(1_000);
    for expression in [
        format!("'{brackets}' == \"{brackets}\""),
        format!("r'\\' == '{brackets}'"),
        format!("'\\'{brackets}' == b'{brackets}'"),
        format!("'''{brackets}'\"''' == \"\"\"{brackets}\"\"\""),
        format!("'' == '' // {brackets}"),
    ] {
        assert!(check(&expression, &Environment::default()).is_ok(), "{expression}");
    }
}

#[test]
fn a_wide_expression_is_not_deep() {
    let environment = Environment::policy();
    for separator in [" && ", " || "] {
        let expression = vec!["request.name == 'a'"; 2_000].join(separator);
        assert_eq!(check(&expression, &environment), Ok(Verdict::Valid(Type::Bool)));
    }
    let list = format!("[{}].size() == 1", vec!["request.name"; 2_000].join(", "));
    assert_eq!(check(&list, &environment), Ok(Verdict::Valid(Type::Bool)));
}

#[test]
fn a_long_expression_is_left_alone() {
    let expression = format!("'{}'", "a".repeat(50_000));
    assert_eq!(check(&expression, &Environment::default()), Err(Undecided::TooLong));
}

#[test]
fn a_type_that_doubles_is_left_alone() {
    let expression = format!("[1]{}", ".map(a, {a: a})".repeat(40));
    assert_eq!(check(&expression, &Environment::default()), Err(Undecided::TooCostly));
}

#[test]
fn a_macro_that_copies_its_target_is_left_alone() {
    let expression = format!("optional.of(1){}", ".optMap(a, a)".repeat(40));
    assert_eq!(check(&expression, &Environment::default()), Err(Undecided::TooCostly));
}

#[test]
fn a_check_ends_with_its_budget() {
    let expression = Expression::parse("request.name == 'a' && request.name == 'b'").unwrap();
    let environment = Environment::policy();
    assert_eq!(expression.check(&environment, &mut Budget::of(10)), Err(Undecided::TooCostly));
    assert_eq!(expression.check(&environment, &mut Budget::of(1_000)), Ok(Verdict::Valid(Type::Bool)));
}

#[test]
fn a_hundred_errors_are_told_and_the_rest_is_counted() {
    let verdict = check(&format!("[{}]", vec!["a"; 103].join(", ")), &Environment::default());
    let Ok(Verdict::Invalid(errors)) = verdict else { panic!("{verdict:?}") };
    assert_eq!(errors.lines().count(), 301);
    assert!(errors.ends_with("\n3 more errors were truncated"), "{errors}");
}

#[test]
fn a_long_line_is_not_repeated_in_a_message() {
    let verdict = check(&format!("'{}' + 1", "a".repeat(20_000)), &Environment::default());
    let expected = "ERROR: <input>:1:20004: found no matching overload for '_+_' applied to '(string, int)'";
    assert_eq!(verdict, Ok(Verdict::Invalid(expected.to_owned())));
}

#[test]
fn what_needs_messages_of_protocol_buffers_is_left_alone() {
    for expression in ["google.protobuf.Int64Value{value: 1}", "google.protobuf.NullValue.NULL_VALUE", "kubernetes.X{}"]
    {
        assert_eq!(check(expression, &Environment::default()), Err(Undecided::Protobuf), "{expression}");
    }
}

#[test]
fn what_does_not_parse_is_left_alone() {
    for expression in
        ["", "1 +", "object.`a-b`", "[1].map(1, 2)", "[1].all(a, a, true)", "{}.sortBy(a, a)", "namespace", "'\\q'"]
    {
        assert_eq!(check(expression, &Environment::default()), Err(Undecided::Syntax), "{expression}");
    }
}

/// A document in which each of some schemas refers to all of them.
fn entangled(count: usize) -> String {
    let mut properties = String::new();
    for number in 0..count {
        let separator = if number == 0 { "" } else { "," };
        let _ = write!(properties, r##"{separator}"p{number}":{{"$ref":"#/components/schemas/S{number}"}}"##);
    }
    let schemas: Vec<String> = (0..count)
        .map(|number| {
            let kinds = r#""x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"K"}],"#;
            let kinds = if number == 0 { kinds } else { "" };
            format!(r#""S{number}":{{{kinds}"type":"object","properties":{{{properties}}}}}"#)
        })
        .collect();
    format!(r#"{{"components":{{"schemas":{{{}}}}}}}"#, schemas.join(","))
}

/// What a document says about the kind `K`.
fn definitions(document: &str, group: &str) -> Arc<Definitions> {
    Arc::new(Document::read(document.as_bytes()).unwrap().definitions(group, "v1", "K").unwrap().unwrap())
}

#[test]
fn schemas_that_refer_to_each_other_cost_their_text() {
    let definitions = definitions(&entangled(300), "g");
    let object = SchemaType::new("K0", definitions).unwrap();
    let environment = Environment::default().schema(&["object"], &object);
    assert_eq!(check("object.p1.p2.p3 == null", &environment), Ok(Verdict::Valid(Type::Bool)));
    // Upstream knows no field of a schema that it is within already.
    let Ok(Verdict::Invalid(errors)) = check("object.p1.p2.p1.p3 == null", &environment) else { panic!("valid") };
    assert!(errors.contains("undefined field 'p3'"), "{errors}");
}

#[test]
fn a_schema_of_lists_of_lists_is_left_alone() {
    let schemas: Vec<String> = (0..1_000)
        .map(|number| {
            let kinds = r#""x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"K"}],"#;
            let kinds = if number == 0 { kinds } else { "" };
            let next = number + 1;
            let items = format!(r##"{{"$ref":"#/components/schemas/S{next}"}}"##);
            format!(r#""S{number}":{{{kinds}"type":"array","items":{items}}}"#)
        })
        .collect();
    let document = format!(r#"{{"components":{{"schemas":{{{},"S1000":{{"type":"string"}}}}}}}}"#, schemas.join(","));
    let definitions = definitions(&document, "");
    assert_eq!(SchemaType::new("K0", definitions).map(drop), Err(Undecided::TooDeep));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_makes_the_checker_panic(expression in r#"([a-c0-9.?:+<=!&|()\[\]{},'" \\-]|in|all|map|has|optMap|é){0,40}"#) {
        let _ = check(&expression, &Environment::policy().variable("a", Type::Dyn));
    }

    #[test]
    fn no_document_makes_the_reader_panic(document in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Document::read(&document).and_then(|read| read.definitions("", "v1", "K"));
        let _ = Definitions::of(&document);
    }
}
