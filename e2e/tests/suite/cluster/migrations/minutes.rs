//! A migration that takes a while, which `make e2e-minutes` runs.

use anyhow::Result;

use super::migrates;

#[test]
fn ten_thousand_objects_are_migrated_while_some_are_edited_and_deleted() -> Result<()> {
    migrates(10_000)
}
