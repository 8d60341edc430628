//! Linear layers with their adapters and casts.

use super::flow::is_adapted;
use super::norm::is_widened;
use super::tape::Tape;
use crate::Symbols;
use shardscope_explain::Formula;
use shardscope_plan::{LinearModule, Quantization};

const LINEAR: &str = "torch.nn.functional.linear: the input is kept for the weight's gradient";
const AUTOCAST: &str = "aten/src/ATen/autocast_mode.cpp: weights and inputs are cast to 16 bits";
const INT8: &str = "bitsandbytes/autograd/_functions.py:MatMul8bitLt.forward, ctx.tensors";
const LORA: &str = "peft/tuners/lora/layer.py:Linear.forward";
const RESULT: &str = "nemo_automodel/components/_peft/lora.py:LinearLoRA.forward, dropout_position of post";
const DORA: &str = "peft/tuners/lora/dora.py:DoraLinearLayer.forward";

/// A linear layer's names and formulas.
pub(super) struct Linear {
    module: LinearModule,
    input: &'static str,
    cast_input: &'static str,
    cast_weight: &'static str,
    lora_input: &'static str,
    lora_mask: &'static str,
    lora_result_mask: &'static str,
    lora_middle: &'static str,
    lora_cast_a: &'static str,
    lora_cast_b: &'static str,
    input_formula: Formula,
    cast_input_formula: Formula,
    int8_input_formula: Formula,
    cast_weight_formula: Formula,
    lora_copy_formula: Formula,
    lora_dropped_formula: Formula,
    lora_mask_formula: Formula,
    lora_result_mask_formula: Formula,
    lora_cast_a_formula: Formula,
    lora_cast_b_formula: Formula,
    /// Of the output of lora_A: in the adapter's dtype, and in 16 bits.
    middle_formulas: [Formula; 2],
    dora: [(&'static str, Formula); 8],
}

/// `$rows`: rows of the layers' inputs.
macro_rules! linears {
    ($rows:literal $($id:ident $module:ident $name:literal $inner:literal $outer:literal;)*) => {
        $(pub(super) static $id: Linear = Linear {
            module: LinearModule::$module,
            input: concat!($name, " input"),
            cast_input: concat!($name, " input in 16 bits"),
            cast_weight: concat!($name, " weight in 16 bits"),
            lora_input: concat!($name, " LoRA input"),
            lora_mask: concat!($name, " LoRA dropout mask"),
            lora_result_mask: concat!($name, " LoRA result's dropout mask"),
            lora_middle: concat!($name, " LoRA B input"),
            lora_cast_a: concat!($name, " LoRA A in 16 bits"),
            lora_cast_b: concat!($name, " LoRA B in 16 bits"),
            input_formula: Formula::new(
                concat!($rows, "·", $inner, "·B"),
                "The layer's input, saved because its weight is trained.",
                LINEAR,
            ),
            cast_input_formula: Formula::new(
                concat!($rows, "·", $inner, "·Bc"),
                "The layer's input, cast for it alone under autocast.",
                AUTOCAST,
            ),
            int8_input_formula: Formula::new(
                concat!($rows, "·", $inner, "·B"),
                "The layer's input in its own dtype, which bitsandbytes saves beside an int8 weight although the weight is frozen.",
                INT8,
            ),
            cast_weight_formula: Formula::new(
                concat!("(", $inner, ")·(", $outer, ")·Bc"),
                "The weight in 16 bits, saved for its input's gradient whether or not the weight is trained.",
                AUTOCAST,
            ),
            lora_copy_formula: Formula::new(
                concat!($rows, "·", $inner, "·Ba"),
                "The input cast to the adapter's dtype: PEFT holds adapters in fp32.",
                LORA,
            ),
            lora_dropped_formula: Formula::new(
                concat!($rows, "·", $inner, "·Ba"),
                "The input after this adapter's dropout.",
                LORA,
            ),
            lora_mask_formula: Formula::new(
                concat!($rows, "·", $inner),
                "The dropout mask of this adapter's input, one byte each.",
                LORA,
            ),
            lora_result_mask_formula: Formula::new(
                concat!($rows, "·(", $outer, ")"),
                "The dropout mask of this adapter's result, one byte each.",
                RESULT,
            ),
            lora_cast_a_formula: Formula::new(
                concat!("r·", $inner, "·Bc"),
                "lora_A in 16 bits.",
                AUTOCAST,
            ),
            lora_cast_b_formula: Formula::new(
                concat!("r·(", $outer, ")·Bc"),
                "lora_B in 16 bits.",
                AUTOCAST,
            ),
            middle_formulas: [
                Formula::new(
                    concat!($rows, "·r·Ba"),
                    "The output of lora_A, input of lora_B.",
                    LORA,
                ),
                Formula::new(
                    concat!($rows, "·r·Bc"),
                    "The output of lora_A, input of lora_B, in 16 bits.",
                    LORA,
                ),
            ],
            dora: [
                (concat!($name, " DoRA identity"), Formula::new(
                    concat!("(", $inner, ")·(", $inner, ")·Bd"),
                    "An identity matrix passed through the adapter to multiply its two matrices.",
                    DORA,
                )),
                (concat!($name, " DoRA A times identity"), Formula::new(
                    concat!("(", $inner, ")·r·Bd"),
                    "The output of lora_A.",
                    DORA,
                )),
                (concat!($name, " DoRA norm"), Formula::new(
                    concat!("(", $outer, ")·Ba"),
                    "The lengths of the rows of weight and adapter together.",
                    DORA,
                )),
                (concat!($name, " DoRA scale"), Formula::new(
                    concat!("(", $outer, ")·Ba"),
                    "The trained lengths over these.",
                    DORA,
                )),
                (concat!($name, " DoRA scale less one"), Formula::new(
                    concat!("(", $outer, ")·Ba"),
                    "The same less one, for the gradient of the layer's own result.",
                    DORA,
                )),
                (concat!($name, " DoRA result"), Formula::new(
                    concat!($rows, "·(", $outer, ")·Bd"),
                    "The adapter's output, for its scale's gradient.",
                    DORA,
                )),
                (concat!($name, " DoRA base result"), Formula::new(
                    concat!($rows, "·(", $outer, ")·Bc"),
                    "The base layer's output, for its scale's gradient.",
                    DORA,
                )),
                (concat!($name, " DoRA weight"), Formula::new(
                    concat!("(", $inner, ")·(", $outer, ")·Bd"),
                    "The weight in the adapter's dtype, for the gradient of the dropped input.",
                    DORA,
                )),
            ],
        };)*
    };
}

linears! { "n"
    QUERY Query "q_proj" "h" "A";
    KEY Key "k_proj" "h" "K";
    VALUE Value "v_proj" "h" "K";
    QKV Query "qkv_proj" "h" "A + 2·K";
    OUTPUT Output "o_proj" "A" "h";
    GATE Gate "gate_proj" "h" "f";
    UP Up "up_proj" "h" "f";
    GATE_UP Gate "gate_up_proj" "h" "g·f";
    FIRST Up "fc1" "h" "f";
    DOWN Down "down_proj" "f" "h";
    ROUTER Router "router" "h" "E";
    SHARED_GATE Gate "shared_expert.gate_proj" "h" "fs";
    SHARED_UP Up "shared_expert.up_proj" "h" "fs";
    SHARED_GATE_UP Gate "shared_expert.input_linear" "h" "2·fs";
    SHARED_SWITCH Router "shared_expert_gate" "h" "1";
    SHARED_DOWN Down "shared_expert.down_proj" "fs" "h";
    LATENT_QUERY Query "q_proj" "h" "a·(dn + dr)";
    QUERY_DOWN QueryDown "q_a_proj" "h" "ql";
    QUERY_UP QueryUp "q_b_proj" "ql" "a·(dn + dr)";
    KV_DOWN KeyValueDown "kv_a_proj_with_mqa" "h" "kl + dr";
    KV_UP KeyValueUp "kv_b_proj" "kl" "a·(dn + dv)";
    HEADS_OUT Output "o_proj" "a·dv" "h";
    IN_PROJ Mixer "in_proj" "h" "2·lk + 2·lv + 2·hv";
    GATES_IN Mixer "in_proj" "h" "2·lk + lv";
    OUT_PROJ Mixer "out_proj" "lv" "h";
    OUTPUT_LAYER OutputLayer "lm_head" "h" "V";
    SCORE OutputLayer "score" "h" "labels";
    LAYER_GATE LayerGate "per_layer_input_gate" "h" "ple";
    LAYER_OUT LayerOutput "per_layer_projection" "ple" "h";
    LAYER_MODEL LayerModel "per_layer_model_projection" "h" "L·ple";
}

// The output layer where it runs on the positions that sample the responses.
linears! { "b·(sampled + 1)"
    CUT_OUTPUT_LAYER OutputLayer "lm_head" "h" "V";
}

linears! { "b·z"
    SOURCE_KEY Key "k_proj" "h" "K";
    SOURCE_VALUE Value "v_proj" "h" "K";
}

/// The tensor a linear layer reads.
#[derive(Clone, Copy)]
pub(super) struct Input {
    /// Its name if its storage is shared with other readers; `None` if the layer is its only reader.
    pub(super) shared: Option<&'static str>,
    /// Whether it requires a gradient.
    pub(super) needed: bool,
    /// Whether it is already in the compute dtype, so that autocast has nothing to cast.
    pub(super) cast: bool,
}

impl Linear {
    /// Rows of its input.
    fn rows(&'static self, x: &Symbols<'_>) -> u64 {
        if std::ptr::eq(self, &CUT_OUTPUT_LAYER) { x.logit_rows() } else { x.n }
    }

    /// Runs on `input` from `inner` to `outer` columns; returns whether its output requires a gradient.
    pub(super) fn run(&'static self, tape: &mut Tape<'_, '_>, input: Input, sizes: [u64; 2]) -> bool {
        self.run_as(tape, input, sizes, tape.x.trains)
    }

    /// The same, with `trains` stating whether the layer's own weight trains.
    pub(super) fn run_as(
        &'static self,
        tape: &mut Tape<'_, '_>,
        input: Input,
        [inner, outer]: [u64; 2],
        trains: bool,
    ) -> bool {
        let x = tape.x;
        let wide = [self.rows(x), inner];
        let name = input.shared.unwrap_or(self.input);
        if x.casts_weights() {
            if input.cast {
                tape.keep(trains, name, &wide, x.compute_width, &self.cast_input_formula);
            } else {
                tape.keep(trains, self.cast_input, &wide, x.compute_width, &self.cast_input_formula);
            }
            let shape = [inner, outer];
            // A quantized weight is dequantized to the dtype of the product, and again for its input's gradient.
            let kept = input.needed && !x.is_quantized(self.module);
            tape.keep(kept, self.cast_weight, &shape, x.compute_width, &self.cast_weight_formula);
        } else if !input.cast && is_widened(x) {
            tape.keep(trains, self.cast_input, &wide, x.compute_width, &self.cast_input_formula);
        } else {
            tape.keep(trains, name, &wide, x.width, &self.input_formula);
        }
        if x.is_quantized(self.module) && x.recipe().tuning.quantization == Quantization::Int8 {
            let own = if input.cast { x.compute_width } else { x.width };
            tape.keep(input.needed, name, &wide, own, &self.int8_input_formula);
        }
        let adapted = is_adapted(x, self.module);
        if adapted {
            self.adapter(tape, input, name, [inner, outer]);
        }
        input.needed || trains || adapted
    }

    /// Name of the input that a trained weight saves.
    pub(super) const fn input_name(&'static self) -> &'static str {
        self.input
    }

    /// Names of the adapter's input and of its dropout mask.
    pub(super) const fn adapter_names(&'static self) -> [&'static str; 2] {
        [self.lora_input, self.lora_mask]
    }

    /// Runs without its adapter; returns whether its output requires a gradient because of the layer itself.
    pub(super) fn run_bare(&'static self, tape: &mut Tape<'_, '_>, input: Input, [inner, outer]: [u64; 2]) {
        let x = tape.x;
        let name = input.shared.unwrap_or(self.input);
        if x.casts_weights() {
            let kept = if input.cast { name } else { self.cast_input };
            tape.keep(x.trains, kept, &[self.rows(x), inner], x.compute_width, &self.cast_input_formula);
            let shape = [inner, outer];
            tape.keep(input.needed, self.cast_weight, &shape, x.compute_width, &self.cast_weight_formula);
        } else {
            tape.keep(x.trains, name, &[self.rows(x), inner], x.width, &self.input_formula);
        }
    }

    /// Saves the adapter's matrices in the compute dtype.
    pub(super) fn keep_casts(&'static self, tape: &mut Tape<'_, '_>, [inner, outer]: [u64; 2]) {
        let (rank, width) = (tape.x.lora_rank, tape.x.compute_width);
        tape.keep(true, self.lora_cast_a, &[rank, inner], width, &self.lora_cast_a_formula);
        tape.keep(true, self.lora_cast_b, &[rank, outer], width, &self.lora_cast_b_formula);
    }

    /// PEFT casts the input to the adapter's dtype, applies dropout, and multiplies by A and by B.
    fn adapter(
        &'static self,
        tape: &mut Tape<'_, '_>,
        input: Input,
        name: &'static str,
        [inner, outer]: [u64; 2],
    ) {
        let x = tape.x;
        let wide = [self.rows(x), inner];
        let autocast = x.recipe().autocasts();
        let dropout = x.recipe().tuning.lora.is_some_and(|lora| lora.dropout);
        // On a quantized layer PEFT leaves the cast to autocast, which does nothing if the input already has its
        // dtype (`peft/tuners/lora/bnb.py`, `requires_conversion`); on others PEFT casts to the adapter's dtype, and
        // autocast back.
        let comes = x.is_quantized(self.module) && (input.cast || x.width == x.compute_width);
        if autocast && comes && !dropout {
            tape.keep(true, name, &wide, x.compute_width, &self.cast_input_formula);
        } else if autocast {
            tape.keep(true, self.lora_input, &wide, x.compute_width, &self.cast_input_formula);
        } else if dropout {
            tape.keep(true, self.lora_input, &wide, x.adapter_width, &self.lora_dropped_formula);
        } else if x.adapter_width != x.width {
            tape.keep(true, self.lora_input, &wide, x.adapter_width, &self.lora_copy_formula);
        } else {
            tape.keep(true, name, &wide, x.width, &self.input_formula);
        }
        // Backward reads the mask for the input's gradient only; A's weight gradient uses the input after dropout.
        tape.keep(dropout && input.needed, self.lora_mask, &wide, 1, &self.lora_mask_formula);
        let after = x.recipe().tuning.lora.is_some_and(|lora| lora.drops_result);
        tape.keep(after, self.lora_result_mask, &[self.rows(x), outer], 1, &self.lora_result_mask_formula);
        let rank = x.lora_rank;
        let middle = [self.rows(x), rank];
        if autocast {
            tape.keep(true, self.lora_middle, &middle, x.compute_width, &self.middle_formulas[1]);
            let shape = [rank, inner];
            // A weight is only read in backward for its input's gradient: B's input (A's output) always needs one,
            // A's own input may not. Adapters in autocast's own format are not cast.
            let copies = x.adapter_width != x.compute_width;
            let needed = copies && input.needed;
            tape.keep(needed, self.lora_cast_a, &shape, x.compute_width, &self.lora_cast_a_formula);
            tape.keep(copies, self.lora_cast_b, &[rank, outer], x.compute_width, &self.lora_cast_b_formula);
        } else {
            let again = x.recipe().tuning.lora.is_some_and(|lora| lora.kernels.each);
            tape.keep(!again, self.lora_middle, &middle, x.adapter_width, &self.middle_formulas[0]);
        }
        if x.recipe().tuning.lora.is_some_and(|lora| lora.dora) {
            self.dora(tape, input.needed, dropout, [inner, outer]);
        }
    }
    /// PEFT multiplies the adapter's matrices through an identity matrix, and scales both results.
    fn dora(&'static self, tape: &mut Tape<'_, '_>, needed: bool, dropout: bool, [inner, outer]: [u64; 2]) {
        let x = tape.x;
        let (own, held) = (x.dora_width, x.adapter_width);
        let [identity, first, norm, scale, less, result, base, weight] = &self.dora;
        let mut keep = |needed, (name, formula): &'static (&'static str, Formula), shape: &[u64], width| {
            tape.keep(needed, name, shape, width, formula);
        };
        keep(true, identity, &[inner, inner], own);
        keep(true, first, &[inner, x.lora_rank], own);
        keep(true, norm, &[outer], held);
        keep(true, scale, &[outer], held);
        keep(needed, less, &[outer], held);
        keep(true, result, &[self.rows(x), outer], own);
        keep(!dropout, base, &[self.rows(x), outer], x.compute_width);
        // With dropout the layer runs again on the dropped input.
        let again = (base.0, &self.dora[5].1);
        if dropout {
            tape.keep(true, again.0, &[self.rows(x), outer], own, again.1);
        }
        let unpacked = x.recipe().tuning.quantization != Quantization::None;
        let casts = x.recipe().autocasts() || own != x.width || unpacked;
        let (name, formula) = weight;
        tape.keep(dropout && needed && casts, name, &[inner, outer], own, formula);
    }
}
