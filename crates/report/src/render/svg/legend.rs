//! Title and legend of a picture that stands alone.

use std::fmt::Write;

use super::marks::{classes, shades};
use super::plot::{Size, cut, width};
use super::px;
use crate::figure::{Figure, Kind, Role};
use crate::render::markup::escape;

/// A row of the legend is this tall, and no more rows are written.
const ROW: f64 = 18.0;
const ROWS: usize = 6;
/// The longest name that is not cut.
const NAME: f64 = 220.0;

/// What is above the plot.
pub(super) struct Legend {
    markup: String,
    pub(super) height: f64,
}

impl Legend {
    pub(super) fn of(figure: &Figure, size: Size) -> Self {
        let mut markup = String::new();
        let title = escape(&cut(&figure.title, size.width * 0.8));
        let _ = writeln!(markup, "<text class=\"head\" x=\"2\" y=\"18\">{title}</text>");
        let (mut x, mut row) = (2.0, 0);
        let entries = if has(figure) { figure.series.len() } else { 0 };
        for (number, series) in figure.series.iter().enumerate().take(entries) {
            let name = cut(&series.name, NAME);
            let room = 24.0 + width(&name) + 14.0;
            if x + room > size.width && x > 2.0 {
                (x, row) = (2.0, row + 1);
            }
            if row == ROWS {
                let rest = format!("… and {} more", entries - number);
                let _ = writeln!(markup, "<text x=\"2\" y=\"{}\">{rest}</text>", px(38.0 + row as f64 * ROW));
                break;
            }
            let y = 38.0 + row as f64 * ROW;
            let _ = writeln!(
                markup,
                "<g transform=\"translate({} {})\">{}</g>",
                px(x),
                px(y - 9.0),
                swatch(figure, number)
            );
            let _ = writeln!(markup, "<text x=\"{}\" y=\"{}\">{}</text>", px(x + 24.0), px(y), escape(&name));
            x += room;
        }
        let rows = if entries > 0 { row as f64 + 1.0 } else { 0.0 };
        Self { markup, height: 26.0 + rows * ROW }
    }

    pub(super) fn draw(&self, out: &mut String) {
        out.push_str(&self.markup);
    }
}

/// Whether there is anything to tell apart: the rows of a heat map have their names beside them.
pub(crate) fn has(figure: &Figure) -> bool {
    figure.kind != Kind::Heat && figure.series.iter().any(|series| !series.name.is_empty())
}

/// How a series looks, in 18 by 10 pixels.
pub(crate) fn swatch(figure: &Figure, number: usize) -> String {
    let shade = shades(figure)[number];
    match (figure.kind, figure.series[number].role) {
        (_, Role::Guide) => "<path class=\"guide\" d=\"M1 5H17\"/>".to_owned(),
        (Kind::Bars | Kind::Stacked, _) => {
            format!("<path class=\"bar {}\" d=\"M3 0h12v10h-12z\"/>", classes(shade, "f"))
        }
        (Kind::Points, role) => {
            format!("<path class=\"{}\" d=\"M9 5h.01\"/>", super::marks::dot(shade, role))
        }
        _ => format!("<path class=\"path {}\" d=\"M1 5H17\"/>", classes(shade, "s")),
    }
}
