//! The data of a ControllerRevision: the bytes that upstream's Go makes of a template, and the comparison of such data.
//!
//! Upstream compares the stored bytes. An apiserver serves them to a reader of JSON without white space and with Go's
//! escapes, whatever they are, so here data are brought into one form before they are compared, and are written in
//! upstream's form.
//! Left out: defaults that an apiserver began to set later, which are [`super::defaults`]'.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::api::hash::fnv1a_128;
use crate::api::raw::{RawObject, raw_of};
use crate::api::template::PodTemplate;

/// The deepest nesting that is read; a pod template has some ten levels.
const DEPTH_MAX: usize = 128;

/// The field that upstream adds to the template: a strategic merge patch of the data puts the template in the place of
/// another.
const PATCH: (&str, &str) = ("$patch", "replace");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// All are floats of 64 bits, so that an integer beyond 2⁵³ is rounded: those of a StatefulSet's revision.
    Floats,
    /// Integers of 64 bits stay as they are: those of a DaemonSet's revision.
    Integers,
}

#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is not even JSON, or another type stands in a place of the template.
    #[error("cannot read the template: {0}")]
    Json(#[from] serde_json::Error),
    /// The cache has no room for the template, and it was not read yet.
    #[error("cannot read the template: it is not cached")]
    NotCached,
    /// No template of the API is nested so deeply.
    #[error("cannot read the template: it has more than {DEPTH_MAX} levels")]
    TooDeep,
}

/// `{"spec":{"template":…}}`, byte by byte as upstream writes it.
#[derive(Clone)]
pub struct Data(Box<RawValue>);

impl Data {
    /// The data of the revision of a template: keys sorted, no white space, and Go's escapes.
    ///
    /// Upstream: `getPatch`, `pkg/controller/statefulset/stateful_set_utils.go` and `pkg/controller/daemon/update.go`.
    pub fn of(template: &PodTemplate, numbers: Numbers) -> Result<Self, Unreadable> {
        if template.left_out() > 0 {
            return Err(Unreadable::NotCached);
        }
        let (template, replace) = (to_raw_value(template)?, raw_of(&PATCH.1));
        let fields: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(template.get())?;
        let mut fields = fields.unwrap_or_default();
        fields.insert(PATCH.0.to_owned(), &replace);
        let mut form = Form { numbers, out: r#"{"spec":{"template":"#.to_owned() };
        form.object(&fields, DEPTH_MAX)?;
        form.out.push_str("}}");
        Ok(Self(RawValue::from_string(form.out)?))
    }

    /// The bytes as text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    pub fn json(&self) -> &RawValue {
        &self.0
    }

    /// The parts by which it is compared with stored data.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.0)
    }
}

impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Two numbers in place of data. Data that differ never have the same ones by chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// Of the bytes, but for white space, the order of keys, and the choice of escapes.
    pub exact: u128,
    /// Of the pods that are described: see [`PodTemplate::meaning`].
    pub meaning: u128,
}

impl Fingerprint {
    /// The exact one as the value of a label.
    pub fn label(self) -> String {
        format!("{:032x}", self.exact)
    }

    /// The fingerprint of the data of a template, which is made once for all that have its text.
    pub fn of_template(template: &PodTemplate, numbers: Numbers) -> Result<Self, Unreadable> {
        let place = match numbers {
            Numbers::Floats => 0,
            Numbers::Integers => 1,
        };
        if let Some([exact, meaning]) = template.noted(place) {
            return Ok(Self { exact, meaning });
        }
        let made = Data::of(template, numbers)?.fingerprint();
        template.note(place, [made.exact, made.meaning]);
        Ok(made)
    }

    /// The fingerprint of data as they are served. Data that cannot be read equal only themselves.
    pub fn of(data: &RawValue) -> Self {
        let mut form = Form { numbers: Numbers::Integers, out: String::new() };
        let formed = form.value(data, DEPTH_MAX).ok().and_then(|()| RawValue::from_string(form.out).ok());
        let data = formed.as_deref().unwrap_or(data);
        let exact = fnv1a_128(data.get().bytes());
        Self { exact, meaning: template_of(data).map_or(exact, |template| template.meaning()) }
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let data: Box<RawValue> = Deserialize::deserialize(deserializer)?;
        Ok(Self::of(&data))
    }
}

/// The template as a cache [keeps](PodTemplate::kept) it, with its fingerprint in place of its text.
pub fn kept(template: PodTemplate, numbers: Numbers) -> PodTemplate {
    if template.is_large() {
        // It is noted. An unreadable template is an error where its revision is looked for.
        let _ = Fingerprint::of_template(&template, numbers);
    }
    template.kept()
}

/// The template in the data of a revision.
///
/// Upstream: `ApplyRevision`, `pkg/controller/statefulset/stateful_set_utils.go`.
pub fn template_of(data: &RawValue) -> serde_json::Result<PodTemplate> {
    #[derive(Deserialize)]
    struct Outline<'a> {
        #[serde(borrow)]
        spec: Spec<'a>,
    }
    #[derive(Deserialize)]
    struct Spec<'a> {
        #[serde(borrow)]
        template: RawObject<'a>,
    }
    let Outline { spec: Spec { mut template } } = serde_json::from_str(data.get())?;
    template.remove(PATCH.0);
    PodTemplate::from_json(raw_of(&template))
}

/// JSON as Go's `encoding/json` writes what it has read into maps.
struct Form {
    numbers: Numbers,
    out: String,
}

impl Form {
    fn value(&mut self, value: &RawValue, depth: usize) -> Result<(), Unreadable> {
        let depth = depth.checked_sub(1).ok_or(Unreadable::TooDeep)?;
        let text = value.get();
        match text.bytes().next() {
            Some(b'{') => self.object(&serde_json::from_str::<BTreeMap<String, &RawValue>>(text)?, depth)?,
            Some(b'[') => self.array(&serde_json::from_str::<Vec<&RawValue>>(text)?, depth)?,
            Some(b'"') => self.text(&serde_json::from_str::<String>(text)?),
            Some(b'-' | b'0'..=b'9') => self.number(text),
            _ => self.out.push_str(text),
        }
        Ok(())
    }

    fn object(&mut self, entries: &BTreeMap<String, &RawValue>, depth: usize) -> Result<(), Unreadable> {
        self.out.push('{');
        for (at, (key, value)) in entries.iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            self.text(key);
            self.out.push(':');
            self.value(value, depth)?;
        }
        self.out.push('}');
        Ok(())
    }

    fn array(&mut self, items: &[&RawValue], depth: usize) -> Result<(), Unreadable> {
        self.out.push('[');
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            self.value(item, depth)?;
        }
        self.out.push(']');
        Ok(())
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            match character {
                '"' => self.out.push_str(r#"\""#),
                '\\' => self.out.push_str(r"\\"),
                '\u{8}' => self.out.push_str(r"\b"),
                '\u{c}' => self.out.push_str(r"\f"),
                '\n' => self.out.push_str(r"\n"),
                '\r' => self.out.push_str(r"\r"),
                '\t' => self.out.push_str(r"\t"),
                '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    let escape = format!("\\u{:04x}", u32::from(character));
                    self.out.push_str(&escape);
                }
                _ => self.out.push(character),
            }
        }
        self.out.push('"');
    }

    fn number(&mut self, text: &str) {
        let integer = if self.numbers == Numbers::Integers { text.parse::<i64>().ok() } else { None };
        let float = text.parse::<f64>().ok().filter(|float| float.is_finite());
        let written = integer.map(|integer| integer.to_string()).or_else(|| float.map(go_float));
        self.out.push_str(written.as_deref().unwrap_or(text));
    }
}

/// A float as Go's `encoding/json` writes it: as short as it can be, with an exponent where it is very large or very
/// small.
fn go_float(float: f64) -> String {
    let magnitude = float.abs();
    if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        return float.to_string();
    }
    let text = format!("{float:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        Some(_) | None => text,
    }
}
