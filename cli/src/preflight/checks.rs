//! Checks of the installation before a takeover, from the objects that were read.

use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::Value;

use super::flags;
use super::report::{Check, Level};
use super::roles::{self, Right, Role};
use crate::command_line::{Flags, parse};
use crate::diagnose::operators::controller_of;
use crate::lease::Lease;
use crate::lookup::Lookup;
use crate::object::Object;
use crate::runner::{Manager, Runner, is_on, runner};
use crate::words::list;

/// Waiting reasons of a container without an image.
const NO_IMAGE: [&str; 4] = ["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"];

#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) operator: String,
    pub(super) namespace: String,
    pub(super) now: Timestamp,
    pub(super) lease: Lookup<Lease>,
    pub(super) manager: Manager,
    pub(super) manager_flags: Option<Flags>,
    pub(super) own_flags: Flags,
    pub(super) roles: Vec<Bound>,
    pub(super) account: Lookup<Value>,
    pub(super) deployment: Lookup<Value>,
    pub(super) pods: Vec<Value>,
    /// Rights that the shadow needs and the caller lacks.
    pub(super) denied: Vec<Right>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Bound {
    pub(super) wanted: Role,
    pub(super) role: Lookup<Value>,
    pub(super) binding: Lookup<Value>,
}

impl Facts {
    pub(super) fn checks(&self) -> Vec<Check> {
        let mut checks = vec![self.runner(), self.rights()];
        checks.extend(self.installation());
        let args = self.deployment.known().map(|deployment| arguments(Object(deployment)));
        checks.extend(flags::check(&self.own_flags, self.manager_flags.as_ref(), args.as_ref()));
        checks
    }

    fn run_by(&self) -> Runner {
        runner(&self.lease, &self.manager, &controller_of(&self.operator), false, self.now)
    }

    /// A pod, or the Lease of the process with several controllers.
    fn holder(&self) -> &str {
        self.lease.known().map(Lease::pod).unwrap_or_default()
    }

    fn runner(&self) -> Check {
        const ABOUT: &str = "lease";
        let Self { operator, namespace, manager, .. } = self;
        let controller = controller_of(operator);
        let holder = self.holder();
        match self.run_by() {
            Runner::Both => {
                let text = format!(
                    "{holder} holds Lease {namespace}/{operator}, and kube-controller-manager also runs {controller}"
                );
                Check::new(ABOUT, Level::Problem, text)
            }
            Runner::Operator => {
                let text = format!("{holder} holds Lease {namespace}/{operator}: the operator is already running");
                Check::new(ABOUT, Level::Warning, text)
            }
            Runner::Process => {
                let text = format!(
                    "the process that holds Lease {holder} runs {controller}: disable it in its --controllers when the operator takes over"
                );
                Check::new(ABOUT, Level::Fine, text)
            }
            Runner::Manager if is_on(manager, &controller) == Some(true) => {
                let text = format!(
                    "kube-controller-manager runs {controller}: remove it from --controllers when the operator takes over"
                );
                Check::new(ABOUT, Level::Fine, text)
            }
            Runner::Manager => {
                let text = format!(
                    "kube-controller-manager is running, but its --controllers is not visible: it must not run {controller} when the operator takes over"
                );
                Check::new(ABOUT, Level::Unknown, text)
            }
            Runner::Nobody => Check::new(ABOUT, Level::Warning, format!("{controller} is not running")),
            Runner::Unknown => {
                let text = format!(
                    "cannot tell what runs {controller}: its Lease or kube-controller-manager's is not readable"
                );
                Check::new(ABOUT, Level::Unknown, text)
            }
        }
    }

    fn rights(&self) -> Check {
        if self.denied.is_empty() {
            return Check::new("rights", Level::Fine, "you have the permissions that the shadow needs");
        }
        let denied: Vec<String> = self.denied.iter().map(ToString::to_string).collect();
        Check::new("rights", Level::Problem, format!("you lack permission to {}", list(&denied)))
    }

    fn installation(&self) -> Vec<Check> {
        let roles = self.roles.iter().flat_map(|Bound { wanted: _, role, binding }| [role, binding]);
        if roles.chain([&self.account, &self.deployment]).all(|part| *part == Lookup::Absent) {
            let text = format!("not installed yet: `kubectl apply -k manifests/{}`", self.operator);
            return vec![Check::new("installation", Level::Warning, text)];
        }
        let mut checks: Vec<Check> = Vec::new();
        for bound in &self.roles {
            checks.extend(self.role(bound));
            checks.extend(self.binding(bound));
        }
        let account = match self.account {
            Lookup::Found(_) => None,
            Lookup::Absent => Some((Level::Problem, "not found")),
            Lookup::Unreadable => Some((Level::Unknown, "is not readable")),
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
            Lookup::Found(role) => role,
            Lookup::Absent => return vec![Check::new(ABOUT, Level::Problem, format!("{called} not found"))],
            Lookup::Unreadable => return vec![Check::new(ABOUT, Level::Unknown, format!("{called} is not readable"))],
        };
        let rules = role.get("rules").cloned().unwrap_or_default();
        let Ok(given) = serde_json::from_value::<Option<Vec<PolicyRule>>>(rules) else {
            return vec![Check::new(ABOUT, Level::Problem, format!("{called} has invalid rules"))];
        };
        let given = given.unwrap_or_default();
        let said = |rights: Vec<Right>| rights.iter().map(ToString::to_string).collect::<Vec<_>>();
        let lacks = said(roles::missing(&wanted.rules, &given));
        let beyond = said(roles::missing(&given, &wanted.rules));
        let mut checks = Vec::new();
        if lacks.is_empty() {
            checks.push(Check::new(ABOUT, Level::Fine, format!("{kind} grants what this version needs")));
        } else {
            checks.push(Check::new(ABOUT, Level::Problem, format!("{called} does not grant {}", list(&lacks))));
        }
        if !beyond.is_empty() {
            let text = format!("{called} grants more than this version needs: {}", list(&beyond));
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
            Lookup::Found(binding) => Object(binding),
            Lookup::Absent => return wrong(Level::Problem, "not found"),
            Lookup::Unreadable => return wrong(Level::Unknown, "is not readable"),
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

    /// Whether its Deployment runs pods; images that no pod has used yet cannot be checked.
    fn image(&self) -> Check {
        const ABOUT: &str = "image";
        let Self { operator, namespace, .. } = self;
        let deployment = match &self.deployment {
            Lookup::Found(deployment) => Object(deployment),
            Lookup::Absent if self.run_by() == Runner::Process => {
                let text = format!("no Deployment of its own: the process that holds Lease {} runs it", self.holder());
                return Check::new(ABOUT, Level::Fine, text);
            }
            Lookup::Absent => {
                return Check::new(ABOUT, Level::Problem, format!("Deployment {namespace}/{operator} not found"));
            }
            Lookup::Unreadable => {
                return Check::new(ABOUT, Level::Unknown, format!("Deployment {namespace}/{operator} is not readable"));
            }
        };
        let image = deployment.text("/spec/template/spec/containers/0/image");
        let waits = |pod: Object<'_>| {
            let waiting = |status: Object<'_>| NO_IMAGE.contains(&status.text("/state/waiting/reason"));
            pod.list("/status/containerStatuses").any(waiting)
        };
        if self.pods.iter().map(Object).any(waits) {
            return Check::new(ABOUT, Level::Problem, format!("cannot pull {image}"));
        }
        let wanted = deployment.number("/spec/replicas").unwrap_or(1);
        match deployment.count("/status/readyReplicas") {
            0 if wanted == 0 => Check::new(
                ABOUT,
                Level::Unknown,
                format!("{image}: Deployment {namespace}/{operator} is scaled to zero"),
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
    parse(&words.concat())
}

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
            Check::new(ABOUT, Level::Fine, format!("the cluster runs {version}, the operators implement {reference}"))
        }
        (Some(_), Some(_)) => {
            let text = format!(
                "the cluster runs {version}, the operators implement {reference}: a takeover also changes the version of its controllers"
            );
            Check::new(ABOUT, Level::Warning, text)
        }
        _ => Check::new(ABOUT, Level::Unknown, format!("cannot parse the cluster's version {version:?}")),
    }
}

#[cfg(test)]
mod tests;
