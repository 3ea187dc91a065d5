//! A live list of a collection, page by page, so that no more than one page is ever held.
//!
//! Left out: lists of what is followed, which are the informer's.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::runtime::api_error::ApiError;
use crate::runtime::client::{Accept, Client};
use crate::runtime::informer::reflector::percent_encode;

/// As many objects come in one page.
const PAGE: usize = 500;

/// Which objects of a collection; all where both are empty.
#[derive(Clone, Copy, Default)]
pub(crate) struct Selection<'a> {
    /// As the API writes it.
    pub(crate) field_selector: &'a str,
    /// As the API writes it.
    pub(crate) label_selector: &'a str,
}

/// Gives each object of the newest state there is.
pub(crate) async fn each_of<T: DeserializeOwned>(
    client: &Client,
    collection: &str,
    selection: Selection<'_>,
    accept: Accept,
    mut each: impl FnMut(T),
) -> Result<(), ApiError> {
    let mut token = String::new();
    loop {
        let path = path_of(collection, selection, &token);
        let page: Page<T> = read(&path, &client.get_bytes(&path, accept.of_list()).await?)?;
        page.items.into_iter().flatten().for_each(&mut each);
        token = page.metadata.token;
        if token.is_empty() {
            return Ok(());
        }
    }
}

fn path_of(collection: &str, selection: Selection<'_>, token: &str) -> String {
    let Selection { field_selector, label_selector } = selection;
    let mut path = format!("{collection}?limit={PAGE}");
    let parameters = [("fieldSelector", field_selector), ("labelSelector", label_selector), ("continue", token)];
    for (name, value) in parameters.into_iter().filter(|(_, value)| !value.is_empty()) {
        path.push('&');
        path.push_str(name);
        path.push('=');
        percent_encode(value, &mut path);
    }
    path
}

/// Decodes an answer to a GET.
pub(super) fn read<T: DeserializeOwned>(path: &str, body: &[u8]) -> Result<T, ApiError> {
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
    use super::*;

    #[test]
    fn a_page_is_asked_for_with_selectors_and_token_escaped() {
        assert_eq!(path_of("/api/v1/pods", Selection::default(), ""), "/api/v1/pods?limit=500");
        let selection = Selection { field_selector: "status.phase!=Failed", label_selector: "a=b" };
        assert_eq!(
            path_of("/api/v1/pods", selection, "x+y="),
            "/api/v1/pods?limit=500&fieldSelector=status.phase%21%3DFailed&labelSelector=a%3Db&continue=x%2By%3D"
        );
    }
}
