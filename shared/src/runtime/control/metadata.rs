//! Calls for who knows a kind only by discovery: live metadata, and whole collections.
//!
//! Left out: deciding what a refusal means. A kind may refuse any of these calls.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::{Control, DeleteOptions, Propagation};
use crate::api::json;
use crate::api::object::{Key, Uid};
use crate::api::resource::Resource;
use crate::api::url::with_query;
use crate::runtime::api_error::ApiError;
use crate::runtime::client::Accept;

/// As many objects come in one page.
const PAGE: usize = 500;

impl Control {
    /// A live read of the metadata alone.
    pub async fn get_metadata<T: DeserializeOwned>(&self, resource: &Resource, key: &Key) -> Result<T, ApiError> {
        let path = resource.object_path(key.namespace(), key.name(), "");
        read(&path, &self.client.get_bytes(&path, Accept::Metadata).await?)
    }

    /// A live read of an object with every field it has.
    pub async fn get_raw(&self, resource: &Resource, key: &Key) -> Result<serde_json::Value, ApiError> {
        self.client.get(&resource.object_path(key.namespace(), key.name(), "")).await
    }

    /// A live list of one namespace, given page by page so that no more than one is ever held.
    pub async fn list_each<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        namespace: &str,
        accept: Accept,
        mut each: impl FnMut(T),
    ) -> Result<(), ApiError> {
        let collection = resource.collection_path(namespace);
        let (limit, mut token) = (PAGE.to_string(), String::new());
        loop {
            let path = with_query(&collection, &[("limit", &limit), ("continue", &token)]);
            let page: Page<T> = read(&path, &self.client.get_bytes(&path, accept.of_list()).await?)?;
            page.items.into_iter().flatten().for_each(&mut each);
            token = page.metadata.token;
            if token.is_empty() {
                return Ok(());
            }
        }
    }

    /// DELETE of all objects of a resource in one namespace.
    pub async fn delete_collection(
        &self,
        resource: &Resource,
        namespace: &str,
        propagation: Propagation,
    ) -> Result<(), ApiError> {
        let options = DeleteOptions::<Uid>::any().with_dependents(propagation);
        let path = resource.collection_path(namespace);
        let IgnoredAny = self.writer()?.delete(&path, Accept::MetadataList, json(&options)).await?;
        Ok(())
    }
}

fn read<T: DeserializeOwned>(path: &str, body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|cause| ApiError::Decode {
        method: "GET".to_owned(),
        path: path.to_owned(),
        cause,
    })
}

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: PageMeta,
    items: Option<Vec<T>>,
}

#[derive(Default, Deserialize)]
struct PageMeta {
    #[serde(default, rename = "continue")]
    token: String,
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::api::resource::PODS;
    use crate::runtime::client::{Client, ClientOptions};
    use crate::runtime::serving::loopback;

    #[tokio::test]
    async fn a_list_goes_on_where_the_token_says_whatever_it_is_made_of() {
        let address = loopback::serve(|request| match request.uri().query() {
            Some("limit=500") => {
                loopback::answer(200, r#"{"metadata":{"continue":"a+b/c=&x"},"items":[{"at":1},{"at":2}]}"#)
            }
            Some("limit=500&continue=a%2Bb%2Fc%3D%26x") => loopback::answer(200, r#"{"items":[{"at":3}]}"#),
            _ => loopback::answer(400, "the token is not valid"),
        })
        .await;
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let control = Control::new(Client::new(&config, ClientOptions::default()).unwrap(), None);
        let mut listed = Vec::new();
        let each = |item: Value| listed.push(item["at"].clone());
        control.list_each(&PODS, "ns", Accept::Object, each).await.unwrap();
        assert_eq!(listed, [1, 2, 3]);
    }
}
