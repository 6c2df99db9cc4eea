#![no_main]

use entries::calls::Stage;

// One engine for all inputs, in a directory of this process.
std::thread_local! {
    static STAGE: Stage = {
        let dir = std::env::temp_dir().join(format!("xtradb-fuzz-calls-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        Stage::open(&dir)
    };
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    STAGE.with(|stage| stage.run(data));
});
