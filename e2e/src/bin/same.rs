//! `same PROGRAM EXPECTED [WORD...]`: runs a program of WebAssembly (WASI) in Chromium and in Firefox, with these
//! words as its arguments, and fails if one of them writes lines that differ from `EXPECTED`. `cargo xtask
//! same-everywhere` calls it.
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use e2e::{Kind, Page, Scratch};
use serde_json::{Value, json};

/// Runs a program of WebAssembly in browsers and compares what it writes.
#[derive(Parser)]
struct Arguments {
    /// The program, of the target wasm32-wasip1
    program: PathBuf,
    /// What it should write
    expected: PathBuf,
    /// Its arguments
    words: Vec<String>,
}

/// How long the program may take in a browser on a busy machine.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// A worker that runs the program as Node's WASI does: it has arguments and an output, and no files, network or clock.
const WORKER: &str = r#"
const ended = Symbol();
onmessage = async ({ data: [address, words] }) => {
    const encode = (text) => new TextEncoder().encode(text + "\0");
    const args = ["example", ...words].map(encode);
    const decoder = new TextDecoder();
    let memory, output = "";
    const view = () => new DataView(memory.buffer);
    const known = {
        args_sizes_get: (count, size) => {
            view().setUint32(count, args.length, true);
            view().setUint32(size, args.reduce((sum, one) => sum + one.length, 0), true);
            return 0;
        },
        args_get: (places, at) => {
            for (const one of args) {
                view().setUint32(places, at, true);
                new Uint8Array(memory.buffer).set(one, at);
                places += 4;
                at += one.length;
            }
            return 0;
        },
        environ_sizes_get: (count, size) => {
            view().setUint32(count, 0, true);
            view().setUint32(size, 0, true);
            return 0;
        },
        environ_get: () => 0,
        fd_write: (file, parts, count, written) => {
            let all = 0;
            for (let part = 0; part < count; part++) {
                const [at, length] = [view().getUint32(parts + 8 * part, true), view().getUint32(parts + 8 * part + 4, true)];
                output += decoder.decode(new Uint8Array(memory.buffer, at, length), { stream: true });
                all += length;
            }
            view().setUint32(written, all, true);
            return 0;
        },
        random_get: (at, length) => {
            crypto.getRandomValues(new Uint8Array(memory.buffer, at, length));
            return 0;
        },
        proc_exit: () => {
            throw ended;
        },
    };
    try {
        const module = await WebAssembly.compile(await (await fetch(address)).arrayBuffer());
        // 8: there is no such file
        const wasi = Object.fromEntries(WebAssembly.Module.imports(module).map(({ name }) => [name, known[name] ?? (() => 8)]));
        const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wasi });
        memory = instance.exports.memory;
        try {
            instance.exports._start();
        } catch (error) {
            if (error !== ended) throw error;
        }
        postMessage({ output });
    } catch (error) {
        postMessage({ output, error: String(error) });
    }
};
"#;

const START: &str = "
    const worker = new Worker('worker.js');
    worker.onmessage = (event) => { window.said = event.data; };
    worker.onerror = (event) => { window.said = { output: '', error: event.message }; };
    worker.postMessage([new URL('program.wasm', location).href, arguments[0]])";

/// What the program writes in a browser.
fn written(kind: Kind, folder: &Scratch, words: &[String]) -> Result<String, String> {
    let page = Page::blank_in_of(kind, folder.path());
    page.goto_shell("");
    page.js(START, &[json!(words)]);
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(500));
        let said = page.js("return window.said ?? null", &[]);
        match &said["error"] {
            Value::String(error) => return Err(error.clone()),
            _ if said.is_null() => {}
            _ => return said["output"].as_str().map(str::to_owned).ok_or("no output".to_owned()),
        }
    }
    Err(format!("nothing in {} s", PATIENCE.as_secs()))
}

fn main() -> ExitCode {
    let Arguments { program, expected, words } = Arguments::parse();
    let folder = Scratch::new();
    let copied = fs::copy(&program, folder.path().join("program.wasm"))
        .and_then(|_| fs::write(folder.path().join("worker.js"), WORKER))
        .and_then(|()| fs::write(folder.path().join("index.html"), "<!doctype html><title>same</title>"))
        .and_then(|()| fs::read_to_string(&expected));
    let expected = match copied {
        Ok(expected) => expected,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut equal = !expected.is_empty();
    for (name, kind) in [("Chromium", Kind::Chromium), ("Firefox", Kind::Firefox)] {
        match written(kind, &folder, &words) {
            Ok(output) => {
                let (lines, found): (Vec<&str>, Vec<&str>) =
                    (expected.lines().collect(), output.lines().collect());
                let differing =
                    (0..lines.len().max(found.len())).filter(|&at| lines.get(at) != found.get(at)).count();
                println!(
                    "{} lines: {differing} differ between this machine and WebAssembly in {name}",
                    lines.len()
                );
                equal &= differing == 0;
            }
            Err(error) => {
                println!("{name}: {error}");
                equal = false;
            }
        }
    }
    if equal { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
