//! A figure as SVG: with its own legend and colours as a file, or for a page that has them.
//!
//! `plot` finds room and axes, `marks` draws what is in the figure, `thin` keeps it small, `words` says it.

mod legend;
mod marks;
mod plot;
mod scale;
mod thin;
mod words;

use std::fmt::Write;

pub(crate) use legend::{has as has_legend, swatch};
pub(crate) use plot::{Plot, Size};
pub(crate) use scale::Span;
pub(crate) use words::{Facts, drawn, numbers, told_axis};

use super::markup::escape;
use super::theme;
use crate::figure::Figure;

/// How pictures look, by the names of colours.
pub(crate) const STYLE: &str = include_str!("figure.css");

/// A whole file, light or dark as its reader is.
pub(super) fn file(figure: &Figure) -> String {
    whole(figure, &(theme::variables(".fig") + STYLE))
}

/// The same with light colours only, by their numbers.
pub(crate) fn light_file(figure: &Figure) -> String {
    whole(figure, &theme::in_light(STYLE))
}

fn whole(figure: &Figure, style: &str) -> String {
    let legend = legend::Legend::of(figure, Size::WIDE);
    let plot = Plot::of(figure, Size::WIDE, legend.height);
    let (width, height) = (plot.size.width, plot.size.height);
    let title = escape(&figure.title);
    // Without ids: notebooks and pages take many of these in, and one of them twice.
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fig\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{title}\">\n\
         <title>{title}</title>\n<desc>{}</desc>\n<style>{}</style>\n",
        escape(&words::all(figure)),
        style.replace('<', ""),
    );
    let ground = theme::in_light("var(--card)");
    let ground = if style.contains("var(") { "var(--card)" } else { &ground };
    let _ = writeln!(out, "<rect width=\"{width}\" height=\"{height}\" style=\"fill:{ground}\"/>");
    legend.draw(&mut out);
    plot.draw(&mut out);
    out.push_str("</svg>\n");
    out
}

/// A picture inside a page: `labels` are the ids of what names and describes it there.
pub(crate) fn inline(plot: &Plot<'_>, class: &str, labels: [&str; 2]) -> String {
    let (width, height) = (plot.size.width, plot.size.height);
    let [left, top, right, bottom] = plot.edges();
    let mut out = format!(
        "<svg class=\"fig {class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{}\" \
         aria-describedby=\"{}\" data-box=\"{left} {top} {right} {bottom}\">\n",
        labels[0], labels[1],
    );
    plot.draw(&mut out);
    out.push_str("</svg>\n");
    out
}

/// A place in pixels: one decimal, and none where it is zero.
pub(crate) fn px(value: f64) -> String {
    let tenths = (value * 10.0).round().clamp(-1e9, 1e9) as i64;
    let (sign, size) = (if tenths < 0 { "-" } else { "" }, tenths.abs());
    match size % 10 {
        0 => format!("{sign}{}", size / 10),
        rest => format!("{sign}{}.{rest}", size / 10),
    }
}

#[cfg(test)]
mod tests;
