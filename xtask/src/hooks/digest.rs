//! Digests in the form used by browsers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// `sha256-` and base64 of the digest, as used in policies and `integrity`.
pub(super) fn sha256(bytes: &[u8]) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(bytes)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn digests_are_those_of_the_standard() {
        // FIPS 180-2, appendix B.1: SHA-256 of "abc"
        assert_eq!(super::sha256(b"abc"), "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    }
}
