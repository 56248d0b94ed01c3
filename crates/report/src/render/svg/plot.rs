//! Room and axes of a picture: what goes where.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::scale::{Span, Start, Tick};
use super::{marks, px, thin};
use crate::figure::{Figure, Kind, Role};
use crate::render::markup::escape;

/// How large a picture is, in its own pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Size {
    /// Half of a desk's screen, or a file.
    pub(crate) const WIDE: Self = Self { width: 560.0, height: 280.0 };
    /// A telephone's screen.
    pub(crate) const NARROW: Self = Self { width: 350.0, height: 270.0 };
}

/// Letters are about this wide.
const LETTER: f64 = 6.7;
/// Names are cut to this many letters before they are turned.
const SHORT: f64 = 14.0;
/// The line above a plot, where the caption of the y axis is.
const CAPTION: f64 = 22.0;
/// Right of the plot, for half of the last tick.
const MARGIN: f64 = 20.0;
/// No picture's plot is narrower in columns of pixels than what is left of its width without this.
const BESIDE: f64 = 60.0;

/// A figure and where all of it goes.
pub(crate) struct Plot<'f> {
    pub(crate) figure: &'f Figure,
    pub(crate) size: Size,
    pub(crate) x: Span,
    pub(crate) y: Span,
    /// What is drawn of each series.
    pub(super) shown: Vec<Shown>,
    /// The room of one bar, or of one group of them.
    pub(super) slot: f64,
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
    /// Names below turn where they are too long to lie.
    turned: bool,
}

/// What is drawn of a series.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) points: Vec<(f64, f64)>,
    /// Where each bar stands, if they stand on each other.
    pub(super) bases: Vec<f64>,
}

impl<'f> Plot<'f> {
    /// `head` is left free at the top.
    pub(crate) fn of(figure: &'f Figure, size: Size, head: f64) -> Self {
        let (x, slot) = across(figure);
        let shown = shown(figure, &x, (size.width - BESIDE) as usize);
        let y = upwards(figure, &shown);
        let rows = figure.series.len().max(1) as f64;
        let height = if figure.kind == Kind::Heat { rows * (200.0 / rows).clamp(3.0, 24.0) } else { 0.0 };
        let mut plot = Self {
            figure,
            size,
            slot: slot / (x.high - x.low),
            x,
            y,
            shown,
            left: 0.0,
            top: head + CAPTION,
            right: size.width - MARGIN,
            bottom: 0.0,
            turned: false,
        };
        plot.left = plot.beside();
        plot.slot *= plot.right - plot.left;
        let longest = figure.x.names.iter().map(|name| width(name)).fold(0.0, f64::max);
        plot.turned = longest.min(SHORT * LETTER) > plot.slot - 4.0;
        let below = if plot.turned { 22.0 + (longest.min(18.0 * LETTER)) * 0.5 } else { 20.0 } + 18.0;
        plot.size.height = head + if height > 0.0 { CAPTION + height + below } else { size.height };
        plot.bottom = plot.size.height - below;
        plot
    }

    /// Left, top, right and bottom of the plot.
    pub(crate) fn edges(&self) -> [String; 4] {
        [self.left, self.top, self.right, self.bottom].map(px)
    }

    /// The points of a series that a reader is told: those that are drawn, or all where they can be selected.
    pub(crate) fn told(&self, series: usize) -> &[(f64, f64)] {
        match self.figure.kind {
            Kind::Points => &self.figure.series[series].points,
            _ => &self.shown[series].points,
        }
    }

    /// All points, those that are drawn, and how they were chosen, if not all are.
    pub(super) fn thinned(&self) -> Option<(usize, usize, &'static str)> {
        let is_place = |(x, y): &&(f64, f64)| x.is_finite() && y.is_finite();
        let count = |points: &[(f64, f64)]| points.iter().filter(is_place).count();
        // Points of a front are points of another series, too.
        let pairs = self.figure.series.iter().zip(&self.shown).filter(|(of, _)| of.role != Role::Front);
        let counts = pairs.map(|(of, shown)| (count(&of.points), count(&shown.points)));
        let (all, shown) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let how = match self.figure.kind {
            Kind::Lines => "the lowest and the highest of each column of pixels",
            Kind::Bars | Kind::Heat => "the highest of each column of pixels",
            Kind::Stacked => "the mean of each column of pixels",
            Kind::Points => "one for each pixel",
        };
        (shown < all).then_some((all, shown, how))
    }

    /// Where a number is to the right.
    pub(super) fn right_of(&self, x: f64) -> f64 {
        self.left + self.x.place(x) * (self.right - self.left)
    }

    /// Where a number is from the top.
    pub(super) fn top_of(&self, y: f64) -> f64 {
        self.bottom - self.y.place(y) * (self.bottom - self.top)
    }

    /// How tall a row of a heat map is, and where it begins.
    pub(super) fn row(&self, number: usize) -> (f64, f64) {
        let height = (self.bottom - self.top) / self.figure.series.len().max(1) as f64;
        (self.top + number as f64 * height, height)
    }

    /// Draws all of it.
    pub(crate) fn draw(&self, out: &mut String) {
        self.draw_upwards(out);
        self.draw_across(out);
        marks::draw(self, out);
    }

    /// What the y axis needs on the left.
    fn beside(&self) -> f64 {
        let texts = match self.figure.kind {
            Kind::Heat => self.figure.series.iter().map(|series| width(&series.name)).fold(0.0, f64::max),
            _ => self.y_ticks().iter().map(|tick| width(&tick.text)).fold(0.0, f64::max),
        };
        (texts + 12.0).clamp(24.0, self.size.width * 0.3)
    }

    fn y_ticks(&self) -> Vec<Tick> {
        self.y.ticks(6)
    }

    fn draw_upwards(&self, out: &mut String) {
        let caption = cut(&self.figure.y.caption(), self.size.width * 0.6);
        let (left, right, top) = (px(self.left), px(self.right), px(self.top - 8.0));
        if self.figure.kind == Kind::Heat {
            let _ =
                writeln!(out, "<text class=\"caption\" x=\"{left}\" y=\"{top}\">{}</text>", escape(&caption));
            return self.draw_rows(out);
        }
        let _ = writeln!(out, "<text class=\"caption\" x=\"2\" y=\"{top}\">{}</text>", escape(&caption));
        let place = |tick: &Tick| self.bottom - tick.place * (self.bottom - self.top);
        let ticks = self.y_ticks();
        let lines: String = ticks.iter().map(|tick| format!("M{left} {}H{right}", px(place(tick)))).collect();
        let _ = writeln!(out, "<path class=\"grid\" d=\"{lines}\"/>");
        for tick in &ticks {
            text(out, "tick end", [self.left - 6.0, place(tick) + 4.0], &tick.text);
        }
    }

    /// Names of the rows of a heat map, as many as there is room for.
    fn draw_rows(&self, out: &mut String) {
        let every = (13.0 / self.row(0).1).ceil().max(1.0) as usize;
        for (number, series) in self.figure.series.iter().enumerate().step_by(every) {
            let (top, height) = self.row(number);
            text(
                out,
                "tick end",
                [self.left - 6.0, top + height / 2.0 + 4.0],
                &cut(&series.name, self.left - 8.0),
            );
        }
    }

    fn draw_across(&self, out: &mut String) {
        let (left, right, bottom) = (px(self.left), px(self.right), px(self.bottom));
        let _ = writeln!(out, "<path class=\"edge\" d=\"M{left} {bottom}H{right}\"/>");
        if self.figure.x.names.is_empty() {
            for tick in self.x.ticks(((self.right - self.left) / 56.0) as usize) {
                let at = self.left + tick.place * (self.right - self.left);
                text(out, "tick mid", [at, self.bottom + 16.0], &tick.text);
            }
        } else {
            self.draw_names(out);
        }
        let caption = cut(&self.figure.x.caption(), self.right - self.left);
        text(out, "caption end", [self.right, self.size.height - 6.0], &caption);
    }

    /// Names below, as many as there is room for.
    fn draw_names(&self, out: &mut String) {
        let every = (14.0 / self.slot.max(0.1)).ceil().max(1.0) as usize;
        for (number, name) in self.figure.x.names.iter().enumerate().step_by(every) {
            let at = self.right_of(number as f64);
            if !self.turned {
                text(out, "tick mid", [at, self.bottom + 16.0], &cut(name, self.slot - 4.0));
                continue;
            }
            let name = cut(name, (at / 0.87).min(18.0 * LETTER));
            let (x, y) = (px(at + 4.0), px(self.bottom + 14.0));
            let turn = format!("<text class=\"tick end\" transform=\"translate({x} {y}) rotate(-30)\">");
            let _ = writeln!(out, "{turn}{}</text>", escape(&name));
        }
    }
}

/// A line of text; one that is cut says all of it where a pointer rests.
fn text(out: &mut String, class: &str, [x, y]: [f64; 2], words: &str) {
    let _ = writeln!(out, "<text class=\"{class}\" x=\"{}\" y=\"{}\">{}</text>", px(x), px(y), escape(words));
}

/// How wide a text is, about.
pub(super) fn width(text: &str) -> f64 {
    text.chars().map(|letter| if u32::from(letter) < 0x1100 { LETTER } else { 12.0 }).sum()
}

/// `text`, cut to a width.
pub(super) fn cut(text: &str, room: f64) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut out = String::new();
    for letter in text.chars() {
        if width(&out) + width("漢…") > room {
            break;
        }
        out.push(letter);
    }
    out + "…"
}

/// The x axis, and the room of one place on it, as the axis measures.
fn across(figure: &Figure) -> (Span, f64) {
    let values = || figure.series.iter().flat_map(|series| series.points.iter().map(|(x, _)| *x));
    if !figure.x.names.is_empty() {
        return (Span::of_names(figure.x.names.len()), 1.0);
    }
    let span = Span::of(values(), figure.x.scale, Start::Near);
    if matches!(figure.kind, Kind::Lines | Kind::Points) {
        let room = if figure.kind == Kind::Points { 0.03 * (span.high - span.low) } else { 0.0 };
        return (span.padded(room), 0.0);
    }
    // Bars have their own width: from the ones that are nearest to each other.
    let mut places: Vec<f64> = values().filter_map(|value| span.measure(value)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return (span, 1.0) };
    let gap = places.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let gap = if gap.is_finite() { gap } else { (span.high - span.low) / 3.0 };
    let gap = gap.max((last - first) * 1e-9);
    (span.between(first - gap / 2.0, last + gap / 2.0), gap)
}

/// What is drawn of each series.
fn shown(figure: &Figure, x: &Span, columns: usize) -> Vec<Shown> {
    let place = |value: f64| x.place(value);
    let mut sums = BTreeMap::new();
    let mut shown = Vec::new();
    for series in &figure.series {
        let points = &series.points;
        shown.push(match figure.kind {
            Kind::Lines => Shown { points: thin::line(points, columns, place), bases: Vec::new() },
            Kind::Bars | Kind::Heat => {
                Shown { points: thin::highest(points, columns, place), bases: Vec::new() }
            }
            Kind::Stacked => stacked(thin::mean(points, columns, place), &mut sums),
            Kind::Points => Shown { points: points.clone(), bases: Vec::new() },
        });
    }
    if figure.kind == Kind::Points {
        let up = upwards(figure, &[]);
        let pixel = |(x, y)| ((place(x) * columns as f64) as u32, (up.place(y) * columns as f64) as u32);
        shown.iter_mut().for_each(|shown| thin::pixels(&mut shown.points, pixel));
    }
    shown
}

/// `points` on top of what is there: rising above zero, falling below it.
fn stacked(points: Vec<(f64, f64)>, sums: &mut BTreeMap<u64, [f64; 2]>) -> Shown {
    let mut bases = Vec::new();
    for (x, y) in &points {
        let sum = &mut sums.entry((x + 0.0).to_bits()).or_default()[usize::from(*y < 0.0)];
        bases.push(*sum);
        if y.is_finite() {
            *sum = (*sum + y).clamp(f64::MIN, f64::MAX);
        }
    }
    Shown { points, bases }
}

/// The y axis.
fn upwards(figure: &Figure, shown: &[Shown]) -> Span {
    let scale = figure.y.scale;
    let values = figure.series.iter().flat_map(|series| series.points.iter().map(|(_, y)| *y));
    match figure.kind {
        Kind::Heat => Span::of(values, scale, Start::Zero),
        Kind::Bars => roomy(Span::of(values, scale, Start::Zero)),
        Kind::Stacked => {
            let tops = shown.iter().flat_map(|shown| {
                shown
                    .points
                    .iter()
                    .zip(&shown.bases)
                    .map(|((_, y), base)| (base + y).clamp(f64::MIN, f64::MAX))
            });
            roomy(Span::of(tops, scale, Start::Zero))
        }
        Kind::Lines | Kind::Points => roomy(Span::of(values, scale, Start::Near)),
    }
}

/// With a little room beyond what is there, but not below zero.
fn roomy(span: Span) -> Span {
    let room = 0.04 * (span.high - span.low);
    let beyond = |end: f64, room: f64| if end == 0.0 && !span.is_log() { 0.0 } else { end + room };
    span.between(beyond(span.low, -room), beyond(span.high, room))
}
