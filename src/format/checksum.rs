//! Page checksums (format-tablespace.md section 2).
//!
//! Which flavour a file uses depends on its FSP_SPACE_FLAGS alone: `SpaceFlags::flavour`.
//! Pages are written in their flavour; on read, the forms that older servers left in crc32 files
//! are accepted too, as the stock server does in its default setting. One form is refused though
//! stock takes it: field 0 zero together with the LSN repeated at the end (before MySQL 4.0.14),
//! since it holds no checksum at all.

use crate::words::{Error, PageId, Result, be};

use super::fil;

/// How the pages of a file are checksummed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flavour {
    /// CRC-32C over all but the last 4 bytes, stored there.
    FullCrc32,
    /// CRC-32C over the page without checksums, bytes 26..38 and trailer; at 0 and at P-8.
    Crc32,
    /// ROW_FORMAT=COMPRESSED: CRC-32C of three ranges, at 0; no trailer.
    Zip,
}

/// What [`verify`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// A page that carries its own number, tablespace and checksum.
    Written,
    /// All bytes zero: valid anywhere, never written since the file grew.
    NeverWritten,
}

/// "No checksum was computed" (innodb_checksum_algorithm=none of old servers).
const NO_CHECKSUM: u32 = 0xDEAD_BEEF;

/// Checks that `page` (a whole physical page) is the page `id` and undamaged.
///
/// Errors: `Error::Corrupt` naming `id` and what does not match. Bytes 26..34 are outside the
/// crc32 and zip checksums, and the LSN outside the zip one: damage there is not seen.
pub fn verify(page: &[u8], flavour: Flavour, id: PageId) -> Result<Content> {
    if let Err(why) = verify_bytes(page, flavour) {
        if fil::is_all_zero(page) {
            return Ok(Content::NeverWritten);
        }
        return Err(Error::corrupt(id, why));
    }
    let found = fil::page_id(page);
    if found != id {
        return Err(Error::corrupt(id, format!("the page claims to be {found}")));
    }
    Ok(Content::Written)
}

/// Checks the checksum alone; an all-zero page fails. For pages whose place does not tell their
/// number: doublewrite slots, page 0 of a file not yet known.
pub fn verify_bytes(page: &[u8], flavour: Flavour) -> Result<(), Box<str>> {
    if page.len() < 1024 || page.len() > crate::words::limits::PAGE_SIZE_MAX {
        return Err(format!("a page of {} bytes", page.len()).into());
    }
    match flavour {
        Flavour::FullCrc32 => verify_full_crc32(page),
        Flavour::Crc32 => verify_crc32(page),
        Flavour::Zip => verify_zip(page),
    }
}

/// Repeats the page LSN in the trailer and writes the checksum. The last step before a page is
/// written; the bytes change nowhere else. Panics if `page` is shorter than 1 KiB.
pub fn stamp(page: &mut [u8], flavour: Flavour) {
    let n = page.len();
    assert!(n >= 1024, "a whole page");
    let lsn_low = be::u32_at(page, fil::OFF_LSN + 4);
    match flavour {
        Flavour::FullCrc32 => {
            be::put_u32(page, n - 8, lsn_low);
            let crc = crc32c::crc32c(&page[..n - 4]);
            be::put_u32(page, n - 4, crc);
        }
        Flavour::Crc32 => {
            be::put_u32(page, n - 4, lsn_low);
            let crc = crc32_of(page);
            be::put_u32(page, 0, crc);
            be::put_u32(page, n - 8, crc);
        }
        Flavour::Zip => {
            let crc = zip_crc32_of(page);
            be::put_u32(page, 0, crc);
        }
    }
}

fn verify_full_crc32(page: &[u8]) -> Result<(), Box<str>> {
    let stored = match fil::page_type(page).full_crc32_stored_bytes() {
        None => page.len(),
        Some(n) if (64..page.len()).contains(&n) => n,
        Some(n) => return Err(format!("a compressed page of {n} bytes").into()),
    };
    compare(
        crc32c::crc32c(&page[..stored - 4]),
        be::u32_at(page, stored - 4),
    )?;
    let key_version = be::u32_at(page, 0);
    if stored == page.len()
        && key_version == 0
        && be::u32_at(page, 20) != be::u32_at(page, page.len() - 8)
    {
        return Err("the LSN differs between header and trailer".into());
    }
    Ok(())
}

fn verify_crc32(page: &[u8]) -> Result<(), Box<str>> {
    let n = page.len();
    if be::u32_at(page, 20) != be::u32_at(page, n - 4) {
        return Err("the LSN differs between header and trailer".into());
    }
    let (head, tail) = (be::u32_at(page, 0), be::u32_at(page, n - 8));
    let crc = crc32_of(page);
    if head == crc && tail == crc || head == NO_CHECKSUM && tail == NO_CHECKSUM {
        return Ok(());
    }
    verify_legacy(page, crc, head, tail)
}

/// Both fields must hold a form that some server wrote, and one of them a real checksum.
#[cold]
fn verify_legacy(page: &[u8], crc: u32, head: u32, tail: u32) -> Result<(), Box<str>> {
    let head_real = head == crc || head == fold_new(page);
    let tail_real = tail == crc || tail == fold_old(page);
    let head_empty = head == 0 || head == NO_CHECKSUM;
    let tail_empty = tail == be::u32_at(page, fil::OFF_LSN) || tail == NO_CHECKSUM;
    if head_real && (tail_real || tail_empty) || tail_real && head_empty {
        return Ok(());
    }
    Err(format!("checksum {crc:#010x}, stored are {head:#010x} and {tail:#010x}").into())
}

fn verify_zip(page: &[u8]) -> Result<(), Box<str>> {
    let stored = be::u32_at(page, 0);
    let crc = zip_crc32_of(page);
    // The Adler-32 of a page of zeros is 0: such a page was never written, it holds no checksum.
    if stored == crc || stored == NO_CHECKSUM || stored != 0 && stored == zip_adler32_of(page) {
        return Ok(());
    }
    compare(crc, stored)
}

fn compare(computed: u32, stored: u32) -> Result<(), Box<str>> {
    if computed == stored {
        return Ok(());
    }
    Err(format!("checksum {computed:#010x}, stored is {stored:#010x}").into())
}

fn crc32_of(page: &[u8]) -> u32 {
    crc32c::crc32c(&page[4..26]) ^ crc32c::crc32c(&page[38..page.len() - 8])
}

fn zip_crc32_of(page: &[u8]) -> u32 {
    crc32c::crc32c(&page[4..16]) ^ crc32c::crc32c(&page[24..26]) ^ crc32c::crc32c(&page[34..])
}

/// Adler-32 over the same ranges, started with 0 instead of 1.
fn zip_adler32_of(page: &[u8]) -> u32 {
    let (mut a, mut b) = (0u32, 0u32);
    for &byte in page[4..16].iter().chain(&page[24..26]).chain(&page[34..]) {
        a = (a + u32::from(byte)) % 65521;
        b = (b + a) % 65521;
    }
    b << 16 | a
}

/// The checksum of servers before CRC-32C, in field 0.
fn fold_new(page: &[u8]) -> u32 {
    fold(&page[4..26]).wrapping_add(fold(&page[38..page.len() - 8]))
}

/// The checksum of servers before 4.0.14, at P-8. It covers field 0.
fn fold_old(page: &[u8]) -> u32 {
    fold(&page[..26])
}

fn fold(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0u32, |sum, &byte| {
        let n = u32::from(byte);
        ((sum ^ n ^ 1_653_893_711).wrapping_shl(8).wrapping_add(sum) ^ 1_463_735_687)
            .wrapping_add(n)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::{Lsn, PageNo, SpaceId};

    fn page_of(n: usize, id: PageId) -> Vec<u8> {
        let mut page = vec![0u8; n];
        fil::init(&mut page, id);
        fil::set_lsn(&mut page, Lsn(0x1_2345_6789));
        page[26..34].fill(0);
        for (i, byte) in page[100..n - 8].iter_mut().enumerate() {
            *byte = (i * 7) as u8;
        }
        page
    }

    const ID: PageId = PageId::new(SpaceId(5), PageNo(77));

    #[test]
    fn a_stamped_page_verifies_and_any_covered_flipped_bit_is_seen() {
        for flavour in [Flavour::FullCrc32, Flavour::Crc32, Flavour::Zip] {
            let mut page = page_of(4096, ID);
            stamp(&mut page, flavour);
            assert_eq!(
                verify(&page, flavour, ID),
                Ok(Content::Written),
                "{flavour:?}"
            );
            for bit in 0..page.len() * 8 {
                let at = bit / 8;
                let covered = match flavour {
                    Flavour::FullCrc32 => true,
                    Flavour::Crc32 => !(26..34).contains(&at),
                    Flavour::Zip => !(16..24).contains(&at) && !(26..34).contains(&at),
                };
                page[at] ^= 1 << (bit % 8);
                // The high word of the LSN stands nowhere else in the crc32 flavour's trailer, but
                // it is inside the sum.
                assert_eq!(
                    verify(&page, flavour, ID).is_err(),
                    covered,
                    "{flavour:?} bit {bit}"
                );
                page[at] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn a_misplaced_page_is_refused_and_an_empty_one_accepted() {
        let mut page = page_of(16384, ID);
        stamp(&mut page, Flavour::FullCrc32);
        let other = PageId::new(SpaceId(5), PageNo(78));
        assert!(verify(&page, Flavour::FullCrc32, other).is_err());
        assert_eq!(
            verify(&[0; 16384], Flavour::FullCrc32, other),
            Ok(Content::NeverWritten)
        );
        assert!(verify_bytes(&[0; 16384], Flavour::FullCrc32).is_err());
    }

    #[test]
    fn checksums_of_old_servers_are_read_but_no_checksum_at_all_is_not() {
        let mut page = page_of(16384, ID);
        let low = be::u32_at(&page, 20);
        be::put_u32(&mut page, 16384 - 4, low);
        let new = fold_new(&page);
        be::put_u32(&mut page, 0, new);
        let old = fold_old(&page);
        be::put_u32(&mut page, 16384 - 8, old);
        assert_eq!(verify(&page, Flavour::Crc32, ID), Ok(Content::Written));
        page[5000] ^= 1;
        assert!(verify(&page, Flavour::Crc32, ID).is_err());
        be::put_u32(&mut page, 0, 0);
        let high = be::u32_at(&page, 16);
        be::put_u32(&mut page, 16384 - 8, high);
        assert!(verify(&page, Flavour::Crc32, ID).is_err());
        be::put_u32(&mut page, 0, NO_CHECKSUM);
        be::put_u32(&mut page, 16384 - 8, NO_CHECKSUM);
        assert_eq!(verify(&page, Flavour::Crc32, ID), Ok(Content::Written));
    }
}
