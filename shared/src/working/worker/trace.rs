//! The trace of a change. Every operator derives the same id from the object and its version, so all syncs that one change
//! leads to share a trace, and a sync that writes links to the trace of each change that it makes.
//!
//! Left out: one id for a whole chain of changes. Objects carry no trace context, and operators must not add any.

use opentelemetry::trace::{SpanContext, TraceFlags, TraceState};
use opentelemetry::{KeyValue, SpanId, TraceId};
use ring::digest::{SHA256, digest};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::api::object::{Key, ResourceVersion};
use crate::api::resource::Resource;

/// The trace of the change that gave the object this version.
pub(crate) fn trace_of(resource: &Resource, object: &Key, version: ResourceVersion) -> TraceId {
    change(resource, object, version).0
}

/// Links the running sync's span to the trace of the change that it has made.
pub(crate) fn link(resource: &Resource, object: &Key, version: ResourceVersion) {
    let span = tracing::Span::current();
    if span.is_disabled() {
        return;
    }
    let (trace, id) = change(resource, object, version);
    let attributes = vec![
        KeyValue::new("resource", resource.to_string()),
        KeyValue::new("object", object.to_string()),
        KeyValue::new("version", version.0.to_string()),
    ];
    let context = SpanContext::new(trace, id, TraceFlags::SAMPLED, true, TraceState::NONE);
    span.add_link_with_attributes(context, attributes);
}

/// The trace of a change, and the id of a span for the change itself. No operator sends this span, but a link without a
/// span's id is invalid.
fn change(resource: &Resource, object: &Key, version: ResourceVersion) -> (TraceId, SpanId) {
    let digest = digest(&SHA256, format!("{resource} {object} {}", version.0).as_bytes());
    let (trace, rest) = digest.as_ref().split_first_chunk().unwrap_or((&[0; 16], &[]));
    let id = rest.first_chunk().unwrap_or(&[0; 8]);
    (TraceId::from_bytes(*trace), SpanId::from_bytes(*id))
}
