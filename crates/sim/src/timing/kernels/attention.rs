//! Attention by prefill chunk, its context, decode batch and decode context (spec/vllm-timing.md 3).
//!
//! The complete grid is the one of powers of two: multilinear on it. Time follows the KV tokens of a decode
//! batch rather than its size, so between two batch sizes the context is chosen to keep their product; the
//! knee that lies between two powers of two is taken from the finer row of the smallest chunk.

use std::collections::BTreeMap;

use wavetank_model::Result;

use super::axis::{Axis, lerp};
use super::table::Table;
use crate::provenance::left_out;
use crate::survey::{self, Survey};

type Cell = (u32, u32, u32, u32);

/// The tables, in microseconds.
pub(super) struct Attention {
    prefill: Grid2,
    decode: Grid2,
    chunks: Axis,
    contexts: Axis,
    batches: Axis,
    lengths: Axis,
    /// By chunk, context, batch, length.
    mixed: Vec<f32>,
    /// What the finer row adds to a straight line, by batch: (length, microseconds).
    fine: Vec<Vec<(f64, f64)>>,
}

/// A table with two axes.
struct Grid2 {
    rows: Axis,
    columns: Axis,
    times: Vec<f64>,
    /// By how much each is missed by its neighbours.
    errors: Vec<f64>,
}

impl Grid2 {
    fn of(rows: Vec<u32>, columns: Vec<u32>, cell: impl Fn(u32, u32) -> Result<f64>) -> Result<Self> {
        let mut times = Vec::with_capacity(rows.len() * columns.len());
        for &row in &rows {
            for &column in &columns {
                times.push(cell(row, column)?);
            }
        }
        let (rows, columns) = (Axis::of(rows), Axis::of(columns));
        let width = columns.len();
        let errors = left_out(rows.points(), columns.points(), |row, column| times[row * width + column]);
        Ok(Self { rows, columns, times, errors })
    }

    /// The columns at `row`, between its neighbours.
    fn row(&self, row: f64, out: &mut Vec<f64>) {
        let (at, part) = self.rows.locate(row);
        let width = self.columns.len();
        out.clear();
        let [low, high] = [at, at + 1].map(|row| &self.times[row * width..][..width]);
        out.extend(low.iter().zip(high).map(|(&low, &high)| lerp(low, high, part)));
    }

    fn reading(&self, row: f64, column: f64) -> Reading {
        let ((i, _), (j, _)) = (self.rows.locate(row), self.columns.locate(column));
        let beyond = self.rows.is_beyond(row) || self.columns.is_beyond(column);
        Reading { error_us: self.errors[i * self.columns.len() + j], beyond }
    }

    fn at(&self, row: f64, column: f64) -> f64 {
        let ((i, f), (j, g)) = (self.rows.locate(row), self.columns.locate(column));
        let width = self.columns.len();
        let across = |row: usize| lerp(self.times[row * width + j], self.times[row * width + j + 1], g);
        lerp(across(i), across(i + 1), f)
    }
}

/// How sure a time is that was read from a table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// By how much the measured point before it is missed by its neighbours.
    pub(super) error_us: f64,
    /// Whether it lies beyond the measured points.
    pub(super) beyond: bool,
}

/// KV tokens that one layer's attention reads in a microsecond at the very most; more is another unit.
const KV_TOKENS_PER_US: f64 = 1e5;

/// Context over which a prefill's slope is taken to go below none.
const SLOPE_CONTEXT: f64 = 1024.0;
/// Below no context a prefill keeps at least this part of its time.
const LEAST_PREFILL: f64 = 0.3;

impl Attention {
    pub(super) fn read(table: &Table) -> Result<Self> {
        let cells = read_cells(table)?;
        let time = |cell: Cell| {
            cells.get(&cell).copied().ok_or_else(|| {
                let (chunk, context, batch, length) = cell;
                table.error(format!(
                    "there is no row for prefill_chunk {chunk}, kv_prefill {context}, n_decode {batch}, \
                     kv_decode {length}"
                ))
            })
        };
        let powers = |pick: fn(&Cell) -> Option<u32>| {
            let mut values: Vec<u32> = cells.keys().filter_map(pick).collect();
            values.sort_unstable();
            values.dedup();
            values.retain(|value| *value == 0 || value.is_power_of_two());
            values
        };
        let chunks = powers(|&(chunk, ..)| (chunk > 0).then_some(chunk));
        let contexts = powers(|&(chunk, context, ..)| (chunk > 0).then_some(context));
        let batches = powers(|&(chunk, _, batch, _)| (chunk > 0 && batch > 0).then_some(batch));
        let lengths = powers(|&(chunk, _, batch, length)| (chunk > 0 && batch > 0).then_some(length));
        let pure_batches = powers(|&(chunk, _, batch, _)| (chunk == 0 && batch > 0).then_some(batch));
        let mut pure_lengths: Vec<u32> =
            cells.keys().filter(|cell| cell.0 == 0 && cell.2 > 0).map(|cell| cell.3).collect();
        pure_lengths.sort_unstable();
        pure_lengths.dedup();
        for (name, axis) in [
            ("prefill", &chunks),
            ("prefill context", &contexts),
            ("mixed", &batches),
            ("mixed length", &lengths),
            ("decode", &pure_batches),
            ("decode length", &pure_lengths),
        ] {
            if axis.len() < 2 {
                return Err(table.error(format!("fewer than two {name} points")));
            }
        }
        let mut mixed = Vec::new();
        for &chunk in &chunks {
            for &context in &contexts {
                for &batch in &batches {
                    for &length in &lengths {
                        mixed.push(time((chunk, context, batch, length))? as f32);
                    }
                }
            }
        }
        let (batch, length) = (pure_batches[pure_batches.len() - 1], pure_lengths[pure_lengths.len() - 1]);
        let largest = time((0, 0, batch, length))?;
        if largest * KV_TOKENS_PER_US < f64::from(batch) * f64::from(length) {
            return Err(table
                .error(format!("{batch} decodes of {length} tokens take {largest} us"))
                .hint("times are microseconds of one layer"));
        }
        let fine = fine_rows(&cells, chunks[0], &batches, &lengths);
        Ok(Self {
            prefill: Grid2::of(chunks.clone(), contexts.clone(), |chunk, context| {
                time((chunk, context, 0, 0))
            })?,
            decode: Grid2::of(pure_batches, pure_lengths, |batch, length| time((0, 0, batch, length)))?,
            chunks: Axis::of(chunks),
            contexts: Axis::of(contexts),
            batches: Axis::of(batches),
            lengths: Axis::of(lengths),
            mixed,
            fine,
        })
    }

    /// Its three tables.
    pub(super) fn survey(&self) -> [Survey; 3] {
        let axis = |name: &'static str, axis: &Axis| survey::Axis::of(name, axis.points());
        let flat = |name: &'static str, rows: &'static str, columns: &'static str, grid: &Grid2| {
            let values: Vec<_> = grid.times.iter().copied().map(Some).collect();
            Survey::of(name, vec![axis(rows, &grid.rows), axis(columns, &grid.columns)], &values)
        };
        let axes = vec![
            axis("new tokens", &self.chunks),
            axis("context", &self.contexts),
            axis("requests", &self.batches),
            axis("length", &self.lengths),
        ];
        let mixed: Vec<_> = self.mixed.iter().map(|&us| Some(f64::from(us))).collect();
        [
            flat("prefill attention", "new tokens", "context", &self.prefill),
            flat("decode attention", "requests", "length", &self.decode),
            Survey::of("mixed attention", axes, &mixed),
        ]
    }

    /// A batch that only decodes, all of one length.
    pub(super) fn decode_us(&self, batch: f64, length: f64) -> f64 {
        self.decode.at(batch, length)
    }

    /// The times of a decode batch over its lengths.
    pub(super) fn decode_row(&self, batch: f64, out: &mut Vec<f64>) -> &Axis {
        self.decode.row(batch, out);
        &self.decode.columns
    }

    /// `chunk` prompt tokens after `context`, beside `batch` decodes of mean length `length`.
    pub(super) fn step_us(&self, chunk: f64, context: f64, batch: f64, length: f64) -> f64 {
        let at = |context: f64| match batch > 0.0 {
            true => self.mixed_us(chunk, context, batch, length),
            false => self.prefill.at(chunk, context),
        };
        if context >= 0.0 {
            return at(context);
        }
        let (none, some) = (at(0.0), at(SLOPE_CONTEXT));
        (none + (some - none) * context / SLOPE_CONTEXT).max(LEAST_PREFILL * none)
    }

    /// How sure [`Self::step_us`] is.
    pub(super) fn reading(&self, chunk: f64, context: f64, batch: f64, length: f64) -> Reading {
        if chunk == 0.0 {
            return self.decode.reading(batch, length);
        }
        let alone = self.prefill.reading(chunk, context.max(0.0));
        if batch == 0.0 {
            return alone;
        }
        // The mixed table is as fine as the two others along their axes: its error is taken from them.
        let beside = self.decode.reading(batch, length);
        let beyond = alone.beyond || self.batches.is_beyond(batch) || self.lengths.is_beyond(length);
        Reading { error_us: alone.error_us + beside.error_us, beyond }
    }

    fn mixed_us(&self, chunk: f64, context: f64, batch: f64, length: f64) -> f64 {
        let ((i, f), (j, g)) = (self.chunks.locate(chunk), self.contexts.locate(context));
        let (a, h) = self.batches.locate(batch);
        let kv = batch * length;
        let mut sum = 0.0;
        for (node, weight) in [(a, 1.0 - h), (a + 1, h)] {
            if weight == 0.0 {
                continue;
            }
            let own_length = kv / self.batches.value(node);
            let at = |chunk: usize, context: usize| self.mixed_row(chunk, context, node, own_length);
            let low = lerp(at(i, j), at(i, j + 1), g);
            let high = lerp(at(i + 1, j), at(i + 1, j + 1), g);
            sum += weight * (lerp(low, high, f) + self.knee(node, own_length));
        }
        sum
    }

    fn mixed_row(&self, chunk: usize, context: usize, batch: usize, length: f64) -> f64 {
        let (b, q) = self.lengths.locate(length);
        let row = ((chunk * self.contexts.len() + context) * self.batches.len() + batch) * self.lengths.len();
        lerp(f64::from(self.mixed[row + b]), f64::from(self.mixed[row + b + 1]), q)
    }

    fn knee(&self, batch: usize, length: f64) -> f64 {
        let points = &self.fine[batch];
        let next = points.partition_point(|&(at, _)| at < length);
        match (next.checked_sub(1).and_then(|before| points.get(before)), points.get(next)) {
            (Some(&(low, under)), Some(&(high, over))) => lerp(under, over, (length - low) / (high - low)),
            (None, Some(&(at, over))) if at == length => over,
            _ => 0.0,
        }
    }
}

/// Every row by its cell; none twice.
fn read_cells(table: &Table) -> Result<BTreeMap<Cell, f64>> {
    let mut cells = BTreeMap::new();
    for row in table.rows() {
        let [chunk, context, batch, length] =
            ["prefill_chunk", "kv_prefill", "n_decode", "kv_decode"].map(|column| row.count(column));
        let cell = (chunk?, context?, batch?, length?);
        if cells.insert(cell, row.time_us("time_us")?).is_some() {
            return Err(row.error("this cell was given before"));
        }
    }
    Ok(cells)
}

/// Where the smallest chunk without context has more lengths than the grid: what they add to a straight line.
fn fine_rows(
    cells: &BTreeMap<Cell, f64>,
    chunk: u32,
    batches: &[u32],
    lengths: &[u32],
) -> Vec<Vec<(f64, f64)>> {
    let axis = Axis::of(lengths.to_vec());
    let row = |&batch: &u32| {
        let range = (chunk, 0, batch, 0)..=(chunk, 0, batch, u32::MAX);
        let point = |(&(.., length), &time): (&Cell, &f64)| {
            let (b, q) = axis.locate(f64::from(length));
            let grid = |at: usize| cells[&(chunk, 0, batch, lengths[at])];
            (f64::from(length), time - lerp(grid(b), grid(b + 1), q))
        };
        cells.range(range).map(point).collect()
    };
    batches.iter().map(row).collect()
}
