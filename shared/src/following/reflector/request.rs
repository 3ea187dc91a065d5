//! The request of a watch: its path, and for how long it is asked for.
//!
//! Left out: sending it.

use std::time::Duration;

use crate::api::object::ResourceVersion;
use crate::api::resource::Resource;
use crate::following::source::Source;
use crate::transport::clock::jitter;

/// client-go asks for watches of 5 to 10 minutes, so that they do not all end at once.
const LIMIT: Duration = Duration::from_mins(5);

pub(super) fn limit() -> Duration {
    Duration::from_secs(jitter(LIMIT, 1.0).as_secs())
}

/// The path of a watch from this version on; without one, of a watch that begins with a streamed list. The resource is
/// served as `spoken`.
pub(super) fn path(source: &Source, spoken: &Resource, version: Option<ResourceVersion>, limit: Duration) -> String {
    let seconds = limit.as_secs().to_string();
    let mut query = vec![("watch", "1"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", &*seconds)];
    if let Some(version) = version.map(|version| version.to_string()) {
        query.push(("resourceVersion", &version));
        return source.watch_path(spoken, &query);
    }
    query.extend([("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]);
    source.path(spoken, &query)
}
