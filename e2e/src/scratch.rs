//! A directory for one browser, with its profile, its temporary files and its downloads; or for one test.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs, process, thread};

/// Created empty, removed with its contents when dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates it in the system's temporary directory.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // a short name: Chromium puts a socket below it, whose full path is limited to about 100 characters
        let name = format!("ss-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder for temporary files");
        Self(folder)
    }

    /// Ids of the processes whose command line contains this directory.
    fn processes(&self) -> Vec<String> {
        let list = Command::new("ps").args(["-A", "-ww", "-o", "pid=,args="]).output();
        let text = list.map(|list| String::from_utf8_lossy(&list.stdout).into_owned()).unwrap_or_default();
        let folder = format!("{}/", self.0.display());
        let ours = text.lines().filter(|line| line.contains(&folder));
        ours.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // a browser that hangs outlives its driver; everything that was started from here names the directory
        for process in self.processes() {
            drop(Command::new("kill").args(["-KILL", &process]).stderr(Stdio::null()).status());
        }
        // a browser on its way out may still write
        for _ in 0..20 {
            if fs::remove_dir_all(&self.0).is_ok() {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}
