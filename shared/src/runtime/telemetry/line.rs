//! One event as one line: its message, its fields, and the fields of the spans it happened in.
//!
//! Left out: what spans do (they are traces); colours; a local time zone, which an image from scratch doesn't have.

use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::LogFormat;
use crate::runtime::clock::Clock;

/// Writes each event through `write`, whole lines only.
pub(super) struct Lines<W> {
    format: LogFormat,
    clock: Clock,
    write: W,
    pid: u32,
}

impl<W: Fn(&[u8])> Lines<W> {
    pub(super) fn new(format: LogFormat, clock: Clock, write: W) -> Self {
        Self { format, clock, write, pid: std::process::id() }
    }
}

/// Fields in the order they came, their values printed in the line's format.
#[derive(Default)]
struct Fields {
    message: String,
    values: Vec<(&'static str, String)>,
}

struct Reader<'a> {
    format: LogFormat,
    fields: &'a mut Fields,
}

impl Reader<'_> {
    fn add(&mut self, field: &Field, value: String) {
        self.fields.values.push((field.name(), value));
    }

    fn add_text(&mut self, field: &Field, text: &str) {
        let is_structure = text.starts_with(['{', '[', '"']);
        let value = match self.format {
            LogFormat::Text if is_structure => text.to_owned(),
            LogFormat::Text => format!("{text:?}"),
            LogFormat::Json => json_text(text),
        };
        self.add(field, value);
    }
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl Visit for Reader<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" {
            self.fields.message = text;
        } else {
            self.add_text(field, &text);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.fields.message);
            return;
        }
        let value = match self.format {
            LogFormat::Text => format!("{value:?}"),
            LogFormat::Json => json_text(value),
        };
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.to_string());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.to_string());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.to_string());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no word for NaN and infinity.
        let value = if value.is_finite() { value.to_string() } else { format!("\"{value}\"") };
        self.add(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.add_text(field, &crate::runtime::api_error::chain(value));
    }
}

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Fn(&[u8]) + Send + Sync + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut Reader { format: self.format, fields: &mut fields });
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        if let Some(fields) = extensions.get_mut::<Fields>() {
            record.record(&mut Reader { format: self.format, fields });
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut Reader { format: self.format, fields: &mut fields });
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(outer) = span.extensions().get::<Fields>() {
                for (name, value) in &outer.values {
                    if !fields.values.iter().any(|(known, _)| known == name) {
                        fields.values.push((*name, value.clone()));
                    }
                }
            }
        }
        let mut line = String::with_capacity(256);
        let head = Head { level: *event.metadata().level(), caller: caller(event), pid: self.pid };
        // Writing to a string cannot fail.
        let _ = match self.format {
            LogFormat::Text => self.write_text(&mut line, &head, &fields),
            LogFormat::Json => self.write_json(&mut line, &head, &fields),
        };
        (self.write)(line.as_bytes());
    }
}

struct Head {
    level: Level,
    caller: String,
    pid: u32,
}

fn caller(event: &Event<'_>) -> String {
    let file = event.metadata().file().unwrap_or("unknown");
    let name = file.rsplit('/').next().unwrap_or(file);
    format!("{name}:{}", event.metadata().line().unwrap_or(0))
}

impl<W> Lines<W> {
    /// Upstream: `formatHeader` and `KVListFormat`, k8s.io/klog/v2.
    fn write_text(&self, line: &mut String, head: &Head, fields: &Fields) -> fmt::Result {
        let severity = match head.level {
            Level::ERROR => 'E',
            Level::WARN => 'W',
            _ => 'I',
        };
        let now = self.clock.now().strftime("%m%d %H:%M:%S%.6f");
        write!(line, "{severity}{now} {:>7} {}] {:?}", head.pid, head.caller, fields.message)?;
        for (name, value) in &fields.values {
            write!(line, " {name}={value}")?;
        }
        writeln!(line)
    }

    /// Upstream: `NewJSONLogger`, staging/src/k8s.io/component-base/logs/json/json.go; `level` is ours.
    fn write_json(&self, line: &mut String, head: &Head, fields: &Fields) -> fmt::Result {
        let (level, verbosity) = match head.level {
            Level::ERROR => ("error", None),
            Level::WARN => ("warn", None),
            Level::INFO => ("info", Some(0)),
            Level::DEBUG => ("debug", Some(super::DECISIONS)),
            Level::TRACE => ("trace", Some(super::EVERYTHING)),
        };
        let micros = self.clock.now().as_microsecond();
        let (millis, rest) = (micros.div_euclid(1000), micros.rem_euclid(1000));
        write!(line, r#"{{"ts":{millis}.{rest:03},"level":"{level}","caller":{}"#, json_text(&head.caller))?;
        write!(line, r#","msg":{}"#, json_text(&fields.message))?;
        if let Some(verbosity) = verbosity {
            write!(line, r#","v":{verbosity}"#)?;
        }
        for (name, value) in &fields.values {
            write!(line, ",{}:{value}", json_text(name))?;
        }
        writeln!(line, "}}")
    }
}
