//! One page of a list, in the form in which it came; its objects are read one by one, so that one that cannot be read
//! costs no other.
//!
//! A page has fewer objects where those are large, so that one user's objects do not fill this process's memory.
//! Left out: asking for the next page, which is the reader's.

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::bounded::{ANSWER_BYTES_MAX, PAGE_BYTES_MAX};
use super::{Accept, Client};
use crate::api::object::ResourceVersion;
use crate::api::protobuf;
use crate::api::resource::Resource;
use crate::api::unreadable::read_alone;
use crate::transport::api_error::ApiError;

/// How many objects the pages of one list have.
#[derive(Clone, Copy)]
pub(crate) struct PageSize(usize);

impl PageSize {
    /// How much smaller the next try is after a page that was too large.
    const STEP: usize = 8;

    pub(crate) const ONE: Self = Self(1);

    /// The size after a page that was too large; none after one of a single object.
    fn smaller(self) -> Option<Self> {
        (self.0 > 1).then(|| Self((self.0 / Self::STEP).max(1)))
    }

    fn bytes_max(self) -> usize {
        if self.0 > 1 { PAGE_BYTES_MAX } else { ANSWER_BYTES_MAX }
    }
}

impl Default for PageSize {
    fn default() -> Self {
        Self(500)
    }
}

impl Client {
    /// GET of one page of a list of such objects, which [`Page::read`] takes apart. `path` gives the path for a limit of
    /// objects; `size` becomes smaller if that many are too large.
    pub(crate) async fn page(
        &self,
        path: impl Fn(&str) -> String,
        accept: Accept,
        resource: &Resource,
        size: &mut PageSize,
    ) -> Result<Bytes, ApiError> {
        loop {
            let answer = self.page_within(&path(&size.0.to_string()), accept, resource, size.bytes_max()).await;
            match (answer, size.smaller()) {
                (Err(ApiError::TooLarge { .. }), Some(smaller)) => *size = smaller,
                (answer, _) => return answer,
            }
        }
    }
}

pub(crate) struct Page<'a> {
    pub(crate) metadata: PageMeta,
    pub(crate) items: Vec<Item<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PageMeta {
    pub(crate) resource_version: ResourceVersion,
    /// Asks for the next page; empty on the last one.
    #[serde(rename = "continue")]
    pub(crate) token: String,
    /// How many objects follow; none where the apiserver does not say so.
    pub(crate) remaining_item_count: Option<u64>,
}

/// An object that is not read yet.
#[derive(Clone, Copy)]
pub(crate) enum Item<'a> {
    Json(&'a RawValue),
    Protobuf(protobuf::Value<'a>),
}

impl<'a> Page<'a> {
    /// The first bytes say which form it is: an answer that went through a proxy may have lost its Content-Type.
    pub(crate) fn read(body: &'a [u8]) -> serde_json::Result<Self> {
        read_alone(|| {
            if protobuf::is_protobuf(body) {
                let (metadata, items) = protobuf::list(body)?;
                let metadata = PageMeta::deserialize(metadata)?;
                return Ok(Self { metadata, items: items.into_iter().map(Item::Protobuf).collect() });
            }
            let JsonPage { metadata, items } = serde_json::from_slice(body)?;
            Ok(Self { metadata, items: items.into_iter().map(Item::Json).collect() })
        })
    }
}

impl<'a> Item<'a> {
    pub(crate) fn read<T: Deserialize<'a>>(self) -> serde_json::Result<T> {
        read_alone(|| match self {
            Self::Json(raw) => serde_json::from_str(raw.get()),
            Self::Protobuf(value) => T::deserialize(value),
        })
    }
}

#[derive(Deserialize)]
struct JsonPage<'a> {
    metadata: PageMeta,
    /// Go writes a list of nothing as `null`, too.
    #[serde(borrow, default, deserialize_with = "null_as_empty")]
    items: Vec<&'a RawValue>,
}

fn null_as_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<&'de RawValue>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_nothing_may_have_no_items_at_all() {
        for items in ["", r#","items":[]"#, r#","items":null"#] {
            let text = format!(r#"{{"metadata":{{"resourceVersion":"3"}}{items}}}"#);
            let page = Page::read(text.as_bytes()).unwrap();
            assert_eq!((page.items.len(), page.metadata.resource_version), (0, ResourceVersion(3)), "{items}");
        }
    }
}
