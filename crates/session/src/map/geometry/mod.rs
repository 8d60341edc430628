//! Where every GPU of the cluster is in a picture of a given width, computed arithmetically in both directions, so
//! that a map of any size needs no table of positions. Unit of all lengths: CSS pixel.

mod racks;
pub(super) mod steps;

/// Maximum number of GPUs that are drawn; above that, there are only the table and the search.
pub const MOST_DRAWN: u64 = 200_000;

/// How much detail per GPU there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Just a dot.
    Dot,
    /// A box without text.
    Box,
    /// A box with a number.
    Number,
    /// A box with the label and a line of text.
    Words,
}

/// Sizes of one level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scale {
    /// The level serves clusters of fewer GPUs than this; the list is searched from the most detailed on.
    below: u64,
    detail: Detail,
    /// Width and height of a cell.
    cell: (u32, u32),
    /// Between cells.
    gap: u32,
    /// Between nodes.
    between: u32,
    /// Around the cells of a node.
    pad: u32,
    /// Above the cells, for the node's name.
    head: u32,
}

const SCALES: [Scale; 4] = [
    Scale { below: 65, detail: Detail::Words, cell: (78, 44), gap: 4, between: 12, pad: 8, head: 20 },
    Scale { below: 513, detail: Detail::Number, cell: (26, 24), gap: 3, between: 10, pad: 6, head: 18 },
    Scale { below: 2_049, detail: Detail::Box, cell: (14, 14), gap: 2, between: 8, pad: 4, head: 0 },
    Scale { below: u64::MAX, detail: Detail::Dot, cell: (6, 6), gap: 1, between: 4, pad: 0, head: 0 },
];

/// Space on the left for the rows' labels. Unit: CSS pixel.
const GUTTER: u32 = 72;
/// Minimum picture width for that.
const ROOMY: u32 = 560;

/// Widest cell.
const WIDEST: u32 = 120;
/// Corners of cells with text are rounded by a stroke of this half width.
const ROUNDING: u32 = 2;

/// The cells of a cluster in a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    scale: Scale,
    gpus: u64,
    per_node: u64,
    /// Cells side by side in a node.
    columns: u64,
    /// Nodes side by side.
    across: u64,
    /// Left of everything, for the rows' labels.
    left: u32,
}

/// A rectangle of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// From the left.
    pub x: u32,
    /// From the top.
    pub y: u32,
    /// To the right.
    pub width: u32,
    /// Downwards.
    pub height: u32,
}

impl Area {
    /// Its middle.
    #[must_use]
    pub const fn middle(self) -> (u32, u32) {
        (self.x + self.width / 2, self.y + self.height / 2)
    }
}

fn narrow(value: u64) -> u32 {
    // Heights of huge clusters may exceed u32; a picture truncated there is never drawn ([`MOST_DRAWN`]), but must
    // not panic either.
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl Geometry {
    /// The map of `gpus` accelerators on nodes of `per_node`, in a picture `width` wide.
    #[must_use]
    pub fn fit(gpus: u64, per_node: u64, width: u32) -> Self {
        Self::fit_closer(gpus, per_node, width, 0)
    }

    /// How many levels closer the map of this many accelerators can be drawn than [`Geometry::fit`] does.
    #[must_use]
    pub fn levels(gpus: u64) -> usize {
        SCALES.iter().position(|scale| gpus < scale.below).unwrap_or(SCALES.len() - 1)
    }

    /// The same with more room for each GPU, `closer` levels closer; equally wide, but taller.
    #[must_use]
    pub fn fit_closer(gpus: u64, per_node: u64, width: u32, closer: usize) -> Self {
        let per_node = per_node.clamp(1, gpus.max(1));
        let scale = SCALES[Self::levels(gpus).saturating_sub(closer)];
        let left = if width >= ROOMY { GUTTER } else { 0 };
        let width = width - left;
        let pitch = u64::from(scale.cell.0 + scale.gap);
        let room = u64::from(width.saturating_sub(2 * scale.pad) + scale.gap);
        let fitting = (room / pitch).clamp(1, per_node);
        let columns = columns(per_node, fitting, scale.detail);
        let mut geometry = Self { scale, gpus, per_node, columns, across: 1, left };
        geometry.widen(width);
        let node = u64::from(geometry.node_size().0 + scale.between);
        geometry.across = (u64::from(width + scale.between) / node).clamp(1, geometry.nodes().max(1));
        // After `across`: the remaining space depends on how many nodes are in a row.
        geometry.fill(width);
        geometry
    }

    /// Gives cells with words the remaining space.
    fn widen(&mut self, width: u32) {
        if self.scale.detail != Detail::Words {
            return;
        }
        let Scale { cell, gap, pad, .. } = self.scale;
        let columns = narrow(self.columns);
        let each = (width.saturating_sub(2 * pad) + gap) / columns;
        self.scale.cell.0 = each.saturating_sub(gap).clamp(cell.0, WIDEST);
    }

    /// Gives cells with a number the remaining space right of the last node.
    fn fill(&mut self, width: u32) {
        if self.scale.detail == Detail::Number {
            let across = narrow(self.across);
            let node = self.node_size().0 + self.scale.between;
            let left = (width + self.scale.between).saturating_sub(across * node);
            self.scale.cell.0 += (left / (across * narrow(self.columns))).min(self.scale.cell.0);
        }
    }

    /// How much is shown of each GPU.
    #[must_use]
    pub const fn detail(&self) -> Detail {
        self.scale.detail
    }

    /// All GPUs.
    #[must_use]
    pub const fn gpus(&self) -> u64 {
        self.gpus
    }

    /// Nodes, the last one perhaps not full.
    #[must_use]
    pub const fn nodes(&self) -> u64 {
        self.gpus.div_ceil(self.per_node)
    }

    /// GPUs of a node.
    #[must_use]
    pub const fn per_node(&self) -> u64 {
        self.per_node
    }

    fn node_size(&self) -> (u32, u32) {
        let Scale { cell, gap, pad, head, .. } = self.scale;
        let (columns, rows) = (narrow(self.columns), narrow(self.rows()));
        (
            columns * (cell.0 + gap) - gap + 2 * pad,
            rows.saturating_mul(cell.1 + gap).saturating_sub(gap) + 2 * pad + head,
        )
    }

    fn rows(&self) -> u64 {
        self.per_node.div_ceil(self.columns)
    }

    /// Width and height of the picture.
    #[must_use]
    pub fn size(&self) -> (u32, u32) {
        let (width, height) = self.node_size();
        let between = self.scale.between;
        let down = narrow(self.nodes().div_ceil(self.across));
        let across = narrow(self.across);
        (
            self.left + across * (width + between) - between,
            down.saturating_mul(height + between).saturating_sub(between),
        )
    }

    /// The box of node `node`.
    #[must_use]
    pub fn node(&self, node: u64) -> Area {
        let (width, height) = self.node_size();
        let between = self.scale.between;
        let (column, row) = (narrow(node % self.across), narrow(node / self.across));
        Area {
            x: self.left + column * (width + between),
            y: row.saturating_mul(height + between),
            width,
            height,
        }
    }

    /// The nodes of all rows between two heights of the picture.
    #[must_use]
    pub fn nodes_between(&self, top: u32, bottom: u32) -> std::ops::Range<u64> {
        let pitch = self.node_size().1.saturating_add(self.scale.between).max(1);
        let first = u64::from(top / pitch) * self.across;
        let end = (u64::from(bottom / pitch) + 1) * self.across;
        first.min(self.nodes())..end.min(self.nodes())
    }

    /// Parts of the map, each of whole rows of nodes and about `high`, that cover `nodes`. The same rows always form
    /// the same part, so that a part once drawn can be reused.
    pub fn tiles(
        &self,
        nodes: &std::ops::Range<u64>,
        high: u32,
    ) -> impl Iterator<Item = std::ops::Range<u64>> {
        let pitch = self.node_size().1.saturating_add(self.scale.between).max(1);
        // Anchored at the first node rather than at the visible part, so that scrolling finds the tiles drawn before.
        let (each, last) = (self.across * u64::from((high / pitch).max(1)), self.nodes());
        (nodes.start / each..nodes.end.div_ceil(each))
            .map(move |index| index * each..((index + 1) * each).min(last))
    }

    /// The accelerators of `nodes`.
    #[must_use]
    pub fn gpus_of(&self, nodes: &std::ops::Range<u64>) -> std::ops::Range<u64> {
        nodes.start * self.per_node..(nodes.end * self.per_node).min(self.gpus)
    }

    /// Nodes side by side.
    #[must_use]
    pub const fn across(&self) -> u64 {
        self.across
    }

    /// Space left of the nodes; zero in a narrow picture.
    #[must_use]
    pub const fn gutter(&self) -> u32 {
        self.left
    }

    /// The cell of GPU `gpu`.
    #[must_use]
    pub fn cell(&self, gpu: u64) -> Area {
        let Scale { cell, gap, pad, head, .. } = self.scale;
        let node = self.node(gpu / self.per_node);
        let place = gpu % self.per_node;
        let (column, row) = (narrow(place % self.columns), narrow(place / self.columns));
        Area {
            x: node.x + pad + column * (cell.0 + gap),
            y: node.y + pad + head + row * (cell.1 + gap),
            width: cell.0,
            height: cell.1,
        }
    }

    /// The GPU at a point of the picture; the gap right of and below a cell counts as part of it.
    #[must_use]
    pub fn at(&self, x: f64, y: f64) -> Option<u64> {
        // Coordinates come from pointer events and may be anything; past this bound the casts below would saturate to
        // a wrong cell.
        if x < 0.0 || y < 0.0 || x > 1e7 || y > 1e7 {
            return None;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let (x, y) = ((x as u32).checked_sub(self.left)?, y as u32);
        let Scale { cell, gap, pad, head, between, .. } = self.scale;
        let (width, height) = self.node_size();
        let (column, row) = (x / (width + between), y / (height + between));
        // `checked_sub`: within the padding there is no cell. The gap after a cell belongs to it, so that a pointer
        // does not flicker in between.
        let inner_x = (x % (width + between)).checked_sub(pad)? / (cell.0 + gap);
        let inner_y = (y % (height + between)).checked_sub(pad + head)? / (cell.1 + gap);
        let (inner_x, inner_y) = (u64::from(inner_x), u64::from(inner_y));
        let place = inner_y * self.columns + inner_x;
        if u64::from(column) >= self.across || inner_x >= self.columns || place >= self.per_node {
            return None;
        }
        let node = u64::from(row) * self.across + u64::from(column);
        let gpu = node * self.per_node + place;
        (gpu < self.gpus).then_some(gpu)
    }

    /// One path around the cells of all `gpus`.
    #[must_use]
    pub fn path(&self, gpus: &mut dyn Iterator<Item = u64>) -> String {
        use std::fmt::Write;
        let mut path = String::new();
        for gpu in gpus {
            let Area { x, y, width, height } = self.cell(gpu);
            // The stroke that rounds the corners grows outwards by this much, so the path itself is drawn smaller.
            let inset = if self.scale.detail >= Detail::Number { ROUNDING } else { 0 };
            let (x, y, width, height) = (x + inset, y + inset, width - 2 * inset, height - 2 * inset);
            // Writing into a String cannot fail.
            let _ = write!(path, "M{x} {y}h{width}v{height}h-{width}z");
        }
        path
    }
}

/// Cells side by side in a node: as many as fit if there is text, otherwise about a square; a divisor of the node if
/// there is one nearby.
fn columns(per_node: u64, fitting: u64, detail: Detail) -> u64 {
    let divides = |columns: &u64| per_node.is_multiple_of(*columns);
    let most = fitting.min(16);
    if detail >= Detail::Number {
        // At least half of what fits, or a prime number of GPUs would be stacked in a single column.
        return (most.div_ceil(2)..=most).rev().find(divides).unwrap_or(most);
    }
    let square = (1..=per_node).find(|side| side * side >= per_node).unwrap_or(1).min(fitting);
    (square..=most).find(divides).unwrap_or(square)
}

#[cfg(test)]
mod tests {
    use super::steps::Step;
    use super::*;

    #[test]
    fn every_cell_is_found_again_at_its_middle_and_lies_in_the_picture() {
        for (gpus, per_node) in
            [(16, 8), (64, 4), (512, 8), (30, 6), (7, 8), (2_048, 8), (16_384, 8), (288, 72)]
        {
            for width in [300, 640, 1_180] {
                let map = Geometry::fit(gpus, per_node, width);
                let (wide, high) = map.size();
                assert!(wide <= width, "{gpus} {width}: {wide}");
                for gpu in 0..gpus {
                    let cell = map.cell(gpu);
                    assert!(cell.x + cell.width <= wide && cell.y + cell.height <= high);
                    let (x, y) = cell.middle();
                    assert_eq!(map.at(f64::from(x), f64::from(y)), Some(gpu), "{gpus} {per_node} {width}");
                }
            }
        }
    }

    #[test]
    fn arrows_move_by_one_cell_and_stop_at_the_edge() {
        let map = Geometry::fit(16, 8, 1_180);
        assert_eq!(map.detail(), Detail::Words);
        assert_eq!(map.step(0, Step::Right), 1);
        assert_eq!(map.step(0, Step::Left), 0);
        assert_eq!(map.step(3, Step::RowStart), 0);
        assert_eq!(map.step(15, Step::Right), 15);
        assert_eq!(map.step(15, Step::First), 0);
        let mut seen = vec![0];
        for gpu in 0..16 {
            seen.push(map.step(gpu, Step::Right));
            seen.push(map.step(gpu, Step::Down));
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 16, "every cell is reached by right and down");
    }

    #[test]
    fn closer_there_is_more_of_fewer() {
        assert_eq!((Geometry::levels(16), Geometry::levels(16_384)), (0, 3));
        let details: Vec<Detail> =
            (0..5).map(|closer| Geometry::fit_closer(16_384, 8, 1_000, closer).detail()).collect();
        assert_eq!(details, [Detail::Dot, Detail::Box, Detail::Number, Detail::Words, Detail::Words]);
        let near = Geometry::fit_closer(16_384, 8, 1_000, 3);
        let seen = near.nodes_between(10_000, 10_600);
        assert!(seen.end - seen.start < 40, "{seen:?}");
        let middle = near.node(seen.start + 1);
        assert!(middle.y < 10_600 && middle.y + middle.height > 9_000, "{middle:?}");
        assert_eq!(near.nodes_between(0, u32::MAX), 0..2_048);
        let tiles: Vec<_> = near.tiles(&seen, 300).collect();
        assert!(tiles[0].start <= seen.start && tiles[tiles.len() - 1].end >= seen.end, "{tiles:?} {seen:?}");
        assert!(tiles.windows(2).all(|two| two[0].end == two[1].start), "{tiles:?}");
        assert_eq!(near.tiles(&(tiles[1].clone()), 300).next(), tiles.get(1).cloned());
    }

    #[test]
    fn points_outside_are_no_gpu() {
        let map = Geometry::fit(9, 8, 640);
        assert_eq!(map.at(-1.0, 5.0), None);
        assert_eq!(map.at(1e9, 5.0), None);
        let last = map.cell(8);
        assert_eq!(map.at(f64::from(last.x + last.width + 60), f64::from(last.y + 5)), None);
    }
}
