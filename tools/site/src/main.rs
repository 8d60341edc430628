//! `site FOLDER [PORT]`: serves FOLDER on 127.0.0.1, at PORT or the next free one, and says where.
use std::env;
use std::process::ExitCode;

use site::{Server, Site};

const DEFAULT_PORT: u16 = 8080;
/// Ports tried from the wanted one on.
const TRIES: u16 = 50;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("error: {what}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), String> {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().ok_or("usage: site FOLDER [PORT]")?;
    let port = match arguments.next() {
        Some(text) => text.parse().map_err(|_| format!("{text} is not a port"))?,
        None => DEFAULT_PORT,
    };
    let site = Site { folder: folder.into(), path: "/".to_owned(), cross_origin: false };
    if !site.folder.join("index.html").is_file() {
        return Err(format!("there is no index.html in {}", site.folder.display()));
    }
    let server = Server::bind(site, port, TRIES).map_err(|e| e.to_string())?;
    println!("\n    Shardscope is at  {}   (Ctrl-C stops it)\n", server.url());
    server.run().map_err(|e| e.to_string())
}
