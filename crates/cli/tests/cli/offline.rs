//! The program opens no connection: it has nothing by which it could.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

/// Functions of the C library that open, take or look up a connection. `socketpair`, by which the standard library hears how a child
/// process started, joins two ends within this machine and is none of them.
const CONNECTIONS: [&str; 8] =
    ["socket", "connect", "bind", "listen", "accept", "accept4", "getaddrinfo", "gethostbyname"];

/// Names that a program takes from shared libraries end with a zero in its table of them.
fn takes(program: &[u8], name: &str) -> bool {
    let name = [b"\0", name.as_bytes(), b"\0"].concat();
    program.windows(name.len()).any(|window| window == name)
}

#[test]
fn the_program_takes_no_function_that_opens_a_connection() {
    let program = std::fs::read(env!("CARGO_BIN_EXE_shardscope")).expect("the program");
    // That the table is read at all.
    assert!(takes(&program, "socketpair") && takes(&program, "getcwd"));
    for name in CONNECTIONS {
        assert!(!takes(&program, name), "{name}");
    }
}
