//! The phases of reinforcement learning on one accelerator: training, weight transfer, rollouts. They follow one
//! another, so the largest one counts; on shared accelerators each also holds what the others leave allocated.

use super::critic::{critic, reward};
use super::engine::{EngineMemory, engine, reward_engine};
use super::log_probs;
use super::totals::Totals;
use super::verdict::{Needs, Verdict};
use super::weight_update::{copied, handed_over, leaf};
use shardscope_explain::{Breakdown, Formula};
use shardscope_plan::{Offloads, Plan, Residence, Rollout, RolloutEngine};
use shardscope_units::{Bytes, Quantity};

const STATES: &str = "what torch.cuda.memory_allocated() shows between steps, less what is moved to the host";
const COPIES: &str = "as the policy's own, sharded in the same way";

static PEAK: Formula =
    Formula::new("M", "The policy's training on the peak GPU, as the device shows it.", STATES)
        .letters(&[("M", "bytes")]);
static LEFT: Formula = Formula::new(
    "H - O",
    "What the trainer leaves on the GPU: H bytes between steps, of which O bytes are offloaded to the host.",
    STATES,
)
.letters(&[("H", "bytes held between steps"), ("O", "bytes that go to the host")]);
static OUTSIDE: Formula = Formula::new(
    "X",
    "The trainer's CUDA context and communicator buffers, which remain.",
    "torch: memory outside of the caching allocator",
)
.letters(&[("X", "bytes")]);
static REFERENCE: Formula =
    Formula::new("W", "Weights of the reference model.", COPIES).letters(&[("W", "bytes of the weights")]);
static CRITIC_PEAK: Formula = Formula::new(
    "M",
    "The critic's training on the peak GPU: the policy's model with a value head (one value per token) in place of the output layer.",
    COPIES,
).letters(&[("M", "bytes")]);
static CRITIC: Formula =
    Formula::new("W + G + O", "Weights, gradients and optimizer states of the critic.", COPIES).letters(&[
        ("W", "bytes of weights"),
        ("G", "bytes of gradients, none where they are freed after its step"),
        ("O", "bytes of optimizer states"),
    ]);
static REWARD: Formula = Formula::new(
    "M - O",
    "The reward model's forward pass on the peak GPU: its gathered weights and one layer at a time, without gradients; O bytes of it are on the host.",
    "verl/workers/fsdp_workers.py:RewardModelWorker",
).letters(&[("M", "bytes"), ("O", "bytes of its weights that are on the host")]);
static SCORER: Formula = Formula::new("W", "Weights of the reward model, in 16 bits.", COPIES)
    .letters(&[("W", "bytes of the weights")]);
/// A phase of reinforcement learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseKind {
    /// The policy trains.
    Training,
    /// The critic trains.
    Critic,
    /// The reward model scores rollouts.
    Reward,
    /// The policy computes log-probabilities of rollouts, in larger micro-batches than it trains with.
    LogProbs,
    /// The engine receives the new weights.
    WeightUpdate,
    /// The engine generates.
    Rollout,
}

impl PhaseKind {
    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Critic => "critic",
            Self::Reward => "reward",
            Self::LogProbs => "log-probabilities",
            Self::WeightUpdate => "weight update",
            Self::Rollout => "rollout",
        }
    }
}

/// What one phase holds on the fullest accelerator.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Which.
    pub kind: PhaseKind,
    /// Everything on the device, explained.
    pub breakdown: Breakdown<Bytes>,
    /// Whether it fits.
    pub verdict: Verdict,
    /// Its peak as stated by the verdict.
    pub needs: Needs,
}

/// Memory of reinforcement learning.
#[derive(Clone, Debug, PartialEq)]
pub struct RlMemory {
    /// Whether rollouts run on the training accelerators.
    pub co_located: bool,
    /// The phases in order.
    pub phases: Vec<Phase>,
    /// What the engine holds.
    pub engine: EngineMemory,
    /// Rollouts of full length that the cache holds at once.
    pub cache_rollouts: u64,
}

impl RlMemory {
    /// The most severe verdict on any phase.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.phases.iter().map(|phase| phase.verdict).max().unwrap_or(Verdict::Fits)
    }

    /// The phases that do not fit.
    pub fn failing(&self) -> impl Iterator<Item = &Phase> {
        self.phases.iter().filter(|phase| phase.verdict == Verdict::OutOfMemory)
    }
}

/// The phases of `plan` on the fullest of `ranks`; none without rollouts.
pub(super) fn phases(plan: &Plan, ranks: &[Totals]) -> Option<RlMemory> {
    let rollout = plan.recipe().rollout.as_ref()?;
    let totals = ranks.iter().max_by_key(|totals| totals.peak_reserved)?;
    let capacity = plan.cluster().accelerator.memory;
    let shared = rollout.is_co_located();
    let (critic, reward) = (critic(plan), reward(plan));
    let mut beside = beside(plan, rollout, totals, [critic.as_ref(), reward.as_ref()]);
    let serves = reward_engine(plan, rollout);
    let dozes = serves.as_ref().map(|own| Breakdown::sum(DOZES, own.asleep()));
    beside.extend(dozes.clone());
    let left = left(rollout.offloads, totals);
    let sum = |parts: &[Breakdown<Bytes>]| -> Bytes { parts.iter().map(Breakdown::value).sum() };
    // SGLang sizes its KV cache by the memory free at start-up; what the trainer left allocated only matters on
    // shared GPUs.
    let taken = if shared { sum(&left) + sum(&beside) } else { Bytes::ZERO };
    // Under FSDP gradients and optimizer states come with the first step. Megatron's DDP and its distributed optimizer make the buffers of
    // gradients and fp32 main parameters, a third of Adam's states, before the engine starts
    // (`verl/workers/megatron_workers.py:init_model` of 0.4.1).
    let offloads = rollout.offloads;
    let weights = if offloads.weights { Bytes::ZERO } else { totals.parameters };
    let made = if plan.recipe().software.semantics().cuts_models {
        let gradients = if offloads.gradients { Bytes::ZERO } else { totals.gradients };
        let main = if offloads.optimizer { 0 } else { totals.optimizer.get() / 3 };
        gradients + Bytes::new(main)
    } else {
        Bytes::ZERO
    };
    let critics = critic
        .as_ref()
        .filter(|_| rollout.critic == Residence::Device)
        .map_or(Bytes::ZERO, |own| own.parameters);
    let references = reference(rollout, totals).map_or(Bytes::ZERO, |held| held.value());
    let process = weights + made + references + critics + totals.outside;
    let engine = engine(plan, rollout, [taken, process], totals.parameters);
    let cache_rollouts = engine.cache_rollouts;
    let headroom = plan.recipe().headroom;
    let phase = |kind, parts: Vec<Breakdown<Bytes>>, returnable: Bytes| {
        let breakdown = Breakdown::sum(kind_label(kind), parts);
        let total = breakdown.value();
        let required = total.less(returnable);
        let verdict = Verdict::judge(total, required, capacity, headroom);
        Phase { kind, breakdown, verdict, needs: Needs::new(total, required, capacity) }
    };

    let returnable = totals.peak_reserved.less(totals.peak_required);
    let mut training = vec![leaf(
        "training peak of the policy",
        totals.peak_reserved,
        &PEAK,
        &[("M", totals.peak_reserved.number())],
    )];
    training.extend(beside.iter().cloned());
    // An engine that does not sleep keeps weights and KV cache on the GPU while the policy trains.
    if shared {
        training.extend(if rollout.sleeps { engine.asleep() } else { engine.awake() });
    }
    let mut phases = vec![phase(PhaseKind::Training, training, returnable)];
    if let Some(own) = critic {
        let given = [("M", own.peak_reserved.number())];
        let mut training = vec![leaf("training peak of the critic", own.peak_reserved, &CRITIC_PEAK, &given)];
        // The critic's peak already includes the process's context.
        training.extend(left.first().cloned());
        training.extend(reference(rollout, totals));
        training.extend(scorer(plan, reward.as_ref()));
        training.extend(dozes.clone());
        if shared {
            training.extend(if rollout.sleeps { engine.asleep() } else { engine.awake() });
        }
        phases.push(phase(PhaseKind::Critic, training, own.peak_reserved.less(own.peak_required)));
    }

    if let Some(own) = reward {
        let hosted = own.peak_reserved.less(scoring(plan, &own));
        let given = [("M", own.peak_reserved.number()), ("O", hosted.number())];
        let mut parts =
            vec![leaf("forward pass of the reward model", own.peak_reserved.less(hosted), &REWARD, &given)];
        // The process's context is included in its peak.
        parts.extend(left.first().cloned());
        parts.extend(beside.iter().filter(|part| part.label() != SCORES).cloned());
        if shared {
            parts.extend(if rollout.sleeps { engine.asleep() } else { engine.awake() });
        }
        phases.push(phase(PhaseKind::Reward, parts, own.peak_reserved.less(own.peak_required)));
    }

    if let Some(own) = serves {
        let mut parts = left.clone();
        parts.extend(beside.iter().filter(|part| part.label() != DOZES).cloned());
        parts.push(Breakdown::sum(SERVES, own.awake()));
        if shared {
            parts.extend(if rollout.sleeps { engine.asleep() } else { engine.awake() });
        }
        let mut scoring = phase(PhaseKind::Reward, parts, Bytes::ZERO);
        // As with rollouts: its cache must hold one sample of full length.
        if own.cache_rollouts == 0 {
            scoring.verdict = Verdict::OutOfMemory;
        }
        phases.push(scoring);
    }

    let passes = log_probs::passes(plan, ranks, totals).into_iter().map(|pass| {
        let rank = pass.rank;
        // The policy's weights are back from the host by then (`fsdp_workers.py:compute_log_prob`), unless its reference
        // is the one that scores.
        let weights = pass.of_reference && rollout.offloads.weights;
        let mut parts = self::left(Offloads { weights, ..rollout.offloads }, rank);
        parts.extend(self::beside(plan, rollout, rank, [critic.as_ref(), reward.as_ref()]));
        parts.extend(dozes.clone());
        if pass.of_reference && rollout.reference == Residence::Host {
            parts.push(weights_of_reference(rank));
        }
        parts.extend(pass.parts);
        if shared {
            parts.extend(if rollout.sleeps { engine.asleep() } else { engine.awake() });
        }
        phase(PhaseKind::LogProbs, parts, Bytes::ZERO)
    });
    phases.extend(passes.max_by_key(|phase| phase.breakdown.value()));

    let cuts = plan.recipe().software.semantics().cuts_models;
    if rollout.engine == RolloutEngine::Transformers || rollout.framework.semantics(cuts).shares_weights {
        // Generation uses the same weights as training.
    } else if shared {
        let mut update = left.clone();
        update.extend(beside.iter().cloned());
        update.extend(handed_over(plan, rollout, totals));
        update.extend(if rollout.sleeps { engine.receiving() } else { engine.awake() });
        phases.push(phase(PhaseKind::WeightUpdate, update, Bytes::ZERO));
    } else if rollout.copies_all {
        let mut update = left.clone();
        update.extend(beside.iter().cloned());
        update.push(copied(plan));
        phases.push(phase(PhaseKind::WeightUpdate, update, Bytes::ZERO));
    }

    // A server that the launch text does not describe is not estimated.
    if rollout.own_gpus == Some(0) {
        return Some(RlMemory { co_located: false, phases, engine, cache_rollouts });
    }
    let mut generating = Vec::new();
    if shared {
        generating.extend(left);
        generating.extend(beside);
    }
    generating.extend(engine.awake());
    let mut generating = phase(PhaseKind::Rollout, generating, Bytes::ZERO);
    // An engine whose cache cannot hold one full-length rollout does not start.
    if cache_rollouts == 0 {
        generating.verdict = Verdict::OutOfMemory;
    }
    phases.push(generating);
    Some(RlMemory { co_located: shared, phases, engine, cache_rollouts })
}

const fn kind_label(kind: PhaseKind) -> &'static str {
    match kind {
        PhaseKind::Training => "training phase",
        PhaseKind::Critic => "training phase of the critic",
        PhaseKind::Reward => "scoring phase of the reward model",
        PhaseKind::LogProbs => "log-probabilities of rollouts",
        PhaseKind::WeightUpdate => "weight update",
        PhaseKind::Rollout => "rollout phase",
    }
}

/// A reference model that stays on the policy's accelerators.
fn reference(rollout: &Rollout, totals: &Totals) -> Option<Breakdown<Bytes>> {
    (rollout.reference == Residence::Device).then(|| weights_of_reference(totals))
}

fn weights_of_reference(totals: &Totals) -> Breakdown<Bytes> {
    leaf("reference model", totals.parameters, &REFERENCE, &[("W", totals.parameters.number())])
}

const SCORES: &str = "reward model";
/// The engine that serves it, awake and asleep.
const SERVES: &str = "engine of the reward model";
const DOZES: &str = "engine of the reward model, asleep";

/// What the reward model's own phase holds: everything, or all but the weights if they are on the host.
fn scoring(plan: &Plan, own: &Totals) -> Bytes {
    let hosted =
        plan.recipe().beside.reward.as_ref().is_some_and(|reward| reward.residence == Residence::Host);
    own.peak_reserved.less(if hosted { own.parameters } else { Bytes::ZERO })
}

/// A reward model that stays on the policy's accelerators and holds `own` in its own phase.
fn scorer(plan: &Plan, own: Option<&Totals>) -> Option<Breakdown<Bytes>> {
    let reward = plan.recipe().beside.reward.as_ref()?;
    let bytes = own.filter(|_| reward.residence == Residence::Device)?.parameters;
    Some(leaf(SCORES, bytes, &SCORER, &[("W", bytes.number())]))
}

/// Models besides the policy that stay on its accelerators; `own` is what critic and reward model hold in their own
/// phases.
fn beside(
    plan: &Plan,
    rollout: &Rollout,
    totals: &Totals,
    own: [Option<&Totals>; 2],
) -> Vec<Breakdown<Bytes>> {
    let mut out = Vec::from_iter(reference(rollout, totals));
    out.extend(scorer(plan, own[1]));
    if rollout.critic == Residence::Device {
        // Without a critic model of its own, it is assumed to equal the policy, including the output layer.
        let shaped = own[0].filter(|_| plan.recipe().beside.critic.is_some());
        let totals = shaped.unwrap_or(totals);
        let cuts = plan.recipe().software.semantics().cuts_models;
        let freed = rollout.framework.frees_gradients_of_critic(cuts);
        let gradients = if freed { Bytes::ZERO } else { totals.gradients };
        let bytes = totals.parameters + gradients + totals.optimizer;
        let given =
            [("W", totals.parameters.number()), ("G", gradients.number()), ("O", totals.optimizer.number())];
        out.push(leaf("critic", bytes, &CRITIC, &given));
    }
    out
}

/// What the trainer leaves on the accelerator after its step.
fn left(offloads: Offloads, totals: &Totals) -> Vec<Breakdown<Bytes>> {
    let moved = |moves: bool, bytes: Bytes| if moves { bytes } else { Bytes::ZERO };
    let moved = moved(offloads.weights, totals.parameters)
        + moved(offloads.gradients, totals.gradients)
        + moved(offloads.optimizer, totals.optimizer);
    let stays = totals.between_steps.less(moved);
    vec![
        leaf(
            "trainer state left on the GPU",
            stays,
            &LEFT,
            &[("H", totals.between_steps.number()), ("O", totals.between_steps.less(stays).number())],
        ),
        leaf(
            "trainer's CUDA context and NCCL buffers",
            totals.outside,
            &OUTSIDE,
            &[("X", totals.outside.number())],
        ),
    ]
}
