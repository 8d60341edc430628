//! The first line of an HTTP request and whether its sender takes brotli; the rest is read and ignored.
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

/// Bytes of a request's head that are read at most.
const HEAD_LIMIT: u64 = 64 * 1024;

pub(crate) struct Request {
    pub(crate) method: String,
    /// Percent-decoded, without query.
    pub(crate) path: String,
    /// Whether the answer may be compressed by brotli.
    pub(crate) brotli: bool,
}

pub(crate) fn read(stream: impl Read) -> io::Result<Request> {
    let mut lines = BufReader::new(stream.take(HEAD_LIMIT)).lines();
    let first = lines.next().unwrap_or(Err(ErrorKind::UnexpectedEof.into()))?;
    let mut brotli = false;
    for line in lines {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        brotli |= line.starts_with("accept-encoding:") && line.contains("br");
    }
    let mut words = first.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(ErrorKind::InvalidData.into());
    };
    let path = target.split(['?', '#']).next().unwrap_or_default();
    Ok(Request { method: method.to_owned(), path: decode(path).ok_or(ErrorKind::InvalidData)?, brotli })
}

fn decode(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes().iter();
    while let Some(&byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex(*rest.next()?)? << 4 | hex(*rest.next()?)?,
            plain => plain,
        });
    }
    String::from_utf8(bytes).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|d| u8::try_from(d).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_are_undone_and_broken_ones_refused() {
        assert_eq!(decode("/a%20b/%C3%A9").as_deref(), Some("/a b/é"));
        assert_eq!(decode("/%2"), None);
        assert_eq!(decode("/%FF"), None);
    }

    #[test]
    fn the_query_is_not_part_of_the_path() {
        let request = read(&b"GET /x?y=1 HTTP/1.1\r\nHost: here\r\n\r\n"[..]).unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/x"));
    }
}
