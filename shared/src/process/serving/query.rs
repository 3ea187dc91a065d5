//! The part of an address after the question mark.
//!
//! Left out: `+` for a blank, which forms send and our visitors don't.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    pub fn new(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let split = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        };
        Self(pairs.map(split).collect())
    }

    /// All values under this name, in order.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The first value under this name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Undoes percent-encoding; what isn't well encoded stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let byte = digits.filter(|pair| !pair.starts_with('+')).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        if let (b'%', Some(byte)) = (first, byte) {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_and_values() {
        let query = Query::new("key=ns%2Fa&verbose&exclude=a&exclude=b&odd=100%&%zz=%+1");
        assert_eq!(query.value("key"), Some("ns/a"));
        assert_eq!(query.value("verbose"), Some(""));
        assert_eq!(query.values("exclude").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((query.value("odd"), query.value("%zz"), query.value("none")), (Some("100%"), Some("%+1"), None));
    }
}
