//! A CSV of measured passes as tables. Columns:
//! `kind,prefill_batch,prefill_tokens,prefill_context,decode_batch, decode_context,ms`; `prefill_tokens` are
//! all new tokens of the pass, contexts are per request.
//!
//! The rule: what a prompt of `n` tokens pays for attention to itself is half of what `n` tokens of context
//! add to it, because it attends to half as many pairs. The rest of a prompt without context is the token
//! curve; what a prompt or a decode batch takes beyond the curve is its attention. A mixed row gives the
//! curve a further point: what both attentions leave of it, the median of the rows with as many tokens. Rows
//! of several prompts are checked and not used.

use std::collections::BTreeMap;

use wavetank_model::{Error, Result};

use super::profile::{A_DAY_MS, MOST, Tables};
use super::table::{Curve, Surface, isotonic};

const HEADER: &str = "kind,prefill_batch,prefill_tokens,prefill_context,decode_batch,decode_context,ms";
/// The shortest decode pass of a GPU is above, in milliseconds; seconds would be below.
const LEAST_MS: f64 = 0.1;
/// The shortest decode pass of a GPU is below, in milliseconds; microseconds would be above.
const MOST_MS: f64 = 1000.0;

/// A measured value and its line.
#[derive(Clone, Copy)]
struct Cell {
    ms: f64,
    line: usize,
}

/// Cells by two coordinates.
type Cells = BTreeMap<(u32, u32), Cell>;

#[derive(Default)]
struct Rows {
    /// By new tokens and context.
    prefill: Cells,
    /// By requests and context.
    decode: Cells,
    /// New tokens, context, requests that decode, their context, milliseconds.
    mixed: Vec<([u32; 4], f64)>,
}

/// The tables of `text`; errors carry `place` and the line.
pub(super) fn tables(place: &str, text: &str) -> Result<Tables> {
    let at = |line: usize, message: String| Error::input(message).at(format!("{place}:{line}"));
    let mut lines = text.lines().enumerate().map(|(line, row)| (line + 1, row.trim()));
    match lines.next() {
        Some((_, HEADER)) => {}
        _ => return Err(at(1, "the header is wrong".to_owned()).hint(format!("it must be {HEADER}"))),
    }
    let mut rows = Rows::default();
    let mut last = 1;
    for (line, row) in lines.filter(|(_, row)| !row.is_empty()) {
        rows.enter(line, row).map_err(|message| at(line, message))?;
        last = line;
    }
    for (kind, cells) in [("prefill", &rows.prefill), ("decode", &rows.decode)] {
        if cells.is_empty() {
            return Err(at(last, format!("no row of kind {kind}"))
                .hint("a profile needs prefill rows of one prompt and decode rows"));
        }
    }
    rows.check_unit().and_then(|()| rows.split()).map_err(|(line, message)| at(line, message))
}

impl Rows {
    fn enter(&mut self, line: usize, row: &str) -> Result<(), String> {
        let cells: Vec<&str> = row.split(',').map(str::trim).collect();
        let [kind, numbers @ .., ms] = &cells[..] else { return Err("the line is empty".to_owned()) };
        let numbers: &[&str; 5] =
            numbers.try_into().map_err(|_| format!("the line has {} columns, the header 7", cells.len()))?;
        let mut shape = [0u32; 5];
        for (number, cell) in shape.iter_mut().zip(numbers) {
            *number = cell.parse().map_err(|_| format!("\"{cell}\" is not a whole number"))?;
            if *number > MOST {
                return Err(format!("{number} is above {MOST}"));
            }
        }
        let time = ms.parse::<f64>().ok().filter(|ms| *ms > 0.0 && *ms <= A_DAY_MS);
        let ms = time.ok_or_else(|| format!("\"{ms}\": \"ms\" must be above 0 and at most a day"))?;
        let [prompts, tokens, context, requests, length] = shape;
        let (prefills, decodes) = (prompts > 0 && tokens >= prompts, requests > 0);
        match *kind {
            "prefill" if prefills && !decodes && length == 0 => match prompts {
                1 => ordered(&mut self.prefill, (tokens, context), Cell { ms, line }),
                _ => Ok(()),
            },
            "decode" if decodes && shape[..3] == [0, 0, 0] => {
                ordered(&mut self.decode, (requests, length), Cell { ms, line })
            }
            "mixed" if prefills && decodes => {
                if prompts == 1 {
                    self.mixed.push(([tokens, context, requests, length], ms));
                }
                Ok(())
            }
            "prefill" | "decode" | "mixed" => Err(format!("the numbers are not those of a {kind} pass")),
            other => Err(format!("unknown kind \"{other}\"; known: decode, mixed, prefill")),
        }
    }

    /// The shortest decode pass tells milliseconds from seconds and microseconds.
    fn check_unit(&self) -> Result<(), (usize, String)> {
        let Some(least) = self.decode.values().min_by(|a, b| a.ms.total_cmp(&b.ms)) else { return Ok(()) };
        if (LEAST_MS..=MOST_MS).contains(&least.ms) {
            return Ok(());
        }
        let message = format!("the shortest decode pass takes {} ms: is \"ms\" in another unit?", least.ms);
        Err((least.line, message))
    }

    fn split(&self) -> Result<Tables, (usize, String)> {
        let prefill = Block::of("prefill", &self.prefill)?;
        let decode = Block::of("decode", &self.decode)?;
        if let Some(line) = decode.cells.iter().flatten().position(Option::is_none) {
            let (requests, length) = (line / decode.columns.len(), line % decode.columns.len());
            return Err(decode.hole(&self.decode, (decode.rows[requests], decode.columns[length])));
        }
        let reach = self.prefill.keys().map(|(tokens, context)| tokens + context).max().unwrap_or(0);
        for (&tokens, row) in prefill.rows.iter().zip(&prefill.cells) {
            for (column, (&context, cell)) in prefill.columns.iter().zip(row).enumerate() {
                // What lies behind the last goes on as the two before it.
                if cell.is_none() && (column < 2 || tokens + context <= reach) {
                    return Err(prefill.hole(&self.prefill, (tokens, context)));
                }
            }
        }
        Ok(self.parts(&prefill, &decode))
    }

    fn parts(&self, prefill: &Block, decode: &Block) -> Tables {
        let whole = |cells: &[Vec<Option<f64>>]| -> Vec<Vec<f64>> {
            cells.iter().map(|row| row.iter().map(|cell| cell.unwrap_or(0.0)).collect()).collect()
        };
        let (tokens, decode_ms) = (&prefill.rows, whole(&decode.cells));
        let mut curve: Vec<f64> =
            tokens.iter().zip(&prefill.cells).map(|(&n, row)| own_ms(n, &prefill.columns, row)).collect();
        isotonic(&mut curve);
        let dearer = dearer_ms(&Curve::of(tokens, &curve), decode, &decode_ms);
        curve.iter_mut().for_each(|ms| *ms = (*ms - dearer).max(0.0));
        let prefill_attn_ms = tokens
            .iter()
            .zip(&prefill.cells)
            .zip(&curve)
            .map(|((_, row), own)| row.iter().map(|cell| cell.map(|ms| (ms - own).max(0.0))).collect())
            .collect::<Vec<Vec<Option<f64>>>>();
        let mut tables = Tables {
            tokens: tokens.clone(),
            token_ms: curve,
            seqs: vec![1, 2],
            seq_ms: vec![0.0; 2],
            new: tokens.clone(),
            ctx: prefill.columns.clone(),
            prefill_attn_ms,
            batch: decode.rows.clone(),
            dctx: decode.columns.clone(),
            decode_attn_ms: Vec::new(),
        };
        tables.decode_attn_ms = beyond(&tables, &decode_ms);
        self.refine(&mut tables);
        tables.decode_attn_ms = beyond(&tables, &decode_ms);
        tables
    }

    /// Further points of the token curve, from mixed rows.
    fn refine(&self, tables: &mut Tables) {
        let compiled = tables.clone().compile();
        let mut left: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for ([tokens, context, requests, length], ms) in &self.mixed {
            let prompt = compiled.prefill.at(f64::from(*tokens), f64::from(*context));
            let decode = compiled.decode.at(f64::from(*requests), f64::from(*length));
            left.entry(tokens + requests).or_default().push((ms - prompt - decode).max(0.0));
        }
        let mut curve: BTreeMap<u32, f64> =
            tables.tokens.iter().copied().zip(tables.token_ms.iter().copied()).collect();
        for (tokens, mut values) in left {
            values.sort_by(f64::total_cmp);
            curve.entry(tokens).or_insert(values[values.len() / 2]);
        }
        (tables.tokens, tables.token_ms) = curve.into_iter().unzip();
        isotonic(&mut tables.token_ms);
    }
}

/// Enters a cell; along each axis the cells must come in ascending order, each once.
fn ordered(cells: &mut Cells, at: (u32, u32), cell: Cell) -> Result<(), String> {
    let beside = |&(&(a, b), _): &(&(u32, u32), &Cell)| (a == at.0) != (b == at.1) && (a, b) > at;
    if let Some(before) = cells.get(&at) {
        return Err(format!("the same pass as in line {}", before.line));
    }
    if let Some((_, later)) = cells.range(at..).find(beside) {
        return Err(format!("out of order: line {} belongs after it", later.line));
    }
    cells.insert(at, cell);
    Ok(())
}

/// Cells as a rectangle.
struct Block {
    kind: &'static str,
    rows: Vec<u32>,
    columns: Vec<u32>,
    cells: Vec<Vec<Option<f64>>>,
}

impl Block {
    /// The rectangle of `cells`; one column becomes two equal ones.
    fn of(kind: &'static str, cells: &Cells) -> Result<Self, (usize, String)> {
        let distinct = |mut points: Vec<u32>| {
            points.sort_unstable();
            points.dedup();
            points
        };
        let rows = distinct(cells.keys().map(|key| key.0).collect());
        let mut columns = distinct(cells.keys().map(|key| key.1).collect());
        if rows.len() < 2 {
            let line = cells.values().next().map_or(1, |cell| cell.line);
            return Err((line, format!("{kind} rows need two sizes or more")));
        }
        let row =
            |&row: &u32| columns.iter().map(|&column| cells.get(&(row, column)).map(|c| c.ms)).collect();
        let mut values: Vec<Vec<Option<f64>>> = rows.iter().map(row).collect();
        if let [only] = columns[..] {
            columns.push(only + 1);
            values.iter_mut().for_each(|row| row.push(row[0]));
        }
        Ok(Self { kind, rows, columns, cells: values })
    }

    /// The message about a missing cell, at the line of the row before it.
    fn hole(&self, cells: &Cells, at: (u32, u32)) -> (usize, String) {
        let line = cells.range(..at).next_back().map_or(1, |(_, cell)| cell.line);
        (line, format!("a hole: there is no {} row of size {} with context {}", self.kind, at.0, at.1))
    }
}

/// What a prompt of `tokens` takes without context, less its attention to itself.
fn own_ms(tokens: u32, contexts: &[u32], row: &[Option<f64>]) -> f64 {
    let known: Vec<(u32, f64)> =
        contexts.iter().zip(row).filter_map(|(&context, ms)| Some((context, (*ms)?))).collect();
    let (points, values): (Vec<u32>, Vec<f64>) = known.into_iter().unzip();
    let bare = values[0];
    if points.len() < 2 {
        return bare;
    }
    let twice = Surface::of(&[0, 1], &points, [values.clone(), values].concat()).at(0.0, f64::from(tokens));
    bare - ((twice - bare) / 2.0).clamp(0.0, 0.9 * bare)
}

/// How far the curve is above the cheapest decode passes: a start that only prompts pay.
fn dearer_ms(curve: &Curve, decode: &Block, decode_ms: &[Vec<f64>]) -> f64 {
    let over = decode.rows.iter().zip(decode_ms).map(|(&n, row)| curve.at(u64::from(n)) - row[0]);
    over.fold(0.0, f64::max)
}

/// What decode passes take beyond the token curve.
fn beyond(tables: &Tables, decode_ms: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let curve = Curve::of(&tables.tokens, &tables.token_ms);
    let row =
        |(&n, row): (&u32, &Vec<f64>)| row.iter().map(|ms| (ms - curve.at(u64::from(n))).max(0.0)).collect();
    tables.batch.iter().zip(decode_ms).map(row).collect()
}
