//! Sets of page numbers.

/// A bit for each page from 0 on.
#[derive(Clone, Default)]
pub struct Pages(Vec<u64>);

impl Pages {
    /// False if it was there.
    pub fn insert(&mut self, page: u32) -> bool {
        let (word, bit) = place(page);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    pub fn remove(&mut self, page: u32) {
        let (word, bit) = place(page);
        if let Some(word) = self.0.get_mut(word) {
            *word &= !bit;
        }
    }

    pub fn contains(&self, page: u32) -> bool {
        let (word, bit) = place(page);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().enumerate().flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(at as u32 * 64 + bit)
            })
        })
    }

    /// Pages that are in one of the two alone.
    pub fn difference(&self, other: &Pages) -> Vec<u32> {
        let mine = self.iter().filter(|&page| !other.contains(page));
        let theirs = other.iter().filter(|&page| !self.contains(page));
        mine.chain(theirs).collect()
    }
}

fn place(page: u32) -> (usize, u64) {
    (page as usize / 64, 1 << (page % 64))
}

impl Extend<u32> for Pages {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, pages: I) {
        for page in pages {
            self.insert(page);
        }
    }
}

impl FromIterator<u32> for Pages {
    fn from_iter<I: IntoIterator<Item = u32>>(pages: I) -> Pages {
        let mut all = Pages::default();
        all.extend(pages);
        all
    }
}

impl std::fmt::Debug for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[test]
fn a_set_of_pages_is_what_a_set_is() {
    let mut pages: Pages = [3, 64, 200].into_iter().collect();
    assert!(!pages.insert(64) && pages.insert(5) && pages.contains(200) && !pages.contains(999));
    pages.remove(3);
    pages.remove(1000);
    assert_eq!(pages.iter().collect::<Vec<_>>(), [5, 64, 200]);
    assert_eq!(
        pages.difference(&[64, 7].into_iter().collect()),
        [5, 200, 7]
    );
    assert_eq!(pages.len(), 3);
}
