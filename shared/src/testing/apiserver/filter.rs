//! The selectors of a list or a watch.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::labels::Labels;
use crate::api::selector::query;

/// A namespace, or all of them, and two selectors.
#[derive(Clone, Default)]
pub(super) struct Filter {
    pub(super) namespace: String,
    fields: Vec<Requirement>,
    labels: String,
}

/// `a=b` or `a!=b`.
#[derive(Clone)]
struct Requirement {
    name: String,
    value: String,
    is_equal: bool,
}

impl Filter {
    pub(super) fn read(namespace: &str, query: &BTreeMap<String, String>) -> Self {
        let fields: &str = query.get("fieldSelector").map_or("", String::as_str);
        let fields = fields.split(',').filter(|part| !part.is_empty()).map(Requirement::read).collect();
        let labels = query.get("labelSelector").cloned().unwrap_or_default();
        Self { namespace: namespace.to_owned(), fields, labels }
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let field = |path: &str| {
            let value = object.pointer(&format!("/{}", path.replace('.', "/")));
            value.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
        let labels = Labels::new(labels.map(|(key, value)| (key, value.as_str().unwrap_or_default())));
        (self.namespace.is_empty() || object["metadata"]["namespace"] == *self.namespace)
            && self.fields.iter().all(|wanted| (field(&wanted.name) == wanted.value) == wanted.is_equal)
            && query::matches(&self.labels, &labels)
    }
}

impl Requirement {
    fn read(text: &str) -> Self {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let is_equal = !name.ends_with('!');
        Self { name: name.trim_end_matches('!').to_owned(), value: value.trim_start_matches('=').to_owned(), is_equal }
    }
}
