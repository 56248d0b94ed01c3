//! A page in one file: it opens without a network, asks nobody, and shows all of it without a script. The
//! script adds reading by pointer and keys, selection and the choice of colours.

mod data;
mod figures;
mod tables;

use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::Value;

use super::markup::{escape, script_json, slugs};
use super::{svg, theme};
use crate::page::{Head, Page};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Nothing is loaded, sent or framed, whatever a name on the page says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      img-src data:; base-uri 'none'; form-action 'none'";

/// Writes `page`. The same page gives the same bytes.
pub fn write(page: &Page, out: &mut dyn Write) -> io::Result<()> {
    let figures = || page.sections.iter().flat_map(|section| section.figures.iter());
    let ids = Ids {
        figures: slugs(figures().map(|figure| figure.id.as_str())),
        sections: slugs(page.sections.iter().map(|section| section.title.as_str())),
    };
    write!(out, "{}", head(page))?;
    write!(out, "<body>\n<a class=\"skip\" href=\"#main\">Skip to the numbers</a>\n{}", banner(page))?;
    write!(out, "{}<main id=\"main\">\n{}", contents(page, &ids), runs(&page.runs))?;
    let mut numbers = Numbers::default();
    for (section, id) in page.sections.iter().zip(&ids.sections) {
        let title = escape(&section.title);
        writeln!(out, "<section aria-labelledby=\"at-{id}\">\n<h2 id=\"at-{id}\">{title}</h2>")?;
        for table in &section.tables {
            numbers.tables += 1;
            write!(out, "{}", tables::table(table, numbers.tables, |id| ids.figure(page, id)))?;
        }
        out.write_all(b"<div class=\"figures\">\n")?;
        for figure in &section.figures {
            write!(out, "{}", figures::figure(figure, &ids.figures[numbers.figures]))?;
            numbers.figures += 1;
        }
        out.write_all(b"</div>\n</section>\n")?;
    }
    write!(out, "{}</main>\n{}", plans(&page.runs), footer(page))?;
    let points = data::json(figures().zip(&ids.figures)).to_string();
    writeln!(out, "<script type=\"application/json\" id=\"points\">{}</script>", script_json(&points))?;
    writeln!(out, "<script>\n{SCRIPT}</script>\n</body>\n</html>")
}

/// How things are called on this page.
struct Ids {
    /// All figures, in their order.
    figures: Vec<String>,
    sections: Vec<String>,
}

impl Ids {
    /// The id on the page of the first figure that calls itself `id`.
    fn figure(&self, page: &Page, id: &str) -> Option<&str> {
        let mut figures = page.sections.iter().flat_map(|section| section.figures.iter());
        let number = figures.position(|figure| figure.id == id)?;
        self.figures.get(number).map(String::as_str)
    }
}

/// How many of each were written.
#[derive(Default)]
struct Numbers {
    tables: usize,
    figures: usize,
}

fn head(page: &Page) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{}</title>\n<style>\n{}{STYLE}{}{}</style>\n</head>\n",
        escape(&page.title),
        theme::variables(":root"),
        svg::STYLE,
        theme::printed(":root"),
    )
}

fn banner(page: &Page) -> String {
    let many = if page.runs.len() == 1 { "run" } else { "runs" };
    let said: usize = page.runs.iter().map(|run| run.warnings.len()).sum();
    let said = match said {
        0 => String::new(),
        1 => ", <a href=\"#runs\">1 warning</a>".to_owned(),
        said => format!(", <a href=\"#runs\">{said} warnings</a>"),
    };
    format!(
        "<header>\n<h1>{}</h1>\n<p class=\"note\">{} {many}{said}</p>\n\
         <button id=\"theme\" type=\"button\" hidden>Colours: as the system</button>\n</header>\n",
        escape(&page.title),
        page.runs.len(),
    )
}

fn contents(page: &Page, ids: &Ids) -> String {
    let mut out = "<nav aria-label=\"Parts\"><ul>\n<li><a href=\"#runs\">Runs</a></li>\n".to_owned();
    for (section, id) in page.sections.iter().zip(&ids.sections) {
        let _ = writeln!(out, "<li><a href=\"#at-{id}\">{}</a></li>", escape(&section.title));
    }
    out + "<li><a href=\"#plans\">Plans</a></li>\n</ul></nav>\n"
}

/// What the runs are called, and what they warn of.
fn runs(runs: &[Head]) -> String {
    let mut out =
        "<section aria-labelledby=\"runs\">\n<h2 id=\"runs\">Runs</h2>\n<ul class=\"runs\">\n".to_owned();
    for run in runs {
        let (name, kind) = (escape(&run.name), escape(run.kind));
        let _ = write!(out, "<li><strong>{name}</strong> <span class=\"note\">{kind}</span>");
        if !run.warnings.is_empty() {
            let list: String =
                run.warnings.iter().map(|warning| format!("<li>{}</li>", escape(warning))).collect();
            let _ = write!(out, "<div class=\"warnings\" role=\"note\"><p>Warnings</p><ul>{list}</ul></div>");
        }
        out.push_str("</li>\n");
    }
    out + "</ul>\n</section>\n"
}

/// All that each run depends on.
fn plans(runs: &[Head]) -> String {
    let mut out = "<section aria-labelledby=\"plans\">\n<h2 id=\"plans\">Plans</h2>\n".to_owned();
    for run in runs {
        let plan = match &run.plan {
            Value::Null => "The report has no plan.".to_owned(),
            plan => serde_json::to_string_pretty(plan).unwrap_or_default(),
        };
        let (name, plan) = (escape(&run.name), escape(&plan));
        let _ = writeln!(
            out,
            "<details class=\"card\"><summary>The plan of {name}</summary>\
             <pre tabindex=\"0\" aria-label=\"Plan\">{plan}</pre></details>"
        );
    }
    out + "</section>\n"
}

fn footer(page: &Page) -> String {
    let names: Vec<String> = page.runs.iter().map(|run| escape(&run.name)).collect();
    format!(
        "<footer class=\"note\"><p>Made by wavetank {} from the reports of {}. This page holds all it shows \
         and asks nobody. <code>wavetank report --timeseries FILE</code> writes the points of every picture \
         as CSV, <code>--plots DIR</code> the pictures.</p></footer>\n",
        env!("CARGO_PKG_VERSION"),
        names.join(", "),
    )
}

#[cfg(test)]
mod tests;
