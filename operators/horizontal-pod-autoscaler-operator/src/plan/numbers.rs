//! Whole numbers and floats: upstream computes with both, and each way between them is here.
//!
//! A float that no whole number of the type equals becomes the nearest one that there is. In Go the result depends on
//! the processor. Left out: everything else about numbers.

/// A count as a float: far fewer digits than a float can tell apart, but for sums that are capped anyway.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "there is no other way from i64 to f64")]
pub(super) const fn real(number: i64) -> f64 {
    number as f64
}

/// Rounded up.
#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "there is no other way from f64 to i32")]
pub(super) fn ceil(number: f64) -> i32 {
    number.ceil() as i32
}

/// Rounded up.
#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "there is no other way from f64 to i64")]
pub(super) fn ceil_wide(number: f64) -> i64 {
    number.ceil() as i64
}

/// Cut towards zero.
#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "there is no other way from f64 to i32")]
pub(super) const fn cut(number: f64) -> i32 {
    number as i32
}

/// A whole number as one of 32 bits.
pub(super) fn narrow(number: i128) -> i32 {
    i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX })
}

/// A whole number as one of 64 bits.
pub(super) fn cap(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

/// A number of things.
pub(super) fn count(things: usize) -> i64 {
    i64::try_from(things).unwrap_or(i64::MAX)
}
