//! The tensors that a step of transformers' Adafactor creates, parameter by parameter.

use super::{Symbols, of_modules, sections};
use shardscope_units::Bytes;

/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Tensors of a parameter's size at the peak, in fp32: gradient, parameter, the square, and its sum with a constant.
/// For fp32 parameters the first two already exist (`transformers/optimization.py:Adafactor.step`).
const CAST: u64 = 4;
const AS_IT_IS: u64 = 2;

/// The tensors at the peak of a step over the first stage's parameters: those of one parameter, and the update of the
/// previous one, which a variable still references. Matrices are stepped before vectors, which have no weight decay.
#[must_use]
pub fn adafactor_step(x: &Symbols<'_>) -> Vec<Bytes> {
    let width = x.recipe().params_dtype.width();
    let copies = if width < FLOAT { CAST } else { AS_IT_IS };
    let (mut before, mut fullest, mut most) = (0, [0, 0], 0);
    for chunk in x.plan.layout().stages.stages.iter().take(1).flat_map(|stage| &stage.chunks) {
        for section in sections(x, chunk) {
            // The first of a kind follows a different section, the second one of its own kind.
            for _ in 0..section.times.min(2) {
                for weight in section.weights(x).filter(|weight| !weight.copy && weight.role.trains()) {
                    for shape in of_modules(x, &weight) {
                        if shape.len() < 2 {
                            continue;
                        }
                        let bytes = FLOAT * shape.iter().product::<u64>();
                        let all = bytes * copies + before;
                        if all > most {
                            (fullest, most) = ([bytes, before], all);
                        }
                        before = bytes;
                    }
                }
            }
        }
    }
    let [own, before] = fullest;
    (0..copies).map(|_| own).chain([before]).map(Bytes::new).collect()
}
