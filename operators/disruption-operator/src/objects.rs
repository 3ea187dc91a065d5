//! The views of budgets, pods and owners, and the exact texts of conditions and events.

pub mod budget;
pub mod failure;
pub mod owner;
pub mod pod;

pub use budget::{BudgetCondition, BudgetStatus, Limit, POD_DISRUPTION_BUDGETS, PodDisruptionBudget};
pub use failure::Failure;
pub use pod::{Pod, Target};

/// The types of a budget's conditions.
pub mod conditions {
    /// Whether a pod may be evicted.
    pub const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";
}

/// The reasons of the budget's condition.
pub mod condition_reasons {
    /// More pods are healthy than required.
    pub const SUFFICIENT_PODS: &str = "SufficientPods";
    /// No healthy pod can be spared.
    pub const INSUFFICIENT_PODS: &str = "InsufficientPods";
    /// The pods could not be counted.
    pub const SYNC_FAILED: &str = "SyncFailed";
}

/// The reasons of events.
pub mod events {
    /// The budget selects no pod, or its selector is invalid.
    pub const NO_PODS: &str = "NoPods";
    /// The scale of an owner is unknown.
    pub const CALCULATE_EXPECTED_POD_COUNT_FAILED: &str = "CalculateExpectedPodCountFailed";
    /// A pod has no controller, and therefore no scale.
    pub const UNMANAGED_PODS: &str = "UnmanagedPods";
    /// Several budgets select a pod.
    pub const MULTIPLE_POD_DISRUPTION_BUDGETS: &str = "MultiplePodDisruptionBudgets";
    /// An evicted pod was not deleted in time.
    pub const NOT_DELETED: &str = "NotDeleted";
}
