//! Objects as YAML: plain, and as templates of a Helm chart with expressions at some places.
//! Left out: reading YAML.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value};

/// An expression at a place of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hole {
    /// The value is that of the expression.
    Is(String),
    /// The value is that of the expression if it is set, and the object's own otherwise.
    Or(String),
    /// Lines of a template before the first entry and after the last. A line that begins with `{{-` is an action; others
    /// are entries.
    Around { before: Vec<String>, after: Vec<String> },
}

/// Holes by the JSON pointers of their places.
pub type Holes = BTreeMap<String, Hole>;

/// The objects as a stream of documents.
pub fn stream(objects: &[Value]) -> String {
    let documents = objects.iter().map(|object| format!("---\n{}", Writer { holes: None }.entries(object, "", 0)));
    documents.collect()
}

/// The object as a template.
pub fn template(object: &Value, holes: &Holes) -> String {
    format!("---\n{}", Writer { holes: Some(holes) }.entries(object, "", 0))
}

struct Writer<'a> {
    /// None: not a template, so braces have no meaning.
    holes: Option<&'a Holes>,
}

impl Writer<'_> {
    fn hole(&self, pointer: &str) -> Option<&Hole> {
        self.holes.and_then(|holes| holes.get(pointer))
    }

    /// The entries of a map or a list, each on lines of its own.
    fn entries(&self, value: &Value, pointer: &str, indent: usize) -> String {
        let entries = match value {
            Value::Object(map) => self.map(map, pointer, indent),
            Value::Array(items) => self.list(items, pointer, indent),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => String::new(),
        };
        let Some(Hole::Around { before, after }) = self.hole(pointer) else { return entries };
        lines(before, indent) + &entries + &lines(after, indent)
    }

    fn map(&self, map: &Map<String, Value>, pointer: &str, indent: usize) -> String {
        let entries = map.iter().map(|(key, value)| {
            let pointer = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
            self.entry(key, value, &pointer, indent)
        });
        entries.collect()
    }

    fn entry(&self, key: &str, value: &Value, pointer: &str, indent: usize) -> String {
        let key = format!("{:indent$}{}:", "", self.string(key));
        let own = || format!("{key}{}", self.value(value, pointer, indent));
        match self.hole(pointer) {
            Some(Hole::Is(expression)) => format!("{key} {{{{ {expression} }}}}\n"),
            Some(Hole::Or(expression)) => {
                let set = format!("{key}\n{:indent$}  {{{{- toYaml . | nindent {} }}}}\n", "", indent + 2);
                let own = if value.is_null() { String::new() } else { format!("{{{{- else }}}}\n{}", own()) };
                format!("{{{{- with {expression} }}}}\n{set}{own}{{{{- end }}}}\n")
            }
            Some(Hole::Around { .. }) | None => own(),
        }
    }

    fn list(&self, items: &[Value], pointer: &str, indent: usize) -> String {
        let items = items.iter().enumerate().map(|(index, item)| {
            let pointer = format!("{pointer}/{index}");
            let nested = self.entries(item, &pointer, indent + 2);
            // An action comes first where the first entry is a hole; then the dash has a line of its own.
            match nested.strip_prefix(&" ".repeat(indent + 2)) {
                Some(rest) => format!("{:indent$}- {rest}", ""),
                None => format!("{:indent$}-{}", "", self.value(item, &pointer, indent)),
            }
        });
        items.collect()
    }

    /// What follows the colon or dash, with the end of the line.
    fn value(&self, value: &Value, pointer: &str, indent: usize) -> String {
        match value {
            Value::String(text) if is_block(text) => self.block(text, indent + 2),
            Value::String(text) => format!(" {}\n", self.string(text)),
            Value::Null | Value::Bool(_) | Value::Number(_) => format!(" {value}\n"),
            Value::Array(_) | Value::Object(_) => match self.entries(value, pointer, indent + 2) {
                entries if entries.is_empty() => format!(" {value}\n"),
                entries => format!("\n{entries}"),
            },
        }
    }

    fn string(&self, text: &str) -> String {
        self.literal(&if is_plain(text) { text.to_owned() } else { Value::from(text).to_string() })
    }

    fn block(&self, text: &str, indent: usize) -> String {
        let pad = " ".repeat(indent);
        let mut block = String::from(if text.ends_with('\n') { " |\n" } else { " |-\n" });
        for line in text.lines() {
            let line = if line.is_empty() { String::new() } else { format!("{pad}{line}") };
            block.push_str(&line);
            block.push('\n');
        }
        self.literal(&block)
    }

    /// Text of an object, whose braces are not the template's.
    fn literal(&self, text: &str) -> String {
        if self.holes.is_some() { text.replace("{{", r#"{{ "{{" }}"#) } else { text.to_owned() }
    }
}

fn lines(lines: &[String], indent: usize) -> String {
    let mut text = String::new();
    for line in lines {
        let indent = if line.starts_with("{{-") { 0 } else { indent };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:indent$}{line}", "");
    }
    text
}

/// Whether the text needs no quotation marks: it cannot be read as anything else than these characters.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let begins = text.starts_with("--") || text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/');
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_./=,()@+ ".contains(c);
    // A colon ends a key only before a space or the end.
    let colons = !text.contains(": ") && !text.ends_with(':');
    let is_word = WORDS.contains(&text.to_ascii_lowercase().as_str());
    begins && colons && text.chars().all(|c| is_safe(c) || c == ':') && !text.ends_with(' ') && !is_word
}

/// Whether the text is shown line by line. YAML takes the indentation from the first line, and loses what ends otherwise.
fn is_block(text: &str) -> bool {
    let is_shown = |c: char| c == '\n' || !c.is_control();
    let begins = !text.starts_with([' ', '\n']);
    text.contains('\n') && begins && !text.ends_with("\n\n") && text.chars().all(is_shown)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        serde_yaml::from_str(text).unwrap()
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let texts = [
            "",
            "a",
            "a b",
            " a",
            "a ",
            "a: b",
            "a:",
            "a:b",
            "#",
            "a #b",
            "-",
            "--a=b",
            "- a",
            "1",
            "0x1",
            "1e3",
            "true",
            "No",
            "null",
            "~",
            "y",
            "{{ a }}",
            "$(OPERATOR)",
            "\"'",
            "a\nb",
            "a\nb\n",
            "\na",
            " a\nb",
            "a\n\n",
            "a\n  b\n\nc",
            "a\tb",
            "a\n\tb",
            "ä",
            "*",
            "&a",
            "!a",
            "%a",
            "@a",
            "`a`",
            "[]",
            "{}",
            "2026-11-29",
            "a\r\nb",
            "...",
            "---",
        ];
        let nested = json!({"list": texts.as_slice(), "empty": [], "none": {}, "null": null, "lists": [[1, "2"], [], [{"a": {"b": [true]}}]]});
        for value in texts.iter().map(|text| json!({ "text": text })).chain([nested]) {
            assert_eq!(read(&stream(std::slice::from_ref(&value))), value);
        }
        let keys = json!({"a.b/c": 1, "8": 2, "no": 3, "a b": 4});
        assert_eq!(read(&stream(std::slice::from_ref(&keys))), keys);
    }

    #[test]
    fn objects_are_documents() {
        assert_eq!(
            stream(&[json!({"a": 1}), json!({"b": [{"c": 2, "d": "3"}]})]),
            "---\na: 1\n---\nb:\n  - c: 2\n    d: \"3\"\n"
        );
    }

    #[test]
    fn a_template_has_expressions_at_its_holes_and_no_other_braces() {
        let object = json!({"a": 1, "b": {"c": [2]}, "d": ["x"], "e": "{{ e }}", "f": null});
        let around = Hole::Around { before: vec!["- first".to_owned()], after: vec!["{{- end }}".to_owned()] };
        let holes = Holes::from([
            ("/a".to_owned(), Hole::Is(".A".to_owned())),
            ("/b/c".to_owned(), Hole::Or(".C".to_owned())),
            ("/d".to_owned(), around),
            ("/f".to_owned(), Hole::Or(".F".to_owned())),
        ]);
        let expected = "---
a: {{ .A }}
b:
{{- with .C }}
  c:
    {{- toYaml . | nindent 4 }}
{{- else }}
  c:
    - 2
{{- end }}
d:
  - first
  - x
{{- end }}
e: \"{{ \"{{\" }} e }}\"
{{- with .F }}
f:
  {{- toYaml . | nindent 2 }}
{{- end }}
";
        assert_eq!(template(&object, &holes), expected);
    }
}
