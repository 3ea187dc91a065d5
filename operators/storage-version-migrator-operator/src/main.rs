//! The storage-version-migrator-operator's process.

use std::process::ExitCode;

use storage_version_migrator_operator::controller::StorageVersionMigratorOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<StorageVersionMigratorOperator>()
}
