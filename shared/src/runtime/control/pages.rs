//! A live list of a collection, page by page, so that no more than one page is ever held.
//!
//! Left out: lists of what is followed, which are the informer's.

use http::Method;
use serde::de::DeserializeOwned;

use crate::api::resource::Resource;
use crate::api::url::with_query;
use crate::runtime::api_error::ApiError;
use crate::runtime::client::page::Page;
use crate::runtime::client::{Accept, Client};

/// The number of objects in one page.
const PAGE: usize = 500;

/// The objects of a collection to list; all if both fields are empty.
#[derive(Clone, Copy, Default)]
pub struct Selection<'a> {
    /// As the API writes it, such as `spec.nodeName=a`.
    pub field_selector: &'a str,
    /// As the API writes it, such as `app=web`.
    pub label_selector: &'a str,
}

/// Calls a function with each object of the newest state.
pub(crate) async fn each_of<T: DeserializeOwned>(
    client: &Client,
    resource: &Resource,
    namespace: &str,
    selection: Selection<'_>,
    accept: Accept,
    mut each: impl FnMut(T),
) -> Result<(), ApiError> {
    let Selection { field_selector, label_selector } = selection;
    let selectors = [("fieldSelector", field_selector), ("labelSelector", label_selector)];
    let (limit, mut token) = (PAGE.to_string(), String::new());
    let collection = resource.collection_path(namespace);
    loop {
        let [fields, labels] = selectors;
        let path = with_query(&collection, &[("limit", &limit), fields, labels, ("continue", &token)]);
        let body = client.page(&path, accept, resource).await?;
        let unread = ApiError::unread(&Method::GET, &path);
        let page = Page::read(&body).map_err(&unread)?;
        for item in page.items {
            each(item.read().map_err(&unread)?);
        }
        token = page.metadata.token;
        if token.is_empty() {
            return Ok(());
        }
    }
}

/// Decodes an answer to a GET.
pub(super) fn read<T: DeserializeOwned>(path: &str, body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(ApiError::unread(&Method::GET, path))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::api::resource::PODS;
    use crate::runtime::client::ClientOptions;
    use crate::runtime::serving::loopback;

    #[tokio::test]
    async fn a_list_goes_on_where_the_token_says_whatever_it_is_made_of() {
        let address = loopback::serve(|request| match request.uri().query() {
            Some("limit=500&labelSelector=a%3Db") => {
                loopback::answer(200, r#"{"metadata":{"continue":"a+b/c=&x"},"items":[{"at":1},{"at":2}]}"#)
            }
            Some("limit=500&labelSelector=a%3Db&continue=a%2Bb%2Fc%3D%26x") => {
                loopback::answer(200, r#"{"metadata":{},"items":[{"at":3}]}"#)
            }
            _ => loopback::answer(400, "the token is not valid"),
        })
        .await;
        let config = kube::Config::new(format!("http://{address}").parse().unwrap());
        let client = Client::new(&config, ClientOptions::default()).unwrap();
        let mut listed = Vec::new();
        let each = |item: Value| listed.push(item["at"].clone());
        let selection = Selection { field_selector: "", label_selector: "a=b" };
        each_of(&client, &PODS, "", selection, Accept::Object, each).await.unwrap();
        assert_eq!(listed, [1, 2, 3]);
    }
}
