//! One event as one line: its message, its fields, and the sync it happened in.
//!
//! Left out: spans, which are traces; colours; a local time zone, which an image from scratch doesn't have.

use std::cell::Cell;
use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::LogFormat;
use crate::transport::clock::Clock;
use crate::working::worker::running;

thread_local! {
    /// The controller that this thread belongs to, in a process of several.
    static CONTROLLER: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Names this controller in all lines of this thread.
pub(crate) fn in_controller(name: &'static str) {
    CONTROLLER.set(Some(name));
}

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
    fn add(&mut self, name: &'static str, value: String) {
        self.fields.values.push((name, value));
    }

    /// Adds a field unless the event itself has one of this name.
    fn add_outer(&mut self, name: &'static str, value: String) {
        if !self.fields.values.iter().any(|(known, _)| *known == name) {
            self.add(name, value);
        }
    }

    fn quoted(&self, text: &str) -> String {
        match self.format {
            LogFormat::Text => format!("{text:?}"),
            LogFormat::Json => json_text(text),
        }
    }

    fn add_text(&mut self, field: &Field, text: &str) {
        let is_structure = text.starts_with(['{', '[', '"']);
        let value = match self.format {
            LogFormat::Text if is_structure => text.to_owned(),
            LogFormat::Text | LogFormat::Json => self.quoted(text),
        };
        self.add(field.name(), value);
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
        let value = self.quoted(value);
        self.add(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field.name(), value.to_string());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field.name(), value.to_string());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field.name(), value.to_string());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no word for NaN and infinity.
        let value = if value.is_finite() { value.to_string() } else { format!("\"{value}\"") };
        self.add(field.name(), value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.add_text(field, &crate::transport::api_error::chain(value));
    }
}

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber,
    W: Fn(&[u8]) + Send + Sync + 'static,
{
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        let mut reader = Reader { format: self.format, fields: &mut fields };
        event.record(&mut reader);
        if let Some(controller) = CONTROLLER.get() {
            let controller = reader.quoted(controller);
            reader.add_outer("controller", controller);
        }
        running::running(|sync| {
            let key = reader.quoted(&sync.key.to_string());
            let all = [("queue", reader.quoted(sync.queue())), ("key", key), ("attempt", sync.attempt.to_string())];
            for (name, value) in all {
                reader.add_outer(name, value);
            }
        });
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
