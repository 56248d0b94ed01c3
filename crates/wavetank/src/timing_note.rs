//! How sure the times of a run are, in words and in a report.

use serde_json::{Value, json};
use wavetank_sim::Provenance;

/// One line for people.
pub fn line(provenance: &Provenance) -> String {
    let percent = |share: f64| share * 100.0;
    format!(
        "Timing of all passes: +-{:.1} % by leave-one-out of the cells used; {:.0} % from tables, \
         {:.0} % beyond them, {:.0} % fitted, {:.0} % by formula\n",
        percent(provenance.error()),
        percent(provenance.interpolated()),
        percent(provenance.extrapolated()),
        percent(provenance.fitted()),
        percent(provenance.formula()),
    )
}

/// More time than this from where nothing was measured is worth a warning.
const UNMEASURED: f64 = 0.05;

/// What a reader of the numbers must know.
pub(crate) fn warnings(provenance: &Provenance) -> Vec<String> {
    let parts = [
        (provenance.extrapolated(), "lies beyond what was measured: the error bar does not cover it"),
        (provenance.formula(), "comes from a formula with no hardware in it, not from the measured profile"),
    ];
    let far = parts.into_iter().filter(|(share, _)| *share > UNMEASURED);
    far.map(|(share, what)| format!("{:.0} % of the time of passes {what}", share * 100.0)).collect()
}

/// The same in a report, as fractions of the time of all passes.
pub fn json(provenance: &Provenance) -> Value {
    json!({
        "leave_one_out_error": provenance.error(),
        "interpolated_share": provenance.interpolated(),
        "extrapolated_share": provenance.extrapolated(),
        "fitted_share": provenance.fitted(),
        "formula_share": provenance.formula(),
    })
}
