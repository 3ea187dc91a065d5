//! The PodGroup of a pod, which the pod knows by name only.

use serde::{Deserialize, Deserializer};

use crate::api::intern::Text;
use crate::api::object::Meta;
use crate::api::resource::POD_GROUPS;

/// Reads the name of the PodGroup from a pod's `spec.schedulingGroup`. An empty name is none.
///
/// # Errors
/// If it is not an object, or the name not a text.
pub fn pod_group<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Text>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct SchedulingGroup {
        #[serde(default)]
        pod_group_name: Option<Text>,
    }
    let group = Option::<SchedulingGroup>::deserialize(deserializer)?;
    Ok(group.and_then(|group| group.pod_group_name).filter(|name| !name.is_empty()))
}

/// Whether the controller of an object is the PodGroup of this name.
///
/// Upstream: `IsForPod`, staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go.
pub fn is_of_pod_group<A>(metadata: &Meta<A>, group: &str) -> bool {
    metadata.controller.as_ref().is_some_and(|controller| {
        let api_group = controller.api_version.split_once('/').map_or("", |(group, _)| group);
        api_group == POD_GROUPS.group && controller.kind == *POD_GROUPS.kind && controller.name == *group
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Spec {
        #[serde(deserialize_with = "pod_group")]
        scheduling_group: Option<Text>,
    }

    #[test]
    fn an_empty_name_is_no_group() {
        let group = |spec: Value| serde_json::from_value::<Spec>(spec).unwrap().scheduling_group;
        for none in [json!(null), json!({}), json!({ "podGroupName": null }), json!({ "podGroupName": "" })] {
            assert_eq!(group(json!({ "schedulingGroup": none })), None);
        }
        assert_eq!(group(json!({})), None);
        assert_eq!(group(json!({ "schedulingGroup": { "podGroupName": "train" } })), Some(Text::new("train")));
    }
}
