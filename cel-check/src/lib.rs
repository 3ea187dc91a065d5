//! Type-checks the CEL expressions of admission policies against OpenAPI schemas, with cel-go's words.
//!
//! The checker is pure: an [`Expression`] and an [`Environment`] in, a [`Verdict`] out. Where it cannot tell, it says
//! [`Undecided`], so a warning is never a guess. An expression can be as hostile as it likes: its length, its nesting, its
//! nodes, its types and the steps of its check are bounded.
//!
//! Reading order: `types` → `expression` (the tree; `parse` makes it, after `nesting` has measured the text, and
//! `macros` expands what the parser does not know) → `declarations` (Kubernetes' functions) → `schema` and
//! `environment` (what a name means) → `checker` → `source` (messages).

mod checker;
mod declarations;
mod environment;
mod expression;
mod macros;
mod names;
mod nesting;
mod parse;
mod schema;
mod source;
mod types;
mod undecided;

use std::{io, thread};

pub use checker::Verdict;
pub use declarations::parse_type;
pub use environment::Environment;
pub use parse::Expression;
pub use schema::{Definitions, Document, SchemaType};
pub use types::Type;
pub use undecided::{Budget, Undecided};

/// What the deepest expression that is parsed needs, with room to spare. Only what is used of it takes memory.
const STACK: usize = 64 << 20;

/// Runs something on a stack on which the deepest expressions can be parsed, checked and dropped. A panic in it ends the
/// caller too.
pub fn with_deep_stack<T: Send>(run: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let handle = thread::Builder::new().name("cel-check".to_owned()).stack_size(STACK).spawn_scoped(scope, run)?;
        handle.join().map_err(|panic| std::panic::resume_unwind(panic))
    })
}
