//! The flags: those every operator has, and upstream's of this controller.

use shared::process::flags::at_least_one;

/// Creates the claims of pods' ephemeral volumes.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of ephemeral volume syncing operations that will be done concurrently. Larger number = faster ephemeral
    /// volume updating, but more CPU (and network) load.
    #[arg(long, default_value_t = 5, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_ephemeralvolume_syncs: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syncs_of(args: &[&str]) -> Result<usize, String> {
        const NAME: &str = "ephemeral-volume-operator";
        let args = std::iter::once(NAME).chain(args.iter().copied()).map(Into::into);
        let flags = shared::process::flags::parse::<Flags>(NAME, args).map_err(|exit| exit.text)?.own;
        Ok(flags.concurrent_ephemeralvolume_syncs)
    }

    #[test]
    fn at_least_one_sync_is_wanted() {
        assert_eq!(syncs_of(&[]), Ok(5));
        assert_eq!(syncs_of(&["--concurrent-ephemeralvolume-syncs=1"]), Ok(1));
        let error = syncs_of(&["--concurrent-ephemeralvolume-syncs=0"]).unwrap_err();
        assert!(error.contains("must be greater than 0, but got 0"), "{error}");
    }
}
