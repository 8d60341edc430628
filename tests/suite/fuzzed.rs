//! Properties that must hold for any bytes, on stable: the functions of the fuzz targets (`fuzz/`), run on their seeds,
//! on inputs that once failed, and on randomly broken seeds. `SHARDSCOPE_FUZZED=100000` requests more than a normal
//! run.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use super::random::Random;

#[allow(unreachable_pub, reason = "a module of another crate, which is tested here too")]
#[path = "../../fuzz/src/bodies.rs"]
mod bodies;
#[allow(unreachable_pub, reason = "a module of another crate, which is tested here too")]
#[path = "../../fuzz/src/seeds.rs"]
mod seeds;

use bodies::{BODIES, Body};

/// Broken inputs per target in a normal run.
const BROKEN: usize = 60;
/// Longer seeds are broken in a section of this length, so that many can be tried. Unit: byte.
const PART: usize = 3_000;
/// An input that takes longer without optimisation counts as a hang. If the machine is busy, the thread's processor
/// time is used, if the system reports it.
const LONGEST: Duration = Duration::from_secs(60);

/// Tokens with a meaning in one of the formats.
const SIGNS: [&[u8]; 24] = [
    b"\0",
    b"\"",
    b"'",
    b"$(",
    b"${",
    b"{",
    b"[",
    b"]",
    b"}",
    b"\n",
    b"\\",
    b"<<",
    b"=",
    b":",
    b"- ",
    b"#",
    b",",
    b"&a ",
    b"*a",
    b"!",
    b"z1:",
    b"/1?",
    b"18446744073709551616",
    b"\xff",
];

/// `seed`, broken in one to six ways.
fn broken(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let place = |random: &mut Random, length: usize| random.below(length as u64 + 1) as usize;
    let from = if seed.len() > PART { place(random, seed.len() - PART) } else { 0 };
    // The first bytes may select the meaning of the rest.
    let mut bytes =
        [&seed[..from.min(2)], &seed[from.max(from.min(2))..(from + PART).min(seed.len())]].concat();
    for _ in 0..=random.below(6) {
        let at = place(random, bytes.len());
        match random.below(6) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            3 if at < bytes.len() => bytes[at] = random.below(256) as u8,
            4 => {
                let from = place(random, at);
                let again = bytes[from..at.min(from + 200)].to_vec();
                bytes.splice(at..at, again);
            }
            _ => drop(bytes.splice(at..at, SIGNS[random.below(SIGNS.len() as u64) as usize].iter().copied())),
        }
    }
    bytes
}

/// The processor time of the thread with this folder in `/proc`.
fn worked(task: &Path) -> Option<Duration> {
    let text = std::fs::read_to_string(Path::new("/proc").join(task).join("schedstat")).ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// Runs `body` on every input in a separate thread, so that one that never ends is reported by name.
#[track_caller]
fn hold(target: &str, body: Body, inputs: Vec<Vec<u8>>, limit: Duration) {
    let (said, heard) = mpsc::channel();
    let (known, task) = mpsc::channel();
    let thread = std::thread::Builder::new().stack_size(8 << 20).spawn(move || {
        let _ = known.send(std::fs::read_link("/proc/thread-self").unwrap_or_default());
        for input in inputs {
            let _ = said.send(input.clone());
            body(&input);
        }
    });
    let thread = thread.expect("a thread");
    let task = task.recv().unwrap_or_default();
    let (mut last, mut begun) = (Vec::new(), worked(&task));
    loop {
        match heard.recv_timeout(limit) {
            Ok(input) => (last, begun) = (input, worked(&task)),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let took = worked(&task).zip(begun).map_or(limit, |(now, begun)| now.saturating_sub(begun));
                assert!(took < limit, "{target} does not end on {}", last.escape_ascii());
            }
        }
    }
    assert!(thread.join().is_ok(), "{target} fails on {}", last.escape_ascii());
}

/// A limit that is reached quickly.
const SOON: Duration = Duration::from_millis(200);

#[test]
#[should_panic(expected = "busy does not end on x")]
#[cfg(target_os = "linux")]
fn an_input_that_takes_too_long_is_reported() {
    let busy = |_: &[u8]| {
        let task = std::fs::read_link("/proc/thread-self").unwrap_or_default();
        while worked(&task).is_some_and(|time| time < 5 * SOON) {}
    };
    hold("busy", busy, vec![b"x".to_vec()], SOON);
}

#[test]
#[cfg(target_os = "linux")]
fn a_machine_that_has_other_work_is_waited_for() {
    hold("idle", |_| std::thread::sleep(3 * SOON), vec![b"x".to_vec()], SOON);
}

#[track_caller]
fn check(target: &str) {
    let (_, body) = BODIES.into_iter().find(|(name, _)| *name == target).expect("a target of that name");
    let wanted =
        std::env::var("SHARDSCOPE_FUZZED").ok().and_then(|count| count.parse().ok()).unwrap_or(BROKEN);
    let seeds = seeds::seeds(Path::new(env!("CARGO_MANIFEST_DIR")), target);
    assert!(seeds.len() >= 2, "{target} has no seeds");
    let mut random = Random::new(19);
    let drawn: Vec<Vec<u8>> =
        (0..wanted).map(|_| broken(&seeds[random.below(seeds.len() as u64) as usize], &mut random)).collect();
    hold(target, body, seeds, LONGEST);
    hold(target, body, drawn, LONGEST);
}

/// One test per target, so that they run in parallel.
macro_rules! targets {
    ($($target:ident),*) => {
        $(#[test] fn $target() { check(stringify!($target)); })*

        #[test]
        fn every_target_is_run_and_can_be_fuzzed() {
            let here = [$(stringify!($target)),*];
            assert_eq!(BODIES.map(|(name, _)| name), here);
            let manifest = include_str!("../../fuzz/Cargo.toml");
            for target in here {
                assert!(manifest.contains(&format!("path = \"fuzz_targets/{target}.rs\"")), "{target}");
                let program = std::fs::read_to_string(format!("fuzz/fuzz_targets/{target}.rs")).unwrap_or_default();
                assert!(program.contains(&format!("bodies::{target}(bytes)")), "{target}");
            }
        }
    };
}

targets!(shell, settings, texts, links, kept, logs, measured, asked, patches, exports, plans);

/// The fuzz targets are a separate workspace, whose lock file no other build checks; `cargo xtask fuzz` builds with
/// `--locked`, which fails if a crate has since got another dependency.
#[test]
fn the_lock_file_of_the_targets_knows_every_dependency() {
    let lock = std::fs::read_to_string("fuzz/Cargo.lock").expect("a lock file");
    let mut met = 0;
    for package in lock.split("[[package]]").filter(|package| package.contains("\nname = \"shardscope")) {
        let (_, name) = package.split_once("name = \"shardscope").expect("a name");
        let name = name.split('"').next().unwrap_or_default().trim_start_matches('-');
        let folder = match name {
            "fuzz" => "fuzz".to_owned(),
            "" => "crates/shardscope".to_owned(),
            name => format!("crates/{name}"),
        };
        let locked = package.split_once("dependencies = [").map_or("", |(_, list)| list);
        // A name with several versions is followed by its version.
        let locked: BTreeSet<&str> = locked
            .lines()
            .filter_map(|line| line.trim().strip_prefix('"')?.split(['"', ' ']).next())
            .collect();
        let manifest = std::fs::read_to_string(format!("{folder}/Cargo.toml")).expect("a manifest");
        let (_, stated) = manifest.split_once("[dependencies]\n").unwrap_or_default();
        let stated: BTreeSet<&str> = stated
            .lines()
            .take_while(|line| !line.starts_with('['))
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once([' ', '.', '='])?.0.into())
            .filter(|name| !name.is_empty())
            .collect();
        assert_eq!(
            locked, stated,
            "{folder}: cargo metadata --manifest-path fuzz/Cargo.toml writes the lock file anew"
        );
        met += 1;
    }
    assert!(met > 20, "{met} crates");
}
