//! The images that objects name: from which registry, and of which version.
//! Left out: digests, which only a registry gives.

use serde_json::Value;

/// The registry that the manifests name, which nobody has.
const PLACEHOLDER: &str = "operators.local/";

/// The name of an image of ours without registry and version: `job-operator` of `operators.local/job-operator:v0.1.0`.
pub fn name(image: &str) -> Option<&str> {
    image.strip_prefix(PLACEHOLDER)?.rsplit_once(':').map(|(name, _)| name)
}

/// Puts a registry and a version into every image of ours in the object.
pub fn set(object: &mut Value, registry: &str, version: &str) {
    match object {
        Value::Object(map) => {
            for (key, value) in map {
                let image = value.as_str().filter(|_| key == "image").and_then(name);
                match image.map(|image| format!("{registry}/{image}:{version}")) {
                    Some(image) => *value = Value::from(image),
                    None => set(value, registry, version),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| set(item, registry, version)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_images_of_ours_get_the_registry() {
        let mut object = json!({
            "containers": [{"image": "operators.local/a:v1", "args": ["operators.local/a:v1"]}, {"image": "other/b:v1"}],
        });
        set(&mut object, "registry.example:5000/x", "v2");
        let expected = json!({
            "containers": [{"image": "registry.example:5000/x/a:v2", "args": ["operators.local/a:v1"]}, {"image": "other/b:v1"}],
        });
        assert_eq!(object, expected);
    }
}
