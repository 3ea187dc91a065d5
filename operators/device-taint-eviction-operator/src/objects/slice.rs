//! A ResourceSlice: some devices of a pool, in one generation of the pool.

use std::fmt;

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::resource::Resource;
use shared::api::time::Time;

use super::DeviceTaint;

pub const RESOURCE_SLICES: Resource =
    Resource::cluster_scoped("resource.k8s.io", "v1", "ResourceSlice", "resourceslices");

const NO_EXECUTE: &str = "NoExecute";

/// A driver's pool of devices.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pool {
    pub driver: Text,
    pub name: Text,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawSlice")]
pub struct ResourceSlice {
    pub metadata: Meta,
    pub pool: Pool,
    /// Of a pool's slices only those of the newest generation count.
    pub generation: i64,
    /// The names of all its devices.
    pub devices: Box<[Text]>,
    pub tainted: Box<[TaintedDevice]>,
}

shared::view!(ResourceSlice, RESOURCE_SLICES);

/// A device that has `NoExecute` taints.
#[derive(Debug, PartialEq, Eq)]
pub struct TaintedDevice {
    pub name: Text,
    pub taints: Box<[DeviceTaint]>,
}

impl ResourceSlice {
    /// The `NoExecute` taints of a device.
    pub fn taints_of(&self, device: &Text) -> &[DeviceTaint] {
        self.tainted.iter().find(|tainted| tainted.name == *device).map_or(&[], |tainted| &tainted.taints)
    }
}

#[derive(Deserialize)]
struct RawSlice {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawSpec {
    driver: Text,
    #[serde(deserialize_with = "null_as_default")]
    pool: RawPool,
    #[serde(deserialize_with = "null_as_default")]
    devices: Vec<RawDevice>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawPool {
    name: Text,
    generation: i64,
}

#[derive(Deserialize)]
struct RawDevice {
    name: Text,
    #[serde(default, deserialize_with = "null_as_default")]
    taints: Vec<RawTaint>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTaint {
    #[serde(default)]
    key: Text,
    #[serde(default)]
    value: Text,
    #[serde(default)]
    effect: Text,
    #[serde(default)]
    time_added: Option<Time>,
}

impl From<RawSlice> for ResourceSlice {
    fn from(RawSlice { metadata, spec }: RawSlice) -> Self {
        let RawSpec { driver, pool: RawPool { name, generation }, devices } = spec;
        let names = devices.iter().map(|device| device.name.clone()).collect();
        let tainted = devices.into_iter().filter_map(|RawDevice { name, taints }| {
            let taints = taints.into_iter().filter(|taint| taint.effect == NO_EXECUTE);
            let taints: Box<[DeviceTaint]> =
                taints.map(|taint| DeviceTaint::new(taint.key, taint.value, taint.time_added)).collect();
            (!taints.is_empty()).then_some(TaintedDevice { name, taints })
        });
        let tainted = tainted.collect();
        Self { metadata, pool: Pool { driver, name }, generation, devices: names, tainted }
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { driver, name } = self;
        write!(f, "{driver}/{name}")
    }
}
