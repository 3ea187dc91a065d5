//! Why the apiserver refused a creation, parsed from its message: events and conditions keep nothing else.

use std::fmt;

use serde::Serialize;

use crate::words::line;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "by")]
pub enum Refusal {
    Quota {
        quota: String,
        used: String,
    },
    QuotaNeeds {
        quota: String,
        fields: String,
    },
    Webhook {
        webhook: String,
        message: String,
    },
    /// A webhook does not answer.
    WebhookDead {
        webhook: String,
        error: String,
    },
    /// A `ValidatingAdmissionPolicy` denies the request.
    Policy {
        policy: String,
        message: String,
    },
    PodSecurity {
        level: String,
        message: String,
    },
    /// A `LimitRange` denies the pod.
    LimitRange {
        message: String,
    },
    /// The pod names a `ServiceAccount` that does not exist.
    NoServiceAccount {
        name: String,
    },
    /// The pod names a `PriorityClass` that does not exist.
    NoPriorityClass {
        name: String,
    },
    /// The pod names a `RuntimeClass` that does not exist.
    NoRuntimeClass {
        name: String,
    },
    NamespaceEnding {
        namespace: String,
    },
    NotAllowed {
        message: String,
    },
    Invalid {
        message: String,
    },
    Other {
        message: String,
    },
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let rest = text.split_once(before)?.1;
    Some(rest.split_once(after).map_or(rest, |(within, _)| within))
}

fn after<'a>(text: &'a str, before: &[&str]) -> &'a str {
    before.iter().find_map(|before| Some(text.split_once(before)?.1)).unwrap_or(text).trim()
}

/// `requested: cpu=1,pods=1, used: cpu=2,pods=17, limited: cpu=9,pods=17` as `pods 17/17`: only the resources named
/// as limited.
fn used(message: &str) -> String {
    let pairs = |text: Option<&str>| -> Vec<(String, String)> {
        let pairs = text.unwrap_or_default().split(',').filter_map(|pair| pair.trim().split_once('='));
        pairs.map(|(name, amount)| (name.to_owned(), amount.to_owned())).collect()
    };
    let (used, limited) =
        (pairs(between(message, "used: ", ", limited:")), pairs(message.split_once("limited: ").map(|at| at.1)));
    let of = used.iter().filter_map(|(name, amount)| {
        let (_, limit) = limited.iter().find(|(limited, _)| limited == name)?;
        Some(format!("{name} {amount}/{limit}"))
    });
    of.collect::<Vec<_>>().join(", ")
}

impl Refusal {
    /// Parses a message of the apiserver, with any prefix that an operator or an event added.
    ///
    /// Upstream: the messages of the admission plugins in `plugin/pkg/admission` and of
    /// `staging/src/k8s.io/apiserver/pkg/admission/plugin/{resourcequota,webhook,policy}`.
    pub fn read(message: &str) -> Self {
        Self::of_quota(message)
            .or_else(|| Self::of_admission(message))
            .or_else(|| Self::of_absence(message))
            .unwrap_or_else(|| Self::of_request(message))
    }

    fn of_quota(message: &str) -> Option<Self> {
        if let Some(quota) = between(message, "exceeded quota: ", ",") {
            return Some(Self::Quota { quota: quota.to_owned(), used: used(message) });
        }
        let quota = between(message, "failed quota: ", ":")?;
        let fields = line(after(message, &["must specify "])).replace(',', ", ");
        Some(Self::QuotaNeeds { quota: quota.to_owned(), fields })
    }

    fn of_admission(message: &str) -> Option<Self> {
        if let Some(webhook) = between(message, "failed calling webhook \"", "\"") {
            let error = line(after(message, &["\": failed to call webhook: ", "\": "]));
            return Some(Self::WebhookDead { webhook: webhook.to_owned(), error });
        }
        if let Some(webhook) = between(message, "admission webhook \"", "\"") {
            let said = line(after(message, &["denied the request: ", "denied the request"]));
            return Some(Self::Webhook { webhook: webhook.to_owned(), message: said });
        }
        if let Some(policy) = between(message, "ValidatingAdmissionPolicy '", "'") {
            let said = line(after(message, &["denied request: ", "denied the request: "]));
            return Some(Self::Policy { policy: policy.to_owned(), message: said });
        }
        if let Some(level) = between(message, "violates PodSecurity \"", "\"") {
            let said = line(after(message, &[&format!("violates PodSecurity \"{level}\": ")]));
            return Some(Self::PodSecurity { level: level.to_owned(), message: said });
        }
        let is_limit = ["maximum ", "minimum "].iter().any(|bound| message.contains(bound))
            && ["usage per", "storage usage", "limit to request ratio"].iter().any(|word| message.contains(word));
        is_limit.then(|| Self::LimitRange { message: line(after(message, &["is forbidden: "])) })
    }

    fn of_absence(message: &str) -> Option<Self> {
        if message.contains("error looking up service account") {
            let name = between(message, "serviceaccount \"", "\"")?.to_owned();
            return Some(Self::NoServiceAccount { name });
        }
        if let Some(name) = between(message, "no PriorityClass with name ", " was found") {
            return Some(Self::NoPriorityClass { name: name.to_owned() });
        }
        if let Some(name) = between(message, "RuntimeClass \"", "\" not found") {
            return Some(Self::NoRuntimeClass { name: name.to_owned() });
        }
        let namespace = between(message, "unable to create new content in namespace ", " because")?;
        Some(Self::NamespaceEnding { namespace: namespace.to_owned() })
    }

    fn of_request(message: &str) -> Self {
        if message.contains("User \"") && message.contains("\" cannot ") {
            return Self::NotAllowed { message: line(after(message, &["is forbidden: ", "forbidden: "])) };
        }
        if message.contains(" is invalid: ") {
            return Self::Invalid { message: line(after(message, &[" is invalid: "])) };
        }
        Self::Other { message: line(message) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quota { quota, used } if used.is_empty() => write!(f, "quota `{quota}` exceeded"),
            Self::Quota { quota, used } => write!(f, "quota `{quota}` exceeded ({used})"),
            Self::QuotaNeeds { quota, fields } => write!(f, "quota `{quota}` requires pods to specify {fields}"),
            Self::Webhook { webhook, message } if message.is_empty() => write!(f, "denied by webhook `{webhook}`"),
            Self::Webhook { webhook, message } => write!(f, "denied by webhook `{webhook}`: {message}"),
            Self::WebhookDead { webhook, error } => write!(f, "webhook `{webhook}` does not answer: {error}"),
            Self::Policy { policy, message } => write!(f, "denied by policy `{policy}`: {message}"),
            Self::PodSecurity { level, message } => write!(f, "denied by Pod Security `{level}`: {message}"),
            Self::LimitRange { message } => write!(f, "denied by a LimitRange: {message}"),
            Self::NoServiceAccount { name } => write!(f, "ServiceAccount `{name}` not found"),
            Self::NoPriorityClass { name } => write!(f, "PriorityClass `{name}` not found"),
            Self::NoRuntimeClass { name } => write!(f, "RuntimeClass `{name}` not found"),
            Self::NamespaceEnding { namespace } => write!(f, "namespace `{namespace}` is being deleted"),
            Self::Invalid { message } => write!(f, "invalid: {message}"),
            Self::NotAllowed { message } | Self::Other { message } => f.write_str(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_apiservers_words_tell_who_refused() {
        let row = |message: &str, expected: &str| assert_eq!(Refusal::read(message).to_string(), expected, "{message}");
        row(
            "pods \"web-6d4-\" is forbidden: exceeded quota: team, requested: pods=1, used: pods=17, limited: pods=17",
            "quota `team` exceeded (pods 17/17)",
        );
        row(
            "pods \"a\" is forbidden: exceeded quota: q, requested: limits.cpu=1,pods=1, used: limits.cpu=2,pods=3, \
             limited: limits.cpu=2,pods=3",
            "quota `q` exceeded (limits.cpu 2/2, pods 3/3)",
        );
        row(
            "pods \"a\" is forbidden: failed quota: q: must specify limits.cpu,limits.memory",
            "quota `q` requires pods to specify limits.cpu, limits.memory",
        );
        row(
            "admission webhook \"pods.acme.example\" denied the request: no team label",
            "denied by webhook `pods.acme.example`: no team label",
        );
        row(
            "admission webhook \"a\" denied the request without explanation",
            "denied by webhook `a`: without explanation",
        );
        row(
            "Internal error occurred: failed calling webhook \"a.b\": failed to call webhook: Post \"https://a.svc:443/\": connection refused",
            "webhook `a.b` does not answer: Post \"https://a.svc:443/\": connection refused",
        );
        row(
            "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: too many",
            "denied by policy `p`: too many",
        );
        row(
            "pods \"a\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false",
            "denied by Pod Security `restricted:latest`: allowPrivilegeEscalation != false",
        );
        row(
            "pods \"a\" is forbidden: maximum cpu usage per Container is 1, but limit is 2",
            "denied by a LimitRange: maximum cpu usage per Container is 1, but limit is 2",
        );
        row(
            "pods \"a-\" is forbidden: error looking up service account team/robot: serviceaccount \"robot\" not found",
            "ServiceAccount `robot` not found",
        );
        row("pods \"a\" is forbidden: no PriorityClass with name high was found", "PriorityClass `high` not found");
        row(
            "pods \"a\" is forbidden: pod rejected: RuntimeClass \"sandboxed\" not found",
            "RuntimeClass `sandboxed` not found",
        );
        row(
            "pods \"a\" is forbidden: unable to create new content in namespace team because it is being terminated",
            "namespace `team` is being deleted",
        );
        row(
            "pods is forbidden: User \"system:serviceaccount:kube-system:x\" cannot create resource \"pods\" in API group \"\"",
            "User \"system:serviceaccount:kube-system:x\" cannot create resource \"pods\" in API group \"\"",
        );
        row("Pod \"a\" is invalid: spec.x: Required value", "invalid: spec.x: Required value");
        row("etcdserver: no space", "etcdserver: no space");
    }
}
