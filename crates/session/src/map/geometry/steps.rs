//! Moving over the picture by the keyboard: rows, columns and what the arrow keys lead to.

use super::Geometry;

/// Direction of an arrow key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// One cell to the left.
    Left,
    /// One cell to the right.
    Right,
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// The first GPU of the row.
    RowStart,
    /// The last GPU of the row.
    RowEnd,
    /// The first GPU of all.
    First,
    /// The last GPU of all.
    Last,
}

impl Geometry {
    /// Row and column of a GPU in the picture, from 0.
    #[must_use]
    pub fn row_and_column(&self, gpu: u64) -> (u64, u64) {
        let (node, place) = (gpu / self.per_node, gpu % self.per_node);
        (
            node / self.across * self.rows() + place / self.columns,
            node % self.across * self.columns + place % self.columns,
        )
    }

    /// Rows and columns of the whole picture.
    #[must_use]
    // Counts the empty places of a last row too, so that shares of the picture map onto it evenly.
    pub fn rows_and_columns(&self) -> (u64, u64) {
        (self.nodes().div_ceil(self.across) * self.rows(), self.across * self.columns)
    }

    /// The GPU at fractions of the height and of the width, each given as numerator and denominator; the last GPU if
    /// there is none there.
    pub(in crate::map) fn at_share(&self, (row, rows): (u64, u64), (column, columns): (u64, u64)) -> u64 {
        let (all_rows, all_columns) = self.rows_and_columns();
        // `max(1)`: a strip without points requests nothing, but still divides.
        let (row, column) = (row * all_rows / rows.max(1), column * all_columns / columns.max(1));
        self.at_row_and_column(row, column).unwrap_or(self.gpus.saturating_sub(1))
    }

    pub(super) fn at_row_and_column(&self, row: u64, column: u64) -> Option<u64> {
        // Inverse of `row_and_column`; both must change together.
        let node = row / self.rows() * self.across + column / self.columns;
        let place = row % self.rows() * self.columns + column % self.columns;
        let gpu = node * self.per_node + place;
        (column < self.across * self.columns && place < self.per_node && gpu < self.gpus).then_some(gpu)
    }

    /// Where `step` leads from `gpu`; it stays at the edges.
    #[must_use]
    pub fn step(&self, gpu: u64, step: Step) -> u64 {
        let (row, column) = self.row_and_column(gpu);
        let columns = self.across * self.columns;
        let (row, column) = match step {
            // Wraps to a column past the last, which `inside` refuses, as the edge on the other side does.
            Step::Left => (row, column.wrapping_sub(1)),
            Step::Right => (row, column + 1),
            Step::Up => (row.wrapping_sub(1), column),
            Step::Down => (row + 1, column),
            Step::RowStart => (row, 0),
            Step::RowEnd => return self.last_of_row(row).unwrap_or(gpu),
            Step::First => return 0,
            Step::Last => return self.gpus.saturating_sub(1),
        };
        let inside = column < columns && row < self.rows_and_columns().0;
        // The last node of a cluster may be short: a place in the picture need not contain a GPU, in which case the
        // step stays put.
        let found = if inside { self.at_row_and_column(row, column) } else { None };
        found.unwrap_or(gpu)
    }

    fn last_of_row(&self, row: u64) -> Option<u64> {
        let columns = self.across * self.columns;
        (0..columns).rev().find_map(|column| self.at_row_and_column(row, column))
    }
}
