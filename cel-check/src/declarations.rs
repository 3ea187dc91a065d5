//! The functions and types of Kubernetes' environment for policies: the standard library, cel-go's extensions, and
//! Kubernetes' own libraries. The table is upstream's, printed by `e2e/tools/kubernetes/cel`.
//!
//! Upstream: `baseOpts`, `staging/src/k8s.io/apiserver/pkg/cel/environment/base.go`, for stored expressions, which knows
//! each library whatever the gates say.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::types::Type;

/// The table, read at its first use.
pub(crate) static KUBERNETES: LazyLock<Declarations> = LazyLock::new(|| {
    let mut declarations = Declarations::default();
    for line in include_str!("declarations/kubernetes-1.36.txt").lines() {
        declarations.read(line);
    }
    declarations
});

#[derive(Debug, Default)]
pub(crate) struct Declarations {
    functions: BTreeMap<String, Vec<Overload>>,
    types: BTreeMap<String, Type>,
}

/// One signature of a function.
#[derive(Debug)]
pub(crate) struct Overload {
    /// Whether the first argument is written before a dot.
    pub(crate) is_member: bool,
    pub(crate) arguments: Vec<Type>,
    pub(crate) result: Type,
    /// The names of its type parameters.
    pub(crate) parameters: Vec<Arc<str>>,
}

impl Declarations {
    /// The overloads of a function, in upstream's order.
    pub(crate) fn function(&self, name: &str) -> Option<&[Overload]> {
        self.functions.get(name).map(Vec::as_slice)
    }

    /// The type of a name of a type.
    pub(crate) fn type_named(&self, name: &str) -> Option<&Type> {
        self.types.get(name)
    }

    fn read(&mut self, line: &str) {
        let mut text = Text { rest: line };
        match text.word() {
            "type" => {
                let name = text.word().to_owned();
                self.types.insert(name, text.parse());
            }
            style => {
                let name = text.word().to_owned();
                let arguments = text.list();
                let result = text.parse();
                let mut parameters = Vec::new();
                arguments.iter().chain([&result]).for_each(|part| collect_parameters(part, &mut parameters));
                let overload = Overload { is_member: style == "member", arguments, result, parameters };
                self.functions.entry(name).or_default().push(overload);
            }
        }
    }
}

fn collect_parameters(part: &Type, parameters: &mut Vec<Arc<str>>) {
    if let Type::Parameter(name) = part
        && !parameters.contains(name)
    {
        parameters.push(name.clone());
    }
    part.parts().for_each(|part| collect_parameters(part, parameters));
}

/// A type by its text, such as `map(string, dyn)`.
pub fn parse_type(text: &str) -> Type {
    Text { rest: text }.parse()
}

/// What is left to read of a line.
struct Text<'a> {
    rest: &'a str,
}

impl<'a> Text<'a> {
    fn word(&mut self) -> &'a str {
        let (word, rest) = self.rest.split_once(' ').unwrap_or((self.rest, ""));
        self.rest = rest;
        word
    }

    fn parse(&mut self) -> Type {
        let is_opaque = self.skip("opaque ");
        let end = self.rest.find(['(', ')', ',']).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        let parameters = if rest.starts_with('(') { self.list() } else { Vec::new() };
        if is_opaque {
            return Type::Opaque(name.into(), parameters.into());
        }
        match (name, &*parameters) {
            ("list", [element]) => Type::list(element.clone()),
            ("map", [key, value]) => Type::map(key.clone(), value.clone()),
            ("type", [of]) => Type::type_of(of.clone()),
            ("type", []) => Type::Type(None),
            (name, _) => simple(name),
        }
    }

    /// Types in parentheses.
    fn list(&mut self) -> Vec<Type> {
        let mut types = Vec::new();
        self.skip("(");
        while !self.rest.is_empty() && !self.skip(")") {
            types.push(self.parse());
            self.skip(", ");
        }
        self.skip(" ");
        types
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

fn simple(name: &str) -> Type {
    match name {
        "any" => Type::Any,
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "duration" => Type::Duration,
        "dyn" => Type::Dyn,
        "int" => Type::Int,
        "null" => Type::Null,
        "string" => Type::String,
        "timestamp" => Type::Timestamp,
        "uint" => Type::Uint,
        name => match name.strip_prefix('<').and_then(|name| name.strip_suffix('>')) {
            Some(parameter) => Type::Parameter(parameter.into()),
            None => Type::object(name),
        },
    }
}
