//! What a benchmark leaves: report, spreadsheet, table, exit code; and its plan, which runs again.

use calamine::{Data, Reader, Xlsx, open_workbook};
use insta::assert_snapshot;

use super::{BOOKED, SMALL, Stand, number};

const FEW: &str = "--num-users 4 --max-requests 10 --cpu-mem-gb 0";

#[test]
fn a_plan_runs_again() {
    let stand = Stand::new();
    for flags in ["--cpu-mem-gb 0.05", "--cpu-mem-gb 0 --dataset-path talks.json --replay-cycles 1"] {
        let first =
            stand.bench(&format!("{SMALL} --num-users 4 --generation-mode deterministic {flags}")).json();
        stand.sandbox.write("first.json", first.to_string());
        let again = stand.bench("--plan first.json").json();
        for pointer in ["/plan", "/requests_completed", "/total_tokens_generated", "/summary/touches"] {
            assert_eq!(first.pointer(pointer), again.pointer(pointer), "{flags}: {pointer}");
        }
    }
    let both = stand.run("--plan first.json --num-users 3");
    assert_eq!(both.code, Some(2));
    assert!(both.stderr.starts_with("error: --plan: a plan is complete\n"), "{}", both.stderr);
}

#[test]
fn a_plan_with_a_directory_of_its_own_gets_another_one() {
    let stand = Stand::new();
    // As long as ten requests take where others are busy too.
    let line = SMALL.replace(" --cache-dir cache", "").replace("--duration 1", "--duration 300");
    let first = stand.bench(&format!("{line} {FEW} --generation-mode none")).json();
    stand.sandbox.write("first.json", first.to_string());
    let again = stand.bench("--plan first.json").json();
    assert_eq!((&again["plan"], &again["requests_completed"]), (&first["plan"], &10.into()));
}

#[test]
fn spreadsheets() {
    let stand = Stand::new();
    let report = stand.bench(&format!("{BOOKED} {FEW} --xlsx-output deep/er/r.xlsx")).json();
    let mut book: Xlsx<_> = open_workbook(stand.sandbox.path("deep/er/r.xlsx")).expect("a workbook");
    assert_eq!(book.sheet_names(), ["Summary", "Run Parameters", "Performance Metrics", "QoS Metrics"]);
    let sheet = book.worksheet_range("Summary").expect("a sheet");
    let rows: Vec<&[Data]> = sheet.rows().collect();
    assert_eq!(rows.len(), 2, "one row below its heading");
    let heading: Vec<String> = rows[0].iter().map(ToString::to_string).collect();
    let cell = |name: &str| {
        let column = heading.iter().position(|cell| cell.starts_with(name));
        rows[1][column.unwrap_or_else(|| panic!("{name} is not in {heading:?}"))].clone()
    };
    assert_eq!(cell("Total Requests"), Data::Float(number(&report, "/requests_completed")));
    assert_eq!(cell("Model").to_string(), "tiny-1b");
    for column in ["Num Users", "Duration", "GPU Mem", "CPU Mem", "Total Tokens", "Avg Throughput"] {
        cell(column);
    }
    stand.bench(&format!("{BOOKED} {FEW} --xlsx-output r.csv"));
    let text = stand.sandbox.read("r.csv");
    let [names, values] = text.lines().collect::<Vec<_>>()[..] else { panic!("two lines: {text}") };
    assert!(names.starts_with("Model,") && names.contains(",Total Requests,"), "{names}");
    assert!(values.starts_with("tiny-1b,"), "{values}");
}

#[test]
fn strict_fails_with_what_it_measures() {
    let stand = Stand::new();
    let line = format!("{BOOKED} {FEW} --pass-hit-rate 1 --output r.json");
    let lenient = stand.run(&line);
    assert_eq!((lenient.code, lenient.stderr.as_str()), (Some(0), ""));
    assert!(lenient.stdout.contains("ASSESSMENT: FAIL"), "{}", lenient.stdout);
    let strict = stand.run(&format!("{line} --strict"));
    assert_eq!(strict.code, Some(1));
    assert_eq!(strict.stderr, "the assessment failed, and --strict was asked for\n");
    let report = stand.sandbox.report("r.json").json();
    assert_eq!(report["summary"]["cache_stats"]["storage_health"]["overall_status"], "FAIL");
    let passes = stand.run(&format!("{BOOKED} {FEW} --pass-hit-rate 0 --strict --output r.json"));
    assert_eq!((passes.code, passes.stderr.as_str()), (Some(0), ""));
}

#[test]
fn quiet_says_nothing_but_the_result() {
    let stand = Stand::new();
    let run = stand
        .run(&format!("{SMALL} --cpu-mem-gb 0 --num-users 4 --generation-mode none --quiet --output r.json"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert!(run.stdout.ends_with("Saved full report to: r.json\n"), "{}", run.stdout);
}

/// On a virtual clock and with booked entries every number is the same each time.
#[test]
fn the_table() {
    let stand = Stand::new();
    let run = stand.run(&format!("{BOOKED} {FEW} --disable-prefix-caching --output r.json"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let is_timed = |line: &&str| line.contains(['│', '┃', '━', '─']) || line.contains("ms");
    let is_steady = |line: &&str| !is_timed(line) && !line.contains("I/O t");
    assert_snapshot!(run.stdout.lines().filter(is_steady).collect::<Vec<_>>().join("\n"));
    let report = stand.sandbox.report("r.json").json();
    assert_eq!(report["ended"], "drained", "a virtual clock stops when there is nothing left to do");
}

#[test]
fn a_report_without_a_path_lands_here_with_a_timestamp() {
    let stand = Stand::new();
    let run = stand.run(&format!("{BOOKED} {FEW}"));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let names = stand.sandbox.names_in("");
    let name = names.iter().find(|name| name.starts_with("benchmark_results_")).expect("a report");
    assert!(run.stdout.ends_with(&format!("\nSaved full report to: {name}\n")), "{}", run.stdout);
}

/// Minutes of work are not thrown away for a name.
#[test]
fn a_path_that_cannot_be_written_is_found_before_the_run() {
    let stand = Stand::new();
    for flag in ["--output", "--xlsx-output", "--io-trace-log"] {
        let line = SMALL.replace("--duration 1", "--duration 3600");
        let run = stand.run(&format!("{line} --num-users 1 {flag} talks.json/r"));
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{flag}");
        assert!(run.stderr.starts_with("error: talks.json/r: cannot write: "), "{flag}: {}", run.stderr);
    }
    let names = stand.sandbox.names_in("");
    assert_eq!(names, ["bursts.csv", "cache", "scaled.yaml", "talks.json"], "nothing is left behind");
}
