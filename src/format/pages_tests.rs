//! Golden tests of pages: each kind, cut from files of a stock server, is taken apart and built
//! again to the same bytes; checksums of all sample files.

use super::blob::{self, BlobPart, BlobRef};
use super::cfg::Cfg;
use super::checksum::{self, Content, Flavour};
use super::dict_header::DictHeader;
use super::fil::{self, FilHeader, PageType};
use super::fsp::{self, Geometry, SpaceFlags, SpaceHeader};
use super::inode::{self, SegmentHeader};
use super::list::{FilAddr, ListBase, ListNode};
use super::tests::{Random, sample};
use super::trx_sys::{self, Doublewrite};
use super::{ibuf, rseg, undo_page, undo_record, xdes};
use crate::words::{PageId, PageNo, RsegId, SegmentId, SpaceId, be};

const SYSTEM_FILES: [&str; 6] = [
    "fresh/ibdata1",
    "fresh/undo001",
    "fresh/undo002",
    "mini/ibdata1",
    "mini/undo001",
    "mini/undo002",
];

const TABLES: [&str; 15] = [
    "handmade/mk",
    "s_blob_compact",
    "s_blob_compressed",
    "s_blob_dynamic",
    "s_blob_redundant",
    "s_compact",
    "s_compressed",
    "s_dynamic",
    "s_instant",
    "s_instant_alter",
    "s_instant_redundant",
    "s_noprimary",
    "s_redundant",
    "s_spatial",
    "s_types",
];

fn files() -> impl Iterator<Item = (String, Vec<u8>)> {
    let tables = TABLES.iter().map(|name| format!("{name}.ibd"));
    let names = SYSTEM_FILES.iter().map(|name| name.to_string());
    let single = names.chain(tables).map(|name| {
        let bytes = sample(&name);
        (name, bytes)
    });
    single.chain(tables_of_archive(&sample("mini/smp.tar")))
}

/// The .ibd files of a tar archive.
fn tables_of_archive(tar: &[u8]) -> Vec<(String, Vec<u8>)> {
    let (mut files, mut at) = (Vec::new(), 0);
    while tar[at] != 0 {
        let text = |from: usize, len: usize| {
            let field = tar[at + from..at + from + len]
                .split(|&byte| byte == 0)
                .next();
            String::from_utf8_lossy(field.expect("split yields something")).into_owned()
        };
        let size = usize::from_str_radix(text(124, 12).trim(), 8).expect("an octal size");
        let name = text(0, 100);
        if name.ends_with(".ibd") {
            files.push((name, tar[at + 512..at + 512 + size].to_vec()));
        }
        at += 512 + size.next_multiple_of(512);
    }
    assert!(files.len() > 20);
    files
}

/// The pages of a file with their ids.
fn pages(file: &[u8]) -> (SpaceFlags, Vec<(PageId, &[u8])>) {
    let flags = SpaceHeader::parse(file).unwrap().flags().unwrap();
    let space = fil::space_id(file);
    let pages = file.chunks_exact(flags.geometry().physical_bytes());
    let ids = (0..).map(|number| PageId::new(space, PageNo(number)));
    (flags, ids.zip(pages).collect())
}

fn is_doublewrite(id: PageId) -> bool {
    id.space == SpaceId::SYSTEM && (64..192).contains(&id.page.0)
}

#[test]
fn every_page_of_the_samples_verifies_and_a_flipped_bit_does_not() {
    let seed = 0x0063_6865_636B;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for (name, file) in files() {
        let (flags, pages) = pages(&file);
        let flavour = flags.flavour();
        let mut written = 0;
        for (id, page) in pages {
            if is_doublewrite(id) {
                assert!(fil::is_all_zero(page) || checksum::verify_bytes(page, flavour).is_ok());
                continue;
            }
            match checksum::verify(page, flavour, id).unwrap_or_else(|e| panic!("{name}: {e}")) {
                Content::NeverWritten => continue,
                Content::Written => written += 1,
            }
            let mut copy = page.to_vec();
            checksum::stamp(&mut copy, flavour);
            assert_eq!(copy, page, "{name} {id}: stamped again");
            for _ in 0..64 {
                let bit = random.below(page.len() * 8);
                let uncovered = match flavour {
                    Flavour::FullCrc32 => false,
                    Flavour::Crc32 => (26..34).contains(&(bit / 8)),
                    Flavour::Zip => (16..24).contains(&(bit / 8)) || (26..34).contains(&(bit / 8)),
                };
                copy[bit / 8] ^= 1 << (bit % 8);
                let verdict = checksum::verify(&copy, flavour, id);
                assert_eq!(verdict.is_err(), !uncovered, "{name} {id} bit {bit}");
                copy[bit / 8] ^= 1 << (bit % 8);
            }
        }
        assert!(written >= 4, "{name}");
    }
}

/// An initialised page of the same id, type and LSN.
fn blank(page: &[u8]) -> Vec<u8> {
    let header = FilHeader::parse(page).unwrap();
    let mut new = vec![0; page.len()];
    fil::init(&mut new, header.id());
    fil::set_lsn(&mut new, fil::lsn(page));
    be::put_u16(&mut new, fil::OFF_TYPE, header.page_type.get());
    new
}

fn is_system(page: &[u8], number: PageNo) -> bool {
    fil::page_id(page) == PageId::new(SpaceId::SYSTEM, number)
}

/// Builds the page again from what the parsers say of it.
fn rebuild(page: &[u8], flags: SpaceFlags, limit: PageNo) -> Option<Vec<u8>> {
    let geometry = flags.geometry();
    let mut new = blank(page);
    match fil::page_type(page) {
        PageType::FSP_HDR | PageType::XDES => rebuild_descriptors(page, &mut new, geometry, limit),
        PageType::INODE => rebuild_inodes(page, &mut new, geometry),
        PageType::IBUF_BITMAP => rebuild_bitmap(page, &mut new, geometry),
        PageType::TRX_SYS => rebuild_trx_sys(page, &mut new, geometry),
        PageType::SYS if is_system(page, super::dict_header::PAGE) => {
            DictHeader::parse(page).unwrap().write(&mut new);
        }
        PageType::SYS if is_system(page, ibuf::HEADER_PAGE) => {
            let segment = SegmentHeader::parse(page, ibuf::OFF_SEGMENT, geometry).unwrap();
            new[ibuf::OFF_SEGMENT..][..10].copy_from_slice(&segment.to_bytes());
        }
        PageType::SYS => rebuild_rseg(page, &mut new, geometry),
        PageType::BLOB => {
            let part = BlobPart::parse(page).unwrap();
            new[blob::PART_HEADER..blob::PART_DATA].copy_from_slice(&part.header_bytes());
            new[blob::PART_DATA..blob::PART_DATA + part.data.len()].copy_from_slice(part.data);
        }
        _ => return None,
    }
    checksum::stamp(&mut new, flags.flavour());
    Some(new)
}

fn rebuild_descriptors(page: &[u8], new: &mut [u8], geometry: Geometry, limit: PageNo) {
    if fil::page_type(page) == PageType::FSP_HDR {
        SpaceHeader::parse(page).unwrap().write(new);
    }
    for extent in 0..geometry.extents_per_descriptor_page() {
        let first = PageNo(fil::page_no(page).0 + extent * geometry.extent_pages());
        let at = geometry.xdes_offset(first);
        assert_eq!(
            geometry.extent_at(geometry.descriptor_page(first), at),
            Some(first)
        );
        let (old, out) = (&page[at..][..geometry.xdes_bytes()], &mut new[at..]);
        let out = &mut out[..geometry.xdes_bytes()];
        let state = xdes::validate(old).unwrap();
        if first >= limit {
            assert_eq!(state, xdes::State::NotInitialised);
            continue;
        }
        xdes::init(out);
        be::put_u64(out, xdes::OFF_SEGMENT, xdes::segment(old).0);
        out[xdes::OFF_NODE..xdes::OFF_STATE].copy_from_slice(&xdes::node(old).unwrap().to_bytes());
        be::put_u32(out, xdes::OFF_STATE, state as u32);
        for index in (0..geometry.extent_pages()).filter(|&index| !xdes::is_free(old, index)) {
            let (at, byte) = xdes::bitmap_byte(out, index, false);
            out[at] = byte;
        }
        assert_eq!(xdes::used_pages(old), xdes::used_pages(out));
        match state {
            xdes::State::Free => assert_eq!(xdes::used_pages(old), 0),
            xdes::State::FullFrag => assert_eq!(xdes::find_free(old, 0), None),
            _ => {}
        }
    }
}

fn rebuild_inodes(page: &[u8], new: &mut [u8], geometry: Geometry) {
    let node = inode::page_node(page).unwrap();
    new[inode::OFF_PAGE_NODE..inode::OFF_SLOTS].copy_from_slice(&node.to_bytes());
    for index in 0..geometry.inodes_per_page() {
        let at = inode::slot_offset(geometry, index);
        let (old, out) = (&page[at..][..geometry.inode_bytes()], &mut new[at..]);
        if inode::segment(old) == SegmentId(0) {
            continue;
        }
        let out = &mut out[..geometry.inode_bytes()];
        inode::init(out, inode::validate(old).unwrap());
        be::put_u32(out, inode::OFF_NOT_FULL_N_USED, inode::not_full_n_used(old));
        for which in [inode::OFF_FREE, inode::OFF_NOT_FULL, inode::OFF_FULL] {
            out[which..which + 16].copy_from_slice(&inode::list(old, which).unwrap().to_bytes());
        }
        for index in 0..geometry.fragment_slots() {
            if let Some(fragment) = inode::fragment(old, index) {
                be::put_u32(out, inode::fragment_offset(index), fragment.0);
            }
        }
        assert!(inode::fragments(old).eq(inode::fragments(out)));
    }
}

fn rebuild_bitmap(page: &[u8], new: &mut [u8], geometry: Geometry) {
    for index in 0..geometry.descriptor_interval() {
        let number = PageNo(fil::page_no(page).0 - 1 + index);
        let bits = ibuf::bits(page, geometry, number);
        let (at, byte) = ibuf::bits_byte(new, geometry, number, bits);
        new[at] = byte;
    }
}

fn rebuild_trx_sys(page: &[u8], new: &mut [u8], geometry: Geometry) {
    let segment = SegmentHeader::parse(page, trx_sys::OFF_SEGMENT, geometry).unwrap();
    trx_sys::init(new, segment);
    for slot in trx_sys::slots(page) {
        let (rseg, header) = slot.unwrap();
        let at = trx_sys::slot_offset(rseg);
        new[at..at + 8].copy_from_slice(&trx_sys::slot_bytes(Some(header)));
    }
    let doublewrite = Doublewrite::parse(page, geometry).unwrap().unwrap();
    assert_eq!(doublewrite.blocks, [PageNo(64), PageNo(128)]);
    let at = page.len() - trx_sys::DOUBLEWRITE_FROM_END;
    new[at..at + trx_sys::DOUBLEWRITE_BYTES].copy_from_slice(&doublewrite.to_bytes());
    let system = PageId::new(SpaceId::SYSTEM, PageNo(6));
    assert_eq!(trx_sys::slot(page, RsegId(0)), Ok(Some(system)));
}

fn rebuild_rseg(page: &[u8], new: &mut [u8], geometry: Geometry) {
    rseg::check_format(page).unwrap();
    rseg::init(
        new,
        SegmentHeader::parse(page, rseg::OFF_SEGMENT, geometry).unwrap(),
    );
    be::put_u32(new, rseg::OFF_HISTORY_SIZE, rseg::history_size(page));
    let history = rseg::history(page).unwrap().to_bytes();
    new[rseg::OFF_HISTORY..rseg::OFF_SEGMENT].copy_from_slice(&history);
    for (index, first) in rseg::slots(page) {
        be::put_u32(new, rseg::slot_offset(index), first.0);
    }
    be::put_u64(
        new,
        rseg::off_max_trx_id(page.len()),
        rseg::max_trx_id(page).0,
    );
    assert_eq!(rseg::binlog_position(page), None);
    assert!(rseg::free_slot(page).is_some());
}

#[test]
fn pages_of_every_kind_are_built_again_to_the_same_bytes() {
    let mut kinds = std::collections::BTreeMap::new();
    for (name, file) in files() {
        let (flags, pages) = pages(&file);
        let limit = SpaceHeader::parse(&file).unwrap().free_limit();
        for (id, page) in pages {
            // Freed pages keep what they held; compressed files have no 16 KiB pages.
            let zip = flags.flavour() == Flavour::Zip;
            if fil::is_all_zero(page) || is_doublewrite(id) || zip || is_free(&file, flags, id) {
                continue;
            }
            let kind = fil::page_type(page);
            if let Some(new) = rebuild(page, flags, limit) {
                let differs = new.iter().zip(page).position(|(a, b)| a != b);
                assert_eq!(differs, None, "{name} {id} {kind:?}");
            }
            *kinds.entry(format!("{kind:?}")).or_insert(0) += 1;
        }
    }
    println!("{kinds:?}");
    for kind in [
        PageType::FSP_HDR,
        PageType::INODE,
        PageType::TRX_SYS,
        PageType::SYS,
    ] {
        assert!(kinds.contains_key(kind.name().unwrap()));
    }
    assert!(kinds["BLOB"] > 40 && kinds["UNDO_LOG"] >= 10);
}

fn is_free(file: &[u8], flags: SpaceFlags, id: PageId) -> bool {
    let geometry = flags.geometry();
    let descriptors = geometry.descriptor_page(id.page).0 as usize * geometry.physical_bytes();
    let at = descriptors + geometry.xdes_offset(id.page);
    xdes::is_free(
        &file[at..][..geometry.xdes_bytes()],
        id.page.0 % geometry.extent_pages(),
    )
}

#[test]
fn addresses_and_references_are_those_of_the_reference() {
    let reference = [
        0, 0, 0, 9, 0, 0, 0, 0x14, 0, 0, 0, 0x26, 0, 0, 0, 0, 0, 0, 0x3A, 0x98,
    ];
    let first = PageId::new(SpaceId(9), PageNo(20));
    let parsed = BlobRef::of_local_part(&reference).unwrap();
    assert_eq!(parsed, BlobRef::new(first, 15000));
    assert_eq!(parsed.to_bytes(), reference);
    assert_eq!(
        (parsed.page(), parsed.len_bytes(), parsed.offset()),
        (first, 15000, 38)
    );
    let lent = parsed.with_owner(false).with_inherited(true);
    assert_eq!(lent.to_bytes()[blob::REF_FLAGS], 0xC0);
    assert!(!lent.is_owner() && lent.is_inherited() && lent.len_bytes() == 15000);
    assert!(BlobRef::of_local_part(&reference[1..]).is_err());

    assert_eq!(FilAddr::NONE.to_bytes(), [0xFF, 0xFF, 0xFF, 0xFF, 0, 0]);
    let one = ListBase::new(
        1,
        FilAddr::new(PageNo(0), 158),
        FilAddr::new(PageNo(0), 158),
    );
    assert_eq!(
        one.to_bytes(),
        [0, 0, 0, 1, 0, 0, 0, 0, 0, 158, 0, 0, 0, 0, 0, 158]
    );
    assert_eq!(ListBase::parse(&one.to_bytes(), 0), Ok(one));
    let mut torn = one.to_bytes();
    torn[3] = 0;
    assert!(ListBase::parse(&torn, 0).is_err());
    assert!(ListNode::parse(&torn, 5).is_err());
}

#[test]
fn export_files_are_read_and_written_as_the_same_bytes() {
    for table in TABLES {
        let bytes = sample(&format!("{table}.cfg"));
        let cfg = Cfg::parse(&bytes).unwrap();
        assert_eq!(cfg.to_bytes(), bytes, "{table}");
        assert!(cfg.table.ends_with(table.rsplit('/').next().unwrap()));
        for cut in 0..bytes.len() {
            assert!(Cfg::parse(&bytes[..cut]).is_err());
        }
    }
    let noprimary = Cfg::parse(&sample("s_noprimary.cfg")).unwrap();
    assert!(
        noprimary.indexes[1]
            .fields
            .iter()
            .any(|field| field.is_descending())
    );
}

/// A row id of eight bytes 0xFF ended the start with an overflow.
#[test]
fn a_dictionary_header_whose_counters_are_at_their_end_is_refused() {
    let system = sample("mini/ibdata1");
    let page = &system[7 * 16384..][..16384];
    DictHeader::parse(page).expect("a stock header");
    for (offset, len) in [(38, 8), (46, 8), (54, 8), (62, 4)] {
        let mut page = page.to_vec();
        page[offset..offset + len].fill(0xFF);
        assert!(DictHeader::parse(&page).is_err(), "offset {offset}");
    }
}

/// Everything that reads a page, on bytes that may be anything.
fn parse_all(page: &[u8], at: usize) {
    let geometry = Geometry::of_page_size(page.len());
    let _ = FilHeader::parse(page);
    let _ = SpaceHeader::parse(page);
    for flavour in [Flavour::FullCrc32, Flavour::Crc32, Flavour::Zip] {
        let _ = checksum::verify(page, flavour, fil::page_id(page));
    }
    for extent in 0..geometry.extents_per_descriptor_page() {
        let offset = geometry.xdes_offset(PageNo(extent * geometry.extent_pages()));
        let entry = &page[offset..][..geometry.xdes_bytes()];
        let _ = (
            xdes::validate(entry),
            xdes::node(entry),
            xdes::find_free(entry, at as u32),
        );
    }
    for index in 0..geometry.inodes_per_page() {
        let slot = &page[inode::slot_offset(geometry, index)..][..geometry.inode_bytes()];
        let _ = (inode::validate(slot), inode::list(slot, inode::OFF_FULL));
        let _ = inode::fragments(slot).count();
    }
    let _ = trx_sys::slots(page).count();
    let _ = Doublewrite::parse(page, geometry);
    let _ = DictHeader::parse(page);
    let _ = (
        rseg::history(page),
        rseg::slots(page).count(),
        rseg::binlog_position(page),
    );
    let _ = (
        undo_page::state(page),
        undo_page::free(page),
        undo_page::last_log(page),
    );
    if let Ok(log) = undo_page::LogHeader::parse(page, at) {
        let _ = log.xid().map(|xid| (xid.gtrid().len(), xid.bqual().len()));
        let _ = log.end(page);
    }
    for body in undo_record::bodies(page, at, page.len()) {
        let _ = body.and_then(|(_, body)| undo_record::UndoRecord::parse(body));
    }
    let _ = undo_record::previous(page, 56, at);
    let _ = BlobPart::parse(page);
    let _ = BlobRef::of_local_part(&page[at..]);
    let _ = SegmentHeader::parse(page, at, geometry);
    let _ = ListBase::parse(page, at);
    let _ = ibuf::Entry::parse([&page[at..], &page[..1], &page[4..8], &page[8..at.max(8)]]);
    let _ = Cfg::parse(&page[at..]);
}

#[test]
fn random_bytes_never_panic_the_page_parsers() {
    let seed = 0x7061_6765;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let stock: Vec<_> = ["mini/ibdata1", "mini/undo002"].map(sample).to_vec();
    let mut page = vec![0u8; 16384];
    for round in 0..600 {
        if round % 4 == 0 {
            random.fill(&mut page);
        } else {
            let file = &stock[random.below(2)];
            let number = random.below(80);
            page.copy_from_slice(&file[number * 16384..][..16384]);
            for _ in 0..random.below(40) {
                // Mostly in the headers, where offsets stand.
                let at = if random.below(2) == 0 {
                    random.below(400)
                } else {
                    random.below(16384)
                };
                page[at] = random.next() as u8;
            }
        }
        let at = if random.below(2) == 0 {
            undo_page::FIRST_LOG
        } else {
            random.below(16384)
        };
        parse_all(&page, at);
    }
    for _ in 0..20_000 {
        let raw = random.next() as u32 >> random.below(32);
        if let Ok(flags) = SpaceFlags::parse(raw) {
            let geometry = flags.geometry();
            assert!(geometry.extent_at(PageNo(0), fsp::XDES_ARRAY).is_some());
            assert!(geometry.inodes_per_page() > 0 && geometry.logical_bytes() >= 4096);
        }
        let _ = fsp::TableFlags::parse(raw);
    }
}
