//! Colours of pictures and pages, light and dark: told apart by those who see fewer of them, and strong
//! enough to be read (tests below hold both to numbers).

use std::fmt::Write;

/// A colour's name in CSS and what it is.
pub(crate) struct Colour {
    pub(crate) name: &'static str,
    pub(crate) light: &'static str,
    pub(crate) dark: &'static str,
}

const fn colour(name: &'static str, light: &'static str, dark: &'static str) -> Colour {
    Colour { name, light, dark }
}

/// Every colour. Series begin like Okabe and Ito's palette, moved to equal contrast in each theme.
pub(crate) const ALL: &[Colour] = &[
    colour("ground", "#f7f7f4", "#121619"),
    colour("card", "#ffffff", "#1b2125"),
    colour("ink", "#1c2024", "#e8eaed"),
    colour("faint", "#5b636c", "#a3adb6"),
    colour("line", "#dcded9", "#313a40"),
    colour("link", "#0b6290", "#6cc0e6"),
    colour("warn", "#8a4600", "#f4b06a"),
    colour("warn-ground", "#fff3e0", "#33261a"),
    colour("series-1", "#0072b2", "#5cb3f0"),
    colour("series-2", "#b84a00", "#ff8f45"),
    colour("series-3", "#008a68", "#1fc79a"),
    colour("series-4", "#a8468a", "#e59acb"),
    colour("series-5", "#a08c00", "#f0e14f"),
    colour("series-6", "#2f3a45", "#ffffff"),
    colour("series-7", "#4a94d6", "#a9c4f5"),
    colour("series-8", "#7b4a2b", "#b07f5f"),
    colour("heat-0", "#f1f5f9", "#20282e"),
    colour("heat-1", "#dcebf3", "#1c3442"),
    colour("heat-2", "#bfdcec", "#1b4458"),
    colour("heat-3", "#9bcae3", "#1d566f"),
    colour("heat-4", "#72b4d8", "#226a87"),
    colour("heat-5", "#4799c6", "#2d809f"),
    colour("heat-6", "#277cae", "#4298b5"),
    colour("heat-7", "#136093", "#65b1c8"),
    colour("heat-8", "#094677", "#93cbd8"),
    colour("heat-9", "#052d57", "#c9e6ea"),
];

/// How many colours series have before they begin again with a dash.
pub(crate) const SERIES: usize = 8;
/// Steps of colour in a heat map.
pub(crate) const HEATS: usize = 10;

/// Variables for a selector: light, dark where the system is, and either where it is asked for.
pub(crate) fn variables(selector: &str) -> String {
    let (light, dark) = (list(|colour| colour.light), list(|colour| colour.dark));
    format!(
        "{selector}{{{light}}}\n\
         @media(prefers-color-scheme:dark){{{selector}:not([data-theme=light]){{{dark}}}}}\n\
         {selector}[data-theme=dark]{{{dark}}}\n"
    )
}

/// Light variables for paper, to come after the others.
pub(crate) fn printed(selector: &str) -> String {
    let light = list(|colour| colour.light);
    format!("@media print{{{selector}[data-theme],{selector}:not([data-theme]){{{light}}}}}\n")
}

fn list(shade: fn(&Colour) -> &'static str) -> String {
    ALL.iter().fold(String::new(), |mut out, colour| {
        let _ = write!(out, "--{}:{};", colour.name, shade(colour));
        out
    })
}

/// `css` with the light colours in place of their names, for those who know no variables.
pub(crate) fn in_light(css: &str) -> String {
    ALL.iter()
        .fold(css.to_owned(), |css, colour| css.replace(&format!("var(--{})", colour.name), colour.light))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(colour: &str) -> [f64; 3] {
        let part = |at: usize| f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        [part(1), part(3), part(5)]
            .map(|part| if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) })
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let brightness = |colour| {
            let [red, green, blue] = linear(colour);
            0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
        };
        let (one, other) = (brightness(one), brightness(other));
        one.max(other) / one.min(other)
    }

    fn named(name: &str) -> &'static Colour {
        ALL.iter().find(|colour| colour.name == name).unwrap()
    }

    /// Broken by: a paler ink or series. 4.5 and 3 are the bounds of WCAG's level AA for text and pictures.
    #[test]
    fn text_and_lines_stand_out() {
        for ground in ["ground", "card", "warn-ground"].map(named) {
            for text in ["ink", "faint", "link", "warn"].map(named) {
                for (text, ground) in [(text.light, ground.light), (text.dark, ground.dark)] {
                    assert!(contrast(text, ground) >= 4.5, "{text} on {ground}: {}", contrast(text, ground));
                }
            }
        }
        for colour in ALL.iter().filter(|colour| colour.name.starts_with("series")) {
            let card = named("card");
            for (line, ground) in [(colour.light, card.light), (colour.dark, card.dark)] {
                assert!(contrast(line, ground) >= 3.0, "{line} on {ground}: {}", contrast(line, ground));
            }
        }
    }

    /// What those see who have no red or no green cones (Viénot, Brettel and Mollon 1999), as CIE L*a*b*.
    fn seen(colour: &str, who: [[f64; 3]; 3]) -> [f64; 3] {
        let [red, green, blue] = linear(colour);
        let mixed = who.map(|row| (row[0] * red + row[1] * green + row[2] * blue).clamp(0.0, 1.0));
        let to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]];
        let xyz = to_xyz.map(|row: [f64; 3]| row[0] * mixed[0] + row[1] * mixed[1] + row[2] * mixed[2]);
        let root = |part: f64| if part > 0.008856 { part.cbrt() } else { 7.787 * part + 16.0 / 116.0 };
        let [x, y, z] = [root(xyz[0] / 0.9505), root(xyz[1]), root(xyz[2] / 1.089)];
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// Broken by: two series whose colours are one to those who see fewer.
    #[test]
    fn series_are_told_apart_with_fewer_cones() {
        let all = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let no_red = [[0.112_38, 0.887_62, 0.0], [0.112_38, 0.887_62, 0.0], [0.004_01, -0.004_01, 1.0]];
        let no_green = [[0.292_75, 0.707_25, 0.0], [0.292_75, 0.707_25, 0.0], [-0.022_34, 0.022_34, 1.0]];
        let series: Vec<&Colour> = ALL.iter().filter(|colour| colour.name.starts_with("series")).collect();
        let mut close = Vec::new();
        for who in [all, no_red, no_green] {
            for shade in [|colour: &Colour| colour.light, |colour: &Colour| colour.dark] {
                for (at, one) in series.iter().enumerate() {
                    for other in &series[..at] {
                        let (a, b) = (seen(shade(one), who), seen(shade(other), who));
                        let apart = (0..3).map(|axis| (a[axis] - b[axis]).powi(2)).sum::<f64>().sqrt();
                        if apart < 10.0 {
                            close.push(format!("{} and {}: {apart:.1}", shade(one), shade(other)));
                        }
                    }
                }
            }
        }
        assert!(close.is_empty(), "{close:#?}");
    }
}
