//! The facts that an operator states about itself, as `FACTS` in its `facts.rs`.
//!
//! The operator reads its names and queues from there; the plugin, the suite and `tidy` read the facts of all operators
//! through the crate `facts`. That crate compiles this file a second time, so it uses nothing of this crate.

/// The names of one operator. Upstream has three for each controller, and they disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The binary, image, manifest folder and Lease: `deployment-operator`.
    pub operator: &'static str,
    /// Upstream's canonical name: `deployment-controller`.
    pub controller: &'static str,
    /// The component that events come from: `deployment-controller`.
    pub event_source: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub names: Names,
    /// Its queues, by upstream's names where upstream has them.
    pub queues: &'static [Queue],
    /// Upstream's queues that are no queues here.
    pub queues_without: &'static [&'static str],
    pub acts_on: &'static [Acts],
    pub finalizers: &'static [Finalizer],
    /// The differences from upstream that a shadow shows at rest.
    pub differences: &'static [KnownDifference],
    /// The flags without which it does nothing, or nothing within a test's time. The suite gives them to
    /// kube-controller-manager too; `{pki}` is the folder with the cluster's CA and keys. Flags with `{cloud}`, the endpoint
    /// of a cloud, are for operators alone.
    pub needed_flags: &'static [&'static str],
    /// The rights that its life in the suite does not show, each as `verb resource`.
    pub rights_without_request: &'static [&'static str],
    /// Whether its work needs SubjectAccessReviews, so that its life shows them.
    pub reviews_access: bool,
    /// Its controllers that cannot answer all that the others answer.
    pub exceptions: &'static [Exception],
    /// Its memory, if it needs more than the base's.
    pub memory: Option<Memory>,
}

impl Facts {
    pub const NONE: Self = Self {
        names: Names { operator: "", controller: "", event_source: "" },
        queues: &[],
        queues_without: &[],
        acts_on: &[],
        finalizers: &[],
        differences: &[],
        needed_flags: &[],
        rights_without_request: &[],
        reviews_access: false,
        exceptions: &[],
        memory: None,
    };

    /// Whether it works with a cloud's provider.
    #[must_use]
    pub fn needs_cloud(&self) -> bool {
        self.needed_flags.iter().any(|flag| flag.contains("{cloud}"))
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Queue {
    pub name: &'static str,
    /// The kind whose objects its keys name.
    pub kind: Option<&'static str>,
}

impl Queue {
    /// A queue whose keys name objects of one kind.
    pub const fn of(kind: &'static str, name: &'static str) -> Self {
        Self { name, kind: Some(kind) }
    }

    /// A queue whose keys are rounds, or objects of any kind.
    pub const fn other(name: &'static str) -> Self {
        Self { name, kind: None }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Acts {
    /// Its API group; `*` for all.
    pub group: &'static str,
    /// The kind; `*` for all.
    pub kind: &'static str,
    pub which: Which,
    /// Whether it is the first to ask about an object of this kind. One operator is.
    pub keeps: bool,
    /// Whether its controller alone writes the status in kube-controller-manager.
    pub own_status: bool,
}

impl Acts {
    /// A kind that another operator keeps, or that no operator keeps.
    pub const fn on(group: &'static str, kind: &'static str) -> Self {
        Self { group, kind, which: Which::All, keeps: false, own_status: false }
    }

    /// A kind that this operator keeps, with a status that several write or without one.
    pub const fn keeps(group: &'static str, kind: &'static str) -> Self {
        Self { keeps: true, ..Self::on(group, kind) }
    }

    pub const fn keeps_with_status(group: &'static str, kind: &'static str) -> Self {
        Self { own_status: true, ..Self::keeps(group, kind) }
    }

    #[must_use]
    pub const fn only(self, which: Which) -> Self {
        Self { which, ..self }
    }
}

/// The objects of a kind that an operator acts on.
#[derive(Clone, Copy, Debug)]
pub enum Which {
    All,
    WithText(&'static str, &'static str),
    WithFinalizer(&'static str),
    WithCondition(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub struct Finalizer {
    pub name: &'static str,
    /// The condition of its removal, as `once …`; empty if there is nothing to explain.
    pub once: &'static str,
}

/// A difference from upstream that shows as a write of a shadow at rest.
///
/// Left out: writes that a fault would make too, such as an endpoint too many.
#[derive(Clone, Copy, Debug)]
pub struct KnownDifference {
    /// The written resource, with group and subresource: `cronjobs.batch/status`.
    pub resource: &'static str,
    /// The paths at which the object may differ; none for a deletion.
    pub paths: &'static [&'static str],
    pub decided: &'static str,
    /// The sentence of the operator's page that describes it.
    pub sentence: &'static str,
}

/// A controller that cannot answer all that others answer.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// Its file, below `src`.
    pub file: &'static str,
    pub lacks: &'static [Lack],
    pub why: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    Record,
    Key,
    Preview,
}

#[derive(Clone, Copy, Debug)]
pub struct Memory {
    pub keeps: &'static str,
    pub bytes: &'static str,
    pub request: &'static str,
    pub limit: &'static str,
}
