//! What is in a figure: lines, bars, points and coloured rows.

use std::fmt::Write;

use super::plot::Plot;
use super::px;
use crate::figure::{Figure, Kind, Role};
use crate::render::number::grouped;
use crate::render::theme::{HEATS, SERIES};

/// Series with so few points show each of them.
const FEW: usize = 24;

/// Draws every series, guides first and fronts last.
pub(super) fn draw(plot: &Plot<'_>, out: &mut String) {
    if plot.figure.kind == Kind::Heat {
        return heat(plot, out);
    }
    let shades = shades(plot.figure);
    for role in [Role::Guide, Role::Plain, Role::Front] {
        for (number, series) in plot.figure.series.iter().enumerate().filter(|(_, s)| s.role == role) {
            let _ = write!(out, "<g data-s=\"{number}\">");
            match (series.role, plot.figure.kind) {
                (Role::Guide, _) => path(out, "guide", &line(plot, number)),
                (_, Kind::Lines) => lines(plot, number, shades[number], out),
                (_, Kind::Points) => points(plot, number, shades[number], out),
                _ => bars(plot, number, &shades, out),
            }
            out.push_str("</g>\n");
        }
    }
}

/// Which colour each series has: guides have none of their own.
pub(super) fn shades(figure: &Figure) -> Vec<usize> {
    let mut next = 0;
    let mut shade = |role: Role| {
        next += usize::from(role != Role::Guide);
        next.saturating_sub(1)
    };
    figure.series.iter().map(|series| shade(series.role)).collect()
}

/// The classes of a colour: `kind` is `s` for strokes and `f` for fills. After the last colour they begin
/// again with dashes, or paler.
pub(crate) fn classes(shade: usize, kind: &str) -> String {
    let (colour, round) = (shade % SERIES + 1, shade / SERIES % 3);
    match (round, kind) {
        (0, _) => format!("{kind}{colour}"),
        (_, "f") => format!("f{colour} o{round}"),
        _ => format!("{kind}{colour} d{round}"),
    }
}

/// The classes of points: every other series has squares.
pub(super) fn dot(shade: usize, role: Role) -> String {
    let shape = if role == Role::Front {
        " front"
    } else if shade % 2 == 1 {
        " square"
    } else {
        ""
    };
    format!("dot{shape} s{}", shade % SERIES + 1)
}

fn path(out: &mut String, class: &str, d: &str) {
    if !d.is_empty() {
        let _ = write!(out, "<path class=\"{class}\" d=\"{d}\"/>");
    }
}

fn lines(plot: &Plot<'_>, number: usize, shade: usize, out: &mut String) {
    path(out, &format!("path {}", classes(shade, "s")), &line(plot, number));
    if plot.shown[number].points.len() <= FEW {
        path(out, &format!("dot fine s{}", shade % SERIES + 1), &dots(plot, number));
    }
}

fn points(plot: &Plot<'_>, number: usize, shade: usize, out: &mut String) {
    if plot.figure.series[number].role == Role::Front {
        path(out, &format!("thin s{}", shade % SERIES + 1), &line(plot, number));
    }
    path(out, &dot(shade, plot.figure.series[number].role), &dots(plot, number));
}

/// A path through the points, broken where there is no number.
fn line(plot: &Plot<'_>, number: usize) -> String {
    let mut d = String::new();
    let mut run = 0;
    for &(x, y) in &plot.shown[number].points {
        if !(x.is_finite() && y.is_finite()) {
            end_run(&mut d, &mut run);
            continue;
        }
        let (x, y) = (px(plot.right_of(x)), px(plot.top_of(y)));
        let _ = match run {
            0 => write!(d, "M{x} {y}"),
            1 => write!(d, "L{x} {y}"),
            _ => write!(d, " {x} {y}"),
        };
        run += 1;
    }
    end_run(&mut d, &mut run);
    d
}

/// A number between two gaps is seen, too.
fn end_run(d: &mut String, run: &mut usize) {
    if *run == 1 {
        d.push_str("h.01");
    }
    *run = 0;
}

fn dots(plot: &Plot<'_>, number: usize) -> String {
    let known = plot.shown[number].points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
    known.map(|&(x, y)| format!("M{} {}h.01", px(plot.right_of(x)), px(plot.top_of(y)))).collect()
}

fn bars(plot: &Plot<'_>, number: usize, shades: &[usize], out: &mut String) {
    let stacked = plot.figure.kind == Kind::Stacked;
    let is_bar = |series: &&crate::figure::Series| series.role != Role::Guide;
    let beside = if stacked { 1 } else { plot.figure.series.iter().filter(is_bar).count() };
    let room = if plot.slot < 4.0 { plot.slot } else { plot.slot * 0.84 };
    let width = (room / beside as f64).max(0.5);
    let from = if stacked { 0.0 } else { shades[number] as f64 * width };
    let shown = &plot.shown[number];
    let mut d = String::new();
    for (at, &(x, y)) in shown.points.iter().enumerate().filter(|(_, (x, y))| x.is_finite() && y.is_finite())
    {
        let base = shown.bases.get(at).copied().unwrap_or(0.0);
        let (low, high) = (plot.top_of(base), plot.top_of(base + y));
        let left = plot.right_of(x) - room / 2.0 + from;
        let _ = write!(d, "M{} {}h{w}V{}h-{w}z", px(left), px(low), px(high), w = px(width));
    }
    path(out, &format!("bar {}", classes(shades[number], "f")), &d);
}

/// One path for each colour; neighbours of one colour are one cell.
fn heat(plot: &Plot<'_>, out: &mut String) {
    let mut cells = vec![String::new(); HEATS];
    for (number, shown) in plot.shown.iter().enumerate() {
        let (top, height) = plot.row(number);
        let gap = if height > 8.0 { 1.0 } else { 0.0 };
        let mut cell: Option<(usize, f64, f64)> = None;
        let mut end = |cell: Option<(usize, f64, f64)>| {
            if let Some((heat, from, to)) = cell {
                let (top, height, width) = (px(top), px(height - gap), px(to - from));
                let _ = write!(cells[heat], "M{} {top}h{width}v{height}h-{width}z", px(from));
            }
        };
        for &(x, y) in shown.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
            let heat = ((plot.y.place(y) * HEATS as f64) as usize).min(HEATS - 1);
            let (from, to) = (plot.right_of(x) - plot.slot / 2.0, plot.right_of(x) + plot.slot / 2.0);
            cell = match cell {
                Some((same, start, until)) if same == heat && (from - until).abs() < 0.6 => {
                    Some((heat, start, to))
                }
                other => {
                    end(other);
                    Some((heat, from, to))
                }
            };
        }
        end(cell);
    }
    for (heat, d) in cells.iter().enumerate() {
        path(out, &format!("h{heat}"), d);
    }
    colour_bar(plot, out);
}

/// Which colour is which number, above the plot on the right.
fn colour_bar(plot: &Plot<'_>, out: &mut String) {
    let ends = [plot.y.low, plot.y.high].map(|at| if plot.y.is_log() { 10_f64.powf(at) } else { at });
    let [low, high] = ends.map(grouped);
    let right = plot.size.width - 20.0 - super::plot::width(&high) - 4.0;
    let (left, top) = (right - 100.0, plot.row(0).0 - 18.0);
    out.push('\n');
    for heat in 0..HEATS {
        path(out, &format!("h{heat}"), &format!("M{} {}h10v10h-10z", px(left + heat as f64 * 10.0), px(top)));
    }
    for (class, x, text) in [("tick end", left - 4.0, low), ("tick", right + 4.0, high)] {
        let _ =
            writeln!(out, "<text class=\"{class}\" x=\"{}\" y=\"{}\">{text}</text>", px(x), px(top + 9.0));
    }
}
