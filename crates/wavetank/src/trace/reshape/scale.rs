//! `trace scale`.

use wavetank_model::{Error, Result};
use wavetank_trace::Meter;
use wavetank_trace::requests::{Reader, Source};
use wavetank_trace::shape::{Copies, Pace, Paced, Span, Stretch, Stretched};

use super::target::Origin;
use super::{TraceInput, TraceOutput, TraceWritten};

/// How a trace is scaled, as typed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScaleArgs {
    /// How many times as fast requests come.
    pub rate: Option<f64>,
    /// Or how long it lasts from the first request to the last, in seconds.
    pub span_s: Option<f64>,
    /// Whether pauses within sessions stay as they are.
    pub keep_pauses: bool,
    /// How many times every request is there.
    pub copies: Option<u64>,
    /// What every block is replaced by.
    pub depth: Option<u32>,
    /// What prompt tokens are multiplied by.
    pub input_scale: Option<f64>,
    /// What tokens to generate are multiplied by.
    pub output_scale: Option<f64>,
}

/// Writes a trace at another rate, with copies of itself or with other lengths.
pub fn scale_trace(
    input: &TraceInput,
    output: &TraceOutput,
    args: &ScaleArgs,
    meter: &Meter,
) -> Result<TraceWritten> {
    args.check()?;
    let source = input.source()?;
    output.check_apart(&source)?;
    let rate = args.rate(input, &source, meter)?;
    let mut reader = input.open(&source, meter)?;
    if let Some(rate) = rate {
        reader = Box::new(Paced::of(reader, Pace { rate, keep_pauses: args.keep_pauses }));
    }
    let stretch = Stretch {
        input: args.depth.map(f64::from).or(args.input_scale).unwrap_or(1.0),
        output: args.output_scale.unwrap_or(1.0),
    };
    if stretch != (Stretch { input: 1.0, output: 1.0 }) {
        reader = Box::new(Stretched::of(reader, stretch));
    }
    if let Some(copies) = args.copies.filter(|copies| *copies > 1) {
        reader = Box::new(Copies::of(reader, copies));
    }
    output.write(reader.as_mut() as &mut dyn Reader, &Origin::of(&source), meter)
}

impl ScaleArgs {
    fn check(&self) -> Result<()> {
        let Self { rate, span_s, copies, depth, input_scale, output_scale, .. } = self;
        if (rate, span_s, copies, depth, input_scale, output_scale)
            == (&None, &None, &None, &None, &None, &None)
        {
            return Err(Error::usage("nothing is scaled")
                .hint("--rate or --span, --copies, --depth or --input-scale, --output-scale"));
        }
        let factors = [
            ("--rate", rate),
            ("--span", span_s),
            ("--input-scale", input_scale),
            ("--output-scale", output_scale),
        ];
        for (flag, factor) in factors {
            if factor.is_some_and(|factor| !(factor > 0.0 && factor.is_finite())) {
                return Err(Error::usage("must be a number above 0").at(flag));
            }
        }
        if *copies == Some(0) || *depth == Some(0) {
            return Err(Error::usage("must be 1 at least").at("--copies, --depth"));
        }
        if self.keep_pauses && rate.is_none() && span_s.is_none() {
            return Err(Error::usage("has no effect without --rate or --span").at("--keep-pauses"));
        }
        Ok(())
    }

    /// The factor; for a span the trace is read once more.
    fn rate(&self, input: &TraceInput, source: &Source, meter: &Meter) -> Result<Option<f64>> {
        let Some(wanted) = self.span_s else { return Ok(self.rate) };
        if source.is_once() {
            return Err(Error::usage("the trace would be read twice, and can be read once")
                .at("--span")
                .hint("--rate scales what comes from a pipe"));
        }
        let span = Span::of(input.open(source, meter)?.as_mut())?;
        let seconds =
            span.and_then(|Span { first, last }| last.since(first)).map_or(0.0, |span| span.as_ms() / 1e3);
        if seconds == 0.0 {
            return Err(Error::input("all requests come at once, or have no times")
                .at(source.name())
                .hint("--span needs times that differ"));
        }
        Ok(Some(seconds / wanted))
    }
}
