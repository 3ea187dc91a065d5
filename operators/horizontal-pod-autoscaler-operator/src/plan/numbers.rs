//! Conversions between whole numbers and floats. They saturate; in Go the result depends on the processor.

/// Exact for counts; only saturated sums have more digits than a float.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "there is no other way from i64 to f64")]
pub(super) const fn real(number: i64) -> f64 {
    number as f64
}

#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "there is no other way from f64 to i32")]
pub(super) fn ceil(number: f64) -> i32 {
    number.ceil() as i32
}

#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "there is no other way from f64 to i64")]
pub(super) fn ceil_wide(number: f64) -> i64 {
    number.ceil() as i64
}

#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "there is no other way from f64 to i32")]
pub(super) const fn cut(number: f64) -> i32 {
    number as i32
}

pub(super) fn narrow(number: i128) -> i32 {
    i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX })
}

pub(super) fn cap(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

pub(super) fn count(things: usize) -> i64 {
    i64::try_from(things).unwrap_or(i64::MAX)
}
