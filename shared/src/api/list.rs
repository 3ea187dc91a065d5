//! Lists in the texts of plans: the first few items, and how many more there are.

/// The most items that are spelled out.
const SHOWN: usize = 5;

/// `a, b, c, d, e and 7 more`.
pub fn list<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    let shown: Vec<String> = items.iter().take(SHOWN).map(show).collect();
    let shown = shown.join(", ");
    match items.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_items_are_spelled_out_and_the_others_counted() {
        let listed = |count: u32| list(&(0..count).collect::<Vec<_>>(), u32::to_string);
        assert_eq!([listed(0), listed(2)], ["", "0, 1"]);
        assert_eq!([listed(5), listed(7)], ["0, 1, 2, 3, 4", "0, 1, 2, 3, 4 and 2 more"]);
    }
}
