//! Upstream's programs, of which local clusters consist: found in `$KUBEBUILDER_ASSETS`, then on `PATH`, then in a per-user
//! cache, which is filled once by building them from their Go modules (`e2e/tools/*/go.mod` pin every version).
//! Left out: downloading binaries (a Go module proxy suffices), and any version but the one that is followed or chosen.

mod find;
mod go;
mod kubernetes;
mod places;
pub mod progress;
mod tool;

pub use find::Tools;
pub use kubernetes::{KUBERNETES_VERSION, is_newer_than_followed};
pub use places::{cache_dir, find, find_program};
pub use tool::Tool;
