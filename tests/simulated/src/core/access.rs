//! Device memory is closed to the process, and open to works while they run.

use std::collections::BTreeSet;

use super::memory::{Allocation, Kind, Memory};
use super::pages::{self, PAGE};

/// Pages that a running work may touch, each with its allocation's start and id.
#[derive(Default)]
pub(crate) struct Opened(Vec<(usize, u64, (usize, usize))>);

impl Memory {
    /// Opens what a copy touches: ranges of an address and so many bytes.
    pub(crate) fn open_ranges(&mut self, ranges: &[(usize, usize)]) -> Opened {
        let mut opened = Opened::default();
        for &(address, bytes) in ranges {
            for allocation in
                self.allocations.range_mut(..address + bytes).rev().map(|(_, allocation)| allocation)
            {
                let end = allocation.start + allocation.bytes;
                if end <= address {
                    break;
                }
                if allocation.kind.on_device() && allocation.reachable() {
                    let from = address.max(allocation.start) / PAGE * PAGE;
                    opened.add(allocation, (from, (address + bytes).min(end).next_multiple_of(PAGE)));
                }
            }
        }
        opened
    }

    /// Opens what a kernel of an ordinal may touch, which can be any of its memory.
    pub(crate) fn open_for(&mut self, ordinal: i32, peers: &BTreeSet<i32>) -> Opened {
        let mut opened = Opened::default();
        for allocation in self.allocations.values_mut().filter(|allocation| allocation.kind.on_device()) {
            let may = match allocation.kind {
                Kind::Virtual => allocation.access.contains(&ordinal),
                Kind::Alias | Kind::Opened => true,
                Kind::Pool => allocation.ordinal == ordinal,
                _ => allocation.ordinal == ordinal || peers.contains(&allocation.ordinal),
            };
            if may {
                opened.add(allocation, (allocation.page, allocation.page + allocation.page_bytes));
            }
        }
        opened
    }

    pub(crate) fn close(&mut self, opened: Opened) {
        for (start, id, pages) in opened.0 {
            // It may have been freed meanwhile.
            if let Some(allocation) =
                self.allocations.get_mut(&start).filter(|allocation| allocation.id == id)
            {
                let index =
                    allocation.opened.iter().position(|&other| other == pages).expect("what was opened");
                allocation.opened.swap_remove(index);
                close_but(pages, &allocation.opened);
            }
        }
    }
}

impl Opened {
    fn add(&mut self, allocation: &mut Allocation, pages: (usize, usize)) {
        // SAFETY: the pages are this allocation's.
        unsafe { pages::protect(pages.0, pages.1 - pages.0, true) };
        allocation.opened.push(pages);
        self.0.push((allocation.start, allocation.id, pages));
    }
}

/// Closes pages, but for those that others have open. These stay open throughout.
fn close_but((mut at, end): (usize, usize), others: &[(usize, usize)]) {
    while at < end {
        if let Some(other) = others.iter().find(|other| (other.0..other.1).contains(&at)) {
            at = other.1;
            continue;
        }
        let next =
            others.iter().map(|other| other.0).filter(|&start| start > at).min().unwrap_or(end).min(end);
        // SAFETY: pages of an allocation that is there.
        unsafe { pages::protect(at, next - at, false) };
        at = next;
    }
}
