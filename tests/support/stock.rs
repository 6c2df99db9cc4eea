//! The oracle: a stock MariaDB server on a scratch directory, without network and privileges.
//!
//! It opens what the engine wrote (and the reverse), checks it and prints its rows. A server that stands
//! on the machine already is never touched.

use super::run_ok;
use super::samples;
use super::scratch::Scratch;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const READY_WITHIN: Duration = Duration::from_secs(90);
const STOPPED_WITHIN: Duration = Duration::from_secs(120);

/// A running stock server. Dropped, it is killed.
pub struct Stock {
    child: Child,
    /// Socket, log and temporary files, outside the data directory.
    scratch: Scratch,
}

impl Stock {
    /// Opens `datadir` (an empty one becomes a new data directory). Panics with the server's log when it
    /// does not come up. `options` are mariadbd's, for instance `--innodb-undo-tablespaces=2`.
    pub fn start(datadir: &Path, options: &[&str]) -> Stock {
        Stock::try_start(datadir, options)
            .unwrap_or_else(|log| panic!("the stock server did not start:\n{log}"))
    }

    /// Like [`Stock::start`]; the server's log when it does not come up.
    pub fn try_start(datadir: &Path, options: &[&str]) -> Result<Stock, String> {
        let scratch = Scratch::new("stock");
        let log = scratch.path().join("err.log");
        let mut command = Command::new("mariadbd");
        command.arg("--no-defaults");
        if runs_as_root() {
            command.arg("--user=root");
        }
        command
            .arg(with_path("--datadir=", datadir))
            .arg(with_path("--socket=", &scratch.path().join("s")))
            .arg(with_path("--pid-file=", &scratch.path().join("pid")))
            .arg(with_path("--log-error=", &log))
            .arg(with_path("--tmpdir=", &scratch.dir("tmp")))
            .args([
                "--skip-networking",
                "--skip-grant-tables",
                "--open-files-limit=4096",
            ])
            .args([
                "--innodb-buffer-pool-size=24M",
                "--innodb-log-file-size=8M",
                "--innodb-stats-persistent=0",
            ])
            .args([
                "--sql-mode=NO_ENGINE_SUBSTITUTION",
                "--default-time-zone=+00:00",
            ])
            .args([
                "--character-set-server=utf8mb4",
                "--innodb-buffer-pool-dump-at-shutdown=0",
            ])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().map_err(|error| {
            format!("mariadbd cannot be started: {error}; `make setup` installs it")
        })?;
        let mut stock = Stock { child, scratch };
        let begin = Instant::now();
        loop {
            if let Some(status) = stock.child.try_wait().expect("the server is our child") {
                return Err(format!("it ended with {status}\n{}", stock.log()));
            }
            if stock.scratch.path().join("s").exists()
                && stock.client("", b"SELECT 1").status.success()
            {
                return Ok(stock);
            }
            if begin.elapsed() > READY_WITHIN {
                return Err(format!("not ready after {READY_WITHIN:?}\n{}", stock.log()));
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Makes a data directory and shuts the server down. A directory that is still being made does not
    /// survive a kill (page 0 of ibdata1 is written by the first checkpoint), so a crash test begins here.
    pub fn create(datadir: &Path, options: &[&str]) {
        Stock::start(datadir, options).shutdown(false);
    }

    /// The server's error log so far.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.scratch.path().join("err.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The stock client, connected to this server, that prints as with `--batch`.
    pub fn client_command(&self, database: &str) -> Command {
        let mut command = Command::new("mariadb");
        command
            .args([
                "--no-defaults",
                "--batch",
                "--default-character-set=utf8mb4",
                "--max-allowed-packet=256M",
            ])
            .arg(with_path("--socket=", &self.scratch.path().join("s")));
        if !database.is_empty() {
            command.arg(database);
        }
        command
    }

    /// What `mariadb-dump` writes of some databases.
    pub fn dump(&self, options: &[&str], databases: &[&str]) -> Vec<u8> {
        run_ok(
            Command::new("mariadb-dump")
                .args(["--no-defaults", "--default-character-set=utf8mb4"])
                .arg(with_path("--socket=", &self.scratch.path().join("s")))
                .args(options)
                .arg("--databases")
                .args(databases),
        )
    }

    fn client(&self, database: &str, sql: &[u8]) -> Output {
        let mut child = self
            .client_command(database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the mariadb client can be started; `make setup` installs it");
        let mut input = child.stdin.take().expect("the input is piped");
        let sql = sql.to_vec();
        let feeder = std::thread::spawn(move || {
            let _ = input.write_all(&sql);
        });
        let output = child.wait_with_output().expect("the client is our child");
        feeder.join().expect("the feeder does not panic");
        output
    }

    /// Runs statements; what the client prints with `--batch`. Panics on an SQL error.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        self.try_sql(database, sql).unwrap_or_else(|error| {
            panic!("{error}\nin: {:.300}\nserver log:\n{}", sql, self.log())
        })
    }

    /// Runs statements; the client's error text at the first that fails.
    pub fn try_sql(&self, database: &str, sql: &str) -> Result<String, String> {
        let output = self.client(database, sql.as_bytes());
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// The bytes that the client prints: for results that are no text.
    pub fn sql_bytes(&self, database: &str, sql: &str) -> Vec<u8> {
        let output = self.client(database, sql.as_bytes());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    }

    /// Runs a script that need not be text, such as a dump; panics on an SQL error.
    pub fn sql_input(&self, database: &str, script: &[u8]) {
        let output = self.client(database, script);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// The base tables of a database, in order of name.
    pub fn tables(&self, database: &str) -> Vec<String> {
        let query = format!(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = '{database}' \
             AND table_type = 'BASE TABLE' ORDER BY table_name"
        );
        self.sql("", &query)
            .lines()
            .skip(1)
            .map(str::to_string)
            .collect()
    }

    /// CHECK TABLE … EXTENDED on every table of a database; panics unless each says OK. Their number.
    pub fn check_tables(&self, database: &str) -> usize {
        let tables = self.tables(database);
        for table in &tables {
            let said = self.sql(database, &format!("CHECK TABLE `{table}` EXTENDED"));
            assert!(
                said.ends_with("check\tstatus\tOK\n"),
                "{said}\n{}",
                self.log()
            );
        }
        tables.len()
    }

    /// All rows of a table in the conventions of the samples' TSV files, in primary-key order (without a
    /// primary key in the order of the clustered index).
    pub fn tsv(&self, database: &str, table: &str) -> String {
        let columns = self.sql(
            "",
            &format!(
                "SELECT column_name, data_type, numeric_precision FROM information_schema.columns \
                 WHERE table_schema = '{database}' AND table_name = '{table}' ORDER BY ordinal_position"
            ),
        );
        let select: Vec<String> = columns.lines().skip(1).map(select_item).collect();
        let key = self.sql(
            "",
            &format!(
                "SELECT column_name FROM information_schema.statistics WHERE table_schema = '{database}' \
                 AND table_name = '{table}' AND index_name = 'PRIMARY' ORDER BY seq_in_index"
            ),
        );
        let key: Vec<String> = key
            .lines()
            .skip(1)
            .map(|column| format!("`{column}`"))
            .collect();
        let order = if key.is_empty() {
            String::new()
        } else {
            format!(" ORDER BY {}", key.join(", "))
        };
        self.sql(
            database,
            &format!("SELECT {} FROM `{table}`{order}", select.join(", ")),
        )
    }

    /// SIGKILL, as a crash of the server.
    pub fn kill(mut self) {
        self.child.kill().expect("the server can be killed");
        self.child.wait().expect("the server is our child");
    }

    /// A clean shutdown; panics when it does not end well. `slow` purges and merges everything first.
    pub fn shutdown(mut self, slow: bool) {
        let fast = if slow {
            "SET GLOBAL innodb_fast_shutdown = 0; "
        } else {
            ""
        };
        self.sql("", &format!("{fast}SHUTDOWN"));
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the server is our child") {
                assert!(
                    status.success(),
                    "the stock server ended with {status}:\n{}",
                    self.log()
                );
                return;
            }
            assert!(
                begin.elapsed() < STOPPED_WITHIN,
                "the stock server does not stop:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn with_path(option: &str, path: &Path) -> std::ffi::OsString {
    let mut text = std::ffi::OsString::from(option);
    text.push(path);
    text
}

fn runs_as_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

/// What to select of a column so that the client prints it as the samples' TSV files do.
fn select_item(column: &str) -> String {
    let mut parts = column.split('\t');
    let name = parts.next().expect("a column has a name");
    let kind = parts.next().unwrap_or_default();
    let bits: usize = parts.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let name = format!("`{}`", name.replace('`', "``"));
    let long = |short: String| {
        format!(
            "IF(LENGTH({name}) > 64, CONCAT('#', LENGTH({name}), ':', MD5({name})), {short}) AS {name}"
        )
    };
    match kind {
        "bit" => format!(
            "CONCAT('0x', LPAD(HEX({name} + 0), {}, '0')) AS {name}",
            bits.div_ceil(8) * 2
        ),
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "geometry"
        | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
        | "multipolygon" | "geometrycollection" => long(format!("CONCAT('0x', HEX({name}))")),
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => {
            long(format!("CONVERT({name} USING utf8mb4)"))
        }
        _ => name,
    }
}

/// The .frm files (and db.opt) of a database whose tables a stock server creates from `definitions`, laid
/// into `into`, the database's folder in a data directory that the engine made.
pub fn lay_definitions(database: &str, definitions: &str, into: &Path) {
    let scratch = Scratch::new("frm");
    let datadir = scratch.dir("data");
    let stock = Stock::start(
        &datadir,
        &[
            "--innodb-flush-log-at-trx-commit=0",
            "--skip-innodb-doublewrite",
        ],
    );
    stock.sql("", &format!("CREATE DATABASE IF NOT EXISTS `{database}`"));
    stock.sql(database, definitions);
    stock.kill();
    fs::create_dir_all(into).expect("the database's folder can be made");
    let mut laid = 0;
    for entry in fs::read_dir(datadir.join(database)).expect("the stock server made the folder") {
        let path = entry.expect("the entry can be read").path();
        let name = path.file_name().expect("a file has a name");
        if path.extension().is_some_and(|extension| extension == "frm") || name == "db.opt" {
            fs::copy(&path, into.join(name)).expect("the definition can be copied");
            laid += 1;
        }
    }
    assert!(
        laid > 1,
        "the stock server made no table from: {definitions:.300}"
    );
}

/// The data directory of the samples under a stock server.
pub fn start_on_mini(datadir: &Path) -> Stock {
    samples::lay_out_mini(datadir);
    Stock::start(
        datadir,
        &["--innodb-undo-tablespaces=2", "--innodb-log-file-size=4M"],
    )
}
