//! From a script to the training it starts: the command, its argument words with their positions, and its world.
//!
//! The world is determined from these places, in order of precedence: the launcher's own options (torchrun, `mpirun`,
//! `deepspeed`, `srun`), scheduler directives, the environment of the command, Ray's actors, and finally the script's
//! variables with common names.

mod ask;
mod beside;
mod by_name;
mod choose;
mod chosen;
mod command_line;
mod elsewhere;
mod flag;
mod inlined;
mod program;
mod purposes;
mod reading;
mod rollouts;
mod said;
mod scheduler;
mod settings_file;
mod stage;
mod swift;
mod tidy;
mod tools;
mod turns;
mod unset;
mod world;
mod wrappers;

pub use choose::choose;
pub use chosen::Chosen;
pub use command_line::{CommandLine, Launcher};
pub(crate) use purposes::ELSEWHERE;
pub use reading::{Launch, read, read_part};
pub use said::{Fact, Missing, Said, World};
