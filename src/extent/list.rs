//! Lists whose nodes lie in pages: adding and removing, with every link checked.

use super::plan::Plan;
use crate::format::list::{
    ADDR_BYTES, BASE_BYTES, FilAddr, ListBase, ListNode, NODE_BYTES, NODE_NEXT, NODE_PREV,
};
use crate::words::{PageNo, Result};

/// Where a list's base node stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    pub(super) page: PageNo,
    pub(super) at: usize,
}

impl Plan<'_, '_> {
    pub(super) fn list(&mut self, base: Base) -> Result<ListBase> {
        let bytes = self.read(base.page, base.at, BASE_BYTES)?;
        let parsed = ListBase::parse(&bytes, 0);
        self.at(base.page, parsed)
    }

    pub(super) fn node(&mut self, node: FilAddr) -> Result<ListNode> {
        let bytes = self.read(node.page(), node.offset(), NODE_BYTES)?;
        let parsed = ListNode::parse(&bytes, 0);
        self.at(node.page(), parsed)
    }

    fn write_base(&mut self, base: Base, list: ListBase) {
        self.write(base.page, base.at, &list.to_bytes());
    }

    fn write_node(&mut self, node: FilAddr, links: ListNode) {
        self.write(node.page(), node.offset(), &links.to_bytes());
    }

    fn link(&mut self, node: FilAddr, which: usize, to: FilAddr) {
        let bytes: [u8; ADDR_BYTES] = to.to_bytes();
        self.write(node.page(), node.offset() + which, &bytes);
    }

    /// Adds `node`, which is on no list, at the end.
    pub(super) fn add_last(&mut self, base: Base, node: FilAddr) -> Result<()> {
        let list = self.list(base)?;
        match list.last.some() {
            None => {
                self.write_node(node, ListNode::ALONE);
                self.write_base(base, ListBase::new(1, node, node));
            }
            Some(last) => {
                if self.node(last)?.next.some().is_some() {
                    return Err(self.corrupt(last.page(), "the last node of a list has a next"));
                }
                self.link(last, NODE_NEXT, node);
                self.write_node(
                    node,
                    ListNode {
                        prev: last,
                        next: FilAddr::NONE,
                    },
                );
                self.write_base(base, ListBase::new(list.count() + 1, list.first, node));
            }
        }
        Ok(())
    }

    /// Takes `node` off the list of `base`.
    pub(super) fn remove(&mut self, base: Base, node: FilAddr) -> Result<()> {
        let list = self.list(base)?;
        let links = self.node(node)?;
        let (mut first, mut last) = (list.first, list.last);
        match links.prev.some() {
            None if first == node => first = links.next,
            Some(prev) if self.node(prev)?.next == node => self.link(prev, NODE_NEXT, links.next),
            _ => {
                return Err(self.corrupt(node.page(), "a list node's previous does not lead to it"));
            }
        }
        match links.next.some() {
            None if last == node => last = links.prev,
            Some(next) if self.node(next)?.prev == node => self.link(next, NODE_PREV, links.prev),
            _ => return Err(self.corrupt(node.page(), "a list node's next does not lead back")),
        }
        let Some(count) = list.count().checked_sub(1) else {
            return Err(self.corrupt(base.page, "an empty list has a node"));
        };
        if (count == 0) != first.some().is_none() {
            return Err(self.corrupt(base.page, "a list's length does not match its ends"));
        }
        self.write_base(base, ListBase::new(count, first, last));
        Ok(())
    }
}
