//! Where requests come from: simulated users, or a recording.

use wavetank_bench::{Arrivals, Feed};
use wavetank_model::Nanos;
use wavetank_trace::requests::{self, Source as Files};

use super::draft::Draft;
use super::place;
use super::plan::DatasetPlan;

/// Conversations as texts.
pub(super) const SHAREGPT: &str = "sharegpt";
/// Requests with times and lengths.
pub(super) const BURSTGPT: &str = "burstgpt";
const BURST_PATH: &str = "BurstGPT/data/BurstGPT_1.csv";
const CONVERSATIONS: u64 = 500;
/// Requests per second that no machine serves.
const MOST_PER_SECOND: f64 = 1e6;

/// What was typed of a recording.
struct Source {
    flag: &'static str,
    path: String,
    format: String,
}

impl Draft<'_> {
    /// The recording to play; absent with simulated users.
    pub(super) fn feed(&mut self) -> (Option<Feed>, Option<DatasetPlan>) {
        let args = self.args;
        let speedup = self.findings.within("--trace-speedup", args.trace_speedup.unwrap_or(1.0), 0.0, 1e6);
        let rate = args.request_rate.unwrap_or(0.0);
        let rate = self.findings.within("--request-rate", rate, 0.0, MOST_PER_SECOND);
        let asked = args.max_conversations.unwrap_or(CONVERSATIONS);
        let conversations = self.findings.count("--max-conversations", asked, 1, u32::MAX.into());
        let Some(Source { flag, path, format }) = self.source() else { return (None, None) };
        let found = place::files(flag, &path, (format == BURSTGPT).then_some("csv"));
        let files = self.findings.take(found).unwrap_or_default();
        let is_text = format == SHAREGPT;
        let arrivals = match is_text {
            _ if rate > 0.0 && flag != "--use-burst-trace" => {
                Arrivals::Every(Nanos::from_seconds(1.0 / rate))
            }
            false if speedup > 0.0 => Arrivals::Recorded { speedup },
            _ => Arrivals::OnAnswer,
        };
        let cycles = args.replay_cycles.filter(|cycles| *cycles > 0);
        let limited = is_text || args.max_conversations.is_some();
        let keys = self.config.sharegpt;
        let dataset = DatasetPlan {
            files,
            format,
            tokenizer: args.tokenizer.unwrap_or_default(),
            chars_per_token: keys.chars_per_token,
            tokens_per_id: args.trace_block_size.map(|tokens| tokens.max(1)),
            max_conversations: limited.then_some(conversations),
            context_tokens_max: is_text.then_some(keys.context_tokens_max),
            generate_tokens_max: is_text.then_some(keys.generate_tokens_max),
        };
        (Some(Feed::Recording { arrivals, cycles, shuffle: is_text }), Some(dataset))
    }

    fn source(&mut self) -> Option<Source> {
        let args = self.args;
        let source = |flag, path: &str, format: &str| {
            Some(Source { flag, path: path.to_owned(), format: format.to_owned() })
        };
        let typed: Vec<&str> = [
            ("--dataset-path", args.dataset_path.is_some()),
            ("--use-burst-trace", args.use_burst_trace),
            ("--trace", args.trace.is_some()),
        ]
        .into_iter()
        .filter_map(|(flag, typed)| typed.then_some(flag))
        .collect();
        if let [first, second, ..] = &typed[..] {
            self.findings.wrong(second, format!("cannot be combined with {first}: one recording is played"));
        }
        if let Some(path) = &args.dataset_path {
            return source("--dataset-path", path, SHAREGPT);
        }
        if args.use_burst_trace {
            let path = args.burst_trace_path.as_deref().unwrap_or(BURST_PATH);
            return source("--use-burst-trace", path, BURSTGPT);
        }
        let path = args.trace.as_ref()?;
        let named = args.trace_format.as_deref().map(requests::find).transpose();
        self.findings.take(named.map_err(|error| error.at("--trace-format")))?;
        let files = Files::of(&[path], args.trace_format.as_deref()).map_err(|error| error.at("--trace"));
        let files = self.findings.take(files)?;
        source("--trace", &files.paths()[0], files.format.name)
    }
}
