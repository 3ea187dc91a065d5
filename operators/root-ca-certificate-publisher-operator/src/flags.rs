//! The flags: those every operator has, and upstream's of this controller.
//!
//! The CA is read with the flags, so that a file which is none ends the process at its start, as upstream's does.
//! Left out: reading it again, which is [`crate::observe::root_ca`]'s.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::observe::root_ca::{RootCaFile, read};

/// Publishes the apiserver's CA in every namespace.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// A PEM-encoded CA bundle: what is published. Without it: the CA by which this operator verifies the apiserver, of
    /// its kubeconfig or of its pod's ServiceAccount.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PATH", value_parser = root_ca_file())]
    pub root_ca_file: GivenRootCaFile,
}

/// `--root-ca-file`; none if it was not given, or given as `""`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenRootCaFile(pub Option<RootCaFile>);

fn root_ca_file() -> impl TypedValueParser<Value = GivenRootCaFile> {
    OsStringValueParser::new().try_map(|path| {
        if path.is_empty() {
            return Ok::<_, String>(GivenRootCaFile(None));
        }
        let path = PathBuf::from(path);
        let ca = read(&path)?;
        Ok(GivenRootCaFile(Some(RootCaFile { path, ca })))
    })
}
