//! Figures: a picture for desks, one for telephones, a legend that can be pressed, and numbers in a table.

use std::fmt::Write;

use crate::figure::{Figure, Role};
use crate::render::markup::escape;
use crate::render::number::{NOTHING, grouped};
use crate::render::svg::{self, Facts, Plot, Size, told_axis};

/// A figure with everything around it.
pub(super) fn figure(figure: &Figure, id: &str) -> String {
    let (wide, narrow) = (Plot::of(figure, Size::WIDE, 0.0), Plot::of(figure, Size::NARROW, 0.0));
    let labels = [format!("{id}-t"), format!("{id}-d")];
    let labels = [labels[0].as_str(), labels[1].as_str()];
    let drawn = svg::drawn(&wide).map(|text| format!(" {text}")).unwrap_or_default();
    format!(
        "<figure class=\"card\" id=\"{id}\">\n<figcaption><h3 id=\"{id}-t\">{}</h3>\n\
         <p class=\"note\" id=\"{id}-d\">{}{}<span class=\"unseen\"> {}</span></p></figcaption>\n{}\
         <div class=\"plot\">\n{}{}</div>\n<p class=\"readout\" aria-live=\"polite\"></p>\n{}</figure>\n",
        escape(&figure.title),
        escape(&figure.about),
        escape(&drawn),
        escape(&svg::numbers(figure)),
        legend(figure),
        svg::inline(&wide, "wide", labels),
        svg::inline(&narrow, "narrow", labels),
        numbers(figure),
    )
}

/// The script makes buttons of its entries.
fn legend(figure: &Figure) -> String {
    if !svg::has_legend(figure) {
        return String::new();
    }
    let mut out = "<ul class=\"legend\">\n".to_owned();
    for (number, series) in figure.series.iter().enumerate() {
        let key = format!(
            "<svg class=\"fig key\" viewBox=\"0 0 18 10\" aria-hidden=\"true\">{}</svg>",
            svg::swatch(figure, number)
        );
        let _ = writeln!(out, "<li data-s=\"{number}\">{key}<span>{}</span></li>", escape(&series.name));
    }
    out + "</ul>\n"
}

/// What each series is in numbers, for those who would rather read.
fn numbers(figure: &Figure) -> String {
    let axis = told_axis(figure);
    let mut rows = String::new();
    for series in figure.series.iter().filter(|series| series.role != Role::Guide) {
        let facts = Facts::of(figure, series);
        let number = |of: fn(&Facts) -> Option<f64>| {
            facts.as_ref().and_then(of).map_or_else(|| NOTHING.to_owned(), grouped)
        };
        let cells = [
            number(|facts| Some(facts.points as f64)),
            number(|facts| Some(facts.low)),
            number(|facts| facts.median),
            number(|facts| Some(facts.high)),
            number(|facts| facts.last),
        ];
        let cells: String = cells.iter().map(|cell| format!("<td class=\"n\">{cell}</td>")).collect();
        let name = if series.name.is_empty() { &axis.label } else { &series.name };
        let _ = writeln!(rows, "<tr><th scope=\"row\">{}</th>{cells}</tr>", escape(name));
    }
    let caption = escape(&axis.caption());
    let header: String = ["points", "lowest", "median", "highest", "last"]
        .iter()
        .map(|name| format!("<th scope=\"col\" class=\"n\">{name}</th>"))
        .collect();
    format!(
        "<details class=\"numbers\"><summary>Numbers</summary>\n\
         <div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Numbers\"><table>\n\
         <thead><tr><th scope=\"col\">{caption}</th>{header}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div></details>\n"
    )
}
