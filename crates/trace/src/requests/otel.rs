//! OpenTelemetry spans of model calls, JSON: `{"spans": […]}` as inference-perf writes them, and OTLP's
//! `resourceSpans`, one document or one per line (semantic conventions for generative AI). Texts become block
//! ids, cut or filled up to the usage that was recorded; sessions, links and what prompts hold say who waited
//! for whom.

mod order;
mod prompt;
mod span;

use std::collections::HashSet;

use wavetank_model::{Error, Nanos, Result};
use xxhash_rust::xxh3::xxh3_128;

use super::{Blocks, Entry, Findings, Provides, ReadOptions, Reader, TokenCount};
use crate::items::Items;
use crate::reading::token_count::TOKENS_PER_ID;
use crate::{Input, Moment, Row};
use order::{Reasons, Waits};
use prompt::{Prompts, Said};
use span::Span;

/// The row of the table.
pub(super) const ENTRY: Entry = Entry {
    name: "otel",
    about: "JSON of OpenTelemetry spans: gen_ai.* attributes of model calls, their texts and usage; a graph",
    provides: Provides {
        starts: true,
        sessions: true,
        pauses: true,
        dependencies: true,
        texts: true,
        blocks: Blocks::Of(TOKENS_PER_ID),
        ..Provides::LENGTHS
    },
    recognises: |head| {
        let is_otlp = head.has_anywhere("resourceSpans") || head.has_anywhere("scopeSpans");
        is_otlp || (head.is_object() && head.has(1, "spans"))
    },
    read: |inputs, options| Ok(Box::new(Spans::open(inputs, options)?)),
    write: None,
};

/// The member that holds spans, in either form.
const SPANS: &str = "spans";

/// A model call.
#[derive(Debug)]
struct Call {
    row: Row,
    end: Moment,
    trace: String,
    span: String,
    /// The span around it, and spans that it names; as hashes of their names.
    parent: Option<u128>,
    links: Vec<u128>,
    said: Said,
    place: (String, u64),
}

impl Call {
    fn start(&self) -> Moment {
        self.row.start.unwrap_or_default()
    }

    fn key(&self) -> u128 {
        key(&self.trace, &self.span)
    }
}

/// A span among those of all traces.
fn key(trace: &str, span: &str) -> u128 {
    xxh3_128(format!("{trace}/{span}").as_bytes())
}

/// The files being read.
struct Spans {
    inputs: Vec<Input>,
    /// How many of them were opened.
    opened: usize,
    items: Items,
    prompts: Prompts,
    calls: Vec<Call>,
    keys: HashSet<u128>,
    /// The call to be handed over next, once all are connected.
    next: Option<usize>,
    at: (String, u64),
    others: u64,
    silent: u64,
    around: u64,
    reasons: Reasons,
}

impl Spans {
    fn open(inputs: &[Input], options: &ReadOptions) -> Result<Self> {
        options.texts.check()?;
        if let Some(wanted) = options.tokens_per_id.filter(|wanted| *wanted != TOKENS_PER_ID) {
            return Err(Error::usage(format!("ids of texts stand for {TOKENS_PER_ID} tokens, not {wanted}"))
                .at(inputs[0].name())
                .hint("leave --trace-block-size away"));
        }
        Ok(Self {
            inputs: inputs.to_vec(),
            opened: 1,
            items: Items::under(&inputs[0], SPANS)?,
            prompts: Prompts::by(options.texts.tokens),
            calls: Vec::new(),
            keys: HashSet::new(),
            next: None,
            at: (String::new(), 0),
            others: 0,
            silent: 0,
            around: 0,
            reasons: Reasons::default(),
        })
    }

    /// Reads the next span of any file. Tells whether there was one.
    fn advance(&mut self) -> Result<bool> {
        while !self.items.advance()? {
            let Some(input) = self.inputs.get(self.opened) else { return Ok(false) };
            self.opened += 1;
            self.items = Items::under(input, SPANS)?;
        }
        let span = Span::parse(&self.items)?;
        self.take(span).map_err(|error| error.within(self.items.place(1)))?;
        Ok(true)
    }

    /// Keeps a span that is a model call.
    fn take(&mut self, span: Span) -> Result<()> {
        if !span.is_call() {
            self.others += 1;
            return Ok(());
        }
        let mut row = Row { start: Some(span.start()?), ..Row::default() };
        let end = span.end()?.map_or(row.start, Some).max(row.start).unwrap_or_default();
        let Some(said) = self.prompts.fill(&span, &mut row)? else {
            self.silent += 1;
            return Ok(());
        };
        let trace = span.trace_id.unwrap_or_default();
        let id = span.span_id.unwrap_or_else(|| format!("span_{}", self.items.number()));
        if !self.keys.insert(key(&trace, &id)) {
            return Err(Error::input(format!("span \"{id}\" of trace \"{trace}\" comes again"))
                .hint("every span of a trace has its own id"));
        }
        let parent = span.parent_span_id.filter(|parent| !parent.is_empty());
        let links = span.links.iter().map(|link| key(&link.trace_id, &link.span_id)).collect();
        row.session = span.attributes.session();
        row.kind = span.attributes.text("gen_ai.operation.name").map(str::to_owned);
        let parent = parent.map(|parent| key(&trace, &parent));
        let place = (self.items.place(1), self.items.line());
        self.calls.push(Call { row, end, trace, span: id, parent, links, said, place });
        Ok(())
    }

    /// All spans are there: calls are named and connected.
    fn complete(&mut self) {
        self.drop_wrappers();
        self.calls.sort_by_key(|call| (call.start(), call.end));
        let mut names = HashSet::new();
        for call in &mut self.calls {
            let is_new = names.insert(call.span.clone());
            call.row.request =
                Some(if is_new { call.span.clone() } else { format!("{}/{}", call.trace, call.span) });
        }
        let Waits { waits, reasons } = Waits::of(&self.calls);
        self.reasons = reasons;
        for (number, waits) in waits.into_iter().enumerate() {
            let Some(last) = waits.iter().map(|&other| self.calls[other].end).max() else { continue };
            let names = waits.iter().filter_map(|&other| self.calls[other].row.request.clone()).collect();
            let call = &mut self.calls[number];
            call.row.wait_for = names;
            call.row.pause = Some(call.start().since(last).unwrap_or(Nanos::ZERO));
        }
        self.next = Some(0);
    }

    /// Libraries that call libraries tell a call twice: the span around another call's goes.
    fn drop_wrappers(&mut self) {
        let mut around = HashSet::new();
        let by_key: std::collections::HashMap<u128, (Moment, Moment)> =
            self.calls.iter().map(|call| (call.key(), (call.start(), call.end))).collect();
        for call in &self.calls {
            let outer = call.parent.and_then(|parent| Some((parent, *by_key.get(&parent)?)));
            if let Some((parent, (start, end))) = outer
                && start <= call.start()
                && call.end <= end
                && call.start() < end
            {
                around.insert(parent);
            }
        }
        self.calls.retain(|call| !around.contains(&call.key()));
        self.around = around.len() as u64;
    }
}

impl Reader for Spans {
    fn read(&mut self, row: &mut Row) -> Result<bool> {
        while self.next.is_none() {
            if !self.advance()? {
                self.complete();
            }
        }
        let Some(call) = self.next.and_then(|next| self.calls.get_mut(next)) else { return Ok(false) };
        (*row, self.at) = (std::mem::take(&mut call.row), std::mem::take(&mut call.place));
        self.next = self.next.map(|next| next + 1);
        Ok(true)
    }

    fn place(&self) -> String {
        self.at.0.clone()
    }

    fn line(&self) -> u64 {
        self.at.1
    }

    fn tokens_per_id(&self) -> Option<u32> {
        Some(TOKENS_PER_ID)
    }

    fn findings(&self) -> Findings {
        let counted = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let calls = counted(self.calls.len() as u64, "model call");
        let mut notes = vec![format!("{calls}, texts counted by {}", self.prompts.count)];
        let mut note = |count: u64, what: &str, why: String| {
            notes.extend((count > 0).then(|| format!("{} {why}", counted(count, what))));
        };
        let Prompts { padded, cut, counted: unused, bare, untokenized, .. } = self.prompts;
        note(padded, "prompt", "longer than the texts: filled up with what is like nothing else".into());
        note(cut, "prompt", "shorter than the texts: cut".into());
        note(unused, "prompt", "without recorded usage: as long as the texts".into());
        note(bare, "prompt", "without texts: as long as recorded".into());
        let usual = crate::reading::token_count::USUAL;
        note(untokenized, "text", format!("counted by {usual}: the tokenizer gave up"));
        let Reasons { by_session, by_prompt, by_link } = self.reasons;
        note(by_session, "request", "came after what had ended in the session".into());
        note(by_prompt, "request", "came after calls whose texts stand in the prompt".into());
        note(by_link, "request", "came after spans that are named".into());
        note(self.others, "span", "skipped: no model calls".into());
        note(self.silent, "span", "skipped: neither texts nor usage".into());
        note(self.around, "span", "skipped: around the same call of another library".into());
        Findings { skipped: self.others + self.silent + self.around, notes }
    }
}

#[cfg(test)]
mod tests;
