//! The program opens no connection: it has no means to.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use object::Object as _;
use std::collections::BTreeSet;

/// C library functions that open, accept or look up a connection. `socketpair`, which the standard library uses to
/// learn how a child process started, connects two ends within this machine and is not among them.
const CONNECTIONS: [&str; 8] =
    ["socket", "connect", "bind", "listen", "accept", "accept4", "getaddrinfo", "gethostbyname"];

/// Names of functions that `program` takes from shared libraries. Debug information names others, which it never calls.
fn taken(program: &[u8]) -> BTreeSet<String> {
    let file = object::File::parse(program).expect("a program of this system");
    let imports = file.imports().expect("a table of imports");
    imports.iter().map(|import| String::from_utf8_lossy(import.name()).into_owned()).collect()
}

#[test]
fn the_program_takes_no_function_that_opens_a_connection() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_shardscope")).expect("the program");
    let taken = taken(&program);
    // That the table is read at all.
    assert!(taken.contains("socketpair") && taken.contains("getcwd"), "{taken:?}");
    for name in CONNECTIONS {
        assert!(!taken.contains(name), "{name}");
    }
}
