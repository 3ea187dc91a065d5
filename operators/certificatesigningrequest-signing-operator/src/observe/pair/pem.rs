//! The PEM blocks of a text. Each copy of their content is wiped, as it may be a key.
//!
//! Left out: blocks with headers, which are encrypted keys: nobody is here to give a password.

use data_encoding::BASE64;
use zeroize::Zeroizing;

const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";

pub(super) struct Block<'a> {
    /// Its type, such as `CERTIFICATE`.
    pub(super) label: &'a str,
    pub(super) der: Zeroizing<Vec<u8>>,
}

/// All blocks that can be read, in order.
///
/// Upstream: `Decode`, Go's encoding/pem.
pub(super) fn blocks(text: &[u8]) -> Vec<Block<'_>> {
    let mut rest = std::str::from_utf8(text).unwrap_or_default();
    let mut blocks = Vec::new();
    while let Some((_, begun)) = rest.split_once(BEGIN) {
        rest = begun;
        let Some((label, body)) = begun.split_once(DASHES) else { break };
        let Some((body, after)) = body.split_once(&format!("-----END {label}-----")) else { continue };
        if let Some(der) = decoded(body) {
            blocks.push(Block { label, der });
            rest = after;
        }
    }
    blocks
}

fn decoded(body: &str) -> Option<Zeroizing<Vec<u8>>> {
    // As long as it can get, so that growing leaves no copy behind.
    let mut compact: Zeroizing<Vec<u8>> = Zeroizing::new(Vec::with_capacity(body.len()));
    compact.extend(body.bytes().filter(|byte| !byte.is_ascii_whitespace()));
    BASE64.decode(&compact).ok().map(Zeroizing::new)
}
