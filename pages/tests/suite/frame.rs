//! The frame of every page.

use pages::{assets, pages};

use crate::page_of;

#[test]
fn every_page_can_be_sealed_and_leads_to_every_other() {
    for page in pages() {
        let html = page_of(page.file);
        assert_eq!(html.matches("INLINE-SCRIPTS").count(), 1, "{}", page.file);
        assert_eq!(html.matches(" style=").count(), 0, "{}: the policy forbids inline styles", page.file);
        for other in pages() {
            assert!(html.contains(&format!("href=\"{}\"", other.file)), "{} to {}", page.file, other.file);
        }
        for script in page.scripts {
            assert!(assets().iter().any(|(name, _)| name == script), "{script}");
        }
    }
}
