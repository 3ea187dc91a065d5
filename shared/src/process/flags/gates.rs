//! `--feature-gates`, as kube-controller-manager reads it: each operator names the gates that it knows.
//!
//! Left out: upstream's gates that change nothing in an operator, which are refused.

use super::parse_bool;

/// Sets each gate that a text (`A=true,B=false`) names.
///
/// # Errors
/// When the text names a gate that is none of these, or gives it no boolean.
pub fn read_gates(text: &str, gates: &mut [(&str, &mut bool)]) -> Result<(), String> {
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or_else(|| format!("missing bool value for {pair}"))?;
        let (name, value) = (name.trim(), value.trim());
        let is_on = parse_bool(value).map_err(|_| format!("invalid value of {name}={value}"))?;
        let known = gates.iter_mut().find(|(known, _)| *known == name);
        let (_, gate) = known.ok_or_else(|| format!("unrecognized feature gate: {name}"))?;
        **gate = is_on;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_that_are_named_are_set() {
        let read = |text: &str| {
            let (mut first, mut second) = (false, true);
            read_gates(text, &mut [("First", &mut first), ("Second", &mut second)]).map(|()| (first, second))
        };
        for (text, expected) in [
            ("", (false, true)),
            ("First=true", (true, true)),
            ("First=True,", (true, true)),
            (" First = 1 , Second=f", (true, false)),
            ("First=true,First=false", (false, true)),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
        for (text, error) in [
            ("First", "missing bool value for First"),
            ("First=yes", "invalid value of First=yes"),
            ("Third=true", "unrecognized feature gate: Third"),
        ] {
            assert_eq!(read(text), Err(error.to_owned()), "{text}");
        }
    }
}
