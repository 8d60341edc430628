//! What the letters of the formulas mean.

use shardscope_explain::{Formula, Symbol};

/// Every symbol that [`super::Symbols::value`] knows, and what it is. Where a size is cut, it is that of one rank.
pub const LETTERS: [(&str, &str); 66] = [
    ("s", "tokens of a sequence on one rank: sequence length / c"),
    ("b", "sequences of a micro-batch"),
    ("n", "tokens of a micro-batch on one rank: s · b"),
    ("S", "tokens where sequence parallelism cuts: n / t with it, n without"),
    ("h", "hidden size"),
    ("t", "tensor parallel size"),
    ("c", "context parallel size"),
    ("a", "query heads on one rank"),
    ("k", "key and value heads on one rank, at least one"),
    ("d", "width of a head"),
    ("A", "width of all queries on one rank: a · d"),
    ("K", "width of all keys, or of all values, on one rank: k · d"),
    ("Q", "width of the fused QKV projection's output on one rank"),
    ("f", "inner width of the MLP on one rank"),
    ("g", "2 where the MLP is gated, else 1"),
    ("V", "rows of the vocabulary, padded, on one rank"),
    ("B", "bytes of an element of weights and activations"),
    ("Br", "bytes of an element of the residual stream"),
    ("Bi", "bytes of an element of a linear layer's kept input: 1 with fp8, else B"),
    ("Bg", "bytes of an element of gradients"),
    ("E", "routed experts of a layer"),
    ("topk", "experts of one token"),
    ("T", "copies of tokens that one rank sends to experts"),
    ("R", "copies of tokens that the experts of one rank receive"),
    ("M", "router entries of the all-gather dispatcher: gathered tokens times local experts"),
    ("fm", "inner width of one expert on one rank"),
    ("fs", "inner width of the shared experts on one rank"),
    ("hm", "width in which experts read and write: hidden size, or their latent size"),
    ("Bp", "bytes of a routing probability"),
    ("e", "expert parallel size"),
    ("et", "expert tensor parallel size"),
    ("fan", "ranks that hold an expert of one token, at most"),
    ("ql", "rank of the query compression"),
    ("kl", "rank of the key/value compression"),
    ("dn", "unrotated width of a query head"),
    ("dr", "rotated width of a query head"),
    ("dv", "width of a value head"),
    ("hk", "query and key heads of a linear mixer on one rank; Mamba-2's groups"),
    ("hv", "value heads of a linear mixer on one rank; Mamba-2's heads"),
    ("dk", "width of a key head of a linear mixer; a state-space layer's state"),
    ("dl", "width of a value head of a linear mixer"),
    ("lk", "width of all queries, or of all keys, of a linear mixer on one rank: hk · dk"),
    ("lv", "width of all values of a linear mixer on one rank: hv · dl"),
    ("lc", "tokens of a linear mixer's convolution"),
    ("lr", "rank of a linear mixer's low-rank projections"),
    ("r", "rank of LoRA's adapters"),
    ("Ba", "bytes of an element of LoRA's adapters"),
    ("Bd", "bytes of an element in DoRA's products: Bc under autocast, else Ba"),
    ("Bc", "bytes of an element in GEMMs: 2 under autocast, else B"),
    (
        "Bl",
        "bytes of an element of the logits behind the model: 4 where Accelerate hands them on in fp32, else Bc",
    ),
    ("Bx", "bytes of an element in the experts' products"),
    ("rot", "columns of a head that are rotated"),
    ("entropy_rows", "rows of logits of which a policy's entropy is taken at once"),
    ("labels", "outputs of a head for rewards or classes, which stands in the place of the output layer"),
    ("rows", "rows whose logits a loss fused with the output layer, or one in chunks, has at once"),
    ("chunks", "chunks of rows that a loss is taken of"),
    (
        "np",
        "patches of images, were every token of a micro-batch one of an image where nothing says how many there are",
    ),
    ("Li", "layers of the vision tower"),
    ("pl", "linear layers of a projector that trains"),
    ("hi", "width of the vision tower"),
    ("ni", "tokens of the vision tower: patches of images, and what stands before each image's"),
    ("ai", "attention heads of the vision tower"),
    ("fi", "width of an MLP of the vision tower"),
    ("ti", "tokens that the decoder gets for images"),
    (
        "ei",
        "bytes kept outside of the vision tower's layers for each token that the decoder gets for an image",
    ),
    ("oi", "bytes kept outside of the vision tower's layers once"),
];

/// What `symbol` of `formula` means, with its unit where it has one.
#[must_use]
pub fn letter_meaning(formula: &Formula, symbol: &Symbol) -> Option<&'static str> {
    let known = || LETTERS.iter().find_map(|(letter, meaning)| (*letter == symbol.name).then_some(*meaning));
    if symbol.of_plan { known() } else { formula.letter(symbol.name) }
}
