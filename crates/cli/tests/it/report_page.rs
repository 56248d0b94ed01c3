//! The page of `wavetank report` in a real browser, and the command that writes it.

use std::fs::{self, File};
use std::path::PathBuf;

use insta::assert_snapshot;
use serde_json::json;
use wavetank_report::figure::{Axis, Figure, Kind, Role, Series};
use wavetank_report::page::{Cell, Head, Page, Section, Table};
use wavetank_report::render::html;

use crate::browser::Browser;
use crate::sandbox::{Sandbox, repository};

/// A name that would like to be more.
const HOSTILE: &str =
    "</script><script>window.hacked=1</script>\"><img src=x onerror=window.hacked=1>\u{202e}\u{1b}";
/// Points of the picture that can be selected, a row of its table each.
const POINTS: usize = 30;

fn figure(id: &str, kind: Kind, x: Axis, series: Vec<Series>) -> Figure {
    let (title, about) = (format!("Figure {id} {HOSTILE}"), format!("About {HOSTILE}"));
    Figure { id: id.to_owned(), title, about, kind, x, y: Axis::linear("time", "ms"), series }
}

/// One figure of each kind; lines with a million points.
fn figures() -> Vec<Figure> {
    let at = || Axis::linear("at", "s");
    let named = || Axis::names("run", vec!["one".to_owned(), HOSTILE.to_owned()]);
    let rising = |by: f64| (0..100).map(|at| (f64::from(at), by * f64::from(at))).collect::<Vec<_>>();
    let long = (0..1_000_000).map(|at| (f64::from(at) / 1e4, f64::from(at % 1000))).collect();
    let guide = Series { role: Role::Guide, ..Series::of("bound", vec![(0.0, 50.0), (99.0, 50.0)]) };
    let point = |at: usize| (at as f64, (at * 7 % POINTS) as f64 + 1.0);
    let cloud = Series {
        notes: (0..POINTS).map(|at| format!("note {at} {HOSTILE}")).collect(),
        ..Series::of("points", (0..POINTS).map(point).collect())
    };
    // Drawn through points that are there: no rows of their own.
    let front = Series { role: Role::Front, ..Series::of("front", (0..5).map(point).collect()) };
    let bars = |name: &str| Series::of(name, vec![(0.0, 3.0), (1.0, 5.0)]);
    let lines = vec![Series::of("slow", rising(2.0)), Series::of(HOSTILE, rising(1.0)), guide];
    vec![
        figure("lines", Kind::Lines, at(), lines),
        figure("long", Kind::Lines, at(), vec![Series::of("a million", long)]),
        figure("bars", Kind::Bars, named(), vec![bars("a"), bars("b")]),
        figure("stacked", Kind::Stacked, named(), vec![bars("a"), bars(HOSTILE)]),
        figure("cloud", Kind::Points, at(), vec![cloud, front]),
        figure(
            "heat",
            Kind::Heat,
            at(),
            (0..9).map(|w| Series::of(format!("worker {w}"), rising(1.0))).collect(),
        ),
    ]
}

fn page() -> Page {
    let text = |text: &str| Cell::Text(text.to_owned());
    let rows =
        (0..POINTS).map(|at| vec![text(&format!("row {at}")), Cell::Number(at as f64 * 1e6)]).collect();
    let points = Table {
        title: "Every point".to_owned(),
        columns: vec!["point".to_owned(), "number".to_owned()],
        rows,
        of_figure: Some("cloud".to_owned()),
    };
    let wide = Table {
        title: "Side by side".to_owned(),
        columns: (0..20).map(|run| format!("run number {run}")).collect(),
        rows: vec![(0..20).map(|run| Cell::Number(f64::from(run) * 1.5e9)).collect()],
        of_figure: None,
    };
    let head = Head {
        name: HOSTILE.to_owned(),
        kind: "replay",
        warnings: vec![HOSTILE.to_owned(), "3 requests rejected".to_owned()],
        plan: json!({ "trace": HOSTILE, "long": "x".repeat(500) }),
    };
    let section = Section { title: "All".to_owned(), tables: vec![wide, points], figures: figures() };
    Page { title: format!("Test {HOSTILE}"), runs: vec![head], sections: vec![section] }
}

/// Where a part of the plot of a figure is on the screen, from 0 to 1 from its left and top edge.
fn place(browser: &mut Browser, figure: &str, right: f64, down: f64) -> (f64, f64) {
    let found = browser.value(&format!(
        "(() => {{ const plot = document.querySelector('#{figure} .plot');
           plot.scrollIntoView({{ block: 'center', behavior: 'instant' }});
           const svg = [...plot.querySelectorAll('svg')].find(svg => svg.getBoundingClientRect().width > 0);
           const box = svg.getBoundingClientRect(), zoom = box.width / svg.viewBox.baseVal.width;
           const [left, top, right, bottom] = svg.dataset.box.split(' ').map(Number);
           return [box.left + zoom * (left + {right} * (right - left)),
             box.top + zoom * (top + {down} * (bottom - top))]; }})()"
    ));
    (found[0].as_f64().expect("a place"), found[1].as_f64().expect("a place"))
}

fn readout(browser: &mut Browser, figure: &str) -> String {
    browser.text(&format!("document.querySelector('#{figure} .readout').textContent"))
}

fn shown_rows(browser: &mut Browser) -> f64 {
    browser.number("document.querySelectorAll('table[data-of] tbody tr:not([hidden])').length")
}

/// Broken by: a script that throws, a picture that is empty, something asked of the network, a name that
/// becomes more than a name, keys or pointers without effect, a selection that the table does not follow.
#[test]
fn pictures_are_drawn_read_and_selected() {
    let sandbox = Sandbox::empty();
    let Some(mut browser) = Browser::start(&sandbox) else { return };
    let path = sandbox.path("page.html");
    html::write(&page(), &mut File::create(&path).expect("a file")).expect("it is written");
    let size = fs::metadata(&path).expect("a file").len();
    assert!(size < 1_000_000, "a million points make {size} bytes");
    browser.resize(1280, 900);
    browser.open(&path);
    drawn(&mut browser);
    pointed(&mut browser);
    hidden(&mut browser);
    selected(&mut browser);
    focused(&mut browser);
    coloured(&mut browser);
    narrow(&mut browser);
    harmless(&mut browser);
    unscripted(&mut browser, &path);
}

/// Every picture has something in it that takes room.
fn drawn(browser: &mut Browser) {
    let pictures = browser.value(
        "[...document.querySelectorAll('figure .plot svg.wide')].map(svg => {
           const box = svg.getBoundingClientRect();
           const marks = [...svg.querySelectorAll('g[data-s] path, path[class^=h]')];
           const has = path => /\\d/.test(path.getAttribute('d')) && path.getTotalLength() > 0;
           return [box.width, box.height, marks.length, marks.filter(has).length]; })",
    );
    let pictures: Vec<Vec<f64>> = serde_json::from_value(pictures).expect("numbers");
    assert_eq!(pictures.len(), figures().len());
    for picture in pictures {
        assert!(picture[0] > 300.0 && picture[1] > 100.0, "{picture:?}");
        assert!(picture[2] > 0.0 && picture[2] == picture[3], "{picture:?}");
    }
}

fn pointed(browser: &mut Browser) {
    let middle = place(browser, "lines", 50.0 / 99.0, 0.5);
    browser.pointer("mouseMoved", middle);
    let said = readout(browser, "lines");
    assert!(
        said.contains("50 s") && said.contains("slow: 100 ms") && said.contains("bound: 50 ms"),
        "{said}"
    );
    let row = place(browser, "heat", 0.5, 0.5);
    browser.pointer("mouseMoved", row);
    let said = readout(browser, "heat");
    assert!(said.contains("worker 4: ") && !said.contains("worker 5"), "{said}");
    browser.value("document.querySelector('#stacked .plot').focus()");
    browser.press("ArrowRight");
    let said = readout(browser, "stacked");
    assert!(said.contains("one") && said.contains("a: 3 ms"), "{said}");
}

fn hidden(browser: &mut Browser) {
    let shown =
        "getComputedStyle(document.querySelector('#lines svg.wide g[data-s=\"0\"]')).display !== 'none'";
    let button = "document.querySelector('#lines .legend button')";
    browser.value(&format!("{button}.focus()"));
    for expected in [false, true, false] {
        browser.press("Enter");
        assert_eq!(browser.value(shown), json!(expected));
        assert_eq!(browser.text(&format!("{button}.getAttribute('aria-pressed')")), expected.to_string());
    }
    let middle = place(browser, "lines", 0.5, 0.5);
    browser.pointer("mouseMoved", middle);
    let said = readout(browser, "lines");
    assert!(!said.contains("slow") && said.contains("bound"), "{said}");
}

fn selected(browser: &mut Browser) {
    let all = POINTS as f64;
    assert_eq!(shown_rows(browser), all);
    browser.value("document.querySelector('#cloud .plot').focus()");
    for key in ["ArrowRight", "ArrowRight", "Enter"] {
        browser.press(key);
    }
    let said = readout(browser, "cloud");
    assert!(said.contains("note 1 ") && said.contains("selected"), "{said}");
    assert_eq!(shown_rows(browser), 1.0);
    let row = "document.querySelector('table[data-of] tbody tr:not([hidden])').textContent";
    assert_eq!(browser.text(row), "row 11,000,000");
    let count = browser.text("document.querySelector('.picked').textContent");
    assert!(count.starts_with("1 of 30 selected"), "{count}");
    browser.press("Escape");
    assert_eq!(shown_rows(browser), all);
    // A frame over the left half.
    for (kind, right, down) in [
        ("mouseMoved", 0.0, 0.0),
        ("mousePressed", 0.0, 0.0),
        ("mouseMoved", 0.2, 0.5),
        ("mouseReleased", 0.5, 1.0),
    ] {
        let at = place(browser, "cloud", right, down);
        browser.pointer(kind, at);
    }
    assert_eq!(shown_rows(browser), all / 2.0);
    browser.value("document.querySelector('.picked button').click()");
    assert_eq!(shown_rows(browser), all);
    let picture = page_point(browser, 3);
    browser.click(picture);
    assert_eq!(shown_rows(browser), 1.0);
    browser.press("Escape");
}

/// Where a point of the cloud is: the axis has three hundredths of room on both sides.
fn page_point(browser: &mut Browser, number: usize) -> (f64, f64) {
    let right = (number as f64 / (POINTS - 1) as f64 * 1.0 + 0.03) / 1.06;
    let y = (number * 7 % POINTS) as f64 + 1.0;
    place(browser, "cloud", right, 1.0 - y / (POINTS as f64 * 1.04))
}

/// Whatever a key reaches is seen to be reached, and everything that can be used is reached.
fn focused(browser: &mut Browser) {
    browser.value("(document.activeElement.blur(), window.scrollTo(0, 0))");
    let mut reached = Vec::new();
    for _ in 0..60 {
        browser.press("Tab");
        let now = browser.text(
            "(() => { const now = document.activeElement, style = getComputedStyle(now);
               if (now === document.body) return '';
               const seen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
               return (seen ? '' : 'UNSEEN ') + now.tagName + '.' + now.className; })()",
        );
        reached.push(now);
    }
    assert!(reached.iter().all(|name| !name.contains("UNSEEN")), "{reached:?}");
    for name in ["A.skip", "BUTTON.", "DIV.plot pointed", "DIV.scroll", "SUMMARY."] {
        assert!(reached.iter().any(|reached| reached == name), "{name}: {reached:?}");
    }
}

fn coloured(browser: &mut Browser) {
    let colours = "[document.body, document.querySelector('#lines svg.wide .s2')].map(element =>
        getComputedStyle(element).backgroundColor + getComputedStyle(element).stroke).join()";
    let mut seen = Vec::new();
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        seen.push(browser.text(colours));
    }
    assert_ne!(seen[0], seen[1]);
    let button = "document.getElementById('theme').click()";
    for expected in [0, 1, 1] {
        browser.value(button);
        assert_eq!(browser.text(colours), seen[expected], "light, dark, as the system: dark");
    }
    browser.prefer("light");
}

/// On a telephone nothing is wider than the screen, and letters are as large as they have to be.
fn narrow(browser: &mut Browser) {
    browser.resize(390, 844);
    browser.value("document.querySelectorAll('details').forEach(part => { part.open = true; })");
    readable(browser);
    let middle = place(browser, "lines", 50.0 / 99.0, 0.5);
    browser.pointer("mouseMoved", middle);
    let said = readout(browser, "lines");
    assert!(said.contains("50 s"), "{said}");
}

fn readable(browser: &mut Browser) {
    let width = browser.number("document.documentElement.scrollWidth");
    assert!(width <= 390.0, "{width}");
    let smallest = browser.number(
        "(() => {
           const is_text = node => node.nodeType === 3 && node.data.trim();
           const has_text = element => [...element.childNodes].some(is_text);
           const is_read = element => element.getClientRects().length && has_text(element);
           const size = element => {
             const svg = element.closest('svg');
             const zoom = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
             return parseFloat(getComputedStyle(element).fontSize) * zoom;
           };
           return Math.min(...[...document.querySelectorAll('body *')].filter(is_read).map(size)); })()",
    );
    assert!(smallest >= 11.0, "{smallest} pixels");
}

/// Nothing was said in the console, nobody was asked, and names are names.
fn harmless(browser: &mut Browser) {
    assert!(browser.value("window.hacked === undefined").as_bool().expect("a bool"));
    assert_eq!(browser.number("document.querySelectorAll('script').length"), 2.0);
    assert_eq!(browser.number("document.querySelectorAll('img').length"), 0.0);
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
    let asked = browser.requested();
    assert!(
        asked.iter().skip(1).all(|url| url.starts_with("data:")) && asked[0].ends_with("page.html"),
        "{asked:?}"
    );
}

/// Pictures, tables and plans are there without the script.
fn unscripted(browser: &mut Browser, path: &std::path::Path) {
    browser.call("Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    browser.resize(1280, 900);
    browser.open(path);
    drawn(browser);
    assert_eq!(shown_rows(browser), POINTS as f64);
    assert_eq!(browser.number("document.querySelectorAll('.live, .legend button').length"), 0.0);
}

/// Two replays of the examples on one page.
fn compared(sandbox: &Sandbox) -> PathBuf {
    let trace = "replay examples/conversation.jsonl --num-workers 4";
    for line in ["--report-json rr.json", "--router-mode kv_router --report-json kv.json"] {
        assert_eq!(sandbox.run(&format!("{trace} {line}")).code, Some(0));
    }
    let run = sandbox.run("report round_robin=rr.json kv_router=kv.json -o report.html --title Two-routers");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Saved page to: report.html\n"), "{}", run.stderr);
    sandbox.path("report.html")
}

/// Broken by: a page of real runs with something on it that a browser complains about, or that is wider than
/// a telephone. `cargo xtask bless` keeps what it looks like in docs/.
#[test]
fn real_runs_are_shown_side_by_side() {
    let sandbox = Sandbox::with_examples();
    let Some(mut browser) = Browser::start(&sandbox) else { return };
    let path = compared(&sandbox);
    let is_blessed = std::env::var_os("WAVETANK_BLESS").is_some();
    for (name, scheme, width, height) in
        [("light", "light", 1280, 1500), ("dark", "dark", 1280, 1500), ("phone", "light", 390, 1500)]
    {
        browser.resize(width, height);
        browser.prefer(scheme);
        browser.open(&path);
        assert_eq!(browser.text("document.querySelector('h1').textContent"), "Two-routers");
        assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
        if width == 390 {
            readable(&mut browser);
        }
        let shot = browser.screenshot();
        assert!(shot.len() < 200_000, "{name}: {} bytes", shot.len());
        if is_blessed {
            let folder = repository().join("docs/report");
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join(format!("{name}.png")), shot).expect("a picture");
        }
    }
}

/// What is tried in the page of a sweep.
const SPEC: &str = r#"
[base]
trace = "examples/single_turn.jsonl"
[axes]
num_workers = [2, 3, 4]
[pareto]
minimize = ["p99_ttft_ms", "gpu_hours"]
"#;

/// Broken by: a kind of run whose flag has no effect, or whose page a browser complains about.
#[test]
fn every_kind_of_run_has_a_page() {
    let sandbox = Sandbox::with_examples();
    let Some(mut browser) = Browser::start(&sandbox) else { return };
    sandbox.write("s.toml", SPEC);
    let measured = crate::validate::measured();
    let bench = "bench --model tiny-1b --gpu-mem-gb 0 --backend null --backend-option moves=no \
        --generation-mode deterministic --duration 5 --num-users 5 --output bench.json";
    let suite = "bench suite --quick --gpu-tier off --only storage --cache-dir cache --output suite";
    let kinds = [
        (&sandbox, "replay", "replay examples/single_turn.jsonl --num-workers 2 --report-json replay.json"),
        (&sandbox, "bench", bench),
        (&sandbox, "suite", suite),
        (&sandbox, "sweep", "sweep s.toml -o sweep.json"),
        (&measured, "validate", "validate d"),
    ];
    for (sandbox, name, line) in kinds {
        let run = sandbox.run(&format!("{line} --html {name}.html"));
        assert_eq!(run.code, Some(0), "{line}: {}", run.stderr);
        assert!(run.stdout.contains(&format!("Saved page to: {name}.html\n")), "{}", run.stdout);
        browser.resize(390, 844);
        browser.open(&sandbox.path(&format!("{name}.html")));
        readable(&mut browser);
        let drawn = browser.number("document.querySelectorAll('figure svg.narrow path[d*=M]').length");
        assert!(drawn > 0.0, "{name}");
        assert!(browser.complaints().is_empty(), "{name}: {:#?}", browser.complaints());
    }
    // All reports together, and a suite by its folder.
    let all = sandbox.run("report replay.json bench.json suite sweep.json -o all.html --title All");
    assert_eq!(all.code, Some(0), "{}", all.stderr);
    browser.open(&sandbox.path("all.html"));
    assert_eq!(browser.number("document.querySelectorAll('.runs > li').length"), 4.0);
    readable(&mut browser);
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
}

/// Broken by: a page that says when or where it was made.
#[test]
fn the_same_reports_are_the_same_page() {
    let sandbox = Sandbox::with_examples();
    let first = fs::read(compared(&sandbox)).expect("a page");
    let again = sandbox.run("report round_robin=rr.json kv_router=kv.json -o again.html --title Two-routers");
    assert_eq!(again.code, Some(0));
    assert!(first == fs::read(sandbox.path("again.html")).expect("a page"), "the pages differ");
}

#[test]
fn plots_and_points_are_files() {
    let sandbox = Sandbox::with_examples();
    let trace = "replay examples/single_turn.jsonl --num-workers 2 --report-json run.json";
    let run = sandbox.run(&format!(
        "{trace} --html out/run.html --plots out/plots --plot-format both --timeseries out/points.csv.zst"
    ));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let plots = sandbox.names_in("out/plots");
    for line in ["Saved page to: out/run.html", "Saved points to: out/points.csv.zst"] {
        assert!(run.stdout.contains(line), "{}", run.stdout);
    }
    assert!(run.stdout.contains(&format!("Saved {} plots to: out/plots", plots.len())), "{}", run.stdout);
    let svg = plots.iter().filter(|name| name.ends_with(".svg")).count();
    assert_eq!(svg * 2, plots.len(), "{plots:?}");
    let points =
        zstd::decode_all(File::open(sandbox.path("out/points.csv.zst")).expect("a file")).expect("zstd");
    let points = String::from_utf8(points).expect("text");
    assert!(points.starts_with("section,figure,series,x_label,"), "{points:.200}");
    for name in plots.iter().filter_map(|name| name.strip_suffix(".svg")) {
        assert!(points.contains(&format!(",{name},")), "{name}");
        assert!(sandbox.read("out/run.html").contains(&format!("id=\"{name}\"")), "{name}");
    }
    // The report alone has all of it.
    let again = sandbox.run("report single_turn=run.json --timeseries again.csv");
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(sandbox.read("again.csv") == points, "the points differ");
}

/// Broken by: a report that cannot be drawn and is, or a message without the file.
#[test]
fn what_cannot_be_drawn_is_said() {
    let sandbox = Sandbox::with_trace(&[crate::sandbox::GOOD_ROW]);
    sandbox.write("list.json", "[]");
    sandbox.write("other.json", "{\"a\": 1}");
    sandbox.write("broken.json", "{\n\"a\": 1,\n]");
    sandbox.write("file", "");
    fs::create_dir(sandbox.path("empty")).expect("a folder");
    let lines = [
        "report",
        "report other.json",
        "report missing.json -o a.html",
        "report broken.json -o a.html",
        "report list.json -o a.html",
        "report x=other.json -o a.html",
        "report empty -o a.html",
        "report a=other.json a=list.json -o a.html",
        "report other.json -o other.json",
        "report other.json -o a.html --timeseries a.html",
        "report other.json --plot-format png -o a.html",
        "replay trace.jsonl --trace-block-size 64 --html -",
        "replay trace.jsonl --trace-block-size 64 --html trace.jsonl",
        "replay trace.jsonl --trace-block-size 64 --plots file",
        "replay trace.jsonl --trace-block-size 64 --html file/a.html",
        "bench suite --dry-run --html a.html",
    ];
    let mut said = String::new();
    let before = sandbox.names_in("");
    for line in lines {
        let run = sandbox.run(line);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{line}: {}", run.stderr);
        // Which kinds there are is not said here.
        let told = sandbox.steady(&run.stderr);
        let told =
            told.split_once("have one: ").map_or(told.clone(), |(told, _)| format!("{told}have one: …\n"));
        said += &format!("$ wavetank {line}\n{told}\n");
    }
    assert_eq!(sandbox.names_in(""), before, "nothing is left behind");
    assert_snapshot!(said);
}
