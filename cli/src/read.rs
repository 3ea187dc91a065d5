//! Reads an object and the objects around it with the caller's permissions, and asks the operators. Unreadable
//! objects are noted; only the target must be readable.

mod around;
pub(crate) mod asked;
pub(crate) mod leases;

use std::collections::HashSet;

use anyhow::{Context, Result, bail};
use http::Request;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

use crate::discovery::{Kind, Kinds};
use crate::evidence::{Evidence, Target, Unread};
use crate::reach::Reach;
use crate::words::nearest;
pub(crate) use crate::words::why_not;

const PAGE: usize = 500;
const PAGES_MAX: usize = 40;
const OBJECTS_MAX: usize = PAGE * PAGES_MAX;
const SIMILAR_MAX: usize = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub kind: String,
    pub name: String,
}

impl Wanted {
    pub fn parse(words: &[String]) -> Result<Self> {
        let (kind, name) = match words {
            [one] => one.split_once('/').with_context(|| {
                format!("expected KIND/NAME, got {one:?}; for example `kubectl operators why deployment/web`")
            })?,
            [kind, name] if !kind.contains('/') && !name.contains('/') => (kind.as_str(), name.as_str()),
            _ => bail!("expected one object: KIND/NAME or KIND NAME"),
        };
        if kind.is_empty() || name.is_empty() || name.contains('/') {
            bail!("expected KIND/NAME, got {:?}", words.join(" "));
        }
        Ok(Self { kind: kind.to_owned(), name: name.to_owned() })
    }
}

pub(crate) struct Reader<'a> {
    client: &'a Client,
    reach: &'a Reach,
    kinds: &'a Kinds,
    pub(crate) evidence: Evidence,
    known: HashSet<String>,
}

pub async fn read(
    client: &Client,
    reach: &Reach,
    kinds: &Kinds,
    (wanted, namespace): (&Wanted, &str),
    now: impl Fn() -> Timestamp,
) -> Result<Evidence> {
    let kind = kinds.called(&wanted.kind)?;
    let target = Target {
        group: kind.group.clone(),
        version: kind.version.clone(),
        kind: kind.kind.clone(),
        resource: kind.plural.clone(),
        namespace: if kind.is_namespaced { namespace.to_owned() } else { String::new() },
        name: wanted.name.clone(),
    };
    let mut reader =
        Reader { client, reach, kinds, evidence: Evidence { target, ..Evidence::default() }, known: HashSet::new() };
    let object = reader.get(&kind.path(namespace, &wanted.name)).await;
    match object.with_context(|| format!("cannot read {}/{}", kind.kind.to_lowercase(), wanted.name))? {
        Some(object) => {
            reader.add(vec![object], kind);
            reader.around(kind).await;
        }
        None => reader.similar(kind).await,
    }
    reader.ask(now()).await;
    reader.evidence.now = now();
    Ok(reader.evidence)
}

/// None for 404.
pub(crate) async fn get(client: &Client, path: &str) -> Result<Option<Value>, kube::Error> {
    let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    match client.request::<Value>(request).await {
        Ok(value) => Ok(Some(value)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// All pages, up to [`OBJECTS_MAX`] objects.
pub(crate) async fn list(client: &Client, path: &str, query: &str) -> Result<Vec<Value>, kube::Error> {
    let mut all = Vec::new();
    let mut next = String::new();
    for _ in 0..PAGES_MAX {
        let page = format!("{path}?limit={PAGE}{query}&continue={next}");
        let Some(mut page) = get(client, page.trim_end_matches("&continue=")).await? else { break };
        if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
            all.extend(items);
        }
        next.clear();
        next.push_str(page.pointer("/metadata/continue").and_then(Value::as_str).unwrap_or_default());
        if next.is_empty() {
            break;
        }
    }
    Ok(all)
}

impl Reader<'_> {
    async fn get(&self, path: &str) -> Result<Option<Value>, kube::Error> {
        get(self.client, path).await
    }

    fn add(&mut self, objects: Vec<Value>, kind: &Kind) {
        for mut object in objects {
            if let Some(map) = object.as_object_mut() {
                map.insert("apiVersion".to_owned(), kind.api_version().into());
                map.insert("kind".to_owned(), kind.kind.clone().into());
            }
            let uid = crate::object::Object(&object).uid();
            if uid.is_empty() || self.known.insert(uid.to_owned()) {
                self.evidence.objects.push(object);
            }
        }
    }

    fn hide(&mut self, what: &str, error: &kube::Error) {
        self.add_hidden(what, why_not(error));
    }

    fn hide_rest(&mut self, what: &str, read: usize) {
        if read >= OBJECTS_MAX {
            self.add_hidden(what, format!("only the first {OBJECTS_MAX} were read"));
        }
    }

    fn add_hidden(&mut self, what: &str, why: String) {
        let hidden = Unread { what: what.to_owned(), why };
        if !self.evidence.unread.contains(&hidden) {
            self.evidence.unread.push(hidden);
        }
    }

    async fn similar(&mut self, kind: &Kind) {
        let target = &self.evidence.target;
        let Ok(others) = list(self.client, &kind.path(&target.namespace, ""), "").await else { return };
        let names = others.iter().map(|other| crate::object::Object(other).name());
        self.evidence.similar = nearest(&target.name, names, SIMILAR_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_named_as_kubectl_names_it() {
        let parse = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Wanted::parse(&words)
                .map(|wanted| format!("{} {}", wanted.kind, wanted.name))
                .map_err(|error| error.to_string())
        };
        assert_eq!(parse(&["deploy/web"]).as_deref(), Ok("deploy web"));
        assert_eq!(parse(&["job.batch", "x"]).as_deref(), Ok("job.batch x"));
        assert!(parse(&["web"]).unwrap_err().contains("expected KIND/NAME"));
        assert!(parse(&["a/b", "c"]).unwrap_err().starts_with("expected one object"));
        assert!(parse(&["a/"]).is_err() && parse(&["a/b/c"]).is_err());
    }
}
