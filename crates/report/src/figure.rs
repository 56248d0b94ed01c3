//! Pictures as data: what is drawn, before anyone draws it. Pages, SVG, PNG and CSV files are made from this
//! alone.

/// One picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name in files and links: small letters, digits and dashes; one of a kind on its page.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The same in a sentence, for those who do not see it or do not know what it means.
    pub about: String,
    /// How it is drawn.
    pub kind: Kind,
    /// To the right.
    pub x: Axis,
    /// Upwards; the colour in [`Kind::Heat`].
    pub y: Axis,
    /// What is in it, in the order of the legend.
    pub series: Vec<Series>,
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A line through the points of each series.
    Lines,
    /// Bars beside each other, one group for each place on the x axis.
    Bars,
    /// Bars on top of each other.
    Stacked,
    /// Points that stand for themselves; they can be selected.
    Points,
    /// A row of coloured cells for each series.
    Heat,
}

/// One direction of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is measured.
    pub label: String,
    /// In what; empty for plain numbers.
    pub unit: String,
    /// How numbers become places.
    pub scale: Scale,
    /// Names of the places 0, 1, 2, … where the axis is no number.
    pub names: Vec<String>,
}

/// How numbers become places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally far.
    Linear,
    /// Equal ratios are equally far; what is not above zero is at the edge.
    Log,
}

/// Points that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name in the legend. It may come from a trace: whoever writes it escapes it.
    pub name: String,
    /// Places; a value that is not a number is a gap.
    pub points: Vec<(f64, f64)>,
    /// What is said of each point, where there is more to say than its place; none or one for each.
    pub notes: Vec<String>,
    /// Whether it is in front of the others.
    pub role: Role,
}

/// What a series is among the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// One of several.
    #[default]
    Plain,
    /// The one to look at: a Pareto front.
    Front,
    /// What the others are held against: a diagonal, a bound.
    Guide,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str, unit: &str) -> Self {
        Self { label: label.to_owned(), unit: unit.to_owned(), scale: Scale::Linear, names: Vec::new() }
    }

    /// A logarithmic axis.
    pub fn log(label: &str, unit: &str) -> Self {
        Self { scale: Scale::Log, ..Self::linear(label, unit) }
    }

    /// An axis of names.
    pub fn names(label: &str, names: Vec<String>) -> Self {
        Self { names, ..Self::linear(label, "") }
    }

    /// What a place is called, where the axis has names.
    pub fn name_of(&self, place: f64) -> Option<&str> {
        let index = (place >= 0.0 && place.fract() == 0.0).then_some(place as usize)?;
        self.names.get(index).map(String::as_str)
    }

    /// Label and unit.
    pub(crate) fn caption(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} ({})", self.label, self.unit) }
    }
}

impl Series {
    /// A plain one.
    pub fn of(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, ..Self::default() }
    }
}
