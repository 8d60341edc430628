//! The linear layers of Megatron core that can have an adapter, and how they are sharded.

use super::{
    EXPERTS_FC1, EXPERTS_FC2, LINEAR_FC1, LINEAR_FC2, LINEAR_PROJ, LINEAR_QKV, SHARED_FC1, SHARED_FC2, Site,
};
use crate::{Account, Operator, Symbols};
use shardscope_plan::{AdapterSemantics, LinearModule, Lora, RecomputeModule};

const MLP: &[RecomputeModule] = &[RecomputeModule::Mlp];
const MOE: &[RecomputeModule] = &[RecomputeModule::Moe];
const SHARED: &[RecomputeModule] = &[RecomputeModule::Moe, RecomputeModule::SharedExperts];

/// How a linear layer is sharded over the tensor ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// By output.
    Column,
    /// By input.
    Row,
}

/// A linear layer with an adapter.
#[derive(Clone, Copy)]
pub(super) struct Linear {
    pub(super) site: &'static Site,
    pub(super) account: Account,
    pub(super) cut: Cut,
    /// Input and output columns of the unsharded layer.
    pub(super) inner: u64,
    pub(super) outer: u64,
    /// Whether it belongs to routed experts.
    pub(super) of_experts: bool,
    /// The part of a fused layer that has its own adapter.
    part: Option<LinearModule>,
    /// Modules of selective recomputation that it is part of.
    pub(super) modules: &'static [RecomputeModule],
}

impl Linear {
    const fn new(site: &'static Site, account: Account, cut: Cut, [inner, outer]: [u64; 2]) -> Self {
        Self { site, account, cut, inner, outer, of_experts: false, part: None, modules: &[] }
    }

    const fn within(self, modules: &'static [RecomputeModule]) -> Self {
        Self { modules, ..self }
    }

    const fn of_experts(self) -> Self {
        Self { of_experts: true, modules: MOE, ..self }
    }

    /// Ranks over which it is sharded.
    pub(super) fn ranks(&self, x: &Symbols<'_>) -> u64 {
        if self.of_experts { x.plan.layout().expert_tensor.max(1) } else { x.t }
    }
}

/// The adapted linear layers of `operator`, with a fused one listed once per adapter.
pub(super) fn linears(operator: Operator, x: &Symbols<'_>, lora: Lora) -> Vec<Linear> {
    let library = lora.library.semantics();
    let mut all = match operator {
        Operator::SelfAttention | Operator::WindowedAttention => attention(x, library),
        Operator::Mlp | Operator::WideMlp => mlp(x, library),
        Operator::Experts => experts(x, library),
        _ => Vec::new(),
    };
    all.retain(|linear| linear.part.map_or_else(|| linear.site.is_adapted(x), |part| lora.modules.has(part)));
    all
}

fn attention(x: &Symbols<'_>, library: &AdapterSemantics) -> Vec<Linear> {
    let model = x.model();
    let (wide, narrow) = (model.num_attention_heads * x.d, x.groups * x.d);
    let queries = if model.mixers.output_gate { 2 * wide } else { wide };
    let column = |outer, part| Linear {
        part,
        ..Linear::new(&LINEAR_QKV, Account::Attention, Cut::Column, [x.h, outer])
    };
    let mut out = if library.splits_fused {
        vec![
            column(queries, Some(LinearModule::Query)),
            column(narrow, Some(LinearModule::Key)),
            column(narrow, Some(LinearModule::Value)),
        ]
    } else {
        vec![column(queries + 2 * narrow, None)]
    };
    out.push(Linear::new(&LINEAR_PROJ, Account::Attention, Cut::Row, [wide, x.h]));
    out
}

/// The halves of a first projection of `width`, or all of it.
fn halves(x: &Symbols<'_>, library: &AdapterSemantics, width: u64) -> Vec<(u64, Option<LinearModule>)> {
    if library.splits_fused && x.gate == 2 {
        [LinearModule::Gate, LinearModule::Up].map(|part| (width, Some(part))).to_vec()
    } else {
        vec![(x.gate * width, None)]
    }
}

fn mlp(x: &Symbols<'_>, library: &AdapterSemantics) -> Vec<Linear> {
    let ffn = x.ffn;
    let first = |(outer, part)| Linear {
        part,
        ..Linear::new(&LINEAR_FC1, Account::Mlp, Cut::Column, [x.h, outer]).within(MLP)
    };
    let mut out: Vec<_> = halves(x, library, ffn).into_iter().map(first).collect();
    out.push(Linear::new(&LINEAR_FC2, Account::Mlp, Cut::Row, [ffn, x.h]).within(MLP));
    out
}

fn experts(x: &Symbols<'_>, library: &AdapterSemantics) -> Vec<Linear> {
    let Some(experts) = &x.model().experts else { return Vec::new() };
    let (ffn, hidden) = (experts.ffn_hidden_size, x.moe.hidden);
    let mut out = vec![Linear::new(&EXPERTS_FC2, Account::Experts, Cut::Row, [ffn, hidden]).of_experts()];
    for (outer, part) in halves(x, library, ffn) {
        let first = Linear::new(&EXPERTS_FC1, Account::Experts, Cut::Column, [hidden, outer]);
        out.push(Linear { part, ..first.of_experts() });
    }
    if let Some(width) = experts.shared_expert_intermediate_size {
        let account = Account::SharedExperts;
        for (outer, part) in halves(x, library, width) {
            let first = Linear::new(&SHARED_FC1, account, Cut::Column, [x.h, outer]);
            out.push(Linear { part, ..first.within(SHARED) });
        }
        out.push(Linear::new(&SHARED_FC2, account, Cut::Row, [width, x.h]).within(SHARED));
    }
    out
}
