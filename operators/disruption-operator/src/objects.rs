//! The views of budgets, of pods, and of their owners; and the exact texts that are written.
//!
//! Left out: `unhealthyPodEvictionPolicy`, which the apiserver reads when a pod is to be evicted.

pub mod budget;
pub mod owner;
pub mod pod;

pub use budget::{BudgetCondition, BudgetStatus, Limit, POD_DISRUPTION_BUDGETS, PodDisruptionBudget};
pub use pod::{Pod, Target};

/// The types of a budget's conditions.
pub mod conditions {
    /// Whether a pod may be evicted.
    pub const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";
}

/// The reasons of the budget's condition.
pub mod condition_reasons {
    /// More pods are healthy than must be.
    pub const SUFFICIENT_PODS: &str = "SufficientPods";
    /// They are not.
    pub const INSUFFICIENT_PODS: &str = "InsufficientPods";
    /// The pods could not be counted.
    pub const SYNC_FAILED: &str = "SyncFailed";
}

/// The reasons of events.
pub mod events {
    /// The budget selects no pod, or its selector cannot be read.
    pub const NO_PODS: &str = "NoPods";
    /// An owner does not say how many pods it asks for.
    pub const CALCULATE_EXPECTED_POD_COUNT_FAILED: &str = "CalculateExpectedPodCountFailed";
    /// A pod has no owner that could say so.
    pub const UNMANAGED_PODS: &str = "UnmanagedPods";
    /// A pod is selected by several budgets.
    pub const MULTIPLE_POD_DISRUPTION_BUDGETS: &str = "MultiplePodDisruptionBudgets";
    /// A pod was to be evicted, and is still there.
    pub const NOT_DELETED: &str = "NotDeleted";
}
