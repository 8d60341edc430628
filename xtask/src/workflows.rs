//! Requirements on the CI workflows, as far as they can be checked offline.
use std::fs;

use regex::Regex;

use crate::process::{Version, root};

fn workflows() -> Vec<(String, String)> {
    let folder = fs::read_dir(root().join(".github/workflows")).unwrap();
    folder
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.display().to_string(), fs::read_to_string(path).unwrap())
        })
        .collect()
}

#[test]
fn every_action_is_pinned_to_a_commit_and_says_which_release_that_is() {
    let pinned = Regex::new(r"^\s*(- )?uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$").unwrap();
    let all = workflows();
    let used: Vec<_> = all
        .iter()
        .flat_map(|(name, text)| text.lines().map(move |line| (name, line)))
        .filter(|(_, line)| line.contains("uses:"))
        .collect();
    assert!(used.len() > 20);
    for (name, line) in used {
        assert!(pinned.is_match(line), "{name}: {line}");
    }
}

/// No step after the checkout, and nothing that it installs, can act with the token of the checkout.
#[test]
fn no_checkout_keeps_its_credentials() {
    for (name, text) in workflows() {
        let checkouts: Vec<&str> = text.split("uses: actions/checkout@").skip(1).collect();
        for rest in checkouts {
            let step = rest.split("\n      - ").next().unwrap();
            assert!(step.contains("persist-credentials: false"), "{name}: {step}");
        }
    }
}

#[test]
fn every_night_fuzzes_every_target() {
    let (_, nightly) = workflows().into_iter().find(|(name, _)| name.ends_with("nightly.yml")).unwrap();
    let list =
        nightly.lines().find_map(|line| line.trim().strip_prefix("target: [")?.strip_suffix(']')).unwrap();
    let fuzzed: Vec<_> = list.split(", ").map(str::to_owned).collect();
    let folder = fs::read_dir(root().join("fuzz/fuzz_targets")).unwrap();
    let mut targets: Vec<_> = folder
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    targets.sort();
    assert_eq!(fuzzed, targets);
}

/// docs.npmjs.com/trusted-publishers: npm 11.5.1 or newer, the repository in the package, no token.
#[test]
fn the_release_publishes_to_npm_as_a_trusted_publisher_may() {
    let (_, release) = workflows().into_iter().find(|(name, _)| name.ends_with("release.yml")).unwrap();
    let publish = release.lines().find(|line| line.contains(" publish --provenance")).unwrap();
    let npm = Version::in_text(publish.split("npm@").nth(1).unwrap()).unwrap();
    assert!(npm >= Version(vec![11, 5, 1]), "{publish}");
    assert!(!release.contains("NODE_AUTH_TOKEN"));
    let packed = release.split("npm pack ").next().unwrap();
    assert!(packed.contains(
        "npm pkg set repository.type=git \"repository.url=git+https://github.com/$GITHUB_REPOSITORY.git\""
    ));
    let registries = release.split("\n  registries:").nth(1).unwrap();
    assert!(
        registries.contains("id-token: write") && registries.contains("rust-lang/crates-io-auth-action@")
    );
}

/// dist builds by a profile of its own, and refuses `ci = "github"` and installers where a manifest has no address of the repository.
#[test]
fn the_release_builds_what_dist_and_the_action_know() {
    let (_, release) = workflows().into_iter().find(|(name, _)| name.ends_with("release.yml")).unwrap();
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    let (dist, manifest) = (read("dist-workspace.toml"), read("Cargo.toml"));
    assert!(manifest.contains("\n[profile.dist]\ninherits = \"release\"\n"));
    assert!(manifest.contains("\nrepository = ") || dist.contains("\nci = []\ninstallers = []\n"));
    let version =
        dist.split("cargo-dist-version = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let (_, nightly) = workflows().into_iter().find(|(name, _)| name.ends_with("nightly.yml")).unwrap();
    // What a release builds is unpacked and called by it, and each night on one system.
    for workflow in [&release, &nightly] {
        assert!(workflow.contains(&format!("cargo install --locked cargo-dist@{version}\n")));
        assert!(workflow.contains("- run: packages/release/try.sh "));
    }
    let (_, targets) = dist.split_once("targets = [").unwrap();
    let targets: Vec<_> = targets.split(']').next().unwrap().split('"').skip(1).step_by(2).collect();
    let built = Regex::new(r"- \{ target: ([\w-]+), on: ").unwrap();
    let built: Vec<_> = built.captures_iter(&release).map(|found| found[1].to_owned()).collect();
    assert_eq!(built, targets);
    // The action fetches `shardscope-cli-<target>.tar.xz` for every system on which its machines have bash.
    let fetch = read("packages/action/fetch.sh");
    let fetched = Regex::new(r"\) target=([\w-]+) ;;").unwrap();
    let fetched: Vec<_> = fetched.captures_iter(&fetch).map(|found| found[1].to_owned()).collect();
    let unix: Vec<_> = targets.iter().filter(|target| !target.contains("windows")).collect();
    assert_eq!(fetched.iter().collect::<Vec<_>>(), unix);
    assert!(
        fetch.contains("archive=\"shardscope-cli-$target.tar.xz\"")
            && dist.contains("unix-archive = \".tar.xz\"")
    );
    assert!(dist.contains("packages = [\"shardscope-cli\"]"));
}

/// On a machine with only rustup, anything that takes minutes is announced before it begins.
#[test]
fn the_commands_say_what_they_install_before_they_do() {
    let folder = tempfile::tempdir().unwrap();
    let program = |name: &str, body: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    program("cargo", "echo cargo \"$@\"");
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let expanded = |target: &str| {
        let mut call = std::process::Command::new("tools/xtask");
        call.arg("size")
            .current_dir(root())
            .env("PATH", &path)
            .env("CARGO_TARGET_DIR", folder.path().join(target));
        String::from_utf8(call.output().unwrap().stdout).unwrap()
    };
    let toolchain = fs::read_to_string(root().join("rust-toolchain.toml")).unwrap();
    let pinned = toolchain.split("channel = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    program("rustup", "echo stable-x86_64-unknown-linux-gnu");
    let lines = expanded("none");
    let order = [
        format!("installing Rust {pinned} (rustup)"),
        "compiling this project's own commands".into(),
        "cargo xtask size".into(),
    ];
    let places: Vec<_> = order
        .iter()
        .map(|said| lines.find(said.as_str()).unwrap_or_else(|| panic!("{said}: {lines}")))
        .collect();
    assert!(places.is_sorted(), "{lines}");
    program("rustup", &format!("echo {pinned}-x86_64-unknown-linux-gnu"));
    fs::create_dir_all(folder.path().join("built/debug")).unwrap();
    fs::copy(folder.path().join("rustup"), folder.path().join("built/debug/xtask")).unwrap();
    assert_eq!(expanded("built").lines().last(), Some("cargo xtask size"));
    assert!(!expanded("built").contains("==>"), "{}", expanded("built"));
}
