//! Optimizers that step gradients of linear layers in a lower-rank space: what they hold for a parameter, and what
//! its update allocates in addition (`galore_torch/adamw.py`, `adamw8bit.py`, `galore_projector.py`;
//! `apollo_torch/apollo.py`, `random_projector.py`).

use super::adapters::linears_of;
use super::{SectionKind, Symbols, WeightPart, sections};
use shardscope_plan::{LinearModule, LowRank, LowRankUpdate, ProjectedSide, Projection, StateFormat};

/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

/// A gradient that is projected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projected {
    /// Elements of the parameter.
    pub whole: u64,
    /// Elements of its projected gradient, and of each moment.
    pub low: u64,
    /// Elements of the stored projection.
    pub projection: u64,
    /// Bytes needed while a new projection is computed.
    renewed: u64,
    /// Bytes of the factors by which the gradient is scaled.
    factors: u64,
    /// Bytes of an element.
    width: u64,
}

/// The sides on which a matrix of `rows` and `columns` is projected: left, right.
const fn sides(side: ProjectedSide, [rows, columns]: [u64; 2]) -> [bool; 2] {
    match side {
        ProjectedSide::Shorter => [rows < columns, rows >= columns],
        ProjectedSide::Longer => [rows >= columns, rows < columns],
        ProjectedSide::Left => [true, false],
        ProjectedSide::Right => [false, true],
        ProjectedSide::Both => [true, true],
    }
}

impl Projected {
    /// For a layer's weight of `rows` by `columns`, stored with `width` bytes per element.
    #[must_use]
    pub fn new(low_rank: LowRank, [rows, columns]: [u64; 2], width: u64) -> Self {
        let shorter = rows.min(columns);
        let singular = low_rank.projection == Projection::Singular;
        let rank = if singular { low_rank.rank.min(shorter) } else { low_rank.rank };
        let [left, right] = sides(low_rank.side, [rows, columns]);
        let low = if left { rank } else { rows } * if right { rank } else { columns };
        // For fp32 gradients the projection is a view of all singular vectors; others are cast and therefore copied.
        let narrow = width < FLOAT;
        let vectors = |side: u64| side * if singular && !narrow { shorter } else { rank };
        let projection = u64::from(left) * vectors(rows) + u64::from(right) * vectors(columns);
        let whole = rows * columns;
        let cast = if narrow { projection * width } else { 0 };
        // The gradient is copied to fp32 either way.
        let copy = if narrow { FLOAT * whole } else { 0 };
        let renewed = if singular {
            let found = FLOAT * (rows * shorter + shorter + shorter * columns);
            // The other side's result, which is computed but not used unless both sides are.
            let unused = if left && right { 0 } else { FLOAT * low };
            let diagonal = if left && right { 0 } else { FLOAT * rank * rank };
            copy + found + unused + cast.max(diagonal)
        } else {
            let drawn = FLOAT * projection;
            copy + drawn + if narrow { drawn.max(cast) } else { drawn }
        };
        let scales = low_rank.update == LowRankUpdate::ScalesGradient;
        let factors = if scales { rows.max(columns) * width } else { 0 };
        Self { whole, low, projection, renewed, factors, width }
    }

    /// Bytes in addition to its gradient while only it is updated.
    #[must_use]
    pub fn update_bytes(&self, eight_bit: bool) -> u64 {
        let (whole, low) = (self.whole * self.width, self.low * self.width);
        // The 8-bit optimizer replaces parameter and gradient by a copy of the parameter and the projected gradient.
        let update = if eight_bit { 2 * low + whole } else { 3 * low + 2 * whole + self.factors };
        self.renewed.max(update)
    }
}

/// Bytes that AdamW allocates in addition to the gradient of a parameter of `bytes`: the square root of its second
/// moment, and the step.
const fn plain(bytes: u64) -> u64 {
    2 * bytes
}

/// A parameter in the order of the step.
#[derive(Clone, Copy, Debug)]
enum Stepped {
    Plain(u64),
    Projected(Projected),
}

/// What the step still references from previous parameters.
#[derive(Clone, Copy, Debug, Default)]
struct Named {
    root: u64,
    step: u64,
    factors: u64,
    scaled: u64,
}

/// The peak of bytes that a step over `parameters` allocates, one after the other.
fn most(parameters: impl Iterator<Item = Stepped>, eight_bit: bool) -> u64 {
    let (mut most, mut named) = (0, Named::default());
    let mut given_back = 0;
    for parameter in parameters {
        match parameter {
            Stepped::Plain(_) if eight_bit => {}
            Stepped::Plain(bytes) => {
                most = most.max(named.root + named.step + bytes).max(bytes + named.step + bytes);
                (named.root, named.step) = (bytes, bytes);
            }
            // The projected gradient replaces the full one.
            Stepped::Projected(one) if eight_bit => {
                most = most.max(one.update_bytes(true).saturating_sub(given_back));
                given_back += one.whole.saturating_sub(one.low) * one.width;
            }
            Stepped::Projected(one) => {
                let (whole, low) = (one.whole * one.width, one.low * one.width);
                let before = named.root + named.step + named.factors;
                most = most.max(before + one.renewed).max(before + 2 * low);
                most = most.max(low + named.step + named.factors + 2 * low);
                let held = 3 * low + one.factors;
                most = most.max(held + named.scaled + whole).max(held + 2 * whole);
                let scaled = if one.factors > 0 { whole } else { 0 };
                named = Named { root: low, step: whole, factors: one.factors, scaled };
            }
        }
    }
    most
}

impl SectionKind {
    /// Its linear layers by their modules, with their outputs and inputs, in the order of the model.
    fn modules_of(self, x: &Symbols<'_>) -> Vec<(LinearModule, [u64; 2])> {
        let mut out: Vec<(LinearModule, [u64; 2])> = Vec::new();
        for operator in self.operators(x) {
            let linears = linears_of(operator, x).into_iter();
            out.extend(linears.map(|(module, [inner, outer])| (module, [outer, inner])));
        }
        out.sort_by_key(|(module, _)| *module as u16);
        out
    }

    /// Those of its weights whose gradients are projected.
    #[must_use]
    pub fn projected(self, x: &Symbols<'_>, low_rank: LowRank) -> Vec<Projected> {
        let width = x.recipe().params_dtype.width();
        let tied = x.tied();
        let all = self.modules_of(x).into_iter();
        let chosen = all.filter(|(module, _)| {
            low_rank.modules.has(*module) && !(tied && *module == LinearModule::OutputLayer)
        });
        chosen.map(|(_, shape)| Projected::new(low_rank, shape, width)).collect()
    }
}

/// The peak of bytes that a step allocates in addition to states and gradients, for the layers on the first stage.
#[must_use]
pub fn step_bytes(x: &Symbols<'_>, low_rank: LowRank) -> u64 {
    let eight_bit = x.recipe().optimizer.states == StateFormat::EightBit;
    let (mut plain, mut projected) = (Vec::new(), Vec::new());
    for chunk in x.plan.layout().stages.stages.iter().take(1).flat_map(|stage| &stage.chunks) {
        for section in sections(x, chunk) {
            // The second of several equal layers meets what the first has left over; a third meets nothing more.
            for _ in 0..section.times.min(2) {
                let width = x.recipe().params_dtype.width();
                let head = low_rank.modules.has(LinearModule::OutputLayer);
                let layers = section.kind.modules_of(x).into_iter();
                let others = layers.filter(|(module, _)| {
                    *module != LinearModule::OutputLayer && !low_rank.modules.has(*module)
                });
                plain.extend(others.map(|(_, [rows, columns])| (true, rows * columns * width)));
                let rest = section.weights(x).filter(|weight| {
                    let projected = weight.part == WeightPart::OutputProjection && head;
                    !weight.linear && !weight.copy && !projected
                });
                plain.extend(rest.map(|weight| (weight.local.len() > 1, weight.count().get() * width)));
                projected.extend(section.kind.projected(x, low_rank));
            }
        }
    }
    if low_rank.vectors_first {
        plain.sort_by_key(|(is_matrix, _)| *is_matrix);
    }
    let plain = plain.into_iter().map(|(_, bytes)| Stepped::Plain(bytes));
    most(plain.chain(projected.into_iter().map(Stepped::Projected)), eight_bit)
}

/// Bytes in addition to its gradient while the update of a weight of `rows` by `columns` runs within backward; `None`
/// unless an optimizer does so in a lower-rank space.
pub(super) fn update_bytes(x: &Symbols<'_>, module: Option<LinearModule>, shape: [u64; 2]) -> Option<u64> {
    let recipe = x.recipe();
    let low_rank = recipe.optimizer.low_rank.filter(|_| recipe.transformers.steps_in_backward)?;
    let eight_bit = recipe.optimizer.states == StateFormat::EightBit;
    let width = recipe.params_dtype.width();
    Some(if module.is_some_and(|module| low_rank.modules.has(module)) {
        Projected::new(low_rank, shape, width).update_bytes(eight_bit)
    } else if eight_bit {
        0
    } else {
        plain(shape[0] * shape[1] * width)
    })
}

#[cfg(test)]
mod tests {
    use super::{Projected, Stepped, most};

    /// Of weights of one byte, with a projected gradient of `low` of `whole` elements.
    fn projected(whole: u64, low: u64, renewed: u64, factors: u64) -> Stepped {
        Stepped::Projected(Projected { whole, low, projection: 0, renewed, factors, width: 1 })
    }

    /// What steps meet of the parameters before them, worked out by hand.
    #[test]
    fn a_step_meets_what_names_still_hold() {
        // The second's root and step beside the first's step.
        assert_eq!(most([Stepped::Plain(10), Stepped::Plain(100)].into_iter(), false), 100 + 10 + 100);
        assert_eq!(most([Stepped::Plain(100), Stepped::Plain(10)].into_iter(), false), 100 + 100 + 10);
        // Both moments of a projected gradient beside the last root and step; a new projection in their place.
        let after = |one| most([Stepped::Plain(100), one].into_iter(), false);
        assert_eq!(after(projected(1, 50, 0, 0)), 100 + 100 + 2 * 50);
        assert_eq!(after(projected(1, 1, 900, 0)), 100 + 100 + 900);
        // The root has been replaced: three of its own, beside the last step and the factors that scaled it.
        let pair = |one, two| most([one, two].into_iter(), false);
        assert_eq!(pair(projected(1000, 1, 0, 0), projected(1, 900, 0, 0)), 900 + 1000 + 2 * 900);
        assert_eq!(pair(projected(1000, 1, 0, 7), projected(1, 900, 0, 0)), 900 + 1000 + 7 + 2 * 900);
        assert_eq!(pair(projected(1000, 1, 0, 7), projected(1, 1, 1500, 0)), 1 + 1000 + 7 + 1500);
        // A gradient that factors scaled lives until the next one is scaled.
        assert_eq!(pair(projected(1000, 1, 0, 5), projected(10, 500, 0, 50)), 3 * 500 + 50 + 1000 + 10);
        assert_eq!(pair(projected(10, 1, 0, 5), projected(1000, 2, 0, 3)), 3 * 2 + 3 + 2 * 1000);
    }
}
