//! Why an object cannot be read, without anything that is in it: it may be a Secret, and the reason is shown in logs,
//! decisions and `/why`.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::Error as _;
use serde_json::Error;
use serde_json::error::Category;

/// serde puts values, and nothing else that is not the code's own, between these.
const QUOTES: [char; 2] = ['"', '`'];

/// Reads foreign bytes, such as one object. A panic is an error of what is read: it would otherwise end the process at
/// every start again. No error has a value of the object in it.
pub(crate) fn read_alone<T>(read: impl FnOnce() -> serde_json::Result<T>) -> serde_json::Result<T> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(Error::custom("its reader panicked")))
        .map_err(without_values)
}

/// Replace the values in an error of reading an object.
fn without_values(error: Error) -> Error {
    match error.classify() {
        Category::Data => Error::custom(cut(&error.to_string())),
        Category::Io | Category::Syntax | Category::Eof => error,
    }
}

fn cut(text: &str) -> Cow<'_, str> {
    // Of these the name in quotes is the view's.
    if text.starts_with("missing field `") || text.starts_with("duplicate field `") {
        return text.into();
    }
    // What follows the last one was expected by the view, whatever the value has in it.
    let expected =
        if text.starts_with("invalid ") || text.starts_with("unknown ") { text.rfind(", expected ") } else { None };
    let end = expected.or_else(|| text.rfind(QUOTES).map(|last| last + 1));
    match (text.find(QUOTES), end) {
        (Some(begin), Some(end)) if begin < end => format!("{}…{}", &text[..begin], &text[end..]).into(),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::api::object::Meta;
    use crate::api::time::Time;

    const SECRET: &str = r#"S3CRET"`, expected `x` at line 7"#;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    enum Policy {
        Never,
    }

    /// The error of reading this with its secret as what replaces `_`.
    fn read<T: DeserializeOwned + Debug>(json: &str) -> String {
        let secret = serde_json::to_string(SECRET).unwrap();
        let error = serde_json::from_str::<T>(&json.replace('_', &secret)).unwrap_err();
        let (error, again) = (without_values(error).to_string(), |text: &str| cut(text).into_owned());
        assert!(!error.contains("S3CRET"), "{error}");
        assert_eq!(again(&error), error);
        error
    }

    #[test]
    fn an_error_says_what_was_expected_and_where_and_not_what_was_there() {
        let found = [
            read::<BTreeMap<String, u32>>(r#"{"a":_}"#),
            read::<BTreeMap<String, u8>>(r#"{"a":31337}"#),
            read::<Vec<Policy>>("[_]"),
            read::<Time>("_"),
            read::<Meta>(r#"{"name":["a"]}"#),
            read::<(u8, Policy)>("[1]"),
            read::<Vec<u8>>("[1,"),
        ];
        assert_eq!(
            found,
            [
                "invalid type: string …, expected u32 at line 1 column 40",
                "invalid value: integer …, expected u8 at line 1 column 10",
                "unknown variant …, expected `never` at line 1 column 36",
                "invalid value: string …, expected an RFC 3339 time at line 1 column 35",
                "invalid type: sequence, expected a string at line 1 column 8",
                "invalid length 1, expected a tuple of size 2 at line 1 column 3",
                "EOF while parsing a value at line 1 column 3",
            ]
        );
    }

    #[test]
    fn a_reader_that_panics_is_an_error_of_what_is_read() {
        let error = read_alone::<()>(|| panic!("on purpose")).unwrap_err();
        assert_eq!(error.to_string(), "its reader panicked");
    }

    #[test]
    fn what_is_the_codes_own_stays() {
        for text in ["missing field `name` at line 1 column 2", "a field is longer than its message"] {
            assert_eq!(cut(text), text);
        }
        assert_eq!(cut(r#"cannot parse "S3CRET" or `S3CRET`: too long"#), "cannot parse …: too long");
    }
}
