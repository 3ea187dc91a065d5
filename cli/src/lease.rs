//! Who runs a controller: judged by Leases, by kube-controller-manager's `--controllers`, and by who wrote last.
//!
//! Left out: reading any of them.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::evidence::{Manager, Seen};
use crate::object::Object;

/// Clocks differ: a Lease counts as fresh for so much longer than it says.
const SKEW: SignedDuration = SignedDuration::from_secs(2);
/// What kube-controller-manager's `*` leaves out.
///
/// Upstream: `ControllersDisabledByDefault`, cmd/kube-controller-manager/names and each descriptor's `isDisabledByDefault`.
const OFF_BY_DEFAULT: [&str; 3] =
    ["bootstrap-signer-controller", "token-cleaner-controller", "selinux-warning-controller"];

/// A Lease, as far as it tells who works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// Who holds it; `""` where it was released.
    pub holder: String,
    /// When its holder last said that it lives.
    pub renewed: Option<Timestamp>,
    /// Since when this holder holds it.
    pub acquired: Option<Timestamp>,
    /// For how long it lasts after that.
    pub seconds: i64,
}

impl Lease {
    /// From the object.
    pub fn read(lease: &Value) -> Self {
        let lease = Object(lease);
        Self {
            holder: lease.text("/spec/holderIdentity").to_owned(),
            renewed: lease.time("/spec/renewTime"),
            acquired: lease.time("/spec/acquireTime"),
            seconds: lease.count("/spec/leaseDurationSeconds"),
        }
    }

    /// When it expires, or did.
    pub fn expires(&self) -> Option<Timestamp> {
        self.renewed?.checked_add(SignedDuration::from_secs(self.seconds)).ok()
    }

    /// Whether somebody holds it and has renewed it in time.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        let end = self.expires().and_then(|end| end.checked_add(SKEW).ok());
        !self.holder.is_empty() && end.is_some_and(|end| end > now)
    }

    /// The pod of the holder: the first half of its identity.
    pub fn pod(&self) -> &str {
        self.holder.split('_').next().unwrap_or_default()
    }
}

/// Who runs a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Runner {
    /// Its operator.
    Operator,
    /// kube-controller-manager.
    Manager,
    /// Both: each undoes what the other does.
    Both,
    /// Nobody.
    Nobody,
    /// What would tell may not be read.
    Unknown,
}

/// Whether kube-controller-manager was told to run this controller; none where nobody knows.
pub fn is_on(manager: &Manager, controller: &str) -> Option<bool> {
    let list: Vec<&str> = manager.controllers.as_deref()?.split(',').map(str::trim).collect();
    let off = format!("-{controller}");
    if list.contains(&controller) {
        return Some(true);
    }
    Some(!list.contains(&off.as_str()) && list.contains(&"*") && !OFF_BY_DEFAULT.contains(&controller))
}

/// Who runs the controller of this operator; `wrote` says that kube-controller-manager wrote as this controller although
/// the operator held its Lease.
pub fn runner(operator: &Seen<Lease>, manager: &Manager, controller: &str, wrote: bool, now: Timestamp) -> Runner {
    let fresh = |lease: &Seen<Lease>| match lease {
        Seen::Is(lease) => Some(lease.is_fresh(now)),
        Seen::Absent => Some(false),
        Seen::Hidden => None,
    };
    let theirs = match fresh(&manager.lease) {
        Some(true) => is_on(manager, controller),
        Some(false) => Some(false),
        None => None,
    };
    match (fresh(operator), theirs) {
        (Some(true), Some(true)) => Runner::Both,
        (Some(true), _) if wrote => Runner::Both,
        (Some(true), _) => Runner::Operator,
        (_, Some(true)) => Runner::Manager,
        // It lives, and its flags are not to be seen: what has no operator at work is taken for its.
        (Some(false), None) if fresh(&manager.lease) == Some(true) => Runner::Manager,
        (Some(false), Some(false)) => Runner::Nobody,
        (Some(false) | None, None) | (None, Some(false)) => Runner::Unknown,
    }
}

/// When kube-controller-manager last wrote the status of this object, which only the controller of its kind does.
pub fn manager_wrote(object: Object<'_>) -> Option<Timestamp> {
    let entries = object.list("/metadata/managedFields");
    let own = entries
        .filter(|entry| entry.text("/manager") == "kube-controller-manager" && entry.text("/subresource") == "status");
    own.filter_map(|entry| entry.time("/time")).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn held(renewed: i64) -> Seen<Lease> {
        let holder = "pod-a_b".to_owned();
        Seen::Is(Lease { holder, renewed: Some(at(renewed)), acquired: Some(at(0)), seconds: 15 })
    }

    #[test]
    fn a_controller_is_run_by_whoever_holds_a_fresh_lease() {
        let all = Some("*,-deployment-controller".to_owned());
        let row = |ours: &Seen<Lease>, theirs: &Seen<Lease>, flags: &Option<String>, wrote, expected| {
            let manager = Manager { lease: theirs.clone(), controllers: flags.clone() };
            let found = runner(ours, &manager, "deployment-controller", wrote, at(20));
            assert_eq!(found, expected, "{ours:?} {theirs:?} {flags:?} {wrote}");
        };
        row(&held(15), &Seen::Absent, &None, false, Runner::Operator);
        row(&held(15), &held(15), &None, false, Runner::Operator);
        row(&held(15), &held(15), &None, true, Runner::Both);
        row(&held(15), &held(15), &all, false, Runner::Operator);
        row(&held(15), &held(15), &Some("*".to_owned()), false, Runner::Both);
        row(&held(0), &held(15), &None, false, Runner::Manager);
        row(&held(0), &held(15), &all, false, Runner::Nobody);
        row(&held(0), &Seen::Absent, &None, false, Runner::Nobody);
        row(&Seen::Absent, &held(0), &None, false, Runner::Nobody);
        row(&Seen::Hidden, &Seen::Absent, &None, false, Runner::Unknown);
        row(&Seen::Hidden, &held(15), &Some("*".to_owned()), false, Runner::Manager);
        row(&Seen::Absent, &Seen::Hidden, &None, false, Runner::Unknown);
    }

    #[test]
    fn what_the_star_leaves_out_is_off() {
        let on = |flags: &str, controller| {
            is_on(&Manager { controllers: Some(flags.to_owned()), ..Manager::default() }, controller)
        };
        assert_eq!(on("*", "job-controller"), Some(true));
        assert_eq!(on("*,-job-controller", "job-controller"), Some(false));
        assert_eq!(on("cronjob-controller", "job-controller"), Some(false));
        assert_eq!(on("*", "token-cleaner-controller"), Some(false));
        assert_eq!(on("*, token-cleaner-controller", "token-cleaner-controller"), Some(true));
        assert_eq!(is_on(&Manager::default(), "job-controller"), None);
    }

    #[test]
    fn the_pod_is_the_first_half_of_the_identity() {
        assert_eq!(held(0).known().map(Lease::pod), Some("pod-a"));
    }
}
