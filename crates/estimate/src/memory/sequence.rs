//! The allocations and frees of complete steps on one GPU, in the order in which PyTorch's modules make them:
//! weights, then forward and backward for each micro-batch, then the optimizer. The caching allocator's rules turn
//! them into reserved bytes.

use super::allocator::{Allocator, Held};
use super::buffers::workspaces;
use super::gathered::of_adafactor;
use super::kept::{rotary_table, run_input};
use super::pieces::{MOST_PARTS, Pieces, Section};
use shardscope_operators::{SectionKind, Symbols, copies_layer_input, section_counts};
use shardscope_plan::{Chunk, DataEngine, DpSharding, Recompute};
use shardscope_units::Bytes;

/// The most steps simulated before the reserved bytes are taken as final. They settle after two or three: the first
/// creates the optimizer's states in the space that backward left, so the second finds less of it contiguous.
const STEPS: u64 = 3;
/// Micro-batches simulated per step: all but the first behave the same.
const MICRO_BATCHES: u64 = 2;
/// Sections of a step beyond which it is not simulated, to bound the work for any model.
const SECTIONS: usize = 512;

/// Whether segments actually grow if requested. They only do through CUDA's driver: on ROCm, PyTorch warned and
/// ignored the setting until spring 2026 (`c10/cuda/CUDAAllocatorConfig.h:expandable_segments`, pull request 177974),
/// and later versions need ROCm 7.
pub(super) fn grows_segments(x: &Symbols<'_>) -> bool {
    x.recipe().expandable_segments && x.plan.cluster().accelerator.capability.is_some()
}

/// What PyTorch's allocator reserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reserved {
    /// Total bytes.
    pub(super) bytes: Bytes,
    /// The part that remains if the device is full and idle segments are released.
    pub(super) needed: Bytes,
}

/// Bytes reserved under `x`'s plan; none if the order of its allocations is not known.
pub(super) fn reserved(x: &Symbols<'_>) -> Option<Reserved> {
    let chunk = followed(x)?;
    let mut steps = Steps::new(x, chunk);
    let mut before = Bytes::ZERO;
    for step in 0..STEPS {
        steps.step(step == 0);
        if std::mem::replace(&mut before, steps.allocator.reserved()) == steps.allocator.reserved() {
            break;
        }
    }
    Some(Reserved { bytes: steps.allocator.reserved(), needed: steps.allocator.needed() })
}

/// The only chunk of a plan whose order of allocations is known: layers of plain modules, all of them on one GPU.
fn followed<'a>(x: &Symbols<'a>) -> Option<&'a Chunk> {
    let (recipe, layout, model) = (x.recipe(), x.plan.layout(), x.model());
    let alone = layout.world_size == 1;
    let plain = recipe.software.semantics().eager_modules && !recipe.fusions.compiled_layers;
    let engine =
        recipe.transformers.engine == DataEngine::Ddp && recipe.dp_sharding == DpSharding::Replicated;
    let offload = &recipe.offload;
    let inputs_stay = !(offload.layer_inputs || offload.every_input);
    let stays = inputs_stay
        && !(offload.saved_tensors || offload.parameters || offload.optimizer)
        && offload.modules.is_empty();
    let steps_after_backward =
        !matches!(recipe.recompute, Recompute::Selective(_)) && !recipe.transformers.steps_in_backward;
    let steps_after_backward = steps_after_backward && recipe.optimizer.low_rank.is_none();
    let language = model.vision.is_none() && model.encoder.is_none() && model.mtp_num_layers == 0;
    let [chunk] = &layout.stages.stages.first()?.chunks[..] else { return None };
    let few = usize::try_from(model.num_layers).is_ok_and(|layers| layers <= SECTIONS);
    (alone && plain && engine && stays && steps_after_backward && language && few).then_some(chunk)
}

/// Blocks of a tensor of a point, or of several counted as one.
type Passing = [Option<Held>; MOST_PARTS];

/// An occurrence of a section.
#[derive(Clone, Copy)]
struct Place {
    section: usize,
    /// Whether it is recomputed in backward, with only its input saved until then.
    again: bool,
    /// Whether neither it nor anything before it is trainable.
    frozen: bool,
}

/// What a section saves for backward.
#[derive(Default)]
struct Kept {
    /// Of each operator, in the order of forward.
    tensors: Vec<Vec<Held>>,
    /// The input, if the section is recomputed.
    input: Option<Held>,
}

/// The simulation of steps, one after another.
struct Steps<'a> {
    x: &'a Symbols<'a>,
    allocator: Allocator,
    sections: Vec<Section>,
    places: Vec<Place>,
    /// Gradients that exist until the step ends.
    gradients: Vec<Held>,
    /// The residual stream, if nothing has saved it.
    stream: Option<Held>,
    /// Bytes of one residual stream tensor.
    stream_bytes: Bytes,
}

impl<'a> Steps<'a> {
    /// The state before the first step: weights in the order of the model, and the workspaces of the matrix library.
    fn new(x: &'a Symbols<'a>, chunk: &Chunk) -> Self {
        let mut pieces = Pieces::new(x);
        let frozen = x.recipe().tuning.frozen_layers(x.model().num_layers);
        let mut places = Vec::new();
        let mut place = |kind, again, is_frozen, first| {
            places.push(Place { section: pieces.section(kind, first, is_frozen), again, frozen: is_frozen });
        };
        let counts = section_counts(x, chunk);
        let here = SectionKind::ALL.into_iter().filter(|kind| counts[kind.index()] > 0);
        for kind in here.clone().filter(|kind| kind.is_before_layers()) {
            place(kind, false, false, false);
        }
        for index in chunk.layers.clone() {
            let kind = SectionKind::Layer(x.model().layer_kind(index));
            let is_frozen = index < frozen;
            let again = !is_frozen && x.recipe().recompute.recomputes_layer(index, &chunk.layers);
            place(kind, again, is_frozen, index == frozen);
        }
        for kind in here.filter(|kind| kind.is_after_layers()) {
            place(kind, false, false, false);
        }
        let mut steps = Self {
            x,
            allocator: Allocator::new(grows_segments(x)),
            sections: pieces.sections,
            places,
            gradients: Vec::new(),
            stream: None,
            stream_bytes: run_input(x).bytes,
        };
        for place in &steps.places {
            for operator in &steps.sections[place.section].operators {
                for weight in &operator.weights {
                    hold(&mut steps.allocator, &weight.parameters);
                }
            }
        }
        if !x.recipe().left_out.workspaces {
            for term in workspaces(x) {
                let half = Bytes::new(term.bytes.get() / 2);
                hold(&mut steps.allocator, &[half, half]);
            }
        }
        steps
    }

    /// One step; in the `first` the optimizer creates its states.
    fn step(&mut self, first: bool) {
        let batches = self.x.recipe().num_micro_batches;
        for batch in 0..batches.min(MICRO_BATCHES) {
            self.micro_batch(batch == 0);
        }
        let mut passing = Vec::new();
        for place in &self.places {
            for operator in &self.sections[place.section].operators {
                for weight in &operator.weights {
                    if first {
                        hold(&mut self.allocator, &weight.states);
                    }
                    passing.extend(hold(&mut self.allocator, &weight.step));
                }
            }
        }
        passing.extend(hold(&mut self.allocator, &of_adafactor(self.x)));
        passing.append(&mut self.gradients);
        release(&mut self.allocator, passing);
    }

    /// Forward and backward of one micro-batch, which creates gradients `anew` or adds to them.
    fn micro_batch(&mut self, anew: bool) {
        let table = rotary_table(self.x).map(|table| self.allocator.allocate(table.bytes));
        let mut kept: Vec<Kept> = Vec::with_capacity(self.places.len());
        for place in self.places.clone() {
            let input = if place.again {
                Some(self.stream.take().unwrap_or_else(|| self.allocator.allocate(self.stream_bytes)))
            } else {
                None
            };
            let mut tensors = self.forward(place.section);
            if place.again || place.frozen {
                release(&mut self.allocator, tensors.drain(..).flatten());
            }
            kept.push(Kept { tensors, input });
        }
        release(&mut self.allocator, self.stream.take());
        for (place, mut of) in self.places.clone().into_iter().zip(kept).rev() {
            if place.frozen {
                continue;
            }
            if place.again {
                of.tensors = self.forward(place.section);
                release(&mut self.allocator, self.stream.take());
                // The saved input doubles as the first norm's input, unless the norm makes a copy of it.
                let first = of.tensors.first_mut().filter(|tensors| !tensors.is_empty());
                if let Some(tensors) = first.filter(|_| !copies_layer_input(self.x)) {
                    self.allocator.release(tensors.remove(0));
                }
            }
            self.backward(place.section, of.tensors, anew);
            release(&mut self.allocator, of.input);
        }
        release(&mut self.allocator, table);
    }

    /// Forward of a section; returns what each of its operators saves.
    fn forward(&mut self, section: usize) -> Vec<Vec<Held>> {
        let mut kept = Vec::with_capacity(4);
        let allocator = &mut self.allocator;
        let section = &self.sections[section];
        for operator in &section.operators {
            let mut passing: Vec<Passing> = Vec::new();
            for point in &operator.forward {
                release(allocator, passing.drain(..).flatten().flatten());
                passing.extend(point.tensors.iter().map(|tensor| at_once(allocator, &tensor.parts)));
            }
            let mut saved = Vec::with_capacity(operator.saved.len());
            for (nth, &bytes) in operator.saved.iter().enumerate() {
                // A norm that saves its input unchanged saves the residual stream itself.
                let own = nth == 0 && operator.reads_stream && bytes == self.stream_bytes;
                let stream = if own && !copies_layer_input(self.x) { self.stream.take() } else { None };
                saved.push(stream.unwrap_or_else(|| allocator.allocate(bytes)));
            }
            release(allocator, passing.into_iter().flatten().flatten());
            if operator.adds_to_stream {
                let branch = allocator.allocate(self.stream_bytes);
                let sum = allocator.allocate(self.stream_bytes);
                allocator.release(branch);
                release(allocator, self.stream.replace(sum));
            } else if section.kind.is_before_layers() {
                let embedded = allocator.allocate(self.stream_bytes);
                release(allocator, self.stream.replace(embedded));
            }
            kept.push(saved);
        }
        kept
    }

    /// Backward of a section, which frees what it `kept`.
    fn backward(&mut self, section: usize, mut kept: Vec<Vec<Held>>, anew: bool) {
        let allocator = &mut self.allocator;
        for operator in self.sections[section].operators.iter().rev() {
            let mut saved = kept.pop().unwrap_or_default();
            let mut to_come: Vec<Bytes> = Vec::new();
            if anew {
                to_come.extend(operator.weights.iter().flat_map(|weight| &weight.gradients));
            }
            let (mut passing, mut staying): (Vec<Passing>, Vec<Passing>) = (Vec::new(), Vec::new());
            let (mut replaced, mut back) = (None, Bytes::ZERO);
            for point in &operator.backward {
                while back < point.returned
                    && let Some(block) = saved.pop()
                {
                    back += allocator.bytes(&block);
                    allocator.release(block);
                }
                // Tensors that the previous point also holds stay in place.
                for tensor in &point.tensors {
                    let before = tensor.stays.and_then(|at| passing.get_mut(at));
                    staying.push(before.map(std::mem::take).unwrap_or_default());
                }
                release(allocator, passing.drain(..).flatten().flatten());
                for (tensor, own) in point.tensors.iter().zip(&mut staying) {
                    if tensor.stays.is_some() {
                        continue;
                    }
                    *own = at_once(allocator, &tensor.parts);
                    if tensor.is_gradient
                        && let Some(at) = to_come.iter().position(|other| *other == tensor.bytes)
                    {
                        to_come.swap_remove(at);
                        self.gradients.extend(std::mem::take(own).into_iter().flatten());
                    } else if tensor.is_sum && anew {
                        let first =
                            self.gradients.iter_mut().find(|first| allocator.bytes(first) >= tensor.bytes);
                        if let (Some(first), Some(sum)) = (first, own[0].take()) {
                            replaced = Some(std::mem::replace(first, sum));
                        }
                    }
                }
                std::mem::swap(&mut passing, &mut staying);
            }
            release(allocator, passing.into_iter().flatten().flatten());
            release(allocator, replaced);
            release(allocator, saved.into_iter().rev());
            for bytes in to_come {
                self.gradients.push(allocator.allocate(bytes));
            }
        }
    }
}

/// Allocates the blocks of tensors counted as one.
fn at_once(allocator: &mut Allocator, parts: &[Bytes]) -> Passing {
    let mut blocks = Passing::default();
    for (block, bytes) in blocks.iter_mut().zip(parts) {
        *block = Some(allocator.allocate(*bytes));
    }
    blocks
}

fn hold(allocator: &mut Allocator, tensors: &[Bytes]) -> Vec<Held> {
    tensors.iter().map(|bytes| allocator.allocate(*bytes)).collect()
}

fn release(allocator: &mut Allocator, blocks: impl IntoIterator<Item = Held>) {
    for block in blocks {
        allocator.release(block);
    }
}
