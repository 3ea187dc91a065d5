//! How names, selectors and tokens become part of a URL: the one place that escapes them.
//!
//! Names of RBAC's objects may hold blanks, `?` and `#`, and what an owner reference names may be any text at all.
//! Left out: whole URLs. The client knows the host.

use std::fmt::{Display, Write};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// RFC 3986's unreserved characters stay as they are, and the colon, which names of RBAC's objects like.
const ESCAPED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');

pub fn segment(text: &str) -> impl Display {
    utf8_percent_encode(text, &ESCAPED)
}

/// Whether an object can have this name: any other cannot be asked for, however it is escaped.
///
/// Upstream: `IsValidPathSegmentName`, staging/src/k8s.io/apimachinery/pkg/api/validation/path/name.go; and an empty
/// name, which client-go refuses, too.
pub fn is_segment(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '%'])
}

/// A path with a query; pairs without a value are left out.
pub fn with_query(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut url = path.to_owned();
    for (at, (name, value)) in pairs.iter().filter(|(_, value)| !value.is_empty()).enumerate() {
        let mark = if at == 0 { '?' } else { '&' };
        // Writing to a string cannot fail.
        let _ = write!(url, "{mark}{name}={}", segment(value));
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_one_segment() {
        for (text, expected) in [
            ("web-1.a_b~", "web-1.a_b~"),
            ("system:kube-dns", "system:kube-dns"),
            ("dev?x", "dev%3Fx"),
            ("a b#c", "a%20b%23c"),
            ("100%", "100%25"),
            ("a/b\\c", "a%2Fb%5Cc"),
            ("a&b=c+d;e", "a%26b%3Dc%2Bd%3Be"),
            ("ü\n", "%C3%BC%0A"),
        ] {
            assert_eq!(segment(text).to_string(), expected);
            assert!(format!("/api/{}", segment(text)).parse::<http::Uri>().is_ok(), "{text:?}");
        }
    }

    #[test]
    fn what_no_object_can_be_called_is_no_segment() {
        for name in ["a", "...", ".a", "dev?x y#z", "system:a"] {
            assert!(is_segment(name), "{name:?}");
        }
        for name in ["", ".", "..", "a/b", "/", "50%", "%2e"] {
            assert!(!is_segment(name), "{name:?}");
        }
    }

    #[test]
    fn values_of_a_query_stay_values() {
        assert_eq!(with_query("/api", &[]), "/api");
        assert_eq!(with_query("/api", &[("limit", ""), ("continue", "a+b/c=&x")]), "/api?continue=a%2Bb%2Fc%3D%26x");
        let selector = "spec.nodeName=a b,status.phase!=Failed";
        assert_eq!(
            with_query("/api", &[("watch", "1"), ("fieldSelector", selector)]),
            "/api?watch=1&fieldSelector=spec.nodeName%3Da%20b%2Cstatus.phase%21%3DFailed"
        );
    }
}
