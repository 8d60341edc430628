//! Racks in which NVLink joins nodes: rows that end with them, and the lines between them.

use super::{Area, Geometry};

impl Geometry {
    /// The same with rows that end where a rack of `per_rack` nodes ends, or with whole racks side by side.
    #[must_use]
    pub fn by_racks(mut self, per_rack: u64) -> Self {
        if per_rack > 1 {
            let fitting = |across: &u64| per_rack.is_multiple_of(*across) || across.is_multiple_of(per_rack);
            // 1 divides every rack, so there always is a fitting number; the largest wastes least width.
            self.across = (1..=self.across).rev().find(fitting).unwrap_or(1);
        }
        self
    }

    /// Lines between racks of `per_rack` nodes, as far as they begin among `nodes`.
    #[must_use]
    pub fn between_racks(&self, per_rack: u64, nodes: &std::ops::Range<u64>) -> String {
        use std::fmt::Write;
        let mut path = String::new();
        if per_rack < 2 {
            return path;
        }
        let (half, width) = (self.scale.between / 2, self.size().0);
        // Racks that begin in view: a line belongs to the rack after it, and a tile before it draws none.
        for rack in nodes.start.div_ceil(per_rack)..nodes.end.div_ceil(per_rack) {
            let first = rack * per_rack;
            let Area { x, y, height, .. } = self.node(first);
            // Writing into a String cannot fail.
            let _ = match (first.is_multiple_of(self.across), y) {
                // Nothing lies above the very first rack.
                (true, 0) => Ok(()),
                // A rack that begins a row is parted by a line over the whole width, any other by one before its
                // first node.
                (true, _) => write!(path, "M0 {}h{width}", y.saturating_sub(half)),
                (false, _) => write!(path, "M{} {y}v{height}", x.saturating_sub(half)),
            };
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_where_racks_end() {
        let of = |closer| Geometry::fit_closer(1_152, 4, 1_100, closer).by_racks(18);
        let across: Vec<u64> = (0..3).map(|closer| of(closer).across()).collect();
        assert_eq!(across, [18, 6, 2], "two rows of a rack at least share its width evenly");
        let (whole, near) = (of(0), of(1));
        let lines = |map: &Geometry, nodes| map.between_racks(18, &nodes).matches('M').count();
        assert_eq!((lines(&whole, 0..288), lines(&near, 0..288), lines(&near, 20..60)), (15, 15, 2));
        let wide = Geometry::fit_closer(20_736, 4, 1_100, 0).by_racks(18);
        assert_eq!((wide.across() % 18, lines(&wide, 0..5_184)), (0, 5_184 / 18 - 1));
        assert_eq!(Geometry::fit(64, 8, 640).by_racks(1), Geometry::fit(64, 8, 640));
        assert_eq!(lines(&Geometry::fit(64, 8, 640), 0..0), 0);
    }
}
