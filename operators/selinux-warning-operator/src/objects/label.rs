//! SELinux labels, how a pod's volume gets its label, and which of these exclude each other on one node.
//!
//! Upstream: `pkg/controller/volume/selinuxwarning/translator` and `internal/parse` beside it.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::kept::Digest;

/// A part of a label above this many bytes is replaced by its digest.
const PART_BYTES_MAX: usize = 1024;

/// `user:role:type:level`, as far as a pod sets it. The nodes know the defaults of the other parts, and this operator
/// does not.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(Text);

/// `v1` `SELinuxOptions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SeLinuxOptions {
    user: Box<str>,
    role: Box<str>,
    r#type: Box<str>,
    level: Box<str>,
}

impl Label {
    pub fn new(text: &str) -> Self {
        Self(Text::new(text))
    }

    /// Upstream: `SELinuxOptionsToFileLabel`.
    pub fn of(SeLinuxOptions { user, role, r#type, level }: &SeLinuxOptions) -> Self {
        let parts = [user, role, r#type, level];
        if parts.iter().all(|part| part.is_empty()) {
            return Self::default();
        }
        Self::new(&parts.map(|part| abridged(part)).join(":"))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// User, role, type and level; those that are missing are empty.
    ///
    /// Upstream: `ParseSELinuxLabel`.
    pub fn parts(&self) -> [&str; 4] {
        let mut parts = self.0.splitn(4, ':');
        [(); 4].map(|()| parts.next().unwrap_or_default())
    }

    /// A part that is not set has the node's default, which may be the other's; only the level has none.
    ///
    /// Upstream: `ConflictsParsed`.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let ([user, role, r#type, level], [other_user, other_role, other_type, other_level]) =
            (self.parts(), other.parts());
        let differ = |a: &str, b: &str| !a.is_empty() && !b.is_empty() && a != b;
        level != other_level || differ(user, other_user) || differ(role, other_role) || differ(r#type, other_type)
    }
}

/// A colon would end the part.
fn abridged(part: &str) -> Cow<'_, str> {
    match Digest::abridge(part, PART_BYTES_MAX) {
        Cow::Owned(digest) => Cow::Owned(digest.replace(':', "=")),
        whole @ Cow::Borrowed(_) => whole,
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// How a pod's volumes get its label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum ChangePolicy {
    /// The container runtime labels each file.
    Recursive,
    /// The kubelet mounts the volume with the label, if the volume's driver can.
    #[default]
    #[serde(other)]
    MountOption,
}

impl ChangePolicy {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Recursive => "Recursive",
            Self::MountOption => "MountOption",
        }
    }
}

/// How a pod uses a volume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usage {
    pub policy: ChangePolicy,
    /// The label that the kubelet mounts it with, if any.
    pub label: Label,
}

impl Usage {
    /// Without a label, or where the volume cannot be mounted with one, its files are labelled.
    ///
    /// Upstream: `GetMountSELinuxLabel`, `pkg/volume/util/selinux.go`, and `syncVolume`,
    /// `pkg/controller/volume/selinuxwarning/selinux_warning_controller.go`.
    pub fn new(label: &Label, policy: ChangePolicy, mounts_with_label: bool) -> Self {
        if policy == ChangePolicy::Recursive || !mounts_with_label || label.is_empty() {
            return Self { policy: ChangePolicy::Recursive, label: Label::default() };
        }
        Self { policy, label: label.clone() }
    }

    /// The properties that keep one of two pods from starting while the other one uses the volume on its node.
    pub fn conflicts_with<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = Property> + use<'a> {
        let policy = (self.policy != other.policy).then_some(Property::ChangePolicy);
        let label = self.label.conflicts_with(&other.label).then_some(Property::Label);
        policy.into_iter().chain(label)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Property {
    ChangePolicy,
    Label,
}

impl Property {
    /// Upstream: `PropertyName` of a `Conflict`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ChangePolicy => "SELinuxChangePolicy",
            Self::Label => "SELinuxLabel",
        }
    }

    pub fn of(self, usage: &Usage) -> &str {
        match self {
            Self::ChangePolicy => usage.policy.as_str(),
            Self::Label => usage.label.as_str(),
        }
    }
}
