//! What is remembered of a pod's volumes, and which conflicts and labels are reported.
//!
//! Upstream: `sync`, `syncPod` and `syncVolume`,
//! `pkg/controller/volume/selinuxwarning/selinux_warning_controller.go`.

use std::fmt;

use serde::Serialize;
use shared::api::list::list;
use shared::api::object::{Key, Kind, ObjectReference, Uid};
use shared::working::decisions::{self, Reasoned};
use shared::working::events::PlannedEvent;

use crate::objects::label::{Property, Usage};
use crate::objects::pod::{Pod, VolumeLabel};
use crate::objects::volume::Disk;
use crate::observe::{Observed, Other, State, Unbound};

/// Of one volume so many conflicts are reported at once. The recorder posts fewer events about one pod.
const CONFLICTS_MAX: usize = 100;

/// The event of a pod whose containers mount one volume with several labels.
const MULTIPLE_LABELS: &str = "MultipleSELinuxLabels";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Forget its volumes.
    Forget,
    Check {
        uid: Uid,
        /// What is to be remembered, because it is new.
        uses: Vec<(Disk, Usage)>,
        /// The conflicts of these.
        events: Vec<PlannedEvent>,
        /// What is wrong with the pod alone, which is reported again and again.
        warnings: Vec<PlannedEvent>,
        found: Found,
    },
}

/// All that was found, whether it was reported before or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conflicts: Vec<String>,
    /// The volumes that its containers mount with several labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    several_labels: Vec<String>,
    /// Why nothing is known about some of its volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unbound: Vec<String>,
}

impl Found {
    pub const fn is_empty(&self) -> bool {
        let Self { conflicts, several_labels, unbound } = self;
        conflicts.is_empty() && several_labels.is_empty() && unbound.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The pod is gone or has ended.
    Gone,
    Clear,
    Found(Found),
}

impl decisions::Reason for Reason {}

impl Reasoned for Plan {
    fn reason(&self) -> impl decisions::Reason {
        match self {
            Self::Forget => Reason::Gone,
            Self::Check { found, .. } if found.is_empty() => Reason::Clear,
            Self::Check { found, .. } => Reason::Found(found.clone()),
        }
    }
}

pub fn plan(Observed { pod, volumes }: &Observed) -> Plan {
    let Some(pod) = pod else { return Plan::Forget };
    let (mut uses, mut events, mut warnings, mut found) = (Vec::new(), Vec::new(), Vec::new(), Found::default());
    for volume in volumes {
        let label = match (&volume.state, &volume.label) {
            (State::Unbound(unbound), _) => {
                found.unbound.push(unbound.to_string());
                continue;
            }
            (_, VolumeLabel::Several) => {
                found.several_labels.push(volume.name.to_string());
                warnings.push(several_labels(pod, &volume.name));
                continue;
            }
            (_, VolumeLabel::One(label)) => label,
        };
        let State::Disk { disk, mounts_with_label, known, others } = &volume.state else { continue };
        let usage = Usage::new(label, pod.policy, *mounts_with_label);
        let conflicts = || {
            let all = others.iter().flat_map(|other| usage.conflicts_with(&other.usage).map(move |with| (other, with)));
            all.take(CONFLICTS_MAX)
        };
        found.conflicts.extend(conflicts().map(|(other, property)| about(&pod.metadata.key, other, property)));
        if known.as_ref() != Some(&usage) {
            events.extend(conflicts().flat_map(|(other, property)| report(pod, &usage, other, property)));
            uses.push((disk.clone(), usage));
        }
    }
    // No other pod needs to know what is behind the volumes of a pod that has no label.
    if !pod.may_mount_with_label() {
        found.unbound.clear();
    }
    Plan::Check { uid: pod.metadata.uid, uses, events, warnings, found }
}

fn several_labels(pod: &Pod, volume: &str) -> PlannedEvent {
    let message = format!("Volume {volume:?} is mounted twice with different SELinux labels inside this pod");
    PlannedEvent::warning(pod.reference(), MULTIPLE_LABELS, message)
}

/// One event for each of the two pods, as far as they are there.
///
/// Upstream: `reportConflictEvents`.
fn report(pod: &Pod, usage: &Usage, other: &Other, property: Property) -> impl Iterator<Item = PlannedEvent> {
    let one = |to: ObjectReference, usage: &Usage, about: &Key, about_usage: &Usage| {
        let message = message(property, (&to.key, property.of(usage)), (about, property.of(about_usage)));
        PlannedEvent::normal(to, event_reason(property), message)
    };
    let key = &pod.metadata.key;
    let to_other = other.pod.clone().map(|to| one(to, &other.usage, key, usage));
    [Some(one(pod.reference(), usage, &other.key, &other.usage)), to_other].into_iter().flatten()
}

/// Upstream: `EventReason` of a `Conflict`.
const fn event_reason(property: Property) -> &'static str {
    match property {
        Property::ChangePolicy => "SELinuxChangePolicyConflict",
        Property::Label => "SELinuxLabelConflict",
    }
}

/// A user of one namespace learns nothing about the pods of another one.
///
/// Upstream: `EventMessage`, `pkg/controller/volume/selinuxwarning/cache/conflict.go`; without a space in the second
/// text, too.
fn message(property: Property, (pod, value): (&Key, &str), (other, other_value): (&Key, &str)) -> String {
    let name = property.name();
    let (about, with) = if pod.namespace() == other.namespace() {
        (format!("{name} \"{value}\" conflicts with pod {}", other.name()), format!("{name} \"{other_value}\""))
    } else {
        (format!("{name}\"{value}\" conflicts with another pod"), format!("a different {name}"))
    };
    format!(
        "{about} that uses the same volume as this pod with {with}. If both pods land on the same node, only one of \
         them may access the volume."
    )
}

fn about(pod: &Key, other: &Other, property: Property) -> String {
    if pod.namespace() == other.key.namespace() {
        format!("{} \"{}\" of pod {}", property.name(), property.of(&other.usage), other.key.name())
    } else {
        format!("{} of a pod in another namespace", property.name())
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        match self {
            Self::Forget => write!(f, "forget its volumes ({reason})"),
            Self::Check { uid: _, uses, events, warnings, found: _ } => {
                let steps = [("remember", uses.len(), "volume"), ("post", events.len() + warnings.len(), "event")];
                let steps = steps.iter().filter(|(_, count, _)| *count > 0);
                let steps =
                    steps.map(|(step, count, of)| format!("{step} {count} {of}{}", if *count == 1 { "" } else { "s" }));
                let steps: Vec<String> = steps.collect();
                write!(f, "{} ({reason})", if steps.is_empty() { "nothing".to_owned() } else { steps.join(", ") })
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the pod is gone or has ended"),
            Self::Clear => f.write_str("no conflict"),
            Self::Found(Found { conflicts, several_labels, unbound }) => {
                let parts = [
                    ("conflicts with ", conflicts),
                    ("mounted with several labels: ", several_labels),
                    ("not checked: ", unbound),
                ];
                let parts = parts.iter().filter(|(_, found)| !found.is_empty());
                let parts: Vec<String> =
                    parts.map(|(what, found)| format!("{what}{}", list(found, String::clone))).collect();
                f.write_str(&parts.join("; "))
            }
        }
    }
}

impl fmt::Display for Unbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoClaim(claim) => write!(f, "claim {claim} does not exist"),
            Self::NotItsOwn(claim) => write!(f, "claim {claim} was not created for this pod"),
            Self::NotBound(claim) => write!(f, "claim {claim} is not bound"),
            Self::NoVolume(volume) => write!(f, "volume {volume} does not exist"),
            Self::Anothers(volume) => write!(f, "volume {volume} is bound to another claim"),
            Self::Invalid(error) => f.write_str(error),
        }
    }
}
