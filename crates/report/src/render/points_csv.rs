//! Every point of every figure of a page as one table, a row each: what is behind the pictures, for pandas
//! and DuckDB.

use std::io::{self, Write};

use super::markup::slugs;
use crate::figure::{Axis, Figure};
use crate::page::Page;

/// The columns.
const HEADER: &str = "section,figure,series,x_label,x_unit,x,x_name,y_label,y_unit,y,note";

/// Writes all points of `page`, in the order of its figures. A gap has an empty `y`.
pub fn write(page: &Page, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    let figures = page.sections.iter().flat_map(|section| section.figures.iter());
    let mut names = slugs(figures.map(|figure| figure.id.as_str())).into_iter();
    for section in &page.sections {
        for figure in &section.figures {
            let name = names.next().unwrap_or_default();
            rows(&section.title, &name, figure, out)?;
        }
    }
    Ok(())
}

fn rows(section: &str, name: &str, figure: &Figure, out: &mut dyn Write) -> io::Result<()> {
    let axis = |axis: &Axis| format!("{},{}", field(&axis.label), field(&axis.unit));
    let (x_axis, y_axis) = (axis(&figure.x), axis(&figure.y));
    for series in &figure.series {
        let before = format!("{},{name},{},{x_axis}", field(section), field(&series.name));
        for (place, (x, y)) in series.points.iter().enumerate() {
            let x_name = field(figure.x.name_of(*x).unwrap_or_default());
            let note = field(series.notes.get(place).map(String::as_str).unwrap_or_default());
            writeln!(out, "{before},{},{x_name},{y_axis},{},{note}", number(*x), number(*y))?;
        }
    }
    Ok(())
}

/// All digits of a number, none where there is no number.
fn number(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => String::new(),
        size if size != 0.0 && !(1e-6..1e15).contains(&size) => format!("{value:e}"),
        _ => value.to_string(),
    }
}

/// A text in quotes where it needs them. One that a spreadsheet would take for a formula gets an apostrophe.
fn field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Kind, Series};
    use crate::page::Section;

    #[test]
    fn every_point_is_a_row() {
        let lines = Series::of("P99, \"all\"", vec![(0.0, 1.5), (1.0, f64::NAN), (2.5, 1e-9)]);
        let bars = Series { notes: vec!["a\nb".to_owned()], ..Series::of("=1+1", vec![(0.0, -3.0)]) };
        let figure = |id: &str, x, series| Figure {
            id: id.to_owned(),
            title: String::new(),
            about: String::new(),
            kind: Kind::Lines,
            x,
            y: Axis::linear("time", "ms"),
            series: vec![series],
        };
        let figures = vec![
            figure("ttft", Axis::linear("at", "s"), lines),
            figure("ttft", Axis::names("worker", vec!["w,0".to_owned()]), bars),
        ];
        let section = Section { title: "Latency".to_owned(), tables: Vec::new(), figures };
        let page = Page { sections: vec![section], ..Page::default() };
        let mut out = Vec::new();
        write(&page, &mut out).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r#"
        section,figure,series,x_label,x_unit,x,x_name,y_label,y_unit,y,note
        Latency,ttft,"P99, ""all""",at,s,0,,time,ms,1.5,
        Latency,ttft,"P99, ""all""",at,s,1,,time,ms,,
        Latency,ttft,"P99, ""all""",at,s,2.5,,time,ms,1e-9,
        Latency,ttft-2,'=1+1,worker,,0,"w,0",time,ms,-3,"a
        b"
        "#);
    }
}
