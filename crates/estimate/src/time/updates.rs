//! Optimizers that update their parameters one by one, in software whose kernels are counted: bitsandbytes' and
//! transformers' Adafactor.

use super::parts::Setting;
use crate::compute::real;
use crate::constant::Constant;
use shardscope_operators::{Work, sections, work_of};
use shardscope_plan::{DpSharding, OptimizerKind, StateFormat};
use shardscope_units::{Quantity, Seconds};

/// Bytes that Adafactor moves per element of a 16-bit matrix, and of an fp32 matrix, which is not cast
/// (`tests/record/kernels_of_a_layer.py`).
const ADAFACTOR: [u64; 2] = [104, 84];
/// Kernels per matrix and per vector, in 16 bits and in fp32.
const ADAFACTOR_KERNELS: [[u64; 2]; 2] = [[27, 19], [24, 16]];
/// Host time of the Trainer between reading a micro-batch's loss, for which it waits (`transformers/trainer.py:
/// logging_nan_inf_filter`), and the step's end, that no kernel of the update hides: clipping's and the optimizer's
/// Python, scheduler, callbacks, gradients set to none. Of full training 2.2 to 5.4 ms (seven runs), of adapters, whose
/// many modules are walked through, 14.6 to 21 (three), each timed between two synchronisations beside the slower
/// host of an H200 (`tests/record/profile_on_gpu.py`, `passes`) and taken down to the speed of the others, 1.3 times.
pub(super) const ENDS: [Seconds; 2] = [Seconds::milliseconds(3.0), Seconds::milliseconds(13.0)];
/// Elements that clipping moves per element: the gradient is read, read and written.
const CLIPPED: u64 = 3;

/// The constants above, for the list of constants.
pub(crate) fn constants() -> Vec<Constant> {
    let [half, single] = ADAFACTOR.map(real);
    let recorded = "transformers/optimization.py:Adafactor.step, as PyTorch dispatches it";
    vec![
        Constant::new(
            ("ADAFACTOR", half, "bytes"),
            "that Adafactor moves for an element of a matrix in 16 bits",
            recorded,
        ),
        Constant::new(("ADAFACTOR_FP32", single, "bytes"), "and of one in fp32", recorded),
        Constant::new(
            ("ENDS", ENDS[0].get() * 1e3, "ms"),
            "that the Trainer's host takes around the update of one GPU, once per step",
            "timed beside an H200, between reading the loss and the step's end",
        ),
        Constant::new(
            ("ENDS_ADAPTERS", ENDS[1].get() * 1e3, "ms"),
            "the same with adapters",
            "timed beside an H200, between reading the loss and the step's end",
        ),
    ]
}

/// Number of trainable matrices and vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tensors {
    matrices: u64,
    vectors: u64,
}

impl Setting<'_> {
    /// Time of updating `own` parameters on a rank that shards nothing, if its optimizer processes one tensor after
    /// another.
    pub(super) fn one_by_one(&self, own: f64) -> Option<Seconds> {
        let recipe = self.x.recipe();
        let semantics = recipe.software.semantics();
        let alone = semantics.eager_modules && semantics.steps_parameters && !recipe.offload.optimizer;
        if !alone || recipe.dp_sharding != DpSharding::Replicated {
            return None;
        }
        let issue = &self.overlaps.issue;
        let single = usize::from(recipe.params_dtype.width() > 2);
        match (recipe.optimizer.kind, recipe.optimizer.states) {
            // Each is synchronized before the next begins (`bitsandbytes/optim/optimizer.py:Optimizer8bit.step`,
            // `sync_gpu`), so the host's time for a call adds to its kernel's.
            (OptimizerKind::Adam, StateFormat::EightBit | StateFormat::Single) => {
                let touched = crate::memory::stepped_bytes(recipe)?;
                let tensors = self.trained_tensors();
                let calls = real(tensors.matrices + tensors.vectors);
                let moved = self.device.optimizer(own * real(touched), recipe.params_dtype.width());
                Some(moved + (issue.forward + issue.kernel) * calls)
            }
            (OptimizerKind::Adafactor, _) => {
                let tensors = self.trained_tensors();
                let [matrix, vector] = ADAFACTOR_KERNELS[single];
                let kernels = tensors.matrices * matrix + tensors.vectors * vector;
                let bytes = ADAFACTOR[single] + CLIPPED * recipe.params_dtype.width();
                let moved = self.device.kernel(own * real(bytes), kernels);
                Some(moved.greater(issue.kernel * real(kernels)))
            }
            _ => None,
        }
    }

    /// The tensors that a rank's optimizer steps, on the first stage: a projection that software runs as several
    /// layers has as many weights.
    fn trained_tensors(&self) -> Tensors {
        let mut out = Tensors::default();
        for chunk in self.x.plan.layout().stages.stages.iter().take(1).flat_map(|stage| &stage.chunks) {
            for section in sections(&self.x, chunk) {
                let (mut matrices, mut vectors) = (0, 0);
                for weight in section.weights(&self.x).filter(|weight| weight.role.trains() && !weight.copy) {
                    let count = if weight.local.len() > 1 { &mut matrices } else { &mut vectors };
                    *count += 1;
                }
                for work in work_of(&self.x, &section.operators) {
                    if let Work::Matmul(matmul) = work
                        && matmul.trains
                    {
                        matrices += matmul.layers - 1;
                    }
                }
                out.matrices += matrices * section.times;
                out.vectors += vectors * section.times;
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::{ADAFACTOR, ADAFACTOR_KERNELS};

    const RECORDED: &str = include_str!("../../../../tests/data/measured/kernels_of_a_layer.tsv");

    /// Kernels and bytes of an update of a 128 by 256 matrix, and of a vector.
    #[test]
    fn adafactor_is_as_pytorch_dispatched_it() {
        let recorded = |case: &str| {
            let line = RECORDED.lines().find(|line| line.starts_with(&format!("{case}\t"))).expect("a case");
            let figures = line.split('\t').skip(2).map(|figure| figure.parse::<u64>().expect("a figure"));
            figures.collect::<Vec<_>>()
        };
        for (format, (bytes, [matrix, vector])) in
            ["bf16", "fp32"].iter().zip(ADAFACTOR.iter().zip(ADAFACTOR_KERNELS))
        {
            assert_eq!(recorded(&format!("adafactor, matrix in {format}")), [matrix, bytes * 128 * 256]);
            assert_eq!(recorded(&format!("adafactor, vector in {format}")), [vector, 0]);
        }
    }
}
