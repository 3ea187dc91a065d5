//! x
#[cfg(test)]
pub(crate) mod loopback;
