//! The Lease of a controller.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::object::Object;

/// A Lease counts as fresh for this much longer than it says, because clocks differ.
const SKEW: SignedDuration = SignedDuration::from_secs(2);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    pub holder: String,
    pub renewed: Option<Timestamp>,
    pub acquired: Option<Timestamp>,
    pub seconds: i64,
}

impl Lease {
    pub fn read(lease: &Value) -> Self {
        let lease = Object(lease);
        Self {
            holder: lease.text("/spec/holderIdentity").to_owned(),
            renewed: lease.time("/spec/renewTime"),
            acquired: lease.time("/spec/acquireTime"),
            seconds: lease.count("/spec/leaseDurationSeconds"),
        }
    }

    pub fn expires(&self) -> Option<Timestamp> {
        self.renewed?.checked_add(SignedDuration::from_secs(self.seconds)).ok()
    }

    pub fn is_fresh(&self, now: Timestamp) -> bool {
        let end = self.expires().and_then(|end| end.checked_add(SKEW).ok());
        !self.holder.is_empty() && end.is_some_and(|end| end > now)
    }

    /// Namespace and name of another Lease: a process with several controllers holds their Leases in its name.
    pub fn common(&self) -> Option<(&str, &str)> {
        self.holder.split_once('/')
    }

    /// The pod of the holder: the first half of its identity.
    pub fn pod(&self) -> &str {
        self.holder.split('_').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pod_is_the_first_half_of_the_identity() {
        assert_eq!(Lease { holder: "pod-a_b".to_owned(), ..Lease::default() }.pod(), "pod-a");
    }
}
