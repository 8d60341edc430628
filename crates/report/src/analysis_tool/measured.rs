//! The four runs the tool was published with: "Llama2 7B" in bf16 on eight H800, with the peak that
//! `torch.cuda.max_memory_allocated` showed. The model is the GPT with SwiGLU that the tool assumes: 32 layers
//! of 4096, vocabulary 50257, sequence 2048, biases, learned positions, dropout, MLP 10880 wide.

/// One published run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredRow {
    /// Data parallel size.
    pub data: u64,
    /// Pipeline parallel size.
    pub pipeline: u64,
    /// Tensor parallel size.
    pub tensor: u64,
    /// Sequences of a micro-batch.
    pub micro_batch_size: u64,
    /// Sequences of a step.
    pub global_batch_size: u64,
    /// Measured peak. Unit: GiB (printed without a unit).
    pub measured: f64,
    /// What the tool printed for it, as published. Unit: GiB.
    pub published: f64,
}

const fn row(
    [data, pipeline, tensor, micro_batch_size, global_batch_size]: [u64; 5],
    measured: f64,
    published: f64,
) -> MeasuredRow {
    MeasuredRow { data, pipeline, tensor, micro_batch_size, global_batch_size, measured, published }
}

/// The published table.
pub static MEASURED: [MeasuredRow; 4] = [
    row([8, 1, 1, 2, 2048], 69.1, 68.8),
    row([4, 1, 2, 4, 512], 55.7, 55.5),
    row([4, 2, 1, 2, 2048], 49.8, 49.5),
    row([1, 1, 8, 4, 128], 28.8, 28.6),
];
