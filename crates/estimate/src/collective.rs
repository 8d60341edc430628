//! Bytes that each rank sends for a collective, by algorithm. These differ from the size of the message: a ring
//! all-reduce of S bytes over n ranks sends 2(n-1)/n·S from each rank.

use shardscope_explain::{Explanation, Formula};
use shardscope_operators::Collective;
use shardscope_units::{Bytes, Quantity};

const NCCL: &str = "NVIDIA nccl-tests, PERFORMANCE.md; NCCL 2.4 (double binary trees)";
const SWITCH: &str = "NVLink SHARP and InfiniBand SHARP: the switch reduces and multicasts";

static SEND: Formula = Formula::new("S", "A point-to-point send puts its payload on the wire once.", NCCL)
    .letters(&[("S", "bytes of the message")]);
static RING_REDUCE: Formula = Formula::new(
    "2·(n-1)/n·S",
    "Every chunk goes around the ring twice: once for the reduce-scatter, once for the all-gather.",
    NCCL,
)
.letters(&[("n", "ranks of the group"), ("S", "bytes of the message")]);
static TREE_REDUCE: Formula = Formula::new(
    "2·(n-1)/n·S",
    "n-1 messages up the trees and n-1 down, over n ranks: a ring's bytes in fewer steps.",
    NCCL,
)
.letters(&[("n", "ranks of the group"), ("S", "bytes of the message")]);
static ONCE_ROUND: Formula =
    Formula::new("(n-1)/n·S", "Every rank receives, or sends, all but its own shard.", NCCL)
        .letters(&[("n", "ranks of the group"), ("S", "bytes of the message")]);
static SWITCH_REDUCE: Formula = Formula::new(
    "(n+1)/n·S",
    "Each rank sends its whole tensor once to the switch, and multicasts the reduced shard it read back.",
    SWITCH,
)
.letters(&[("n", "ranks of the group"), ("S", "bytes of the message")]);
static SWITCH_GATHER: Formula = Formula::new(
    "S/n",
    "Each rank sends its own shard once; the switch multicasts it to all others.",
    SWITCH,
)
.letters(&[("n", "ranks of the group"), ("S", "bytes of the message")]);

/// The algorithm that carries out a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Pieces travel around a ring; NCCL's choice for large messages.
    Ring,
    /// Two binary trees, each with half the data (NCCL 2.4).
    Tree,
    /// The switch reduces and multicasts: NVLink SHARP, InfiniBand SHARP.
    InSwitch,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 3] = [Self::Ring, Self::Tree, Self::InSwitch];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Tree => "tree",
            Self::InSwitch => "in-switch",
        }
    }
}

/// `bytes · times / over`, rounded down, saturating at `u64::MAX`.
fn share(bytes: Bytes, times: u64, over: u64) -> Bytes {
    let product = u128::from(bytes.get()) * u128::from(times) / u128::from(over.max(1));
    Bytes::new(u64::try_from(product).unwrap_or(u64::MAX))
}

/// The formula for what each rank sends for `collective` under `algorithm`.
#[must_use]
fn rule(algorithm: Algorithm, collective: Collective) -> &'static Formula {
    match (algorithm, collective) {
        (_, Collective::SendRecv) => &SEND,
        (Algorithm::InSwitch, Collective::AllReduce) => &SWITCH_REDUCE,
        (Algorithm::InSwitch, Collective::AllGather | Collective::Broadcast) => &SWITCH_GATHER,
        (Algorithm::Ring, Collective::AllReduce) => &RING_REDUCE,
        (Algorithm::Tree, Collective::AllReduce) => &TREE_REDUCE,
        _ => &ONCE_ROUND,
    }
}

/// Bytes that each of `ranks` ranks sends, on average, for one `collective`. `message` is the size of the gathered
/// tensor of an all-gather, of the tensor to be scattered of a reduce-scatter, of one rank's input of an all-to-all,
/// or of a single send.
#[must_use]
pub fn wire_bytes(algorithm: Algorithm, collective: Collective, ranks: u64, message: Bytes) -> Bytes {
    if collective == Collective::SendRecv {
        return message;
    }
    // Frameworks skip the call for a group of one; at most, NCCL copies on the device.
    if ranks <= 1 {
        return Bytes::ZERO;
    }
    match (algorithm, collective) {
        (Algorithm::InSwitch, Collective::AllReduce) => share(message, ranks + 1, ranks),
        // This counts what a rank sends, not what it receives: the switch makes the copies. A reduce-scatter gains
        // nothing, because every rank still sends all but its own shard.
        (Algorithm::InSwitch, Collective::AllGather | Collective::Broadcast) => share(message, 1, ranks),
        (_, Collective::AllReduce) => share(message, 2 * (ranks - 1), ranks),
        _ => share(message, ranks - 1, ranks),
    }
}

/// Explains the result of [`wire_bytes`]: the rule with `n` ranks and a message of `S` bytes.
#[must_use]
pub fn explain_wire(algorithm: Algorithm, collective: Collective, ranks: u64, message: Bytes) -> Explanation {
    let n = shardscope_units::Count::new(ranks).number();
    let (rule, given) = (rule(algorithm, collective), [("n", n), ("S", message.number())]);
    // A send goes to one rank, whatever the size of its group.
    let given = if collective == Collective::SendRecv { &given[1..] } else { &given[..] };
    Explanation::new(rule, given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(algorithm: Algorithm, collective: Collective, ranks: u64, expected: u64) {
        assert_eq!(wire_bytes(algorithm, collective, ranks, Bytes::new(800)), Bytes::new(expected));
    }

    #[test]
    fn message_and_wire_are_two_things() {
        check(Algorithm::Ring, Collective::AllReduce, 8, 1400);
        check(Algorithm::Tree, Collective::AllReduce, 8, 1400);
        check(Algorithm::InSwitch, Collective::AllReduce, 8, 900);
        check(Algorithm::Ring, Collective::AllGather, 8, 700);
        check(Algorithm::Ring, Collective::ReduceScatter, 2, 400);
        check(Algorithm::InSwitch, Collective::AllGather, 8, 100);
        check(Algorithm::Ring, Collective::AllToAll, 4, 600);
        check(Algorithm::Ring, Collective::SendRecv, 2, 800);
        check(Algorithm::Ring, Collective::AllReduce, 1, 0);
    }

    #[test]
    fn a_rule_is_given_the_ranks_that_it_counts() {
        let given = |collective| {
            let why = explain_wire(Algorithm::Ring, collective, 8, Bytes::new(800));
            why.symbols.iter().map(|symbol| symbol.value).collect::<Vec<_>>()
        };
        assert_eq!(given(Collective::AllReduce), [8.0, 800.0]);
        assert_eq!(given(Collective::SendRecv), [800.0]);
    }
}
