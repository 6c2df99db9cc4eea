//! Export metadata files, `t.cfg` (format-tablespace.md section 24).
//!
//! Written beside the `.ibd` by FLUSH TABLES … FOR EXPORT. Not covered by a checksum: everything
//! read is checked against what can be, and against the table by IMPORT.

use crate::words::{Error, IndexId, PageNo, Result, SpaceId, be};

/// The only version of the format.
pub const VERSION: u32 = 1;
/// Most columns that a file may list: 1017 and three system columns.
const COLUMNS_MAX: u32 = 1017 + 3;
const INDEXES_MAX: u32 = 1024;
const FIELDS_MAX: u32 = 1023 + 1;
const NAME_BYTES_MAX: usize = 1024;

/// Content of a .cfg file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cfg {
    /// The server's host name.
    pub host: String,
    /// "db/table".
    pub table: String,
    /// Next AUTO_INCREMENT value.
    pub autoinc: u64,
    /// Page size in bytes.
    pub page_size: u32,
    /// SYS_TABLES.TYPE with bit 0 = not REDUNDANT.
    pub table_flags: u32,
    /// Stored columns, then DB_ROW_ID, DB_TRX_ID, DB_ROLL_PTR.
    pub columns: Vec<CfgColumn>,
    /// Indexes, the clustered one first.
    pub indexes: Vec<CfgIndex>,
}

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CfgColumn {
    /// Precise type.
    pub prtype: u32,
    /// Main type.
    pub mtype: u32,
    /// Length in bytes.
    pub len: u32,
    /// mbmaxlen * 5 + mbminlen of the character set.
    pub mb_len: u32,
    /// Position among the columns.
    pub ordinal: u32,
    /// 1 if an index is ordered by it.
    pub ord_part: u32,
    /// Largest prefix in an index in bytes, 0 if none or a full column.
    pub max_prefix: u32,
    /// Its name.
    pub name: String,
}

/// An index with all its physical fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CfgIndex {
    /// Its id in the exporting instance.
    pub id: IndexId,
    /// The tablespace in the exporting instance.
    pub space: SpaceId,
    /// Root page.
    pub root: PageNo,
    /// SYS_INDEXES.TYPE.
    pub kind: u32,
    /// Bytes before DB_TRX_ID if all key fields are fixed and unprefixed, else 0.
    pub trx_id_offset: u32,
    /// Fields that the user named.
    pub n_user: u32,
    /// Fields that determine an entry.
    pub n_uniq: u32,
    /// Nullable fields.
    pub n_nullable: u32,
    /// Its name.
    pub name: String,
    /// All physical fields in order.
    pub fields: Vec<CfgField>,
}

/// A field of an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CfgField {
    /// Prefix in bytes, 0 for the full column.
    pub prefix_len: u32,
    /// Fixed length in bytes, 0 if variable; bit 31 = descending.
    pub fixed_len: u32,
    /// Name of the column, empty for a dropped one.
    pub name: String,
}

impl Cfg {
    /// Reads a whole file.
    pub fn parse(bytes: &[u8]) -> Result<Cfg> {
        let mut reader = Reader { bytes, at: 0 };
        let version = reader.u32()?;
        if version != VERSION {
            return Err(Error::unsupported(format!(
                "a .cfg file of version {version}"
            )));
        }
        let (host, table) = (reader.string()?, reader.string()?);
        let autoinc = u64::from(reader.u32()?) << 32 | u64::from(reader.u32()?);
        let (page_size, table_flags) = (reader.u32()?, reader.u32()?);
        let n_columns = reader.count(COLUMNS_MAX)?;
        let columns = (0..n_columns)
            .map(|_| reader.column())
            .collect::<Result<_>>()?;
        let n_indexes = reader.count(INDEXES_MAX)?;
        let indexes = (0..n_indexes)
            .map(|_| reader.index())
            .collect::<Result<_>>()?;
        if reader.at != bytes.len() {
            return Err(bad("it is longer than its content"));
        }
        Ok(Cfg {
            host,
            table,
            autoinc,
            page_size,
            table_flags,
            columns,
            indexes,
        })
    }

    /// The whole file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, VERSION);
        put_string(&mut out, &self.host);
        put_string(&mut out, &self.table);
        out.extend_from_slice(&self.autoinc.to_be_bytes());
        for n in [self.page_size, self.table_flags, self.columns.len() as u32] {
            put(&mut out, n);
        }
        for c in &self.columns {
            let numbers = [
                c.prtype,
                c.mtype,
                c.len,
                c.mb_len,
                c.ordinal,
                c.ord_part,
                c.max_prefix,
            ];
            numbers.into_iter().for_each(|n| put(&mut out, n));
            put_string(&mut out, &c.name);
        }
        put(&mut out, self.indexes.len() as u32);
        for i in &self.indexes {
            out.extend_from_slice(&i.id.0.to_be_bytes());
            let numbers = [
                i.space.0,
                i.root.0,
                i.kind,
                i.trx_id_offset,
                i.n_user,
                i.n_uniq,
            ];
            numbers.into_iter().for_each(|n| put(&mut out, n));
            put(&mut out, i.n_nullable);
            put(&mut out, i.fields.len() as u32);
            put_string(&mut out, &i.name);
            for f in &i.fields {
                put(&mut out, f.prefix_len);
                put(&mut out, f.fixed_len);
                put_string(&mut out, &f.name);
            }
        }
        out
    }
}

impl CfgField {
    /// True if the field is in descending order.
    pub fn is_descending(&self) -> bool {
        self.fixed_len >> 31 == 1
    }
}

fn put(out: &mut Vec<u8>, n: u32) {
    out.extend_from_slice(&n.to_be_bytes());
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u32 + 1);
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn u32(&mut self) -> Result<u32> {
        let n = be::try_u32_at(self.bytes, self.at).ok_or_else(|| bad("it ends early"))?;
        self.at += 4;
        Ok(n)
    }

    fn count(&mut self, max: u32) -> Result<u32> {
        self.u32().and_then(|n| {
            if n <= max {
                Ok(n)
            } else {
                Err(bad("a count is too large"))
            }
        })
    }

    fn string(&mut self) -> Result<String> {
        let len = self.u32()? as usize;
        let raw = self.bytes.get(self.at..self.at.saturating_add(len));
        let text = match raw.and_then(<[u8]>::split_last) {
            Some((0, text)) if len <= NAME_BYTES_MAX && !text.contains(&0) => text,
            _ => return Err(bad("a name is too long or not terminated")),
        };
        self.at += len;
        let text = std::str::from_utf8(text).map_err(|_| bad("a name is not UTF-8"))?;
        Ok(text.to_owned())
    }

    fn column(&mut self) -> Result<CfgColumn> {
        Ok(CfgColumn {
            prtype: self.u32()?,
            mtype: self.u32()?,
            len: self.u32()?,
            mb_len: self.u32()?,
            ordinal: self.u32()?,
            ord_part: self.u32()?,
            max_prefix: self.u32()?,
            name: self.string()?,
        })
    }

    fn index(&mut self) -> Result<CfgIndex> {
        let id = IndexId(u64::from(self.u32()?) << 32 | u64::from(self.u32()?));
        let (space, root) = (SpaceId(self.u32()?), PageNo(self.u32()?));
        let (kind, trx_id_offset) = (self.u32()?, self.u32()?);
        let (n_user, n_uniq, n_nullable) = (self.u32()?, self.u32()?, self.u32()?);
        let n_fields = self.count(FIELDS_MAX)?;
        let name = self.string()?;
        let fields = (0..n_fields)
            .map(|_| self.field())
            .collect::<Result<Vec<_>>>()?;
        if n_user > n_fields || n_uniq > n_fields || n_nullable > n_fields {
            return Err(bad("an index has fewer fields than it counts"));
        }
        Ok(CfgIndex {
            id,
            space,
            root,
            kind,
            trx_id_offset,
            n_user,
            n_uniq,
            n_nullable,
            name,
            fields,
        })
    }

    fn field(&mut self) -> Result<CfgField> {
        Ok(CfgField {
            prefix_len: self.u32()?,
            fixed_len: self.u32()?,
            name: self.string()?,
        })
    }
}

#[cold]
fn bad(why: &str) -> Error {
    Error::corrupt_bytes(format!(".cfg file: {why}"))
}
