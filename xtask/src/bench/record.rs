//! A dated record of a bench under `records/`: where, of what, with which commands, and the numbers.

use std::fs;
use std::path::PathBuf;

use super::{Bench, Results, machine, table};

const FOLDER: &str = "records";

/// Writes the record of today and returns its file.
pub(super) fn write(bench: &Bench, results: &Results, revision: &str) -> Result<PathBuf, String> {
    let date = machine::today()?;
    let text = page(&format!("{}, {date}", bench.name), revision, &machine::describe()?, results);
    let file = PathBuf::from(FOLDER).join(format!("{date}-{}.md", bench.name));
    fs::create_dir_all(FOLDER).map_err(|e| format!("{FOLDER}: {e}"))?;
    fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(file)
}

fn page(title: &str, revision: &str, machine: &str, results: &Results) -> String {
    let commands: String = results.outcomes.iter().map(|outcome| format!("{}\n", outcome.command)).collect();
    let table = table::results(results);
    format!(
        "# {title}\n\n- revision: {revision}\n{machine}\n\
         CPU is user and system time of the process, the least of its runs; \
         peak memory is its largest resident set.\n\n```sh\n{commands}```\n\n{table}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_revision_machine_and_commands() {
        let text = page("replay, 2000-01-02", "abc-dirty", "- CPU: x\n", &table::tests::three());
        let head = "# replay, 2000-01-02\n\n- revision: abc-dirty\n- CPU: x\n\nCPU is user";
        assert!(text.starts_with(head), "{text}");
        assert!(
            text.contains("```sh\nours 'once'\ntheirs 'once'\nours 'tenfold'\n```\n\n| case |"),
            "{text}"
        );
    }
}
