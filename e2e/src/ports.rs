//! Free ports on the loopback interface.
//! Left out: holding a port until its program takes it, which no program here could take over.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

/// `N` different ports nobody listens on right now.
pub fn free<const N: usize>() -> Result<[u16; N]> {
    // All are bound before any is let go, so that they differ.
    let mut listeners = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
        *port = listener.local_addr().context("find a free port")?.port();
        listeners.push(listener);
    }
    Ok(ports)
}
