//! The linear layers of an operator as the modules of a library have them.

use crate::{Account, Operator, Symbols};
use shardscope_plan::{LinearKind, LinearModule};

/// A linear layer that may have an adapter: which module, its account, and its columns in and out.
pub(super) type Adapted = (LinearModule, Account, [u64; 2]);

/// The linear layers of `operator` as the model's own modules have them.
pub(super) fn linears(operator: Operator, x: &Symbols<'_>) -> Vec<Adapted> {
    use LinearModule::{
        Down, Gate, Key, KeyValueDown, KeyValueUp, Mixer, Output, OutputLayer, Query, QueryDown, QueryUp, Up,
        Value,
    };
    let (wide, narrow) = (x.a * x.d, x.k * x.d);
    let arrangement = &x.model().arrangement;
    match operator {
        Operator::SelfAttention
        | Operator::WindowedAttention
        | Operator::BorrowedAttention
        | Operator::BorrowedWindowedAttention => {
            let account = Account::Attention;
            let gated = if x.model().mixers.output_gate { 2 * wide } else { wide };
            let mut out = if arrangement.fused_qkv {
                vec![(Query, account, [x.h, wide + 2 * narrow])]
            } else {
                let mut out = vec![(Query, account, [x.h, gated])];
                out.extend((x.pair > 0).then_some((Key, account, [x.h, narrow])));
                out.extend((x.pair > 1).then_some((Value, account, [x.h, narrow])));
                out
            };
            out.push((Output, account, [wide, x.h]));
            out
        }
        Operator::LatentAttention => {
            let (account, sizes) = (Account::Attention, x.latent);
            let heads = x.a * (sizes.plain + sizes.rotary);
            let mut out = vec![
                (KeyValueDown, account, [x.h, sizes.key_value + sizes.rotary]),
                (KeyValueUp, account, [sizes.key_value, x.a * (sizes.plain + sizes.value)]),
                (Output, account, [x.a * sizes.value, x.h]),
            ];
            if sizes.query == 0 {
                out.push((Query, account, [x.h, heads]));
            } else {
                out.extend([
                    (QueryDown, account, [x.h, sizes.query]),
                    (QueryUp, account, [sizes.query, heads]),
                ]);
            }
            out
        }
        Operator::LayerInputs => {
            let all = x.model().num_layers * x.layer_input;
            vec![(LinearModule::LayerModel, Account::Embedding, [x.h, all])]
        }
        Operator::LayerInput => vec![
            (LinearModule::LayerGate, Account::Other, [x.h, x.layer_input]),
            (LinearModule::LayerOutput, Account::Other, [x.layer_input, x.h]),
        ],
        Operator::Mlp | Operator::WideMlp => {
            let account = Account::Mlp;
            let mut out = vec![(Down, account, [x.f, x.h])];
            if !x.model().activation.is_gated() {
                out.push((Up, account, [x.h, x.f]));
            } else if arrangement.fused_gate_up {
                out.push((Gate, account, [x.h, x.gate * x.f]));
            } else {
                out.extend([(Gate, account, [x.h, x.f]), (Up, account, [x.h, x.f])]);
            }
            out
        }
        Operator::Experts if x.moe.shared > 0 => {
            let (account, width) = (Account::SharedExperts, x.moe.shared);
            let mut out = vec![(Down, account, [width, x.h])];
            if arrangement.fused_gate_up {
                out.push((Gate, account, [x.h, x.gate * width]));
            } else {
                let first = [Gate, Up].map(|module| (module, account, [x.h, width]));
                out.extend(first.into_iter().take(usize::from(x.gate == 2) + 1));
            }
            out
        }
        Operator::Linear(kind) => {
            let (keys, values) = (x.linear.keys(), x.linear.values());
            let inner = match kind {
                LinearKind::ShortConvolution => 2 * keys + values,
                _ => 2 * keys + 2 * values + 2 * x.linear.value_heads,
            };
            vec![(Mixer, Account::Attention, [x.h, inner]), (Mixer, Account::Attention, [values, x.h])]
        }
        Operator::OutputLayer => vec![(OutputLayer, Account::OutputLayer, [x.h, x.v])],
        _ => Vec::new(),
    }
}
