//! Requests to the apiserver: the client, its errors, pages, and the resources that are served.

pub mod api_error;
pub mod client;
pub mod clock;
pub mod discovery;
pub(crate) mod identity;
pub(crate) mod pages;
