//! Vidur's trace CSV: arrival in seconds and lengths in tokens (Vidur, MLSys'24; columns beyond these are not
//! used).

use std::io::Write;

use super::{Entry, Provides, TableReader};
use crate::lengths::{Lengths, Lines, Names};
use crate::table::{SECONDS, seconds};

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "vidur",
    about: "CSV: arrived_at in seconds, num_prefill_tokens, num_decode_tokens",
    provides: Provides { starts: true, ..Provides::LENGTHS },
    recognises: |head| head.has_columns(&NAMES.columns),
    read: |inputs, _| Ok(Box::new(TableReader::open(inputs, Lengths::of(&NAMES))?)),
    write: Some(|output, _| Ok(Box::new(Lines::begin(&NAMES, output)?))),
};

static NAMES: Names = Names {
    columns: ["arrived_at", "num_prefill_tokens", "num_decode_tokens"],
    start: SECONDS,
    parse_start: seconds,
    write_start: |output, start| write!(output, "{}", start.seconds()),
    no_prompt: "no prefill tokens",
    newline: "\n",
};

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::requests::Source;
    use crate::{Input, Options, Starts};

    #[test]
    fn columns_may_stand_in_any_order() {
        let text =
            ",num_decode_tokens,arrived_at,num_prefill_tokens\n0,7,0.25,100\n1,8,1.5e0,200.0\n2,8,2,0\n";
        let input = Input::Bytes(Arc::from(text.as_bytes()));
        let options = Options::of(Starts::Scheduled { speedup: 1.0 });
        let mut loaded = crate::open(&Source::with("vidur", vec![input]).unwrap(), &options).unwrap();
        assert_eq!(loaded.survey.notes[0], "1 row skipped: no prefill tokens");
        let openings: Vec<_> = std::iter::from_fn(|| loaded.workload.open().unwrap()).collect();
        let told: Vec<_> =
            openings.iter().map(|o| (o.at.0, o.request.prompt.tokens(), o.request.output_tokens)).collect();
        assert_eq!(told, [(0, 100, 7), (1_250_000_000, 200, 8)]);
    }
}
