//! ROW_FORMAT=COMPRESSED: sizes, and the refusal of what this version cannot read
//! (format-tablespace.md section 16).

use crate::words::{Error, Result};

use super::fsp::SpaceFlags;

/// Largest compressed page in bytes.
pub const ZIP_SIZE_MAX: usize = 16384;
/// Smallest compressed page in bytes.
pub const ZIP_SIZE_MIN: usize = 1024;

/// Refuses tablespaces whose pages are stored compressed.
pub fn check_supported(flags: SpaceFlags) -> Result<()> {
    if flags.zip_size() != 0 {
        return Err(Error::unsupported(format!(
            "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE={}",
            flags.zip_size() / 1024
        )));
    }
    if flags.is_page_compressed() {
        return Err(Error::unsupported("PAGE_COMPRESSED tables"));
    }
    Ok(())
}
