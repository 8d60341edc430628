//! The container that serves the page: built and run by Docker if available, otherwise its server configuration is
//! run by nginx itself.
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::{command, find, note, output, root, run, say};
use crate::published::smoke::{answered, head, named};

const DOCKERFILE: &str = "packages/container/Dockerfile";
const SERVER: &str = "packages/container/nginx.conf";
/// The port in the container.
const PORT: &str = "8080";
/// Tag of the image on this machine.
const IMAGE: &str = "shardscope-check";
/// How often a freshly started server is polled, and the wait in between.
const TRIES: usize = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// Serves `dist/` as the container does and asks for everything that it names.
///
/// # Errors
/// If there is no built page, neither Docker nor nginx, or an answer is wrong.
pub fn check() -> Result<()> {
    let dist = root().join("dist");
    if !dist.join("index.html").is_file() {
        bail!("there is no page in dist/; tools/serve --build makes it");
    }
    if output(command("docker").arg("info")).is_ok() {
        return by_docker(&dist);
    }
    note(
        "Docker does not answer here: the image is not built, its server's configuration is tried by nginx alone",
    );
    by_nginx(&dist)
}

fn by_docker(dist: &Path) -> Result<()> {
    say("building the container");
    run(command("docker").args(["build", "--quiet", "-f", DOCKERFILE, "-t", IMAGE, "."]))?;
    let mut start = command("docker");
    start.args(["run", "--detach", "--rm", "--read-only", "--tmpfs", "/tmp", "--publish"]);
    // Docker chooses a free port if there is none between the colons.
    let id = output(start.args([&format!("127.0.0.1::{PORT}"), IMAGE]))?.trim().to_owned();
    // No `?` before the container is stopped.
    let served = output(command("docker").args(["port", &id, PORT])).and_then(|port| {
        let host = port.lines().next().context("Docker names no port")?.trim().to_owned();
        answers(dist, &format!("http://{host}/"))
    });
    output(command("docker").args(["stop", "--time", "1", &id]))?;
    served
}

fn by_nginx(dist: &Path) -> Result<()> {
    // On Debian it is in a directory that is only on the administrator's path.
    let Some(nginx) = find("nginx").or_else(|| find("/usr/sbin/nginx")) else {
        bail!("neither Docker nor nginx is here to serve the page as the container does");
    };
    // A port that is free now; it is released here and nginx takes it.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let scratch = tempfile::tempdir()?;
    let place = |name: &str| scratch.path().join(name).display().to_string();
    let server = fs::read_to_string(root().join(SERVER))?;
    let server = placed(&server, port, &dist.display().to_string())?;
    fs::write(scratch.path().join("server.conf"), server)?;
    let (pid, log) = (place("pid"), place("log"));
    // Everything that nginx writes goes into the scratch directory: the compiled-in ones belong to root.
    let mut whole = format!(
        "daemon off;\nmaster_process off;\npid {pid};\nerror_log {log};\nevents {{}}\nhttp {{\ninclude /etc/nginx/mime.types;\naccess_log off;\n"
    );
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        whole += &format!("{kind}_temp_path {};\n", place(kind));
    }
    whole += &format!("include {};\n}}\n", place("server.conf"));
    fs::write(scratch.path().join("nginx.conf"), whole)?;
    say("serving the page by nginx");
    let mut nginx = command(&nginx.to_string_lossy());
    // `-e`: until the configuration is read, errors would go to the compiled-in file.
    nginx.args(["-c", &place("nginx.conf"), "-e", &log]).stdin(Stdio::null());
    let child = Stopped(nginx.spawn().context("nginx")?);
    let served = answers(dist, &format!("http://127.0.0.1:{port}/"));
    // It is stopped before its log is read.
    drop(child);
    served.with_context(|| fs::read_to_string(log).unwrap_or_default())
}

/// A server that ends with the check.
struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        // It is fine if it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The server's configuration with a different port and directory, otherwise unchanged.
fn placed(server: &str, port: u16, folder: &str) -> Result<String> {
    let mut text = server.to_owned();
    for (there, here) in [
        (format!("listen {PORT};"), format!("listen 127.0.0.1:{port};")),
        ("root /usr/share/nginx/html;".to_owned(), format!("root \"{folder}\";")),
    ] {
        if text.matches(&there).count() != 1 {
            bail!("{SERVER} has no one line {there}");
        }
        text = text.replace(&there, &here);
    }
    Ok(text)
}

/// Requests everything in `dist` from `base`, and checks its caching headers.
fn answers(dist: &Path, base: &str) -> Result<()> {
    let mut tries = 0;
    while head(base, "").is_err() {
        tries += 1;
        if tries == TRIES {
            bail!("{base} does not answer");
        }
        sleep(PAUSE);
    }
    let named = named(dist, None)?;
    let program =
        named.files.iter().find(|file| file.ends_with("_bg.wasm")).context("dist/ has no program")?.clone();
    note(&format!("{} addresses answer", answered(base, named)?));
    for (file, wanted) in [
        ("", ["content-type: text/html", "cache-control: no-cache"]),
        (
            program.as_str(),
            ["content-type: application/wasm", "cache-control: public, max-age=31536000, immutable"],
        ),
    ] {
        let head = head(base, file)?.to_ascii_lowercase();
        for header in wanted.into_iter().chain(["x-content-type-options: nosniff", "permissions-policy: "]) {
            if !head.contains(header) {
                bail!("{file:?} is answered without {header}:\n{head}");
            }
        }
    }
    // A server that falls back to the main page would answer 200 to every name.
    let missing = head(base, "no-such-file")?;
    if missing.split(' ').nth(1) != Some("404") {
        bail!("a file that is not there is answered with {missing}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{DOCKERFILE, SERVER, placed};
    use crate::process::root;
    use std::fs;

    fn read(name: &str) -> String {
        fs::read_to_string(root().join(name)).unwrap()
    }

    /// The arguments of every instruction of a kind.
    fn instructions<'a>(file: &'a str, kind: &str) -> Vec<Vec<&'a str>> {
        let words = file.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        words.filter(|words| words.first() == Some(&kind)).map(|words| words[1..].to_vec()).collect()
    }

    #[test]
    fn what_the_container_is_made_of_is_in_its_context() {
        let file = read(DOCKERFILE);
        let ignore = read(&format!("{DOCKERFILE}.dockerignore"));
        let included: Vec<&str> = ignore.lines().filter_map(|line| line.strip_prefix('!')).collect();
        assert_eq!(ignore.lines().next(), Some("*"), "nothing else is sent to the builder");
        let copies = instructions(&file, "COPY");
        let sources: Vec<&str> = copies.iter().flat_map(|words| &words[..words.len() - 1]).copied().collect();
        assert_eq!(sources, [SERVER, "dist"]);
        let mut sorted = (sources.clone(), included);
        sorted.0.sort_unstable();
        sorted.1.sort_unstable();
        assert_eq!(sorted.0, sorted.1);
        // `dist` is created by the build.
        assert!(root().join(SERVER).is_file());
        assert!(read("Trunk.toml").lines().any(|line| line == "dist = \"dist\""));
        let bases = instructions(&file, "FROM");
        assert_eq!(bases.len(), 1);
        let (_, digest) = bases[0][0].split_once("@sha256:").expect("a base by its digest");
        assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let port = instructions(&file, "EXPOSE");
        assert!(read(SERVER).contains(&format!("listen {};", port[0][0])));
        let [_, folder] = copies[1][..] else { panic!("{copies:?}") };
        assert!(read(SERVER).contains(&format!("root {folder};")));
    }

    #[test]
    fn the_servers_configuration_can_be_put_elsewhere_for_a_check() {
        let there = placed(&read(SERVER), 1234, "/a b").unwrap();
        assert!(there.contains("listen 127.0.0.1:1234;") && there.contains("root \"/a b\";"));
        assert!(placed("server {}", 1, "/").is_err());
    }
}
