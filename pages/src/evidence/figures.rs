//! Statistics of relative errors.

/// Statistics of errors, as shares of the measured value; all but the bias ignore the sign. `assets/evidence.js`
/// computes them in the same way for the rows that pass a filter.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Number of errors.
    pub rows: usize,
    /// Half of the rows have a smaller error.
    pub median: f64,
    /// The mean.
    pub mean: f64,
    /// Nine of ten rows have a smaller error.
    pub tenth: f64,
    /// The largest error.
    pub worst: f64,
    /// Share of rows within 5, 10 and 15 %.
    pub within: [f64; 3],
    /// Median of the signed errors.
    pub bias: f64,
}

/// The limits within which rows are counted.
const LIMITS: [f64; 3] = [0.05, 0.10, 0.15];

impl Figures {
    /// The statistics of these errors.
    #[must_use]
    pub fn new(mut errors: Vec<f64>) -> Self {
        errors.sort_by(f64::total_cmp);
        let bias = middle(&errors);
        let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let rows = sizes.len();
        let share = |count: usize| count as f64 / rows.max(1) as f64;
        let at = |index: usize| sizes.get(index).copied().unwrap_or(0.0);
        Self {
            rows,
            median: middle(&sizes),
            mean: sizes.iter().sum::<f64>() / rows.max(1) as f64,
            // By nearest rank: of ten rows the last.
            tenth: at(rows * 9 / 10),
            worst: at(rows.saturating_sub(1)),
            within: LIMITS.map(|limit| share(sizes.iter().filter(|size| **size <= limit).count())),
            bias,
        }
    }

    /// Share of rows within 15 %.
    #[must_use]
    pub fn near(&self) -> f64 {
        self.within[2]
    }
}

fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted {
        [] => 0.0,
        _ if sorted.len() % 2 == 1 => sorted[half],
        _ => (sorted[half - 1] + sorted[half]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::Figures;

    #[test]
    fn errors_are_counted_without_their_sign_but_for_the_bias() {
        let figures = Figures::new(vec![-0.02, 0.04, -0.12, 0.30]);
        assert_eq!(figures.rows, 4);
        assert!((figures.median - 0.08).abs() < 1e-12 && (figures.mean - 0.12).abs() < 1e-12);
        assert!((figures.bias - 0.01).abs() < 1e-12);
        assert_eq!((figures.tenth, figures.worst), (0.30, 0.30));
        assert_eq!(figures.within, [0.5, 0.5, 0.75]);
        assert_eq!(Figures::new(Vec::new()).rows, 0);
    }
}
