//! The view of a pod: the names of the Secrets that it uses. As upstream, a finished pod counts too.
//!
//! Upstream: `VisitPodSecretNames`, `pkg/api/v1/pod/util.go`.

use std::collections::BTreeSet;

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::null_as_default;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "RawPod")]
pub struct Pod {
    pub name: Text,
    /// The Secrets that it uses, by name.
    pub secrets: BTreeSet<Text>,
}

#[derive(Deserialize)]
struct RawPod {
    metadata: Reference,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reference {
    name: Text,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    #[serde(deserialize_with = "null_as_default")]
    image_pull_secrets: Vec<Reference>,
    #[serde(deserialize_with = "null_as_default")]
    containers: Vec<RawContainer>,
    #[serde(deserialize_with = "null_as_default")]
    init_containers: Vec<RawContainer>,
    #[serde(deserialize_with = "null_as_default")]
    ephemeral_containers: Vec<RawContainer>,
    #[serde(deserialize_with = "null_as_default")]
    volumes: Vec<RawVolume>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawContainer {
    #[serde(deserialize_with = "null_as_default")]
    env: Vec<RawVariable>,
    #[serde(deserialize_with = "null_as_default")]
    env_from: Vec<RawSource>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawVariable {
    value_from: Option<RawValueSource>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawValueSource {
    secret_key_ref: Option<Reference>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawVolume {
    azure_file: Option<RawSource>,
    cephfs: Option<RawSource>,
    cinder: Option<RawSource>,
    csi: Option<RawSource>,
    flex_volume: Option<RawSource>,
    iscsi: Option<RawSource>,
    projected: Option<RawProjection>,
    rbd: Option<RawSource>,
    #[serde(rename = "scaleIO")]
    scale_io: Option<RawSource>,
    secret: Option<RawSource>,
    storageos: Option<RawSource>,
}

/// The fields by which a volume, or a set of variables, names its Secret; each kind has one of them.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSource {
    secret_name: Option<Text>,
    secret_ref: Option<Reference>,
    node_publish_secret_ref: Option<Reference>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawProjection {
    #[serde(deserialize_with = "null_as_default")]
    sources: Vec<RawProjectedSource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawProjectedSource {
    secret: Option<Reference>,
}

impl From<RawPod> for Pod {
    fn from(RawPod { metadata, spec }: RawPod) -> Self {
        let RawSpec { image_pull_secrets, containers, init_containers, ephemeral_containers, volumes } = spec;
        let containers = containers.into_iter().chain(init_containers).chain(ephemeral_containers);
        let pull = image_pull_secrets.into_iter().map(|Reference { name }| name);
        let mut secrets: BTreeSet<Text> = pull.collect();
        for container in containers {
            secrets.extend(container.names());
        }
        for volume in volumes {
            secrets.extend(volume.names());
        }
        secrets.remove("");
        Self { name: metadata.name, secrets }
    }
}

impl RawContainer {
    /// Upstream: `visitContainerSecretNames`.
    fn names(self) -> impl Iterator<Item = Text> {
        let Self { env, env_from } = self;
        let variables = env.into_iter().filter_map(|variable| variable.value_from?.secret_key_ref);
        env_from.into_iter().flat_map(RawSource::names).chain(variables.map(|Reference { name }| name))
    }
}

impl RawVolume {
    fn names(self) -> impl Iterator<Item = Text> {
        let Self { azure_file, cephfs, cinder, csi, flex_volume, iscsi, projected, rbd, scale_io, secret, storageos } =
            self;
        let plain = [azure_file, cephfs, cinder, csi, flex_volume, iscsi, rbd, scale_io, secret, storageos];
        let projected = projected.unwrap_or_default().sources.into_iter().filter_map(|source| source.secret);
        plain.into_iter().flatten().flat_map(RawSource::names).chain(projected.map(|Reference { name }| name))
    }
}

impl RawSource {
    fn names(self) -> impl Iterator<Item = Text> {
        let Self { secret_name, secret_ref, node_publish_secret_ref } = self;
        let references = [secret_ref, node_publish_secret_ref].into_iter().flatten();
        secret_name.into_iter().chain(references.map(|Reference { name }| name))
    }
}
