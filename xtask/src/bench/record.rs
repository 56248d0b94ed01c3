//! A dated record of a bench under `records/`: where, of what, how, and the numbers.

use std::fs;
use std::path::PathBuf;

use super::{Page, machine};

const FOLDER: &str = "records";

/// Writes the record of today and returns its file.
pub(super) fn write(bench: &str, page: &Page, revision: &str) -> Result<PathBuf, String> {
    let date = machine::today()?;
    let text = record(&format!("{bench}, {date}"), revision, &machine::describe()?, page);
    let file = PathBuf::from(FOLDER).join(format!("{date}-{bench}.md"));
    fs::create_dir_all(FOLDER).map_err(|e| format!("{FOLDER}: {e}"))?;
    fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(file)
}

fn record(title: &str, revision: &str, machine: &str, page: &Page) -> String {
    let Page { method, table } = page;
    format!("# {title}\n\n- revision: {revision}\n{machine}\n{method}\n{table}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_revision_machine_and_method() {
        let page = Page { method: "As follows.\n".to_owned(), table: "| case |\n".to_owned() };
        let text = record("replay, 2000-01-02", "abc-dirty", "- CPU: x\n", &page);
        assert_eq!(
            text,
            "# replay, 2000-01-02\n\n- revision: abc-dirty\n- CPU: x\n\nAs follows.\n\n| case |\n"
        );
    }
}
