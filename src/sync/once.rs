//! A value that is set once and read without a latch afterwards.

/// Empty until the first `set` or `get_or_init`; then constant.
#[derive(Debug)]
pub struct Once<T>(std::sync::OnceLock<T>);

impl<T> Default for Once<T> {
    fn default() -> Once<T> {
        Once::new()
    }
}

impl<T> Once<T> {
    /// Empty.
    pub const fn new() -> Once<T> {
        Once(std::sync::OnceLock::new())
    }

    /// The value, if it was set.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// Sets the value; gives it back if there was one already.
    pub fn set(&self, value: T) -> Result<(), T> {
        self.0.set(value)
    }

    /// The value; made by the first caller, for whom the others wait.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(make)
    }
}
