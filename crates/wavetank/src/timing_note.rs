//! How sure the times of a run are, in words and in a report.

use serde_json::{Value, json};
use wavetank_sim::Provenance;

/// One line for people.
pub fn line(provenance: &Provenance) -> String {
    let percent = |share: f64| share * 100.0;
    format!(
        "Timing: +-{:.1} % by leave-one-out of the cells used; {:.0} % of time from tables, {:.0} % beyond \
         them, {:.0} % fitted\n",
        percent(provenance.error()),
        percent(provenance.interpolated()),
        percent(provenance.extrapolated()),
        percent(provenance.fitted()),
    )
}

/// The same in a report, as fractions of the time of all passes.
pub fn json(provenance: &Provenance) -> Value {
    json!({
        "leave_one_out_error": provenance.error(),
        "interpolated_share": provenance.interpolated(),
        "extrapolated_share": provenance.extrapolated(),
        "fitted_share": provenance.fitted(),
    })
}
