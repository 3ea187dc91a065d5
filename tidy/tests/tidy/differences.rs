//! The rows of `docs/differences.md`, from the section "Differences from upstream" of each operator's page.

use crate::operators::section;
use crate::pages::slug;
use crate::tree::read;

pub(crate) const HEADING: &str = "Differences from upstream";

/// The rows of an operator: the first one says what a shadow shows, and each of the others is a list item or a paragraph.
pub(crate) fn rows(operator: &str) -> String {
    rows_of(operator, section(&read(&format!("operators/{operator}/README.md")), HEADING)).join("\n")
}

fn rows_of(operator: &str, section: &str) -> Vec<String> {
    let page = format!("../operators/{operator}/README.md");
    let mut texts: Vec<String> = Vec::new();
    let mut group = String::new();
    let mut is_open = false;
    for line in section.lines() {
        if line.trim().is_empty() {
            is_open = false;
        } else if let Some(item) = line.strip_prefix("- ") {
            texts.push(format!("{group}{item}"));
            is_open = true;
        } else if let Some(text) = texts.last_mut().filter(|_| is_open) {
            *text = format!("{text} {}", line.trim());
        } else if line.ends_with(':') {
            group = format!("{line} ");
        } else {
            group.clear();
            texts.push(line.to_owned());
            is_open = true;
        }
    }
    let row = |(place, text): (usize, &String)| {
        let name = if place == 0 { format!("[{operator}]({page}#{})", slug(HEADING)) } else { operator.to_owned() };
        format!("| {name} | {} |", moved(text, operator).replace('|', "\\|"))
    };
    texts.iter().enumerate().map(row).collect()
}

/// The text of an operator's page with its links as a page in `docs` needs them. Links to the section of shadows become
/// plain text, because the table would repeat them for each operator.
fn moved(text: &str, operator: &str) -> String {
    let mut parts = text.split("](");
    let mut moved = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (target, rest) = part.split_once(')').unwrap_or((part, ""));
        if target.contains("#shadow-") {
            let at = moved.rfind('[').unwrap_or_default();
            moved.remove(at);
            moved.push_str(rest);
            continue;
        }
        let target = if let Some(page) = target.strip_prefix("../../docs/") {
            page.to_owned()
        } else if let Some(file) = target.strip_prefix("../../") {
            format!("../{file}")
        } else if let Some(sibling) = target.strip_prefix("../") {
            format!("../operators/{sibling}")
        } else if target.contains("://") {
            target.to_owned()
        } else {
            format!(
                "../operators/{operator}/{}",
                if target.starts_with('#') { format!("README.md{target}") } else { target.to_owned() }
            )
        };
        moved = format!("{moved}]({target}){rest}");
    }
    moved
}

#[test]
fn each_item_and_paragraph_becomes_a_row() {
    let section = "\nNone shows in a [shadow](../../docs/a.md#shadow-x) at rest.\nA second line.\n\nNames:\n\n- One `a|b`.\n  More.\n- Two ([x](../b-operator/README.md)).\n\nA remark, [here](#flags).\n";
    assert_eq!(
        rows_of("a-operator", section),
        [
            "| [a-operator](../operators/a-operator/README.md#differences-from-upstream) | None shows in a shadow at rest. A second line. |",
            "| a-operator | Names: One `a\\|b`. More. |",
            "| a-operator | Names: Two ([x](../operators/b-operator/README.md)). |",
            "| a-operator | A remark, [here](../operators/a-operator/README.md#flags). |",
        ]
    );
    assert_eq!(
        moved("[d](../../docs/d.md), [l](../../LICENSE), [w](https://w)", "a"),
        "[d](d.md), [l](../LICENSE), [w](https://w)"
    );
}
