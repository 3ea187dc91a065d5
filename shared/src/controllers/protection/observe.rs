//! What is observed of a protected object and of its users. What uses an object, and how that is read, each operator knows.

use std::sync::Arc;

use super::Protected;
use super::users::Users;
use crate::api::object::Key;
use crate::working::control::Control;

#[derive(Clone, Debug, PartialEq)]
pub struct Observed<T, U> {
    pub object: Arc<T>,
    /// Its users in the caches; none if it is not being deleted, because no users are watched then.
    pub cached: U,
    /// Its users by a live read; none if they were not read.
    pub live: Option<U>,
}

/// The caches of the objects of a kind and of their users.
pub trait UserCaches: Send + Sync + 'static {
    type Object: Protected;
    type Users: Users;

    fn observe(&self, key: &Key) -> Option<Observed<Self::Object, Self::Users>>;

    /// Reads the users of an object live.
    fn live_users(
        &self,
        control: &Control,
        object: &Self::Object,
    ) -> impl Future<Output = anyhow::Result<Self::Users>> + Send;
}
