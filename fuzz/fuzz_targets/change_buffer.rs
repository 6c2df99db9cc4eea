#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| entries::change_buffer(data));
