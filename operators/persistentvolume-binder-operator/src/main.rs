//! The persistentvolume-binder-operator's process.

use std::process::ExitCode;

use persistentvolume_binder_operator::controller::PersistentVolumeBinderOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<PersistentVolumeBinderOperator>()
}
