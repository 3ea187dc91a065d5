//! What is decided for a Job, and what is said of it: tables after upstream's, and properties.

mod fixtures;
mod index_limits;
mod indexed;
mod new_pod;
mod orphan;
mod policies;

mod pure;
mod sync_job;
mod tracking;
mod views;
