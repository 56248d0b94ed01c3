//! A figure as PNG: its SVG in light colours, with letters that are the same on every machine.

use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};

use super::svg;
use crate::figure::Figure;

/// Pixels for each pixel of the SVG: sharp on a screen with small ones, and in a slide.
const ZOOM: f32 = 2.0;

/// The letters. Those of the system are not asked: pictures would differ from machine to machine.
static LETTERS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut letters = Database::new();
    letters.load_font_data(dejavu::sans::regular().to_vec());
    letters.set_sans_serif_family("DejaVu Sans");
    Arc::new(letters)
});

/// The bytes of the file.
pub(super) fn write(figure: &Figure) -> Vec<u8> {
    let tree = tree(&svg::light_file(figure)).expect("what we write is SVG");
    let size = tree.size();
    let (width, height) = ((size.width() * ZOOM).ceil() as u32, (size.height() * ZOOM).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).expect("a picture has a size");
    resvg::render(&tree, Transform::from_scale(ZOOM, ZOOM), &mut pixels.as_mut());
    pixels.encode_png().expect("memory takes what is written")
}

/// What is in an SVG, with its letters found.
pub(super) fn tree(svg: &str) -> Result<Tree, resvg::usvg::Error> {
    let font_family = "DejaVu Sans".to_owned();
    Tree::from_str(svg, &Options { fontdb: Arc::clone(&LETTERS), font_family, ..Options::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Axis, Kind, Series};

    /// Broken by: letters that are not found, or colours that are only variables: the picture is empty then.
    #[test]
    fn letters_and_lines_are_seen() {
        let figure = |title: &str, points| Figure {
            id: "a".to_owned(),
            title: title.to_owned(),
            about: String::new(),
            kind: Kind::Lines,
            x: Axis::linear("", ""),
            y: Axis::linear("", ""),
            series: vec![Series::of("", points)],
        };
        let dark = |figure: &Figure| {
            let pixels = Pixmap::decode_png(&write(figure)).unwrap();
            assert_eq!((pixels.width(), pixels.height()), (1120, 612));
            pixels.pixels().iter().filter(|pixel| pixel.red() < 100).count()
        };
        let nothing = dark(&figure("", vec![]));
        let titled = dark(&figure("Time to first token", vec![]));
        let drawn = dark(&figure("Time to first token", vec![(0.0, 0.0), (1.0, 1.0)]));
        assert!(titled > nothing + 200 && drawn > titled + 500, "{nothing} {titled} {drawn}");
    }
}
