//! The forms in which bodies are sent and asked for, as headers say it.
//!
//! Left out: reading them. A list is read by its first bytes.

use http::HeaderValue;

use crate::api::protobuf;
use crate::api::resource::Resource;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 7386.
    Merge,
    /// Kubernetes' own: lists merge by key; built-in kinds only.
    StrategicMerge,
    /// RFC 6902.
    Json,
    /// Server-side apply: the fields that one manager owns.
    Apply,
}

impl PatchType {
    pub(super) fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Merge => "application/merge-patch+json",
            Self::StrategicMerge => "application/strategic-merge-patch+json",
            Self::Json => "application/json-patch+json",
            // JSON is YAML, too.
            Self::Apply => "application/apply-patch+yaml",
        })
    }
}

/// The form in which an answer is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Accept {
    Object,
    /// The object as JSON, in lists too: for a view that reads a field of which protobuf has no row in the tables here.
    Json,
    /// Its metadata only: of one object, or of the objects of a watch.
    Metadata,
    /// The metadata only, of a list. The server takes the first form it knows and then refuses an object that does not
    /// fit it, so that one header cannot ask for both.
    MetadataList,
    /// The objects of a list or a watch as protobuf, or as JSON from a server that has no other form of them.
    Protobuf,
    /// The same of the metadata of one object, or of the objects of a watch.
    ProtobufMetadata,
    ProtobufMetadataList,
    /// Of `/api` and `/apis`: all groups, versions and resources in one document.
    Discovery,
}

impl Accept {
    /// How one such object is asked for, also as the answer to a write: its metadata as protobuf, which every server
    /// that knows this form has, for any kind.
    pub(crate) fn of_object(self) -> Self {
        if self == Self::Metadata { Self::ProtobufMetadata } else { self }
    }

    /// How a list of such objects is asked for: as protobuf, where this build can read it.
    pub(crate) fn of_list(self, resource: &Resource) -> Self {
        if self == Self::Metadata { Self::ProtobufMetadataList } else { self.of_watch(resource) }
    }

    /// How a watch of such objects is asked for, likewise.
    pub(crate) fn of_watch(self, resource: &Resource) -> Self {
        if self == Self::Object && protobuf::has_table_of(resource) { Self::Protobuf } else { self.of_object() }
    }

    /// The same form as JSON; none if it is that already.
    pub(super) fn as_json(self) -> Option<Self> {
        match self {
            Self::Protobuf => Some(Self::Object),
            Self::ProtobufMetadata => Some(Self::Metadata),
            Self::ProtobufMetadataList => Some(Self::MetadataList),
            Self::Object | Self::Json | Self::Metadata | Self::MetadataList | Self::Discovery => None,
        }
    }

    /// Whether lists of such objects come as protobuf. Pages of them cost the apiserver less than a stream of JSON.
    pub(crate) fn has_protobuf_lists(self, resource: &Resource) -> bool {
        self.of_list(resource).as_json().is_some()
    }

    pub(super) fn media_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Object | Self::Json => "application/json",
            Self::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
            Self::MetadataList => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf,application/json",
            Self::ProtobufMetadata => {
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
                 application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
            }
            Self::ProtobufMetadataList => {
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
                 application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
            }
            Self::Discovery => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::resource::{NODES, PODS};

    #[test]
    fn a_list_comes_as_protobuf_where_there_is_a_table_unless_json_is_asked_for() {
        assert_eq!(Accept::Object.of_list(&PODS), Accept::Protobuf);
        assert_eq!(Accept::Object.of_list(&NODES), Accept::Object);
        assert_eq!(Accept::Metadata.of_list(&PODS), Accept::ProtobufMetadataList);
        assert_eq!(Accept::Metadata.of_list(&NODES), Accept::ProtobufMetadataList);
        assert_eq!(Accept::Json.of_list(&PODS), Accept::Json);
        assert!(!Accept::Json.has_protobuf_lists(&PODS));
    }

    #[test]
    fn of_one_object_the_metadata_alone_comes_as_protobuf() {
        assert_eq!(Accept::Metadata.of_object(), Accept::ProtobufMetadata);
        assert_eq!(Accept::Object.of_object(), Accept::Object);
    }

    #[test]
    fn a_watch_does_too() {
        assert_eq!(Accept::Object.of_watch(&PODS), Accept::Protobuf);
        assert_eq!(Accept::Metadata.of_watch(&PODS), Accept::ProtobufMetadata);
        assert_eq!(Accept::Object.of_watch(&NODES), Accept::Object);
        assert_eq!(Accept::Metadata.of_watch(&NODES), Accept::ProtobufMetadata);
        assert_eq!(Accept::Json.of_watch(&PODS), Accept::Json);
    }
}
