//! The views of budgets, pods and owners, and the exact texts of conditions and events.

pub mod budget;
pub mod failure;
pub mod owner;
pub mod pod;

pub use budget::{BudgetCondition, BudgetStatus, Limit, POD_DISRUPTION_BUDGETS, PodDisruptionBudget};
pub use failure::Failure;
pub use pod::{Pod, Target};

pub mod conditions {
    /// Whether a pod may be evicted.
    pub const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";
}

pub mod condition_reasons {
    /// More pods are healthy than required.
    pub const SUFFICIENT_PODS: &str = "SufficientPods";
    pub const INSUFFICIENT_PODS: &str = "InsufficientPods";
    /// The pods could not be counted.
    pub const SYNC_FAILED: &str = "SyncFailed";
}

pub mod events {
    /// The budget selects no pod, or its selector is invalid.
    pub const NO_PODS: &str = "NoPods";
    pub const CALCULATE_EXPECTED_POD_COUNT_FAILED: &str = "CalculateExpectedPodCountFailed";
    /// A pod has no controller, and therefore no scale.
    pub const UNMANAGED_PODS: &str = "UnmanagedPods";
    pub const MULTIPLE_POD_DISRUPTION_BUDGETS: &str = "MultiplePodDisruptionBudgets";
    /// An evicted pod was not deleted in time.
    pub const NOT_DELETED: &str = "NotDeleted";
}
