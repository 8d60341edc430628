//! Advice is correct: its changes, applied to the settings, give the promised peak.

use shardscope::advice::advised;
use shardscope::bash::Environment;
use shardscope::launch::{Request, Resolution, read};
use shardscope::source::Source;

fn resolved(script: &str, overrides: &[(String, String)]) -> Resolution {
    let source = Source::new(script);
    read(&Request { source: &source, environment: &Environment::default(), overrides })
}

fn accelerator(name: &str) -> Vec<(String, String)> {
    vec![("accelerator".into(), name.into())]
}

const SCRIPTS: [(&str, &str); 4] = [
    (
        "A100-SXM-40GB",
        "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --num-layers 48 --hidden-size 4096 \
         --num-attention-heads 32 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 4 \
         --global-batch-size 512 --vocab-size 50257 --bf16 --swiglu --use-flash-attn \
         --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2",
    ),
    (
        "H100-SXM",
        "torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 \
         --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 \
         --global-batch-size 32 --vocab-size 32000 --bf16 --swiglu --disable-bias-linear --normalization RMSNorm \
         --position-embedding-type rope --tensor-model-parallel-size 16 --recompute-granularity full \
         --recompute-method uniform --recompute-num-layers 1",
    ),
    (
        "H100-SXM",
        "torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 \
         --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 2 \
         --global-batch-size 64 --vocab-size 32000 --bf16 --swiglu --disable-bias-linear --normalization RMSNorm \
         --position-embedding-type rope --pipeline-model-parallel-size 8 --use-distributed-optimizer",
    ),
    (
        "H100-SXM",
        "torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 \
         --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 \
         --global-batch-size 64 --vocab-size 32000 --bf16 --swiglu --disable-bias-linear --normalization RMSNorm \
         --position-embedding-type rope --num-experts 8 --expert-model-parallel-size 8 --moe-router-topk 2 \
         --tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer",
    ),
];

#[test]
fn advice_keeps_what_it_promises() {
    let mut codes = Vec::new();
    for (name, script) in SCRIPTS {
        let resolution = resolved(script, &accelerator(name));
        let plan = resolution.plan.as_ref().unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
        let report = advised(plan).expect("an estimate");
        for finding in &report.advice {
            codes.push(finding.code);
            let Some(promised) = finding.expected.peak_reserved else {
                assert!(finding.change.is_empty(), "{}: a change without its peak", finding.code);
                continue;
            };
            let mut overrides = accelerator(name);
            let change = finding.change.iter();
            overrides.extend(change.map(|(field, value)| (field.name().to_owned(), value.clone())));
            let changed = resolved(script, &overrides);
            let plan = changed.plan.as_ref();
            let plan =
                plan.unwrap_or_else(|| panic!("{}: {:?} {:?}", finding.code, overrides, changed.diagnostics));
            let peak = advised(plan).expect("an estimate").memory.worst.peak_reserved;
            assert_eq!(peak, promised, "{}: {:?}", finding.code, finding.change);
        }
        for (index, finding) in report.advice.iter().enumerate() {
            let mut before = report.advice[..index].iter().filter(|before| !before.change.is_empty());
            assert!(!before.any(|before| before.change == finding.change), "{} is told twice", finding.code);
        }
        let ways_out: Vec<_> =
            report.advice.iter().filter(|finding| finding.code == "out-of-memory").collect();
        assert_eq!(report.memory.fits, ways_out.is_empty(), "{script}");
        for way in ways_out {
            assert!(way.expected.peak_reserved <= Some(report.memory.capacity));
        }
    }
    for code in [
        "out-of-memory",
        "optimizer-not-sharded",
        "sequence-parallel-off",
        "tensor-leaves-domain",
        "experts-cross-network",
        "recompute-too-much",
        "deep-bubble",
        "lower-tensor",
    ] {
        assert!(codes.contains(&code), "{code} in {codes:?}");
    }
}
