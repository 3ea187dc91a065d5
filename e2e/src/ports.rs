//! Free ports on the loopback interface, for programs that are told where to serve.
//! Left out: holding a port until its program takes it, which no program here could take over.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};

/// Below the ports that the kernel gives to connections (from 32768 on): one of those could be a connection's by the time
/// its program starts, or starts again.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// Counts up, so that no port is given out twice before all have been. Its random start keeps processes apart that look for
/// ports at the same time.
static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| AtomicU64::new(RandomState::new().hash_one(()) >> 1));

/// `N` different ports nobody listens on right now.
pub fn free<const N: usize>() -> Result<[u16; N]> {
    let mut ports = [0; N];
    for port in &mut ports {
        *port = free_port()?;
    }
    Ok(ports)
}

pub(crate) fn free_port() -> Result<u16> {
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    (0..COUNT)
        .map(|_| candidate())
        .find(is_free)
        .with_context(|| format!("every port of this machine from {FIRST} to {} is in use", FIRST + COUNT - 1))
}

fn candidate() -> u16 {
    let turn = NEXT.fetch_add(1, Ordering::Relaxed) % u64::from(COUNT);
    FIRST + u16::try_from(turn).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_are_none_of_a_connection() -> Result<()> {
        let mut ports = free::<100>()?.to_vec();
        ports.extend(free::<100>()?);
        assert!(ports.iter().all(|port| (FIRST..FIRST + COUNT).contains(port)), "{ports:?}");
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 200);
        Ok(())
    }
}
