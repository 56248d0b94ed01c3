//! The picture of a live run: what was seen in, cells out.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, LineGauge, Row, Sparkline, Table, Widget};
use wavetank::gauges::{Snapshot, WorkerCounts};

use super::course::{Course, Point};

/// What a picture shows.
pub(super) struct View<'v> {
    pub(super) title: &'v str,
    /// Requests of the whole run, where that is known.
    pub(super) expected: Option<u64>,
    pub(super) course: &'v Course,
    /// Workers above the first one shown, if there are so many.
    pub(super) scrolled: usize,
}

/// Below this there is no room for curves.
const CURVES_FROM: u16 = 16;
const CURVE_ROWS: u16 = 6;
/// Below this some columns of the table are left out.
const WIDE_FROM: u16 = 72;
const BAR: usize = 5;

/// Draws `view`, into whatever room there is.
pub(super) fn draw(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let curves = if area.height >= CURVES_FROM { CURVE_ROWS } else { 0 };
    let progress = u16::from(view.expected.is_some());
    let rows = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(progress),
        Constraint::Length(curves),
        Constraint::Fill(1),
        Constraint::Length(1),
    ];
    let [head, requests, progress, curves, workers, foot] = area.layout(&Layout::vertical(rows));
    title(view, head, buffer);
    Line::from(requests_line(view)).render(requests, buffer);
    progress_bar(view, progress, buffer);
    curve_row(view.course, curves, buffer);
    worker_table(view, workers, buffer);
    let keys = if hidden(view, workers) > 0 { "q ends the run, ↑ ↓ scroll" } else { "q ends the run" };
    Line::from(keys).dim().render(foot, buffer);
}

fn title(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    Line::from(view.title).bold().render(area, buffer);
    Line::from(format!(" {}", clock(view.course.elapsed()))).right_aligned().render(area, buffer);
}

fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Where requests are, and how they ended.
fn requests_line(view: &View<'_>) -> String {
    let counts = view.course.counts();
    let expected = view.expected.map(|all| format!(" of {all}")).unwrap_or_default();
    let mut line = format!(
        "{}{expected} requests ended, {} running, {} waiting",
        counts.ended(),
        counts.total(|worker| worker.running),
        counts.total(waiting) + counts.waiting_in_router,
    );
    for (count, what) in [
        (counts.waiting_in_router, "of them in the router"),
        (counts.total(|worker| worker.finished.error), "rejected"),
        (counts.total(|worker| worker.finished.abort) + counts.cancelled_in_router, "given up"),
        (counts.total(|worker| worker.preemptions), "preempted"),
    ] {
        if count > 0 {
            line += &format!(", {count} {what}");
        }
    }
    line
}

/// Requests that a worker has not begun with.
fn waiting(worker: &WorkerCounts) -> u64 {
    worker.sent + worker.waiting
}

fn progress_bar(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let Some(expected) = view.expected else { return };
    let ratio = part(view.course.counts().ended(), expected);
    let gauge = LineGauge::default().ratio(ratio).filled_style(Color::Cyan);
    gauge.filled_symbol("█").unfilled_symbol("░").render(area, buffer);
}

/// How much of `whole` there is, up to 1.
fn part(some: u64, whole: u64) -> f64 {
    (some as f64 / whole.max(1) as f64).min(1.0)
}

/// What happened over the last minute.
struct Curve {
    name: &'static str,
    value: fn(&Point) -> Option<f64>,
    shown: fn(f64) -> String,
}

const CURVES: [Curve; 3] = [
    Curve { name: "TTFT", value: |point| point.first_token, shown: time },
    Curve { name: "ITL", value: |point| point.token_gap, shown: time },
    Curve { name: "tokens/s", value: |point| Some(point.tokens_per_second), shown: number },
];

fn curve_row(course: &Course, area: Rect, buffer: &mut Buffer) {
    let thirds = area.layout::<{ CURVES.len() }>(&Layout::horizontal([Constraint::Fill(1); CURVES.len()]));
    for (&Curve { name, value, shown }, area) in CURVES.iter().zip(thirds) {
        let points: Vec<Option<f64>> = course.points().map(value).collect();
        let latest = points.iter().rev().flatten().next().map(|value| shown(*value)).unwrap_or_default();
        let block = Block::bordered().title(format!(" {name} {latest} "));
        let room = usize::from(block.inner(area).width);
        Sparkline::default().block(block).data(tail(&points, room)).fg(Color::Cyan).render(area, buffer);
    }
}

/// The last of `points`, at the right of `room`, in whole millionths.
fn tail(points: &[Option<f64>], room: usize) -> Vec<Option<u64>> {
    let last = &points[points.len().saturating_sub(room)..];
    let missing = std::iter::repeat_n(None, room - last.len());
    missing.chain(last.iter().map(|value| value.map(|value| (value * 1e6) as u64))).collect()
}

/// A span of seconds, in the unit in which it is read best.
fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds >= 1.0 => format!("{seconds:.2} s"),
        _ if seconds >= 0.01 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{:.3} ms", seconds * 1e3),
    }
}

fn number(value: f64) -> String {
    if value > 0.0 && value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Workers that do not fit.
fn hidden(view: &View<'_>, area: Rect) -> usize {
    let room = usize::from(area.height.saturating_sub(2));
    view.course.counts().workers.len().saturating_sub(room)
}

fn worker_table(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let counts = view.course.counts();
    let columns = Columns::of(area.width);
    let scrolled = view.scrolled.min(hidden(view, area));
    let rows = counts.workers.iter().enumerate().skip(scrolled);
    let rows = rows
        .map(|(number, worker)| columns.row(&number.to_string(), worker, view.course.worker_rate(number)));
    let total = columns.row("all", &total(counts), view.course.total_rate());
    Widget::render(
        Table::new(rows, columns.widths())
            .header(columns.header().style(Style::new().bold()))
            .footer(total.style(Style::new().bold())),
        area,
        buffer,
    );
}

/// All workers as one.
fn total(counts: &Snapshot) -> WorkerCounts {
    WorkerCounts {
        sent: counts.total(|worker| worker.sent),
        waiting: counts.total(|worker| worker.waiting),
        running: counts.total(|worker| worker.running),
        blocks_in_use: counts.total(|worker| worker.blocks_in_use),
        blocks: counts.total(|worker| worker.blocks),
        queried_tokens: counts.total(|worker| worker.queried_tokens),
        hit_tokens: counts.total(|worker| worker.hit_tokens),
        passes: counts.total(|worker| worker.passes),
        ..WorkerCounts::default()
    }
}

/// Name and width of each column; the bar takes what is left.
const COLUMNS: [(&str, u16); 7] = [
    ("worker", 6),
    ("waiting", 7),
    ("running", 7),
    ("cache in use", 0),
    ("tokens/s", 9),
    ("reused", 6),
    ("passes", 9),
];

/// The columns that fit.
struct Columns {
    shown: usize,
    bar: u16,
}

impl Columns {
    fn of(width: u16) -> Self {
        let shown = if width < WIDE_FROM { BAR } else { COLUMNS.len() };
        let others: u16 = COLUMNS[..shown].iter().map(|(_, width)| width + 1).sum();
        Self { shown, bar: width.saturating_sub(others.saturating_sub(1)) }
    }

    fn widths(&self) -> impl Iterator<Item = Constraint> {
        let bar = self.bar;
        let widths = COLUMNS.into_iter().take(self.shown).map(|(_, width)| width);
        widths.map(move |width| Constraint::Length(if width == 0 { bar } else { width }))
    }

    fn header(&self) -> Row<'static> {
        self.cells(COLUMNS.map(|(name, _)| name.to_owned()))
    }

    fn row(&self, name: &str, worker: &WorkerCounts, rate: f64) -> Row<'static> {
        let reused = part(worker.hit_tokens, worker.queried_tokens) * 100.0;
        self.cells([
            name.to_owned(),
            waiting(worker).to_string(),
            worker.running.to_string(),
            bar(part(worker.blocks_in_use, worker.blocks), self.bar),
            number(rate),
            format!("{reused:.0} %"),
            worker.passes.to_string(),
        ])
    }

    /// Numbers stand at the right, the bar at the left.
    fn cells(&self, texts: [String; 7]) -> Row<'static> {
        let shown = texts.into_iter().zip(COLUMNS).take(self.shown);
        Row::new(shown.map(|(text, (_, width))| match width {
            0 => Text::from(text),
            _ => Text::from(text).right_aligned(),
        }))
    }
}

/// A part as a bar with its percentage.
fn bar(part: f64, width: u16) -> String {
    let cells = usize::from(width.saturating_sub(6));
    let full = (part * cells as f64).round() as usize;
    format!("{}{} {:>3.0} %", "█".repeat(full), "░".repeat(cells - full), part * 100.0)
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use wavetank::gauges::{Finished, Tally};

    use super::*;

    /// Three workers after so many steps of half a second, the first of them the busiest.
    fn counts(step: u64) -> Snapshot {
        let worker = |share: u64| WorkerCounts {
            sent: share / 2,
            waiting: share,
            running: 4 * share,
            blocks_in_use: 250 * share,
            blocks: 1000,
            prompt_tokens: 0,
            generated_tokens: 40 * step * (step % 5) * share,
            queried_tokens: 4000,
            hit_tokens: 1000 * share,
            preemptions: share / 3,
            passes: step * 20,
            finished: Finished { length: step * share, error: share / 3, ..Finished::default() },
        };
        let times = |seconds: f64| Tally { count: step, seconds: seconds * (step * step) as f64 };
        Snapshot {
            workers: vec![worker(3), worker(2), worker(0)],
            arrived: 400,
            waiting_in_router: 2,
            cancelled_in_router: 1,
            first_token: times(0.05),
            token_gap: times(0.000_4),
        }
    }

    fn picture(width: u16, height: u16, expected: Option<u64>, scrolled: usize) -> String {
        let mut course = Course::default();
        for step in 0..40u64 {
            course.see(Duration::from_millis(step * 500), counts(step));
        }
        let view =
            View { title: "wavetank replay: 3 live workers, kv_router", expected, course: &course, scrolled };
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("it takes nothing");
        terminal.draw(|frame| draw(&view, frame.area(), frame.buffer_mut())).expect("it fails nowhere");
        terminal.backend().to_string()
    }

    /// Broken by: a number of another column, a bar that is not as full as it says, curves that end left.
    #[test]
    fn a_large_terminal_shows_everything() {
        insta::assert_snapshot!(picture(100, 20, Some(400), 0));
    }

    /// Broken by: columns that do not fit, or the last worker out of reach.
    #[test]
    fn a_small_terminal_shows_what_fits() {
        insta::assert_snapshot!(picture(50, 7, None, 9));
    }

    /// Broken by: arithmetic that has no room.
    #[test]
    fn no_terminal_is_too_small() {
        for (width, height) in (1..120).flat_map(|width| [1, 2, 3, 5, 16, 30].map(|height| (width, height))) {
            picture(width, height, Some(400), 1);
        }
    }

    /// Broken by: a start that has nothing to show yet.
    #[test]
    fn nothing_has_happened_yet() {
        let course = Course::default();
        let view = View { title: "t", expected: Some(0), course: &course, scrolled: 0 };
        let area = Rect::new(0, 0, 80, 24);
        draw(&view, area, &mut Buffer::empty(area));
    }
}
