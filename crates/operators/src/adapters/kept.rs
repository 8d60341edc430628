//! What Megatron core's linear layers save if their weights are frozen, and what adapters on them save. A frozen
//! layer only needs its weight for its input's gradient; an adapter needs its own input for A, the output of A for B,
//! and a mask if it has dropout (`megatron/core/tensor_parallel/layers.py:LinearWithFrozenWeight`,
//! `transformer_engine/pytorch/module/linear.py`, `layernorm_linear.py`). Recorded runs of Megatron core with
//! Megatron-Bridge's adapters are matched to the byte (`tests/data/activations/megatron_lora.jsonl`).

use crate::{Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::{LinearModule, Lora};

const ADAPTER: &str = "megatron/bridge/peft/utils.py:ParallelLinearAdapter.forward; \
                       mcore_bridge/tuners/lora.py:LoraParallelLinear.forward";

/// A linear layer that may have an adapter: which modules name it, and what it saves.
pub(crate) struct Site {
    modules: &'static [LinearModule],
    reads: Reads,
    /// Whether it has no norm directly before it.
    plain: bool,
    input: &'static str,
    mask: &'static str,
    middle: &'static str,
    all_input: Formula,
    own_input: Formula,
    all_mask: Formula,
    own_mask: Formula,
    all_middle: Formula,
    own_middle: Formula,
    all_gradient: Formula,
    own_gradient: Formula,
}

/// What a layer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    /// The residual stream, or the output of a column-parallel layer.
    Tokens,
    /// The copies of tokens routed to the rank's experts.
    Copies,
}

macro_rules! sites {
    ($($id:ident [$($module:ident),*] $reads:ident $plain:literal $name:literal $all:literal $own:literal $columns:literal;)*) => {
        $(pub(crate) static $id: Site = Site {
            modules: &[$(LinearModule::$module),*],
            reads: Reads::$reads,
            plain: $plain,
            input: concat!($name, " LoRA input"),
            mask: concat!($name, " LoRA dropout mask"),
            middle: concat!($name, " LoRA B input"),
            all_input: Formula::new(
                concat!($all, "·", $columns, "·B"),
                "The adapter's input, for A's weight gradient: the frozen layer's input after the adapter's dropout.",
                ADAPTER,
            ),
            own_input: Formula::new(
                concat!($own, "·", $columns, "·B"),
                "The adapter's input, for A's weight gradient: the frozen layer's input after the adapter's dropout.",
                ADAPTER,
            ),
            all_mask: Formula::new(
                concat!($all, "·", $columns),
                "The dropout mask of the adapter's input, one byte each.",
                ADAPTER,
            ),
            own_mask: Formula::new(
                concat!($own, "·", $columns),
                "The dropout mask of the adapter's input, one byte each.",
                ADAPTER,
            ),
            all_middle: Formula::new(
                concat!($all, "·r·B"),
                "The output of A, for B's weight gradient.",
                ADAPTER,
            ),
            own_middle: Formula::new(
                concat!("S", "·r·B"),
                "The output of A, for B's weight gradient.",
                ADAPTER,
            ),
            all_gradient: Formula::new(
                concat!($all, "·", $columns, "·B"),
                "Gradient of the adapter's input, beside the layer's own.",
                ADAPTER,
            ),
            own_gradient: Formula::new(
                concat!($own, "·", $columns, "·B"),
                "Gradient of the adapter's input, beside the layer's own.",
                ADAPTER,
            ),
        };)*
    };
}

sites! {
    LINEAR_QKV [Query, Key, Value] Tokens false "linear_qkv" "n" "S" "h";
    LINEAR_PROJ [Output] Tokens true "linear_proj" "n" "n" "A";
    LINEAR_FC1 [Gate, Up] Tokens false "linear_fc1" "n" "S" "h";
    LINEAR_FC2 [Down] Tokens true "linear_fc2" "n" "n" "f";
    EXPERTS_FC1 [Gate, Up] Copies true "experts fc1" "R" "R" "hm";
    EXPERTS_FC2 [Down] Copies true "experts fc2" "R" "R" "fm";
    SHARED_FC1 [Gate, Up] Tokens true "shared fc1" "n" "S" "h";
    SHARED_FC2 [Down] Tokens true "shared fc2" "n" "n" "fs";
}

/// What happens to the input of a linear layer regardless of what the layer itself needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alive {
    /// Nothing else saves it.
    No,
    /// Something else saves it and counts it.
    Kept,
    /// It is freed after forward and recomputed, including an adapter's reference to it.
    Recomputed,
}

impl Site {
    /// Whether it has an adapter.
    pub(crate) fn is_adapted(&self, x: &Symbols<'_>) -> bool {
        let lora = x.recipe().tuning.lora;
        lora.is_some_and(|lora| self.modules.iter().any(|module| lora.modules.has(*module)))
    }

    /// Whether its input does not come from its own norm, so that no gathered input is passed to its adapter.
    pub(super) const fn reads_plain_input(&self) -> bool {
        self.plain
    }

    fn lora(&self, x: &Symbols<'_>) -> Option<Lora> {
        x.recipe().tuning.lora.filter(|_| self.is_adapted(x))
    }

    /// Number of adapters on a fused layer.
    fn adapters(&self, lora: Lora) -> usize {
        let parts = self.modules.iter().filter(|module| lora.modules.has(**module)).count();
        if lora.library.semantics().splits_fused { parts } else { 1 }
    }

    /// For a column-parallel layer that reads the residual stream, whose input full training saves as `kept`;
    /// `normed` if the layer begins with its own norm and `needed` if its input requires a gradient. Transformer
    /// Engine's fused norm and projection saves the norm's output as soon as an adapter reads it, although the weight
    /// is frozen (`layernorm_linear.py: ln_out_to_save`).
    pub(crate) fn column(
        &'static self,
        x: &Symbols<'_>,
        kept: Saved,
        [normed, needed]: [bool; 2],
        alive: Alive,
    ) -> Vec<Saved> {
        if x.trains {
            return if alive == Alive::No { vec![kept] } else { Vec::new() };
        }
        let Some(lora) = self.lora(x) else { return Vec::new() };
        let library = lora.library.semantics();
        let mut out = Vec::with_capacity(4);
        let base = normed && needed && alive == Alive::No;
        out.extend(base.then_some(kept));
        let gathers = library.cuts_both && x.sequence_parallel;
        let same = (base && kept.width == x.width) || alive != Alive::No;
        let times = self.adapters(lora);
        let (tokens, input) = if gathers { (x.n, &self.all_input) } else { (x.s_local, &self.own_input) };
        // With Transformer Engine's norm, dropout is applied to the gathered tokens; elsewhere to the rank's own
        // before gathering.
        let (dropped, mask) =
            if gathers && normed { (x.n, &self.all_mask) } else { (x.s_local, &self.own_mask) };
        let one = [tokens, x.h];
        if lora.dropout {
            out.extend((0..times).map(|_| Saved::new(self.input, &one, x.width, input)));
            let mask = (0..times).map(|_| Saved::new(self.mask, &[dropped, x.h], 1, mask));
            out.extend(mask.filter(|_| needed));
        } else if gathers || !same {
            // Transformer Engine gathers once for all adapters.
            let times = if gathers && !normed { times } else { 1 };
            out.extend((0..times).map(|_| Saved::new(self.input, &one, x.width, input)));
        }
        out.extend(self.middle(x, lora));
        out
    }

    /// For a row-parallel layer, or one of experts, whose input of `columns` columns and `rows` rows full training
    /// saves as `kept`.
    pub(crate) fn row(
        &'static self,
        x: &Symbols<'_>,
        kept: Saved,
        [rows, columns]: [u64; 2],
        alive: Alive,
        needed: bool,
    ) -> Vec<Saved> {
        if x.trains {
            return if alive == Alive::No { vec![kept] } else { Vec::new() };
        }
        let Some(lora) = self.lora(x) else { return Vec::new() };
        let mut out = Vec::with_capacity(3);
        let wide = [rows, columns];
        let times = self.adapters(lora);
        if lora.dropout {
            out.extend((0..times).map(|_| Saved::new(self.input, &wide, x.width, &self.all_input)));
            let mask = (0..times).map(|_| Saved::new(self.mask, &wide, 1, &self.all_mask));
            out.extend(mask.filter(|_| needed));
        } else if alive == Alive::No {
            out.push(Saved::new(self.input, &wide, x.width, &self.all_input));
        }
        out.extend(self.middle(x, lora));
        out
    }

    /// The gradient of the adapter's input, which is held until the layer's own is added: for a layer that reads the
    /// residual stream, or one that reads `columns` columns.
    pub(crate) fn gradient(&'static self, x: &Symbols<'_>, columns: Option<u64>) -> Option<Saved> {
        let lora = self.lora(x)?;
        let (rows, formula) = match (self.reads, columns) {
            (Reads::Copies, _) => (x.moe.received, &self.all_gradient),
            (Reads::Tokens, None) if !lora.library.semantics().cuts_both => (x.s_local, &self.own_gradient),
            (Reads::Tokens, _) => (x.n, &self.all_gradient),
        };
        let shape = [rows, columns.unwrap_or(x.h)];
        Some(Saved::new("gradient of an adapter's input", &shape, x.width, formula))
    }

    /// The output of A, for all tokens or for the rank's own.
    fn middle(&'static self, x: &Symbols<'_>, lora: Lora) -> impl Iterator<Item = Saved> {
        let (tokens, formula) = match self.reads {
            Reads::Copies => (x.moe.received, &self.all_middle),
            Reads::Tokens if lora.library.semantics().cuts_both => (x.n, &self.all_middle),
            Reads::Tokens => (x.s_local, &self.own_middle),
        };
        let (middle, width, name) = ([tokens, x.lora_rank], x.width, self.middle);
        (0..self.adapters(lora)).map(move |_| Saved::new(name, &middle, width, formula))
    }
}
