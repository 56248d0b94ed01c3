//! What a request trace holds, to be read by people.

use super::super::text::Sheet;
use super::{LengthStats, Rate, RateStats, TraceStats};

impl TraceStats {
    /// The table `trace stats` prints.
    pub fn text(&self) -> String {
        let mut sheet = Sheet::default();
        sheet.line("trace", self.files.join(", "));
        sheet.line("format", self.format);
        sheet.line("requests", self.requests);
        if self.skipped > 0 {
            sheet.line("skipped", self.skipped);
        }
        if self.clamped > 0 {
            sheet.line("clamped", format_args!("{} inputs, cut to what their ids cover", self.clamped));
        }
        self.say_sessions(&mut sheet);
        say_lengths("input", &self.input_tokens, &mut sheet);
        say_lengths("output", &self.output_tokens, &mut sheet);
        match &self.rates {
            Some(rates) => self.say_rates(rates, &mut sheet),
            None => sheet.line("duration", "no request has a time"),
        }
        self.say_blocks(&mut sheet);
        self.warnings.iter().for_each(|warning| sheet.line("note", warning));
        sheet.into_text()
    }

    fn say_sessions(&self, sheet: &mut Sheet) {
        let sessions = &self.sessions;
        if sessions.count > 0 {
            let (count, mean, max) = (sessions.count, sessions.turns_mean, sessions.turns_max);
            sheet.line("sessions", format_args!("{count}, turns {mean:.2} on average, {max} at most"));
            if sessions.single_requests > 0 {
                sheet.more(format_args!("{} requests of no session", sessions.single_requests));
            }
        } else {
            sheet.line("sessions", "none");
        }
        if self.edges > 0 {
            sheet.line("graph", format_args!("{} edges: requests that wait for another one", self.edges));
        }
    }

    fn say_rates(&self, rates: &RateStats, sheet: &mut Sheet) {
        sheet.line("duration", format_args!("{:.3} s", rates.duration_s));
        if rates.timed_requests < self.requests {
            let others = self.requests - rates.timed_requests;
            sheet.more(format_args!("{others} requests have no time and are in no rate"));
        }
        let over = self.over_time.span_s;
        let said = |rate: &Rate| {
            let mean = rate.mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.2}"));
            format!("{mean} on average, {:.2} at most over {over} s", rate.peak)
        };
        sheet.line("requests/s", said(&rates.requests_per_s));
        sheet.line("input/s", format_args!("{} (tokens)", said(&rates.input_tokens_per_s)));
        sheet.line("output/s", format_args!("{} (tokens)", said(&rates.output_tokens_per_s)));
    }

    fn say_blocks(&self, sheet: &mut Sheet) {
        let (blocks, bound) = (&self.blocks, &self.reuse_bound);
        if blocks.references == 0 {
            sheet.line("blocks", "none that two requests may share");
            return;
        }
        let exact = blocks.one_in == 1;
        let about = |error: String| if exact { String::new() } else { format!(" ± {error}") };
        let unique = about(format!("{:.0}", blocks.unique_standard_error));
        let size = blocks.tokens_per_block;
        sheet.line(
            "blocks",
            format_args!(
                "{} references, {}{unique} unique, of {size} tokens",
                blocks.references, blocks.unique
            ),
        );
        let said = |ratio: f64, error: f64| {
            format!("{:.2}{} %", ratio * 100.0, about(format!("{:.2}", error * 100.0)))
        };
        let of_blocks = said(bound.block_hit_ratio, bound.block_hit_ratio_standard_error);
        let of_tokens = said(bound.prompt_token_ratio, bound.prompt_token_ratio_standard_error);
        sheet.line(
            "reuse bound",
            format_args!("{of_blocks} of blocks, {of_tokens} of prompt tokens, with an endless cache"),
        );
        if !exact {
            let one_in = blocks.one_in;
            sheet.more(format_args!("estimated from one block in {one_in}; ± is the standard error"));
        }
    }
}

fn say_lengths(name: &str, lengths: &LengthStats, sheet: &mut Sheet) {
    let LengthStats { count, sum, mean, p50, p90, p99, max, .. } = lengths;
    if *count == 0 {
        sheet.line(name, "not said");
        return;
    }
    sheet.line(
        name,
        format_args!("{sum} tokens; {mean:.1} on average, p50 {p50}, p90 {p90}, p99 {p99}, max {max}"),
    );
}
