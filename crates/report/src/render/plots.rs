//! The pictures of a page, one by one.

use super::markup::slugs;
use super::{png, svg};
use crate::figure::Figure;
use crate::page::Page;

/// A picture and the name of its file.
pub struct Plot<'p> {
    /// Without its ending; the same as on the page and in the CSV of points.
    pub name: String,
    figure: &'p Figure,
}

impl Plot<'_> {
    /// As SVG.
    pub fn svg(&self) -> String {
        svg::file(self.figure)
    }

    /// As PNG.
    pub fn png(&self) -> Vec<u8> {
        png::write(self.figure)
    }
}

/// Every picture of `page`, in its order.
pub fn all(page: &Page) -> Vec<Plot<'_>> {
    let figures: Vec<&Figure> = page.sections.iter().flat_map(|section| section.figures.iter()).collect();
    let names = slugs(figures.iter().map(|figure| figure.id.as_str()));
    names.into_iter().zip(figures).map(|(name, figure)| Plot { name, figure }).collect()
}
