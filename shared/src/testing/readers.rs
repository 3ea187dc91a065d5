//! The readers of bytes that others write. None may panic, whatever it reads: `cargo test` gives each some thousand
//! inputs, and `make fuzz` looks for new ones by the coverage of those before.
//!
//! Left out: serde_json and x509-parser themselves, except as far as these readers go through them.

use std::panic::catch_unwind;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::api::bootstrap_token::Expiration;
use crate::api::csi_translation::persistent_volume;
use crate::api::explain::Subject;
use crate::api::int_or_percent::IntOrPercent;
use crate::api::labels::Labels;
use crate::api::object::Meta;
use crate::api::protobuf::{self, Frame, Parts};
use crate::api::quantity::{InvalidQuantity, Quantity};
use crate::api::selector::{LabelSelector, Selector};
use crate::api::template::PodTemplate;
use crate::api::time::Time;
use crate::controllers::certificates::request::Request;
use crate::controllers::revisions::data::{Data, Numbers};
use crate::process::serving::Query;
use crate::testing::{NOW, protobuf as written};
use crate::transport::api_error::Status;

/// A reader, and what it reads well.
pub struct Reader {
    /// Its name for `make fuzz`.
    pub name: &'static str,
    /// Reads, and asserts what holds for every input.
    pub read: fn(&[u8]),
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All readers of this crate.
pub const READERS: &[Reader] = &[
    Reader { name: "list", read: list, seeds: lists },
    Reader { name: "event", read: event, seeds: events },
    Reader { name: "object", read: object, seeds: objects },
    Reader { name: "template", read: template, seeds: templates },
    Reader { name: "persistent-volume", read: volume, seeds: volumes },
    Reader { name: "quantity", read: quantity, seeds: quantities },
    Reader { name: "selector", read: selector, seeds: selectors },
    Reader { name: "expiration", read: expiration, seeds: expirations },
    Reader { name: "subject", read: subject, seeds: subjects },
    Reader { name: "certificate-request", read: certificate_request, seeds: certificate_requests },
    Reader { name: "pem", read: pem, seeds: pems },
];

/// Texts as inputs.
pub fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// A list of protobuf, whole and in pieces.
fn list(bytes: &[u8]) {
    let Some((size, body)) = bytes.split_first() else { return };
    if let Ok((metadata, items)) = protobuf::list(body) {
        for value in items.into_iter().chain([metadata]) {
            let _ = Value::deserialize(value);
            let _ = <Meta>::deserialize(value);
        }
    }
    let mut parts = Parts::default();
    for piece in body.chunks(usize::from(*size) + 1) {
        parts.push(piece);
        while let Ok(Some(part)) = parts.next() {
            let _ = Value::deserialize(part.value());
        }
    }
    let _ = parts.is_complete();
}

fn lists() -> Vec<Vec<u8>> {
    let list =
        json!({ "kind": "PodList", "metadata": { "resourceVersion": "7", "continue": "next" }, "items": [pod(), {}] });
    written::list(&list).map(|list| [&[3], &*list].concat()).into_iter().collect()
}

/// An event of a watch, and a `Status`.
fn event(bytes: &[u8]) {
    let content = if let Frame::Of(_) = protobuf::frame(bytes) { Frame::content(bytes) } else { bytes };
    if let Ok((_, object)) = protobuf::event(content)
        && let Ok(value) = protobuf::object(object)
    {
        let _ = Value::deserialize(value);
    }
    let _ = Status::from_body(500, bytes);
}

fn events() -> Vec<Vec<u8>> {
    let event = written::event("MODIFIED", ("v1", "Pod"), &pod());
    let status = json!({ "code": 410, "message": "gone", "details": { "retryAfterSeconds": 1 } });
    event.into_iter().chain([written::status(&status)]).map(Into::into).collect()
}

fn pod() -> Value {
    json!({
        "metadata": { "name": "a", "namespace": "b", "uid": "0b6cd1a8-9b7e-4a0e-9a53-0c7a3e1f2d4b",
            "resourceVersion": "3", "labels": { "app": "web" }, "creationTimestamp": "2026-01-01T12:00:00Z",
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u",
                "controller": true }] },
        "spec": { "nodeName": "n", "containers": [{ "name": "c", "resources": { "requests": { "cpu": "100m" } } }] },
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}

/// The views that many objects have in common.
fn object(json: &[u8]) {
    #[derive(Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Object {
        metadata: Meta,
        selector: LabelSelector,
        time: Option<Time>,
        quantity: Option<Quantity>,
        count: Option<IntOrPercent>,
    }
    impl Default for Object {
        fn default() -> Self {
            let (metadata, selector) = Default::default();
            Self { metadata, selector, time: None, quantity: None, count: None }
        }
    }
    let Ok(Object { metadata, selector, time, quantity, count }) = serde_json::from_slice(json) else { return };
    if let Ok(selector) = Selector::parse(&selector) {
        let _ = (selector.matches(&metadata.labels), selector.anchor());
    }
    let _ = (time.map(|time| time.to_string()), quantity.map(|quantity| quantity.to_string()), count);
}

fn objects() -> Vec<Vec<u8>> {
    let selector =
        json!({ "matchLabels": { "a": "b" }, "matchExpressions": [{ "key": "k", "operator": "In", "values": ["v"] }] });
    let object = json!({ "metadata": pod()["metadata"], "selector": selector, "time": "2026-01-01T12:00:00Z",
        "quantity": 1.5e3, "count": "25%" });
    texts(&[&object.to_string()])
}

fn template(json: &[u8]) {
    let Ok(json) = serde_json::from_slice::<Box<RawValue>>(json) else { return };
    let Ok(template) = PodTemplate::from_json(json) else { return };
    let labeled = template.with_hash("x");
    let _ = (
        template.equals_ignoring_hash(&labeled),
        template.hash(Some(3)),
        template.meaning(),
        labeled.without_hash().hash(None),
    );
    for numbers in [Numbers::Floats, Numbers::Integers] {
        let _ = Data::of(&template, numbers).map(|data| data.fingerprint());
    }
}

fn templates() -> Vec<Vec<u8>> {
    let template = json!({ "metadata": { "labels": { "app": "w\u{1F600}b" }, "annotations": { "n": "1" } },
        "spec": { "containers": [{ "name": "c", "env": [{ "name": "A", "value": "<&>" }] }], "priority": 1e21 } });
    texts(&[&template.to_string(), r#"{"spec":{"n":9007199254740993,"f":-0.1e-7}}"#])
}

/// A PersistentVolume, whose source becomes the driver's.
fn volume(json: &[u8]) {
    let Ok(json) = serde_json::from_slice::<Box<RawValue>>(json) else { return };
    if let Ok(translated) = persistent_volume(&json) {
        let _ = persistent_volume(&translated);
    }
}

fn volumes() -> Vec<Vec<u8>> {
    let affinity = json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions":
        [{ "key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a-b-c"] }] }] } });
    let spec = json!({ "gcePersistentDisk": { "pdName": "d", "partition": 1 }, "nodeAffinity": affinity,
        "accessModes": ["ReadWriteMany"], "claimRef": { "namespace": "n" } });
    let metadata = json!({ "name": "v", "labels": { "topology.kubernetes.io/zone": "a-b-c__a-b-d" } });
    texts(&[&json!({ "metadata": metadata, "spec": spec }).to_string()])
}

fn quantity(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (first, second) = text.split_once('+').unwrap_or((text, "1"));
    let (Ok(first), Ok(second)) = (first.parse::<Quantity>(), second.parse::<Quantity>()) else { return };
    // A number with an exponent is printed with up to two zeros more, which may be more digits than can be kept.
    let read = first.to_string().parse::<Quantity>();
    assert!(read == Ok(first) || (read == Err(InvalidQuantity::Numeric) && text.len() > 36), "{text:?}: {read:?}");
    assert_eq!(first.cmp(&second), second.cmp(&first).reverse(), "{text:?}");
    let _ = (first.checked_add(second), first.checked_sub(second), first.rounded_up(0));
    let _ = (first.milli_value(), first.approximate());
}

fn quantities() -> Vec<Vec<u8>> {
    texts(&["1", "100m+1.5Gi", "-2e3+1E", "0.000000001+9223372036854775807", "12Ki+5n"])
}

/// A selector in the query's form, labels to match, and another query.
fn selector(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(selector) = Selector::parse_text(&text) {
        let _ = (selector.matches(&Labels::default()), selector.anchor());
    }
    let _ = Query::new(&text).value("key");
}

fn selectors() -> Vec<Vec<u8>> {
    texts(&["a=b,c!=d,e in (f,g),h notin (i),!j,k", "a == b , x>1,y<2", "key=ns%2Fa&format=text"])
}

fn expiration(bytes: &[u8]) {
    let Ok(expiration) = serde_json::from_value::<Expiration>(STANDARD.encode(bytes).into()) else { return };
    let _ = (expiration.left(NOW), expiration.is_over(NOW));
}

fn expirations() -> Vec<Vec<u8>> {
    texts(&[
        "2026-01-01T12:00:00Z",
        "2026-01-01T1:00:00,123456789+23:59",
        "9999-12-31T23:59:60-00:01",
        "0000-02-29T00:00:00Z",
    ])
}

fn subject(bytes: &[u8]) {
    let Some(subject) = Subject::of_path(&String::from_utf8_lossy(bytes)) else { return };
    let _ = (subject.key(), subject.to_string());
}

fn subjects() -> Vec<Vec<u8>> {
    texts(&["/api/v1/namespaces/a%20b/pods/c", "/apis/apps/v1/deployments/%2e%2e", "/api/v1/nodes/n"])
}

/// What the one PEM block of a request has in it.
fn certificate_request(der: &[u8]) {
    let (begin, end) = ("-----BEGIN CERTIFICATE REQUEST-----", "-----END CERTIFICATE REQUEST-----");
    pem(format!("{begin}\n{}\n{end}\n", STANDARD.encode(der)).as_bytes());
}

fn certificate_requests() -> Vec<Vec<u8>> {
    let made = rcgen::KeyPair::generate().and_then(|key| {
        let names = ["a.example".to_owned(), "10.0.0.1".to_owned()];
        let mut request = rcgen::CertificateParams::new(names)?;
        request.distinguished_name.push(rcgen::DnType::CommonName, "system:node:a");
        request.distinguished_name.push(rcgen::DnType::OrganizationName, "system:nodes");
        request.serialize_request(&key)
    });
    made.map(|request| request.der().to_vec()).into_iter().collect()
}

fn pem(text: &[u8]) {
    let request = STANDARD.encode(text);
    if let Ok(request) = Request::read(&request) {
        let _ = request.alt_names.sorts();
    }
    let _ = Request::read_signed(&request);
}

fn pems() -> Vec<Vec<u8>> {
    let text = |der: Vec<u8>| {
        let (begin, end) = ("-----BEGIN CERTIFICATE REQUEST-----", "-----END CERTIFICATE REQUEST-----");
        format!("openssl's text\n{begin}\n{}\n{end}\n", STANDARD.encode(der)).into_bytes()
    };
    certificate_requests().into_iter().map(text).collect()
}

impl Reader {
    /// Reads so many inputs: the seeds, random changes of them, and random bytes. They are the same each time.
    ///
    /// # Panics
    /// When the reader does.
    pub fn withstands(&self, inputs: usize) {
        let (seeds, mut random) = ((self.seeds)(), Random(1));
        let changed = std::iter::from_fn(|| Some(random.input(&seeds)));
        for input in seeds.clone().into_iter().chain(changed).take(inputs) {
            assert!(catch_unwind(|| (self.read)(&input)).is_ok(), "{} panicked over {input:02x?}", self.name);
        }
    }
}

/// Xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap_or(1)).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        const TELLING: &[u8] = b"\0\x01\x7f\x80\xff09azA/%.-+:\"\\{}[](),= \n";
        let any = self.next().to_le_bytes()[0];
        if any & 1 == 0 { any } else { TELLING[self.below(TELLING.len())] }
    }

    /// Some bytes: a seed, or a part of one and the rest of another, with a few changes.
    fn input(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        if seeds.is_empty() || self.below(16) == 0 {
            return (0..self.below(64)).map(|_| self.byte()).collect();
        }
        let [first, second] = [(); 2].map(|()| &seeds[self.below(seeds.len())]);
        let mut input = first.clone();
        if self.below(4) == 0 {
            input.truncate(self.below(input.len()));
            input.extend_from_slice(&second[self.below(second.len())..]);
        }
        for _ in 0..=self.below(4) {
            self.change(&mut input);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let (at, byte, length) = (self.below(input.len()), self.byte(), self.below(9));
        let end = (at + length).min(input.len());
        match self.below(6) {
            0 if !input.is_empty() => input[at] = byte,
            1 if !input.is_empty() => input[at] ^= 1 << (byte % 8),
            2 => drop(input.drain(at..end)),
            3 => input.extend_from_within(at..end),
            4 => drop(input.splice(at..at, std::iter::repeat_n(byte, length * length))),
            _ => input.insert(at, byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_reader_panics_whatever_it_reads() {
        for reader in READERS {
            reader.withstands(5_000);
        }
    }

    #[test]
    fn every_seed_is_read_and_a_panic_is_found() {
        let reader = Reader { name: "list", read: |bytes| assert_ne!(bytes.first(), Some(&0xff)), seeds: lists };
        assert!(catch_unwind(|| reader.withstands(5_000)).is_err());
        assert!(READERS.iter().all(|reader| !(reader.seeds)().is_empty()));
        let [body] = &lists()[..] else { panic!("one list") };
        assert_eq!(protobuf::list(&body[1..]).unwrap().1.len(), 2);
        let request = STANDARD.encode(&pems()[0]);
        assert_eq!(Request::read_signed(&request).unwrap().alt_names.sorts().len(), 2);
    }
}
