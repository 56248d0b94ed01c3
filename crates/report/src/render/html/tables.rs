//! Tables: numbers to the right, as wide as they are inside a box that scrolls.

use std::fmt::Write;

use crate::page::{Cell, Table};
use crate::render::markup::escape;
use crate::render::number::grouped;

/// A table; `figure` finds the page's id of a figure.
pub(super) fn table<'i>(table: &Table, number: usize, figure: impl Fn(&str) -> Option<&'i str>) -> String {
    let of = table.of_figure.as_deref().and_then(figure);
    let mut out = "<div class=\"card\">\n".to_owned();
    let _ = writeln!(out, "<h3 id=\"table-{number}\">{}</h3>", escape(&table.title));
    if let Some(id) = of {
        let _ = writeln!(
            out,
            "<p class=\"picked note\" role=\"status\" data-of=\"{id}\">\
             {} rows, one for each point of <a href=\"#{id}\">the picture</a>.</p>",
            table.rows.len()
        );
    }
    let of = of.map(|id| format!(" data-of=\"{id}\"")).unwrap_or_default();
    let _ = writeln!(
        out,
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-labelledby=\"table-{number}\">\n\
         <table{of}>\n<thead><tr>{}</tr></thead>\n<tbody>",
        header(table)
    );
    for row in &table.rows {
        let _ = writeln!(out, "<tr>{}</tr>", row.iter().enumerate().map(cell).collect::<String>());
    }
    out + "</tbody>\n</table>\n</div>\n</div>\n"
}

fn header(table: &Table) -> String {
    let is_number =
        |column: usize| table.rows.iter().any(|row| matches!(row.get(column), Some(Cell::Number(_))));
    let mut out = String::new();
    for (column, name) in table.columns.iter().enumerate() {
        let class = if is_number(column) { " class=\"n\"" } else { "" };
        let tag = if name.is_empty() { "td" } else { "th scope=\"col\"" };
        let _ = write!(out, "<{tag}{class}>{}</{}>", escape(name), &tag[..2]);
    }
    out
}

fn cell((column, cell): (usize, &Cell)) -> String {
    match cell {
        Cell::Text(text) if column == 0 => format!("<th scope=\"row\">{}</th>", escape(text)),
        Cell::Text(text) => format!("<td>{}</td>", escape(text)),
        Cell::Number(number) if column == 0 => {
            format!("<th scope=\"row\" class=\"n\">{}</th>", grouped(*number))
        }
        Cell::Number(number) => format!("<td class=\"n\">{}</td>", grouped(*number)),
    }
}
