//! What the text leaves open is answered where the answer will stand.
use e2e::Page;

use super::steps::{input, panel};

/// A program that parses its own command line.
const PROGRAM: &str = "\
from dataclasses import dataclass, field
import transformers

@dataclass
class ModelArguments:
    model_name_or_path: str = field(default='Qwen/Qwen2.5-7B')

def train():
    parser = transformers.HfArgumentParser((ModelArguments, transformers.TrainingArguments))
    model_args, training_args = parser.parse_args_into_dataclasses()
    model = transformers.AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path)
    transformers.Trainer(model=model, args=training_args).train()

train()
";

#[test]
fn a_program_that_reads_its_own_command_line_asks_for_that_line() {
    let page = Page::open("");
    page.fill("#script", PROGRAM);
    page.wait_text(".missing", "Which command starts this program?");
    // All of the proposal can be read, and one answer is enough.
    assert_eq!(page.count(".missing form .field"), 1);
    let line = page.value("textarea#ask-command_line");
    assert!(line.starts_with("torchrun --nproc_per_node 8") && line.contains("Qwen/Qwen2.5-7B"), "{line}");
    assert_eq!(page.overflow(), 0);
    assert_eq!(page.axe(), []);
    page.screenshot("question-command-line");
    page.click_text(".missing form button", "Use");
    // What neither the line nor the program says is asked for as of any other text.
    page.wait_text(".missing", "Sequence length");
    page.click_text(".missing form button", "Use");
    page.wait_text(".plan-name", "7.62B · 8 × H100-SXM");
    // Another line is another run.
    page.click_text("button", "Clear");
    page.fill("#script", PROGRAM);
    page.wait_for("textarea#ask-command_line");
    page.fill("#ask-command_line", &line.replace("--nproc_per_node 8", "--nnodes 2 --nproc_per_node 8"));
    page.click_text(".missing form button", "Use");
    page.wait_text(".missing", "Sequence length");
    page.click_text(".missing form button", "Use");
    page.wait_text(".plan-name", "16 × H100-SXM");
    assert_eq!(page.value("#script"), PROGRAM, "the script is the reader's own");
    page.assert_quiet();
}

#[test]
fn the_shape_of_an_unknown_model_is_pasted_where_it_is_asked_for() {
    let page = Page::open("");
    page.fill(
        "#script",
        "torchrun --nproc_per_node 8 run_clm.py --model_name_or_path someone/their-model \
         --per_device_train_batch_size 1 --block_size 512 --bf16 True --output_dir out",
    );
    page.wait_text(".missing", "What is the shape of someone/their-model?");
    // One reason, with the file's address to be opened; its sizes, one by one, would be the same said again.
    assert_eq!(page.count(".missing .reasons li"), 1, "{:?}", page.texts(".missing .reasons li"));
    let address = page.attribute(".missing .reasons a", "href");
    assert_eq!(address.as_deref(), Some("https://huggingface.co/someone/their-model/blob/main/config.json"));
    // Nothing sent is told, and not passed over in silence.
    page.click_text(".missing form button", "Use");
    page.wait_text(".missing form [role=alert]", "Nothing is filled in yet.");
    assert_eq!(page.axe(), []);
    page.screenshot("question-shape");
    page.fill(
        "#ask-model",
        r#"{ "model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22,
             "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32000, "tie_word_embeddings": false }"#,
    );
    page.click_text(".missing form button", "Use");
    page.wait_text(".plan-name", "1.10B · 8 × H100-SXM");
    page.wait_text(".beside", "config.json");
    page.assert_quiet();
}

#[test]
fn the_machines_are_asked_for_once() {
    let page = Page::open("");
    page.fill(
        "#script",
        "WORLD_SIZE=$OMPI_COMM_WORLD_SIZE\n\
         NNODES=${NNODES:-1}\n\
         GPUS_PER_NODE=${GPUS_PER_NODE:-8}\n\
         RUN='pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --bf16 \
         --micro-batch-size 1 --vocab-size 32000 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 2'\n\
         if [ \"${BACKEND:-mpirun}\" = mpirun ]; then\n\
           APP=\"python $RUN --world-size $WORLD_SIZE\"\n\
         else\n\
           APP=\"torchrun --nnodes $NNODES --nproc_per_node $GPUS_PER_NODE $RUN\"\n\
         fi\n\
         $APP\n",
    );
    page.wait_for(".missing form");
    let asked = page.texts(".missing form label code");
    let machines: Vec<&String> =
        asked.iter().filter(|name| ["OMPI_COMM_WORLD_SIZE", "num_nodes"].contains(&name.as_str())).collect();
    assert_eq!(machines.len(), 1, "{asked:?}");
    page.click(".missing form button");
    page.wait_text(".plan-name", "16 × H100-SXM");
    let open = page.texts(".script .questions label");
    assert!(!open.iter().any(|asked| asked.contains("WORLD_SIZE")), "{open:?}");
}

/// Copies of a model keep buffers to reduce gradients in: one GPU holds what two do not.
#[test]
fn fewer_gpus_that_hold_what_more_do_not_are_said_so() {
    let page = Page::open("");
    page.fill(
        "#script",
        "torchrun --nnodes 2 --nproc_per_node 1 run_clm.py --model_name_or_path meta-llama/Llama-3.2-1B \
         --per_device_train_batch_size 1 --gradient_accumulation_steps 2 --block_size 2048 \
         --gradient_checkpointing True --output_dir out",
    );
    page.wait_text(".plan-name", "2 × H100-SXM");
    page.choose(".accelerator select", "V100-SXM2-16GB");
    page.wait_text(".verdict", "Out of memory");
    let said = "No layout fits on all 2 × V100-SXM2-16GB; one on 1 of them does.";
    page.wait_text(".act", said);
    panel(&page, "search");
    page.wait_text("#search", said);
}

/// On a phone an answer stands first where it is what was come for; a form that is being filled in stays where it is.
#[test]
fn the_form_stays_in_its_place_on_a_phone() {
    let page = Page::open("");
    page.phone();
    let top =
        || page.js("return document.querySelector('#model-input-tab').getBoundingClientRect().top", &[]);
    let before = top();
    input(&page, "model-input");
    page.wait_text(".plan-name", "64 × H100-SXM");
    assert_eq!(top(), before);
    assert_eq!(page.overflow(), 0);
    page.screenshot("model-phone");
}

/// A text that is pasted over a shorter one scrolls the box while the old underlines are still there.
#[test]
fn underlines_stay_under_what_they_mark() {
    let page = Page::open("");
    let remarks = "# a remark\n".repeat(180);
    let run = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 \
               --micro-batch-size 1 --bf16 --vocab-size 1000";
    page.fill(
        "#script",
        &format!("{remarks}if [[ $profiling == torch ]]; then\n  A=1\nfi\n{run} $A\n{remarks}"),
    );
    page.wait_for(".marks mark");
    page.js("document.querySelector('#script').scrollTop = 600", &[]);
    let places = "return [...document.querySelectorAll('#script, .marks, .gutter')].map(e => e.scrollTop)";
    let together = || page.js(places, &[]).as_array().is_some_and(|all| all.iter().all(|one| *one == all[0]));
    page.until("all three at one line", || together().then_some(()));
    // Drawn anew with more of them, and with none.
    page.fill("#script", &format!("{remarks}{remarks}{run} --no-such-flag\n"));
    page.wait_text("#diagnostics", "no-such-flag");
    page.until("all three at one line again", || together().then_some(()));
}

/// Sentences of the engine as people write them, and options that are not torn apart at their dashes.
#[test]
fn what_is_asked_and_refused_reads_as_sentences_and_has_room_on_a_phone() {
    let page = Page::open("");
    page.phone();
    let run = "torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --bf16 \
               --tensor-model-parallel-size 2 --use-distributed-optimizer";
    page.fill("#script", run);
    page.wait_text(".missing", "Micro-batch size, in sequences?");
    page.wait_text(".missing .reasons", "TP 2 × PP 1 needs 2 GPUs; you have 1.");
    let stated = "--nproc_per_node 8 pretrain_gpt.py --seq-length 4096 --micro-batch-size 1 --vocab-size 32000 \
                  --my-fork-router 3 --our-special-loss --another-thing 5";
    page.fill("#script", &run.replace("pretrain_gpt.py", stated));
    page.wait_text(".not-modelled", "--another-thing 5");
    let wide = "const [row, said] = ['.not-modelled', '.not-modelled span'].map(of => document.querySelector(of).clientWidth \
                || document.querySelector(of).getBoundingClientRect().width); return said / row";
    assert!(page.js(wide, &[]).as_f64().is_some_and(|share| share > 0.9), "{:?}", page.js(wide, &[]));
    let torn = "return [...document.querySelectorAll('.flag')].filter(one => one.getClientRects().length > 1).length";
    assert!(page.count(".not-modelled .flag") >= 3 && page.count("#diagnostics .flag") >= 3);
    assert_eq!(page.js(torn, &[]).as_u64(), Some(0));
    assert_eq!(page.overflow(), 0);
    page.screenshot("not-modelled-phone");
    page.click_text(".not-modelled button", "Continue without these 3");
    page.wait_text(".plan-name", "8 × H100-SXM");
    page.wait_text("#diagnostics", "left out of the estimate as you chose");
    page.assert_quiet();
}

/// Whoever tunes with adapters looks for what they train.
#[test]
fn a_run_with_adapters_says_what_is_trainable() {
    let page = Page::open("");
    page.fill(
        "#script",
        "from peft import LoraConfig\nfrom trl import SFTConfig, SFTTrainer\n\
         peft_config = LoraConfig(r=64, target_modules='all-linear')\n\
         args = SFTConfig(output_dir='out', per_device_train_batch_size=4, max_length=4096, bf16=True)\n\
         SFTTrainer(model='meta-llama/Llama-3.1-8B', args=args, peft_config=peft_config).train()\n",
    );
    page.wait_text(".missing", "Number of GPUs in total?");
    page.click_text(".missing form button", "Use");
    page.wait_text(".plan-name", "8 × H100-SXM");
    page.wait_text(".stats", "trainable");
    // One device holds all: no stage is spoken of.
    page.wait_text(".mini-map .group-caption", "n0_g0: no pipeline: 8 GPUs hold embedding");
    page.assert_quiet();
}
