//! The conditions of a takeover besides an operator that decides the same: judged from the objects that were read.
//!
//! Pure. Left out: whether nodes have an image that no pod has been started from.

use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::Value;

use super::flags::{self, Flags};
use super::roles::{self, Right, Role};
use super::{Check, Level};
use crate::diagnose::operators::controller_of;
use crate::evidence::{Manager, Seen};
use crate::lease::{Lease, Runner, is_on, runner};
use crate::object::Object;
use crate::words::list;

/// A container that waits for one of these has no image.
const NO_IMAGE: [&str; 4] = ["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"];

/// All that was read about one operator and about kube-controller-manager.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) operator: String,
    /// Where the operators are.
    pub(super) namespace: String,
    pub(super) now: Timestamp,
    pub(super) lease: Seen<Lease>,
    pub(super) manager: Manager,
    /// kube-controller-manager's, where its pod can be seen.
    pub(super) manager_flags: Option<Flags>,
    /// The operator's own, with their defaults.
    pub(super) own_flags: Flags,
    pub(super) roles: Vec<Bound>,
    pub(super) account: Seen<Value>,
    pub(super) deployment: Seen<Value>,
    pub(super) pods: Vec<Value>,
    /// The rights that a shadow needs and the caller lacks.
    pub(super) denied: Vec<Right>,
}

/// One of the operator's roles.
#[derive(Clone, Debug, Default)]
pub(super) struct Bound {
    /// As this version's manifest has it.
    pub(super) wanted: Role,
    pub(super) role: Seen<Value>,
    pub(super) binding: Seen<Value>,
}

impl Facts {
    pub(super) fn checks(&self) -> Vec<Check> {
        let mut checks = vec![self.runner(), self.rights()];
        checks.extend(self.installation());
        let args = self.deployment.known().map(|deployment| arguments(Object(deployment)));
        checks.extend(flags::check(&self.own_flags, self.manager_flags.as_ref(), args.as_ref()));
        checks
    }

    /// Checks which program runs the controller now.
    fn runner(&self) -> Check {
        const ABOUT: &str = "lease";
        let Self { operator, namespace, now, lease, manager, .. } = self;
        let controller = controller_of(operator);
        let holder = lease.known().map(Lease::pod).unwrap_or_default();
        match runner(lease, manager, &controller, false, *now) {
            Runner::Both => {
                let text = format!(
                    "{holder} holds {namespace}/{operator}, and kube-controller-manager runs {controller}, too"
                );
                Check::new(ABOUT, Level::Problem, text)
            }
            Runner::Operator => {
                let text = format!("{holder} holds {namespace}/{operator}: the operator is at work already");
                Check::new(ABOUT, Level::Warning, text)
            }
            Runner::Manager if is_on(manager, &controller) == Some(true) => {
                let text = format!(
                    "kube-controller-manager runs {controller}: take it out of its --controllers when the operator takes over"
                );
                Check::new(ABOUT, Level::Fine, text)
            }
            Runner::Manager => {
                let text = format!(
                    "kube-controller-manager is at work and its --controllers cannot be seen: it must not run {controller} when the operator takes over"
                );
                Check::new(ABOUT, Level::Unknown, text)
            }
            Runner::Nobody => Check::new(ABOUT, Level::Warning, format!("nobody runs {controller}")),
            Runner::Unknown => {
                let text = format!("who runs {controller} cannot be seen: its Lease, or kube-controller-manager's");
                Check::new(ABOUT, Level::Unknown, text)
            }
        }
    }

    fn rights(&self) -> Check {
        if self.denied.is_empty() {
            return Check::new("rights", Level::Fine, "you may read all that the shadow reads");
        }
        let denied: Vec<String> = self.denied.iter().map(ToString::to_string).collect();
        Check::new("rights", Level::Problem, format!("you may not {}", list(&denied)))
    }

    /// The roles, the account and the Deployment, where they are there.
    fn installation(&self) -> Vec<Check> {
        let roles = self.roles.iter().flat_map(|Bound { wanted: _, role, binding }| [role, binding]);
        if roles.chain([&self.account, &self.deployment]).all(|part| *part == Seen::Absent) {
            let text = format!("it is not there yet: `kubectl apply -k manifests/{}`", self.operator);
            return vec![Check::new("installation", Level::Warning, text)];
        }
        let mut checks: Vec<Check> = Vec::new();
        for bound in &self.roles {
            checks.extend(self.role(bound));
            checks.extend(self.binding(bound));
        }
        let account = match self.account {
            Seen::Is(_) => None,
            Seen::Absent => Some((Level::Problem, "is not there")),
            Seen::Hidden => Some((Level::Unknown, "cannot be seen")),
        };
        let account =
            account.map(|(level, how)| (level, format!("ServiceAccount {}/{} {how}", self.namespace, self.operator)));
        checks.extend(account.map(|(level, text)| Check::new("role", level, text)));
        checks.push(self.image());
        checks
    }

    fn role(&self, Bound { wanted, role, binding: _ }: &Bound) -> Vec<Check> {
        const ABOUT: &str = "role";
        let kind = wanted.kind();
        let called = format!("{kind} {}", wanted.place(&self.operator));
        let role = match role {
            Seen::Is(role) => role,
            Seen::Absent => return vec![Check::new(ABOUT, Level::Problem, format!("{called} is not there"))],
            Seen::Hidden => return vec![Check::new(ABOUT, Level::Unknown, format!("{called} cannot be seen"))],
        };
        let rules = role.get("rules").cloned().unwrap_or_default();
        let Ok(given) = serde_json::from_value::<Option<Vec<PolicyRule>>>(rules) else {
            return vec![Check::new(ABOUT, Level::Problem, format!("{called} has rules that cannot be read"))];
        };
        let given = given.unwrap_or_default();
        let said = |rights: Vec<Right>| rights.iter().map(ToString::to_string).collect::<Vec<_>>();
        let lacks = said(roles::missing(&wanted.rules, &given));
        let beyond = said(roles::missing(&given, &wanted.rules));
        let mut checks = Vec::new();
        if lacks.is_empty() {
            checks.push(Check::new(ABOUT, Level::Fine, format!("{kind} allows what this version needs")));
        } else {
            checks.push(Check::new(ABOUT, Level::Problem, format!("{called} does not allow {}", list(&lacks))));
        }
        if !beyond.is_empty() {
            let text = format!("{called} allows what this version does not need: {}", list(&beyond));
            checks.push(Check::new(ABOUT, Level::Warning, text));
        }
        checks
    }

    fn binding(&self, Bound { wanted, role: _, binding }: &Bound) -> Option<Check> {
        let Self { operator, namespace, .. } = self;
        let kind = wanted.kind();
        let called = format!("{kind}Binding {}", wanted.place(operator));
        let wrong = |level, how: &str| Some(Check::new("role", level, format!("{called} {how}")));
        let binding = match binding {
            Seen::Is(binding) => Object(binding),
            Seen::Absent => return wrong(Level::Problem, "is not there"),
            Seen::Hidden => return wrong(Level::Unknown, "cannot be seen"),
        };
        let is_own = |subject: Object<'_>| {
            subject.text("/kind") == "ServiceAccount"
                && (subject.text("/namespace"), subject.text("/name")) == (namespace.as_str(), operator.as_str())
        };
        if binding.text("/roleRef/name") != operator || !binding.list("/subjects").any(is_own) {
            let how = format!("does not bind ServiceAccount {namespace}/{operator} to its {kind}");
            return wrong(Level::Problem, &how);
        }
        None
    }

    /// Whether its Deployment is there and has started pods from its image.
    fn image(&self) -> Check {
        const ABOUT: &str = "image";
        let Self { operator, namespace, .. } = self;
        let deployment = match &self.deployment {
            Seen::Is(deployment) => Object(deployment),
            Seen::Absent => {
                return Check::new(ABOUT, Level::Problem, format!("Deployment {namespace}/{operator} is not there"));
            }
            Seen::Hidden => {
                return Check::new(ABOUT, Level::Unknown, format!("Deployment {namespace}/{operator} cannot be seen"));
            }
        };
        let image = deployment.text("/spec/template/spec/containers/0/image");
        let waits = |pod: Object<'_>| {
            let waiting = |status: Object<'_>| NO_IMAGE.contains(&status.text("/state/waiting/reason"));
            pod.list("/status/containerStatuses").any(waiting)
        };
        if self.pods.iter().map(Object).any(waits) {
            return Check::new(ABOUT, Level::Problem, format!("{image} is not there, or cannot be pulled"));
        }
        let wanted = deployment.number("/spec/replicas").unwrap_or(1);
        match deployment.count("/status/readyReplicas") {
            0 if wanted == 0 => Check::new(
                ABOUT,
                Level::Unknown,
                format!("{image}: Deployment {namespace}/{operator} wants no pods yet"),
            ),
            0 => Check::new(
                ABOUT,
                Level::Problem,
                format!("{image}: no pod of Deployment {namespace}/{operator} is ready"),
            ),
            ready => Check::new(ABOUT, Level::Fine, format!("{image}: {ready} of {wanted} pods are ready")),
        }
    }
}

fn arguments(deployment: Object<'_>) -> Flags {
    let container = "/spec/template/spec/containers/0";
    let words = ["command", "args"].map(|field| deployment.texts(&format!("{container}/{field}")));
    flags::of_words(&words.concat())
}

/// Whether the cluster's version is the one whose behaviour operators have.
pub(super) fn server(version: &str, reference: &str) -> Check {
    const ABOUT: &str = "version";
    let minor = |version: &str| {
        let mut parts = version.trim_start_matches('v').split('.').map(|part| {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u32>().ok()
        });
        Some((parts.next()??, parts.next()??))
    };
    match (minor(version), minor(reference)) {
        (Some(found), Some(expected)) if found == expected => {
            Check::new(ABOUT, Level::Fine, format!("the cluster is {version}, operators do as {reference}"))
        }
        (Some(_), Some(_)) => {
            let text = format!(
                "the cluster is {version}, operators do as {reference}: a takeover changes the version of its controllers, too"
            );
            Check::new(ABOUT, Level::Warning, text)
        }
        _ => Check::new(ABOUT, Level::Unknown, format!("the cluster's version {version:?} cannot be read")),
    }
}

#[cfg(test)]
mod tests;
