//! The cheapest cell of a grid with two sides where more of either side never hurts.
//!
//! Cells that are good enough lie beyond a staircase. Its two ends are found by bisection, then it is walked
//! from one end: at every step only the dearest cell that would still be an improvement is looked at. With
//! one side this is a bisection. Nothing here knows what a cell is.

use std::collections::BTreeMap;

/// A cell, by its place on either side.
pub(super) type Cell = (usize, usize);

/// A grid whose cells can be looked at.
pub(super) trait Grid {
    /// Why the walk cannot go on.
    type Halt;
    /// How many places either side has.
    fn sides(&self) -> Cell;
    /// Whether a cell is good enough; this is what costs.
    fn is_good(&mut self, cell: Cell) -> Result<bool, Self::Halt>;
    /// What a cell costs once any was looked at; it grows with either side.
    fn cost(&self, cell: Cell) -> u64;
    /// Which of two good cells of equal cost is better: the one with the smaller number.
    fn rank(&self, cell: Cell) -> f64;
}

/// What a walk found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Walk {
    /// The cheapest good cell, if the dearest one is good.
    pub(super) best: Option<Cell>,
    /// Every cell that was looked at.
    pub(super) seen: BTreeMap<Cell, bool>,
    /// A good cell and a larger one that is not: more did hurt, and more cells were looked at.
    pub(super) violation: Option<(Cell, Cell)>,
}

/// Finds the cheapest good cell.
pub(super) fn walk<G: Grid>(grid: &mut G) -> Result<Walk, (G::Halt, Walk)> {
    let mut walker = Walker { grid, walk: Walk::default() };
    match walker.run() {
        Ok(()) => Ok(walker.walk),
        Err(halt) => Err((halt, walker.walk)),
    }
}

struct Walker<'g, G: Grid> {
    grid: &'g mut G,
    walk: Walk,
}

impl<G: Grid> Walker<'_, G> {
    fn is_good(&mut self, cell: Cell) -> Result<bool, G::Halt> {
        if let Some(known) = self.walk.seen.get(&cell) {
            return Ok(*known);
        }
        let is_good = self.grid.is_good(cell)?;
        self.walk.seen.insert(cell, is_good);
        Ok(is_good)
    }

    fn run(&mut self) -> Result<(), G::Halt> {
        let (rows, columns) = self.grid.sides();
        let top = (rows - 1, columns - 1);
        if !self.is_good(top)? {
            return Ok(());
        }
        let first_row = self.lowest(0, top.0, |row| (row, top.1))?;
        let first_column = self.lowest(0, top.1, |column| (top.0, column))?;
        let column = self.lowest(first_column, top.1, |column| (first_row, column))?;
        let mut best = (first_row, column);
        for row in first_row + 1..rows {
            let cheaper = |column: &usize| self.grid.cost((row, *column)) < self.grid.cost(best);
            let Some(dearest) = (first_column..columns).rev().find(cheaper) else { break };
            if self.is_good((row, dearest))? {
                best = (row, self.lowest(first_column, dearest, |column| (row, column))?);
            }
        }
        self.walk.best = Some(best);
        self.settle()
    }

    /// The lowest place of a line whose highest is good.
    fn lowest(&mut self, low: usize, high: usize, cell: impl Fn(usize) -> Cell) -> Result<usize, G::Halt> {
        let (mut low, mut high) = (low, high);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.is_good(cell(middle))? { high = middle } else { low = middle + 1 }
        }
        Ok(high)
    }

    /// Looks around the answer, at equal ones too, and further where more did hurt; until nothing changes.
    fn settle(&mut self) -> Result<(), G::Halt> {
        while let Some(best) = self.walk.best {
            self.look_around(best)?;
            self.walk.violation = self.violation();
            if self.walk.violation.is_some() {
                self.widen(best)?;
            }
            let cheapest =
                self.walk.seen.iter().filter(|(_, good)| **good).map(|(cell, _)| self.grid.cost(*cell));
            let cheapest = cheapest.min().unwrap_or(u64::MAX);
            self.look_at_equals(cheapest)?;
            let equal =
                self.walk.seen.iter().filter(|(cell, good)| **good && self.grid.cost(**cell) == cheapest);
            let rank = |cell: &Cell| self.grid.rank(*cell);
            let next = equal.map(|(cell, _)| *cell).min_by(|one, other| rank(one).total_cmp(&rank(other)));
            if next == self.walk.best {
                return Ok(());
            }
            self.walk.best = next;
        }
        Ok(())
    }

    /// Two steps down and one step up on either side.
    fn look_around(&mut self, (row, column): Cell) -> Result<(), G::Halt> {
        let (rows, columns) = self.grid.sides();
        let below = [1, 2].map(|step| (row.checked_sub(step), column.checked_sub(step)));
        let rows_near = below.iter().filter_map(|(near, _)| *near).chain((row + 1 < rows).then_some(row + 1));
        let columns_near =
            below.iter().filter_map(|(_, near)| *near).chain((column + 1 < columns).then_some(column + 1));
        let near: Vec<Cell> =
            rows_near.map(|near| (near, column)).chain(columns_near.map(|near| (row, near))).collect();
        near.into_iter().try_for_each(|cell| self.is_good(cell).map(drop))
    }

    /// Cells of one cost that no cell seen to fail is above.
    fn look_at_equals(&mut self, cost: u64) -> Result<(), G::Halt> {
        let (rows, columns) = self.grid.sides();
        let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let equal: Vec<Cell> = cells.filter(|cell| self.grid.cost(*cell) == cost).collect();
        for cell in equal {
            if !self.is_ruled_out(cell) {
                self.is_good(cell)?;
            }
        }
        Ok(())
    }

    fn is_ruled_out(&self, cell: Cell) -> bool {
        self.walk.seen.iter().any(|(seen, good)| !good && is_below(cell, *seen))
    }

    /// A good cell below one that is not.
    fn violation(&self) -> Option<(Cell, Cell)> {
        let good = self.walk.seen.iter().filter(|(_, good)| **good).map(|(cell, _)| *cell);
        good.flat_map(|cell| self.walk.seen.iter().map(move |(other, is_good)| (cell, *other, *is_good)))
            .find(|(cell, other, is_good)| !is_good && is_below(*cell, *other))
            .map(|(cell, other, _)| (cell, other))
    }

    /// Every cell that is cheaper than the answer by up to two steps.
    fn widen(&mut self, best: Cell) -> Result<(), G::Halt> {
        let (rows, columns) = self.grid.sides();
        let step = |cell: Cell| self.grid.cost(cell) - self.grid.cost((0, 0));
        let step = [(1.min(rows - 1), 0), (0, 1.min(columns - 1))].map(step).into_iter().max().unwrap_or(0);
        let cost = self.grid.cost(best);
        let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let near = |cell: &Cell| (cost.saturating_sub(2 * step)..cost).contains(&self.grid.cost(*cell));
        let near: Vec<Cell> = cells.filter(near).collect();
        near.into_iter().try_for_each(|cell| self.is_good(cell).map(drop))
    }
}

/// Whether a cell has no more of either side.
pub(super) fn is_below(one: Cell, other: Cell) -> bool {
    one.0 <= other.0 && one.1 <= other.1
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use rand::RngExt;

    use super::*;

    /// A staircase: a row is good from some column on.
    struct Stairs {
        good_from: Vec<usize>,
        columns: usize,
        weights: (u64, u64),
        looks: usize,
        /// Cells that are otherwise than the stairs say.
        odd: Vec<Cell>,
    }

    impl Stairs {
        fn holds(&self, cell: Cell) -> bool {
            (cell.1 >= self.good_from[cell.0]) != self.odd.contains(&cell)
        }

        /// By looking at every cell.
        fn cheapest(&self) -> Option<u64> {
            let cells = (0..self.good_from.len()).flat_map(|row| (0..self.columns).map(move |c| (row, c)));
            cells.filter(|cell| self.holds(*cell)).map(|cell| self.cost(cell)).min()
        }
    }

    impl Grid for Stairs {
        type Halt = Infallible;
        fn sides(&self) -> Cell {
            (self.good_from.len(), self.columns)
        }
        fn is_good(&mut self, cell: Cell) -> Result<bool, Infallible> {
            self.looks += 1;
            Ok(self.holds(cell))
        }
        fn cost(&self, cell: Cell) -> u64 {
            (cell.0 as u64 + 1) * self.weights.0 + (cell.1 as u64 + 1) * self.weights.1
        }
        fn rank(&self, cell: Cell) -> f64 {
            cell.0 as f64
        }
    }

    fn walked(stairs: &mut Stairs) -> Walk {
        walk(stairs).map_err(|(never, _)| match never {}).unwrap()
    }

    /// Broken by: a row that is passed over, a bisection that is off by one, or costs that leave a side out.
    #[test]
    fn the_cheapest_cell_is_found_with_few_looks() {
        let mut draw = wavetank_model::seeded(7, "stairs");
        for round in 0..300 {
            let (rows, columns) = (draw.random_range(1..=24usize), draw.random_range(1..=24usize));
            let mut good_from: Vec<usize> = (0..rows).map(|_| draw.random_range(0..=columns)).collect();
            good_from.sort_unstable_by(|one, other| other.cmp(one));
            let weights = (draw.random_range(1..=4u64), draw.random_range(1..=4u64));
            let mut stairs = Stairs { good_from, columns, weights, looks: 0, odd: vec![] };
            let walk = walked(&mut stairs);
            assert_eq!(walk.best.map(|cell| stairs.cost(cell)), stairs.cheapest(), "round {round}");
            assert_eq!(stairs.looks, walk.seen.len(), "no cell is looked at twice");
            assert!(walk.violation.is_none());
            // Bisections of three lines, a walk along two sides, equals, and the neighbours.
            assert!(stairs.looks <= 2 * (rows + columns) + 24, "round {round}: {} looks", stairs.looks);
        }
    }

    /// A line of 64: at most a fifth of it is looked at, whatever the answer.
    #[test]
    fn a_line_is_bisected() {
        for answer in 0..64 {
            let good_from = (0..64).map(|row| usize::from(row < answer)).collect();
            let mut stairs = Stairs { good_from, columns: 1, weights: (1, 0), looks: 0, odd: vec![] };
            assert_eq!(walked(&mut stairs).best, Some((answer, 0)));
            assert!(stairs.looks <= 12, "{answer}: {}", stairs.looks);
        }
    }

    /// Broken by: neighbours that are not looked at, or a walk that is not widened.
    #[test]
    fn a_good_cell_below_a_bad_one_is_seen_and_said() {
        let good_from = (0..64).map(|row| usize::from(row < 40)).collect();
        let mut stairs = Stairs { good_from, columns: 1, weights: (1, 0), looks: 0, odd: vec![(38, 0)] };
        let walk = walked(&mut stairs);
        assert_eq!(walk.violation, Some(((38, 0), (39, 0))));
        assert_eq!(walk.best, Some((38, 0)));
        let none = Stairs { good_from: vec![1; 64], columns: 1, weights: (1, 0), looks: 0, odd: vec![] };
        let mut none = none;
        assert_eq!((walked(&mut none).best, none.looks), (None, 1));
    }
}
