//! What linear layers of Megatron core keep where their weights are frozen, and what adapters beside them keep. A frozen
//! layer needs its weight alone for its input's gradient; an adapter needs its own input for A, what comes out of A for B,
//! and a mask where it drops (`megatron/core/tensor_parallel/layers.py:LinearWithFrozenWeight`,
//! `transformer_engine/pytorch/module/linear.py`, `layernorm_linear.py`). Recorded runs of Megatron core with
//! Megatron-Bridge's adapters are met to the byte (`tests/data/activations/megatron_lora.jsonl`).

use crate::{Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::{LinearModule, Lora};

const ADAPTER: &str = "megatron/bridge/peft/utils.py:ParallelLinearAdapter.forward; \
                       mcore_bridge/tuners/lora.py:LoraParallelLinear.forward";

/// A linear layer that may have an adapter: which modules name it, and what it keeps.
pub(crate) struct Site {
    modules: &'static [LinearModule],
    reads: Reads,
    /// Whether it stands behind no norm of its own.
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
    /// The residual stream, or what a layer cut by output made of it.
    Tokens,
    /// The copies of tokens that came to the rank's experts.
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

/// What becomes of the input of a linear layer whatever the layer itself needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alive {
    /// Nothing else keeps it.
    No,
    /// Something else keeps it, and counts it.
    Kept,
    /// It is given back when forward is over and computed again, an adapter's reference to it included.
    Recomputed,
}

impl Site {
    /// Whether it has an adapter.
    pub(crate) fn is_adapted(&self, x: &Symbols<'_>) -> bool {
        let lora = x.recipe().tuning.lora;
        lora.is_some_and(|lora| self.modules.iter().any(|module| lora.modules.has(*module)))
    }

    /// Whether it reads what no norm of its own made, so that no gathered input is handed to its adapter.
    pub(super) const fn reads_plain_input(&self) -> bool {
        self.plain
    }

    fn lora(&self, x: &Symbols<'_>) -> Option<Lora> {
        x.recipe().tuning.lora.filter(|_| self.is_adapted(x))
    }

    /// Adapters that a fused layer has.
    fn adapters(&self, lora: Lora) -> usize {
        let parts = self.modules.iter().filter(|module| lora.modules.has(**module)).count();
        if lora.library.semantics().splits_fused { parts } else { 1 }
    }

    /// For a layer cut by output that reads the residual stream, whose input full training keeps as `kept`; `normed`
    /// where the layer begins with its own norm and `needed` where its input requires a gradient. Transformer Engine's
    /// norm and projection in one keep the norm's output as soon as an adapter reads it, although the weight is frozen
    /// (`layernorm_linear.py: ln_out_to_save`).
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
        // Beside Transformer Engine's norm the gathered tokens are dropped, elsewhere the rank's own before they are
        // gathered.
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

    /// For a layer cut by input, or one of experts, whose input of `columns` columns and `rows` rows full training keeps
    /// as `kept`.
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

    /// The gradient of the adapter's input, which waits for the layer's own: of a layer that reads the residual stream, or
    /// of one that reads `columns` columns.
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

    /// What comes out of A: of all tokens, or of the rank's own.
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
