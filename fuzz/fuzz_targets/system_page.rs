#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| entries::system_page(data));
