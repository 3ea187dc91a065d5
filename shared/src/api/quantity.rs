//! Resource quantities (`500m`, `1.5Gi`, `12e6`): read, compared, added and printed exactly, without floating point.
//!
//! Left out: arithmetic no operator needs, and amounts of more than 38 significant digits, which are refused.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An exact decimal number and the kind of suffix it was written with.
///
/// Two quantities are equal when their values are, however they were written: `1Gi` equals `1073741824`.
///
/// Upstream: `Quantity`, `staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go`.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    // The value is mantissa × 10^scale; the mantissa has no factor 10, and zero has the scale 0.
    mantissa: i128,
    scale: i32,
    format: Format,
}

/// How a quantity prints its exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// `12e6`.
    DecimalExponent,
    /// `12Mi`, 12 × 2²⁰.
    BinarySi,
    /// `12M`, 12 × 10⁶.
    DecimalSi,
}

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidQuantity {
    /// Not a number with an optional suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The suffix is none of the known ones.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// More digits than can be kept exactly.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
}

const MILLI: i32 = -3;
const NANO: i32 = -9;
const EXA: i32 = 18;
const BINARY_MAX: Quantity = Quantity { mantissa: (1 << 63) - 1, scale: 0, format: Format::BinarySi };

impl Quantity {
    /// Zero, printed as `0`.
    pub const ZERO: Self = Self { mantissa: 0, scale: 0, format: Format::DecimalSi };

    pub fn new(mantissa: i128, scale: i32, format: Format) -> Self {
        let (mut mantissa, mut scale) = (mantissa, if mantissa == 0 { 0 } else { scale });
        while mantissa != 0 && mantissa % 10 == 0 && scale < i32::MAX {
            mantissa /= 10;
            scale += 1;
        }
        Self { mantissa, scale, format }
    }

    pub const fn format(&self) -> Format {
        self.format
    }

    /// The same value, printed in another way.
    #[must_use]
    pub const fn with_format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Whether it is 0, whatever the suffix.
    pub const fn is_zero(&self) -> bool {
        self.mantissa == 0
    }

    /// In thousandths, rounded away from zero; as many as can be counted where there are more.
    ///
    /// Upstream: `Quantity.MilliValue`, `quantity.go`.
    pub fn milli_value(&self) -> i64 {
        let millis = match u32::try_from(i64::from(MILLI) - i64::from(self.scale)) {
            // Finer than a thousandth.
            Ok(digits) => 10_i128.checked_pow(digits).map_or(self.mantissa.signum(), |divisor| {
                let cut = self.mantissa / divisor;
                if self.mantissa % divisor == 0 { cut } else { cut + self.mantissa.signum() }
            }),
            Err(_) => self.unscaled_at(MILLI).unwrap_or(if self.mantissa < 0 { i128::MIN } else { i128::MAX }),
        };
        i64::try_from(millis).unwrap_or(if millis < 0 { i64::MIN } else { i64::MAX })
    }

    /// The value as a float, as exactly as a float can have it.
    ///
    /// Upstream: `Quantity.AsApproximateFloat64`, `quantity.go`.
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "there is no other way from i128 to f64")]
    pub fn approximate(&self) -> f64 {
        self.mantissa as f64 * 10_f64.powi(self.scale)
    }

    /// The sum; a zero takes over the format of the other summand. `None` if it has more digits than fit.
    ///
    /// Upstream: `Quantity.Add`, `quantity.go`.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let format = if self.is_zero() { other.format } else { self.format };
        if other.is_zero() {
            return Some(self.with_format(format));
        }
        if self.is_zero() {
            return Some(other);
        }
        let scale = self.scale.min(other.scale);
        let sum = self.unscaled_at(scale)?.checked_add(other.unscaled_at(scale)?)?;
        Some(Self::new(sum, scale, format))
    }

    /// The difference, formatted as a sum. `None` if it has more digits than fit.
    ///
    /// Upstream: `Quantity.Sub`, `quantity.go`.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.checked_add(Self { mantissa: other.mantissa.checked_neg()?, ..other })
    }

    /// The mantissa at a scale that is not above its own.
    fn unscaled_at(&self, scale: i32) -> Option<i128> {
        let power = u32::try_from(i64::from(self.scale) - i64::from(scale)).ok()?;
        if self.mantissa == 0 { Some(0) } else { self.mantissa.checked_mul(10_i128.checked_pow(power)?) }
    }

    /// Rounded away from zero to a multiple of 10^`scale`: some of a resource never becomes none.
    ///
    /// Upstream: `Quantity.RoundUp`, `quantity.go`.
    #[must_use]
    pub fn rounded_up(self, scale: i32) -> Self {
        if self.scale >= scale {
            return self;
        }
        let power = u32::try_from(i64::from(scale) - i64::from(self.scale)).unwrap_or(u32::MAX);
        let multiple = match 10_i128.checked_pow(power) {
            Some(divisor) => {
                let cut = self.mantissa / divisor;
                if self.mantissa % divisor == 0 { cut } else { cut + self.mantissa.signum() }
            }
            None => self.mantissa.signum(),
        };
        Self::new(multiple, scale, self.format)
    }

    /// The value, if it is a whole number that fits.
    fn whole(&self) -> Option<i128> {
        if self.scale < 0 { None } else { self.unscaled_at(0) }
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        (self.mantissa, self.scale) == (other.mantissa, other.scale)
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.mantissa, self.scale).hash(state);
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A JSON number and `null` are read too, and blanks around the text are dropped.
///
/// Upstream: `Quantity.UnmarshalJSON`, `quantity.go`.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Quantity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Quantity, E> {
                text.trim().parse().map_err(E::custom)
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity::new(number.into(), 0, Format::DecimalSi))
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity::new(number.into(), 0, Format::DecimalSi))
            }
            // Upstream parses the number's own text; beyond a float's digits only its value is known here.
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Quantity, E> {
                let is_plain = number.abs() < 1e21;
                let text = if is_plain { number.to_string() } else { format!("{number:e}") };
                self.visit_str(&text)
            }
            fn visit_unit<E: serde::de::Error>(self) -> Result<Quantity, E> {
                Ok(Quantity::ZERO)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.mantissa.signum().cmp(&other.mantissa.signum());
        if signs != Ordering::Equal || self.mantissa == 0 {
            return signs;
        }
        let scale = self.scale.min(other.scale);
        match (self.unscaled_at(scale), other.unscaled_at(scale)) {
            (Some(own), Some(others)) => own.cmp(&others),
            // Only the one of the higher scale can be too large to be written out at the lower one.
            (None, _) => self.mantissa.signum().cmp(&0),
            (_, None) => 0.cmp(&other.mantissa.signum()),
        }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Upstream: `ParseQuantity`, `quantity.go`.
impl FromStr for Quantity {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        if text.is_empty() {
            return Err(InvalidQuantity::Format);
        }
        let parts = Parts::of(text)?;
        let suffix = Suffix::parse(parts.suffix)?;
        let mut mantissa = parts.mantissa()?;
        let fraction_digits = i32::try_from(parts.fraction.len()).map_err(|_| InvalidQuantity::Numeric)?;
        let mut scale = fraction_digits.checked_neg().ok_or(InvalidQuantity::Numeric)?;
        match suffix {
            Suffix::Binary(exponent) => match mantissa.checked_mul(1 << exponent) {
                Some(product) => mantissa = product,
                None if fraction_digits == 0 => return Ok(BINARY_MAX.signed(parts.negative)),
                None => return Err(InvalidQuantity::Numeric),
            },
            Suffix::Decimal(exponent) | Suffix::Exponent(exponent) => {
                scale = scale.checked_add(exponent).ok_or(InvalidQuantity::Numeric)?;
            }
        }
        let mut quantity = Self::new(mantissa, scale, suffix.format()).rounded_up(NANO);
        if quantity.format == Format::BinarySi && quantity > BINARY_MAX {
            quantity = BINARY_MAX;
        }
        if quantity.format == Format::BinarySi && quantity > Self::ZERO && quantity < Self::new(1, 0, Format::BinarySi)
        {
            quantity.format = Format::DecimalSi;
        }
        Ok(quantity.signed(parts.negative))
    }
}

impl Quantity {
    fn signed(mut self, negative: bool) -> Self {
        if negative {
            self.mantissa = -self.mantissa;
        }
        self
    }
}

/// The canonical form: nothing lost, no fraction, the suffix as large as possible.
///
/// Upstream: `Quantity.CanonicalizeBytes`, `quantity.go`. It prints no suffix at all beyond `E` and `Ei`; here the number
/// is written out instead, so that it reads back as the same value.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        match self.format {
            Format::BinarySi => match self.whole() {
                Some(whole) if whole.unsigned_abs() >= 1024 => fmt_binary(whole, f),
                _ => self.fmt_decimal(f, false),
            },
            Format::DecimalSi => self.fmt_decimal(f, false),
            Format::DecimalExponent => self.fmt_decimal(f, true),
        }
    }
}

fn fmt_binary(whole: i128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const SUFFIXES: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let (mut amount, mut suffix) = (whole, "");
    for larger in SUFFIXES {
        if amount % 1024 != 0 {
            break;
        }
        amount /= 1024;
        suffix = larger;
    }
    write!(f, "{amount}{suffix}")
}

impl Quantity {
    fn fmt_decimal(&self, f: &mut fmt::Formatter<'_>, as_exponent: bool) -> fmt::Result {
        let mut exponent = self.scale - self.scale.rem_euclid(3);
        if !as_exponent {
            exponent = exponent.min(EXA);
        }
        write!(f, "{}", self.mantissa)?;
        for _ in exponent..self.scale {
            f.write_str("0")?;
        }
        match exponent {
            0 => Ok(()),
            _ if as_exponent => write!(f, "e{exponent}"),
            -9 => f.write_str("n"),
            -6 => f.write_str("u"),
            -3 => f.write_str("m"),
            3 => f.write_str("k"),
            6 => f.write_str("M"),
            9 => f.write_str("G"),
            12 => f.write_str("T"),
            15 => f.write_str("P"),
            EXA => f.write_str("E"),
            // Below nano, which only sums and `new` can reach.
            _ => write!(f, "e{exponent}"),
        }
    }
}

/// A quantity's text, split but not yet understood.
struct Parts<'a> {
    negative: bool,
    integer: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Result<Self, InvalidQuantity> {
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (integer, rest) = split_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        let exponent = suffix.trim_start_matches(['e', 'E', 'i', 'n', 'u', 'm', 'k', 'K', 'M', 'G', 'T', 'P']);
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if !split_digits(digits).1.is_empty() {
            return Err(InvalidQuantity::Format);
        }
        Ok(Self { negative, integer, fraction: fraction.trim_end_matches('0'), suffix })
    }

    /// All digits as one number; no digits at all are a zero, as upstream has it.
    fn mantissa(&self) -> Result<i128, InvalidQuantity> {
        let digits = self.integer.bytes().chain(self.fraction.bytes());
        digits
            .map(|digit| i128::from(digit - b'0'))
            .try_fold(0_i128, |number, digit| number.checked_mul(10)?.checked_add(digit))
            .ok_or(InvalidQuantity::Numeric)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}

#[derive(Clone, Copy)]
enum Suffix {
    Binary(u32),
    Decimal(i32),
    Exponent(i32),
}

impl Suffix {
    fn parse(text: &str) -> Result<Self, InvalidQuantity> {
        Ok(match text {
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            _ => {
                let exponent = text.strip_prefix(['e', 'E']).ok_or(InvalidQuantity::Suffix)?;
                Self::Exponent(exponent.parse().map_err(|_| InvalidQuantity::Suffix)?)
            }
        })
    }

    fn format(self) -> Format {
        match self {
            Self::Binary(_) => Format::BinarySi,
            Self::Decimal(_) => Format::DecimalSi,
            Self::Exponent(_) => Format::DecimalExponent,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quantity(text: &str) -> Quantity {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// Upstream: `TestQuantityParse`.
    const READS: &[(&str, i128, i32, Format)] = {
        use Format::{BinarySi, DecimalExponent, DecimalSi};
        &[
            ("0", 0, 0, DecimalSi),
            ("0n", 0, 0, DecimalSi),
            ("0Ki", 0, 0, BinarySi),
            ("0M", 0, 0, DecimalSi),
            ("1", 1, 0, DecimalSi),
            ("1Ki", 1024, 0, BinarySi),
            ("7Mi", 7 << 20, 0, BinarySi),
            ("6Gi", 6 << 30, 0, BinarySi),
            ("100Ti", 100 << 40, 0, BinarySi),
            ("4Pi", 4 << 50, 0, BinarySi),
            ("3Ei", 3 << 60, 0, BinarySi),
            ("5n", 5, -9, DecimalSi),
            ("4u", 4, -6, DecimalSi),
            ("3m", 3, -3, DecimalSi),
            ("50k", 5, 4, DecimalSi),
            ("7M", 7, 6, DecimalSi),
            ("6G", 6, 9, DecimalSi),
            ("300T", 3, 14, DecimalSi),
            ("2P", 2, 15, DecimalSi),
            ("1E", 1, 18, DecimalSi),
            ("1E-3", 1, -3, DecimalExponent),
            ("1e14", 1, 14, DecimalExponent),
            ("1.3E+6", 13, 5, DecimalExponent),
            ("1.40e9", 14, 8, DecimalExponent),
            ("100.035k", 100_035, 0, DecimalSi),
            ("0.00050k", 5, -1, DecimalSi),
            ("0.05000", 5, -2, DecimalSi),
            ("0.5e-2", 5, -3, DecimalExponent),
            ("6.987654321G", 6_987_654_321, 0, DecimalSi),
            ("1.01E", 101, 16, DecimalSi),
            // Saturated or rounded.
            ("3.001n", 4, -9, DecimalSi),
            ("1.1E-9", 2, -9, DecimalExponent),
            ("0.0000000001", 1, -9, DecimalSi),
            ("0.00000012345", 124, -9, DecimalSi),
            ("0.00000012354", 124, -9, DecimalSi),
            ("1e-100", 1, -9, DecimalExponent),
            ("9Ei", (1 << 63) - 1, 0, BinarySi),
            ("9223372036854775807Ki", (1 << 63) - 1, 0, BinarySi),
            ("99999999999999999999999999999999999Ei", (1 << 63) - 1, 0, BinarySi),
            ("12E", 12, 18, DecimalSi),
            // Fractions of binary units.
            ("100.035Ki", 10_243_584, -2, BinarySi),
            ("0.5Mi", 1 << 19, 0, BinarySi),
            ("0.025Ti", 274_877_906_944, -1, BinarySi),
            ("0.000000000001Ki", 2, -9, DecimalSi),
            (".001", 1, -3, DecimalSi),
            ("1.", 1, 0, DecimalSi),
            ("1.G", 1, 9, DecimalSi),
            (".", 0, 0, DecimalSi),
        ]
    };

    #[test]
    fn a_float_is_as_near_as_one_can_be() {
        for (text, expected) in [("0", 0.0), ("50m", 0.05), ("0.0001", 0.0001), ("1Ki", 1024.0), ("-2e3", -2000.0)] {
            let found = text.parse::<Quantity>().unwrap().approximate();
            assert!((found - expected).abs() < 1e-12, "{text}: {found}");
        }
    }

    #[test]
    fn reads_as_upstream_does_with_either_sign() {
        for &(text, mantissa, scale, format) in READS {
            let expected = Quantity::new(mantissa, scale, format);
            for (sign, factor) in [("", 1), ("+", 1), ("-", -1)] {
                let read = quantity(&format!("{sign}{text}"));
                assert_eq!(read, Quantity::new(factor * mantissa, scale, format), "{sign}{text}");
                assert_eq!(read.format(), expected.format(), "{sign}{text}");
            }
        }
    }

    #[test]
    fn refuses_what_upstream_refuses() {
        for text in
            ["", "1.1.M", "1+1.0M", "0.1mi", "0.1am", "aoeu", ".5i", "1i", "-3.01i", "-3.01e-", " 1", "1 ", "1e5x"]
        {
            assert!(text.parse::<Quantity>().is_err(), "{text:?}");
        }
    }

    /// Upstream: `TestQuantityString`.
    #[test]
    fn prints_the_canonical_form() {
        for (text, canonical) in [
            ("1024Gi", "1Ti"),
            ("300Mi", "300Mi"),
            ("6Gi", "6Gi"),
            ("1001Mi", "1001Mi"),
            ("1073741824Ki", "1Ti"),
            ("0.5", "500m"),
            ("0.5Gi", "512Mi"),
            ("1.5Gi", "1536Mi"),
            ("100.035Ki", "102435840m"),
            ("1000Ki", "1000Ki"),
            ("1Ki", "1Ki"),
            ("0.9Ki", "921600m"),
            ("1023", "1023"),
            ("5m", "5m"),
            ("1000", "1k"),
            ("1100", "1100"),
            ("1e3", "1e3"),
            ("100e3", "100e3"),
            ("1E-3", "1e-3"),
            ("12e4", "120e3"),
            ("-12k", "-12k"),
            ("0Ki", "0"),
            ("1000E", "1000E"),
            ("4Ei", "4Ei"),
        ] {
            assert_eq!(quantity(text).to_string(), canonical, "{text}");
        }
    }

    /// Upstream: `TestMilliNewSet`, `TestScaledValue`.
    #[test]
    fn thousandths_are_rounded_up_and_bounded() {
        for (text, millis) in [
            ("0", 0),
            ("1", 1000),
            ("4", 4000),
            ("100m", 100),
            ("1.5", 1500),
            ("2k", 2_000_000),
            ("1Ki", 1_024_000),
            ("1u", 1),
            ("1001u", 2),
            ("-1001u", -2),
            ("1n", 1),
            ("9E", i64::MAX),
            ("-9E", i64::MIN),
            ("1e1000", i64::MAX),
        ] {
            assert_eq!(quantity(text).milli_value(), millis, "{text}");
        }
    }

    /// Upstream: `TestQuantityRoundUp`.
    #[test]
    fn rounds_away_from_zero_to_a_power_of_ten() {
        for (text, scale, rounded) in [
            ("9.01", -3, "9010m"),
            ("9.01", -2, "9010m"),
            ("9.01", -1, "9100m"),
            ("9.01", 0, "10"),
            ("9.01", 1, "10"),
            ("9.01", 2, "100"),
            ("-9.01", 0, "-10"),
            ("0.5", 0, "1"),
            ("1Gi", 0, "1Gi"),
            ("0.7Ki", 0, "717"),
            ("0", 3, "0"),
            ("1n", 9, "1G"),
        ] {
            assert_eq!(quantity(text).rounded_up(scale).to_string(), rounded, "{text} to {scale}");
        }
    }

    #[test]
    fn json_has_the_canonical_form() {
        let read: Quantity = serde_json::from_str("\"0.5\"").unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), "\"500m\"");
        for wrong in ["\"1x\"", "\"\"", "\" \"", "\"1 Gi\"", "\"null\"", "true", "[]", "{}"] {
            assert!(serde_json::from_str::<Quantity>(wrong).is_err(), "{wrong}");
        }
    }

    /// Upstream: `Quantity.UnmarshalJSON`, which gave these values for these rows. It keeps the exponent of `1e3`.
    #[test]
    fn json_may_be_a_number_null_or_have_blanks() {
        for (json, canonical) in [
            ("209715200", "209715200"),
            ("18446744073709551615", "18446744073709551615"),
            ("-3", "-3"),
            ("0", "0"),
            ("1.5", "1500m"),
            ("0.1", "100m"),
            ("-0.0", "0"),
            ("1e3", "1k"),
            ("2e25", "20e24"),
            ("1e-12", "1n"),
            ("null", "0"),
            (r#"" 200Mi""#, "200Mi"),
            (r#""200Mi ""#, "200Mi"),
        ] {
            let read: Quantity = serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
            assert_eq!(read.to_string(), canonical, "{json}");
            let value: serde_json::Value = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::from_value::<Quantity>(value).unwrap(), read, "{json}");
        }
        assert_eq!(serde_json::from_str::<Option<Quantity>>("null").unwrap(), None);
        for wrong in ["true", "{}", "[]", r#""""#, r#""true""#, r#""1 k""#, r#""1K""#, r#""1_0""#] {
            assert!(serde_json::from_str::<Quantity>(wrong).is_err(), "{wrong}");
        }
    }

    /// Upstream cuts off spaces alone, and before it has read the escapes of the JSON text.
    #[test]
    fn blanks_that_upstream_refuses_are_cut_off_too() {
        for json in [r#""1k\n ""#, r#""\t1k""#, r#""\u00a01k""#] {
            let read: Quantity = serde_json::from_str(json).unwrap();
            assert_eq!(read.to_string(), "1k", "{json}");
        }
    }

    /// Upstream: `TestQuantityCmp`.
    #[test]
    fn compares_by_value_alone() {
        for (left, right, expected) in [
            ("0", "0Ki", Ordering::Equal),
            ("1Gi", "1073741824", Ordering::Equal),
            ("0.5", "500m", Ordering::Equal),
            ("100m", "50m", Ordering::Greater),
            ("50m", "100m", Ordering::Less),
            ("10000T", "100Gi", Ordering::Greater),
            ("-1", "1n", Ordering::Less),
            ("1e1000", "1e999", Ordering::Greater),
            ("-1e1000", "1n", Ordering::Less),
            ("-1e1000", "-1n", Ordering::Less),
        ] {
            assert_eq!(quantity(left).cmp(&quantity(right)), expected, "{left} {right}");
            assert_eq!(quantity(right).cmp(&quantity(left)), expected.reverse(), "{right} {left}");
        }
    }

    /// Upstream: `TestQuantityAdd`, `TestQuantityAddZeroPreservesSuffix`.
    #[test]
    fn adds_and_keeps_the_first_format_that_is_not_of_a_zero() {
        for (left, right, sum) in [
            ("100m", "900m", "1"),
            ("1Gi", "1Gi", "2Gi"),
            ("0", "1Gi", "1Gi"),
            ("100m", "0Ki", "100m"),
            ("1Gi", "1", "1073741825"),
            ("1k", "1Ki", "2024"),
            ("0Ki", "500m", "500m"),
            ("0", "0Gi", "0"),
            ("512Mi", "0.5Gi", "1Gi"),
            ("1.5Gi", "500M", "2110612736"),
            ("500M", "1.5Gi", "2110612736"),
            ("1e3", "1k", "2e3"),
            ("1Gi", "1m", "1073741824001m"),
            ("9223372036854775807", "1", "9223372036854775808"),
            ("-5", "5Ki", "5115"),
        ] {
            assert_eq!(quantity(left).checked_add(quantity(right)).unwrap().to_string(), sum, "{left} + {right}");
        }
        assert_eq!(quantity("1e1000").checked_add(quantity("1")), None);
    }

    proptest! {
        #[test]
        fn the_canonical_form_reads_back_as_the_same_value(
            number in "[+-]?[0-9]{0,12}(\\.[0-9]{0,12})?",
            suffix in "(n|u|m||k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]|E[0-9])",
        ) {
            if let Ok(read) = format!("{number}{suffix}").parse::<Quantity>() {
                prop_assert_eq!(quantity(&read.to_string()), read);
                prop_assert_eq!(quantity(&read.to_string()).to_string(), read.to_string());
            }
        }

        #[test]
        fn order_is_that_of_the_numbers(left in -10_000_i64..10_000, right in -10_000_i64..10_000, scale in -9_i32..9) {
            let of = |number: i64| Quantity::new(i128::from(number), scale, Format::DecimalSi);
            prop_assert_eq!(of(left).cmp(&of(right)), left.cmp(&right));
            prop_assert_eq!(of(left).checked_add(of(right)), Some(of(left + right)));
            prop_assert_eq!(of(left).checked_sub(of(right)), Some(of(left - right)));
        }
    }
}
