//! How frozen linear weights are stored.

use super::linear_modules::LoraModules;

/// How the weights of frozen linear layers are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quantization {
    /// As they were loaded.
    #[default]
    None,
    /// bitsandbytes, 4 bits in blocks of 64 with a constant each, with the constants themselves quantized if
    /// `double`.
    FourBit {
        /// `bnb_4bit_use_double_quant`.
        double: bool,
    },
    /// torchao's NF4: half a byte each, a byte for each block of 64, and for each 256 of these a constant in the weights'
    /// format.
    BlocksOfBlocks,
    /// bitsandbytes LLM.int8(): a byte each, a constant per row.
    Int8,
    /// 8-bit floats, a constant per tensor.
    Fp8,
}

/// Linear layers of a model that stay in the format of its other weights where the rest is quantized, as a
/// checkpoint's `llm_int8_skip_modules` names them: how many transformer layers have each set of such modules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnquantizedLinears(Vec<(LoraModules, u64)>);

impl UnquantizedLinears {
    /// For each layer, the modules that are not quantized.
    #[must_use]
    pub fn from_layers(layers: &[LoraModules]) -> Self {
        let mut sets: Vec<(LoraModules, u64)> = Vec::new();
        for modules in layers.iter().filter(|modules| !modules.is_empty()) {
            match sets.iter_mut().find(|(known, _)| known == modules) {
                Some((_, layers)) => *layers += 1,
                None => sets.push((*modules, 1)),
            }
        }
        Self(sets)
    }

    /// Sets of modules, each with the number of layers in which they are not quantized.
    pub fn iter(&self) -> impl Iterator<Item = (LoraModules, u64)> {
        self.0.iter().copied()
    }
}
