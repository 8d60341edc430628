//! What DeepSpeed's JSON states about a plan. The model's shape and the layout stay on the command line.

use crate::deepspeed_text::{DEEPSPEED_FILE, deepspeed_text};
use crate::megatron::megatron_command;
use crate::round::{Exported, unsaid};
use shardscope_launch::Resolution;

/// DeepSpeed's configuration for the plan, to go with its command. Both are read back together, and what they cannot
/// express is named. That includes stage 0 with bf16, whose optimizer always shards its states, and every plan for
/// other software.
#[must_use]
pub fn deepspeed_json(resolution: &Resolution) -> Exported {
    let text = deepspeed_text(resolution);
    let command = megatron_command(resolution).text;
    let unsaid = unsaid(resolution, &[("run.sh", &command), (DEEPSPEED_FILE, &text)]);
    Exported { text, unsaid }
}
