//! What is made before the crate: nothing yet.

fn main() {}
