//! Rows made fit for a target, one at a time.

use std::collections::HashMap;

use wavetank_model::{Error, Nanos, Result};

use super::Ability;
use super::filler::{IdFiller, StartFiller};
use crate::requests::{Blocks, Entry};
use crate::{Fill, HashFill, Row};

/// What a conversion is between.
#[derive(Clone, Copy)]
pub struct Setting {
    /// What is written.
    pub target: &'static Entry,
    /// How many tokens an id of the source stands for.
    pub tokens_per_id: Option<u32>,
    /// What the source's blocks are.
    pub blocks: Blocks,
    /// What stands in for what the source does not say.
    pub fill: Fill,
}

/// Makes rows fit, and counts what was filled and what is lost.
#[derive(Debug)]
pub struct Fitting {
    target: &'static str,
    target_blocks: Blocks,
    ability: Ability,
    tokens_per_id: Option<u32>,
    fill: Fill,
    ids: IdFiller,
    starts: StartFiller,
    rows: u64,
    filled: Filled,
    lost: Lost,
}

/// Requests of which something is filled.
#[derive(Debug, Default)]
struct Filled {
    ids: u64,
    outputs: u64,
    starts: u64,
    names: u64,
    joined_waits: u64,
}

/// Requests of which something is lost.
#[derive(Debug, Default)]
struct Lost {
    names: u64,
    sessions: u64,
    starts: u64,
    pauses: u64,
    dependencies: u64,
    tool_waits: u64,
    outputs: u64,
    ids: u64,
    priorities: u64,
    classes: u64,
    kinds: u64,
}

/// Tokens that a filled id stands for where the target does not say.
const USUAL_TOKENS_PER_ID: u32 = 16;

impl Fitting {
    /// Prepares it; an error where the target is not written.
    pub fn of(setting: &Setting) -> Result<Self> {
        let Setting { target, tokens_per_id, blocks, fill } = *setting;
        let Some(ability) = Ability::of(target) else { return Err(not_written(target)) };
        let own = match target.provides.blocks {
            Blocks::Of(tokens) => tokens,
            Blocks::Absent | Blocks::Told => USUAL_TOKENS_PER_ID,
        };
        let ids = IdFiller {
            rule: fill.hash,
            tokens_per_id: tokens_per_id.unwrap_or(own),
            base: if blocks == Blocks::Absent { 0 } else { 1 << 63 },
            next: 0,
            sessions: HashMap::new(),
        };
        Ok(Self {
            target: target.name,
            target_blocks: target.provides.blocks,
            ability,
            tokens_per_id: tokens_per_id.or(ability.needs.ids.then_some(ids.tokens_per_id)),
            fill,
            ids,
            starts: StartFiller::default(),
            rows: 0,
            filled: Filled::default(),
            lost: Lost::default(),
        })
    }

    /// How many tokens an id that is written stands for.
    pub fn tokens_per_id(&self) -> Option<u32> {
        self.tokens_per_id
    }

    /// Makes `row` fit; an error has no place yet.
    pub fn fit(&mut self, row: &mut Row) -> Result<()> {
        self.rows += 1;
        let Ability { keeps, needs } = self.ability;
        if needs.start {
            self.filled.starts += u64::from(self.starts.fill(row, self.target)?);
        }
        if needs.output && row.output_tokens.is_none() {
            row.output_tokens = Some(self.output()?);
        }
        if needs.input && row.input_tokens.is_none() {
            let covered = self.tokens_per_id.map(|tokens| row.ids.len() as u64 * u64::from(tokens));
            row.input_tokens = covered.filter(|tokens| *tokens > 0).and_then(|tokens| tokens.try_into().ok());
        }
        if needs.ids && row.ids.is_empty() {
            self.fill_ids(row)?;
        }
        if needs.name && row.request.is_none() {
            self.filled.names += 1;
            row.request = Some(format!("request-{}", self.rows));
        }
        if !keeps.tool_wait
            && keeps.pause
            && let Some(wait) = row.tool_wait.take()
        {
            self.filled.joined_waits += 1;
            row.pause = Some(Nanos(row.pause.unwrap_or_default().0.saturating_add(wait.0)));
        }
        self.count_lost(row);
        Ok(())
    }

    fn output(&mut self) -> Result<u32> {
        self.filled.outputs += 1;
        self.fill.output.ok_or_else(|| {
            Error::input(format!("how many tokens were generated is not said, and {} needs it", self.target))
                .hint("--fill output=TOKENS says it for all requests")
        })
    }

    fn fill_ids(&mut self, row: &mut Row) -> Result<()> {
        if self.fill.hash == HashFill::None {
            return Err(Error::input(format!("it has no block ids, and {} needs them", self.target))
                .hint("--fill hash=unique or --fill hash=session makes them"));
        }
        let Some(tokens) = row.input_tokens.filter(|tokens| *tokens > 0) else {
            return Err(Error::input("neither the length of its prompt nor block ids are said")
                .hint("a prompt has at least one token"));
        };
        self.ids.fill(row, tokens);
        self.filled.ids += 1;
        Ok(())
    }

    fn count_lost(&mut self, row: &Row) {
        let keeps = &self.ability.keeps;
        let lost = &mut self.lost;
        lost.names += u64::from(!keeps.name && row.request.is_some());
        lost.sessions += u64::from(!keeps.session && row.session.is_some());
        lost.starts += u64::from(!keeps.start && row.start.is_some());
        lost.pauses += u64::from(!keeps.pause && row.pause.is_some_and(|pause| pause.0 > 0));
        lost.dependencies += u64::from(!keeps.wait_for && !row.wait_for.is_empty());
        lost.tool_waits += u64::from(!keeps.tool_wait && row.tool_wait.is_some_and(|wait| wait.0 > 0));
        lost.outputs += u64::from(!keeps.output && row.output_tokens.is_some());
        lost.ids += u64::from(!keeps.ids && !row.ids.is_empty());
        lost.priorities += u64::from(!keeps.priority && row.priority != Default::default());
        lost.classes += u64::from(!keeps.policy_class && row.policy_class.is_some());
        lost.kinds += u64::from(!keeps.kind && row.kind.is_some());
    }

    /// What was filled and what is lost, in words.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.filled_notes();
        let Lost { names, sessions, starts, pauses, dependencies, tool_waits, .. } = self.lost;
        let Lost { outputs, ids, priorities, classes, kinds, .. } = self.lost;
        let lost = [
            (names, "the name"),
            (sessions, "the session"),
            (starts, "the time"),
            (pauses, "the pause"),
            (dependencies, "what it waits for"),
            (tool_waits, "the time of its tools"),
            (outputs, "the output length"),
            (ids, "the block ids"),
            (priorities, "the priority"),
            (classes, "the policy class"),
            (kinds, "the kind"),
        ];
        for (count, what) in lost.into_iter().filter(|(count, _)| *count > 0) {
            notes.push(format!("lost: {what} of {}, which {} does not hold", requests(count), self.target));
        }
        if let (Blocks::Of(own), Some(tokens)) = (self.target_blocks, self.tokens_per_id)
            && own != tokens
        {
            notes.push(format!(
                "an id stands for {tokens} tokens, which {} does not say: read it with --trace-block-size \
                 {tokens}",
                self.target
            ));
        }
        notes
    }

    fn filled_notes(&self) -> Vec<String> {
        let Filled { ids, outputs, starts, names, joined_waits } = self.filled;
        let Fill { hash, output } = self.fill;
        let tokens = output.unwrap_or_default();
        let (per_id, target) = (self.ids.tokens_per_id, self.target);
        let filled = [
            (ids, format!("block ids of {per_id} tokens, {} (--fill hash={})", hash.words(), hash.name())),
            (outputs, format!("an output length of {tokens} (--fill output={tokens})")),
            (starts, "the time of the turn before it and its pause".to_owned()),
            (names, format!("a name, which {target} needs")),
            (joined_waits, "the time of its tools as part of its pause".to_owned()),
        ];
        let told = filled.into_iter().filter(|(count, _)| *count > 0);
        told.map(|(count, what)| format!("filled: {} got {what}", requests(count))).collect()
    }
}

fn requests(count: u64) -> String {
    format!("{count} {}", if count == 1 { "request" } else { "requests" })
}

fn not_written(target: &Entry) -> Error {
    let written = crate::requests::ALL.iter().filter(|entry| entry.write.is_some());
    let names = written.map(|entry| entry.name).collect::<Vec<_>>().join(", ");
    Error::usage(format!("{} is read, not written", target.name))
        .hint(format!("name a format that is written, with --to or before the path: {names}"))
}
