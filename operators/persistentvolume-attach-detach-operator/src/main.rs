//! The persistentvolume-attach-detach-operator's process.

use std::process::ExitCode;

use persistentvolume_attach_detach_operator::controller::PersistentVolumeAttachDetachOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<PersistentVolumeAttachDetachOperator>()
}
