//! What calls cost beside their copies: classification against the driver's bare query, a steady call against the driver's
//! and the runtime's warm pools, tapes that are brought to the device, and launches of nothing.

use std::ffi::{c_uint, c_void};
use std::hint::black_box;

use device_arena::{Arena, ArenaOptions, TapeView};

use crate::memory::{Gpu, words};
use crate::peers::{Columns, Kind};
use crate::report::{Report, Row};
use crate::timing::{Clock, Contender, Effort, Outcome, Span, on_the_host};

pub const CALLS: &str = "calls";
pub const STAGING: &str = "staging";
pub const LAUNCHES: &str = "launches";

fn runs(effort: Effort, runs: u32) -> u32 {
    match effort {
        Effort::Whole => runs,
        Effort::Quick => runs / 4,
        Effort::Tiny => runs / 100,
    }
}

/// What is behind a pointer, by the crate and by the driver's query of the same attributes.
pub fn classification(gpu: &Gpu, report: &mut Report) -> Outcome {
    const IDS: [c_uint; 8] = [2, 8, 9, 1, 7, 11, 12, 17];
    let block = gpu.block(1 << 20)?;
    let host = vec![0u8; 4096];
    let device = block.address().as_ptr().cast_const();
    let runs = runs(gpu.effort, 10_000);
    for (what, pointer) in [("classify a device pointer", device), ("classify a host pointer", host.as_ptr())]
    {
        let mut bare = || {
            let (mut values, mut ids) = ([0u64; IDS.len()], IDS);
            let mut slots: [*mut c_void; IDS.len()] = std::array::from_fn(|at| (&raw mut values[at]).cast());
            // SAFETY: each attribute has a slot of eight bytes.
            let code = unsafe {
                (gpu.driver.pointer_attributes)(
                    IDS.len() as c_uint,
                    ids.as_mut_ptr(),
                    slots.as_mut_ptr(),
                    black_box(pointer).addr() as u64,
                )
            };
            black_box((code, values));
        };
        let mut classify = || {
            // SAFETY: the memory is live.
            let _ = black_box(unsafe { device_arena::classify(black_box(pointer)) });
        };
        let [own, peer] = on_the_host(gpu.effort, runs, &mut classify, &mut bare);
        let mut row = Row::new(CALLS, what, 0, 0);
        row.add("own", Span::Host, own);
        row.add("bare query", Span::Host, peer);
        report.rows.push(row);
    }
    let arena = Arena::new(&gpu.executor);
    let call = gpu.executor.begin(&arena).map_err(words)?;
    let mut offset = 0;
    let mut again = || {
        offset = (offset + 4096) % (1 << 19);
        // SAFETY: the memory is live.
        let _ = black_box(unsafe { call.classify_range(black_box(device.wrapping_add(offset)), 256) });
    };
    let [own, _] = on_the_host(gpu.effort, runs, &mut again, &mut || ());
    let mut row = Row::new(CALLS, "another pointer, allocation seen", 0, 0);
    row.add("own", Span::Host, own);
    report.rows.push(row);
    call.finish().map_err(words)?;
    gpu.free(block);
    Ok(())
}

/// A call of three outputs in a warm arena, and the same from warm pools. Nobody waits for anything.
pub fn steady_call(gpu: &Gpu, report: &mut Report) -> Outcome {
    const SIZES: [usize; 3] = [1 << 20, 256 << 10, 4 << 10];
    let arena = ArenaOptions::new().first_capacity(4 << 20).build(&gpu.executor).map_err(words)?;
    let one = || -> device_arena::Result<()> {
        let call = gpu.executor.begin(&arena)?;
        for bytes in SIZES {
            let mut output = call.output::<u8>(bytes)?;
            black_box(output.device_ptr()?);
            drop(output.publish());
        }
        call.finish()
    };
    one().map_err(words)?;
    gpu.driver.warm_pool(0).unwrap_or_else(|words| report.note(format!("skipped: a warm pool: {words}")));
    let from_driver = || -> Outcome {
        let mut addresses = [0u64; 3];
        for (address, bytes) in addresses.iter_mut().zip(SIZES) {
            // SAFETY: the driver writes one address.
            let code = unsafe { (gpu.driver.allocate)(address, bytes, gpu.raw) };
            crate::driver::done("cuMemAllocAsync", code)?;
        }
        for address in addresses {
            // SAFETY: the memory was just allocated.
            crate::driver::done("cuMemFreeAsync", unsafe { (gpu.driver.free)(address, gpu.raw) })?;
        }
        Ok(())
    };
    let runs = runs(gpu.effort, 2000);
    let mut own = || {
        let _ = black_box(one());
    };
    let mut compare = |what: &str, who: &'static str, peer: &mut dyn FnMut() -> Outcome| -> Outcome {
        // Whether it works at all.
        peer()?;
        let [own, peer] = on_the_host(gpu.effort, runs, &mut own, &mut || {
            let _ = black_box(peer());
        });
        let mut row = Row::new(CALLS, what, 3, 0);
        row.add("own", Span::Host, own);
        row.add(who, Span::Host, peer);
        report.rows.push(row);
        gpu.synchronize()
    };
    compare("a steady call of three, driver's pool", "cuMemAllocAsync", &mut || from_driver())?;
    if let Some(peers) = &gpu.peers {
        let mut from_runtime = || peers.allocate_and_free(SIZES, gpu.raw);
        compare("a steady call of three, runtime's pool", "cudaMallocAsync", &mut from_runtime)?;
    }
    Ok(())
}

/// A tape of pageable memory, brought to the device by a call, and by the copies that a user would write.
pub fn staging(gpu: &Gpu, clock: &Clock<'_>, report: &mut Report) -> Outcome {
    for mib in [1, 64] {
        let len = gpu.effort.scaled(mib << 20);
        let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let offsets: Vec<u64> = (0..=1024).map(|item| (item * len / 1024) as u64).collect();
        let tape = TapeView::of(&bytes, &offsets).map_err(words)?;
        let arena =
            ArenaOptions::new().first_capacity(2 * len + (1 << 20)).build(&gpu.executor).map_err(words)?;
        let own = || -> Outcome {
            let call = gpu.executor.begin(&arena).map_err(words)?;
            black_box(call.stage(&tape).map_err(words)?.bytes_ptr());
            call.finish().map_err(words)
        };
        let call = gpu.executor.begin(&arena).map_err(words)?;
        let staged = call.stage(&tape).map_err(words)?;
        let mut back = vec![0u8; len];
        // SAFETY: the staged bytes are as many.
        unsafe { gpu.transfer(back.as_mut_ptr(), staged.bytes_ptr(), len) }?;
        if back != bytes {
            report.wrong.push(format!("WRONG BYTES: a staged tape of {len} bytes"));
        }
        if staged.copied_bytes() == 0 {
            report.note("staged tapes are read where they are: host and device share page tables");
        }
        call.finish().map_err(words)?;
        let (text_block, offsets_block) = (gpu.block(len)?, gpu.block(size_of_val(offsets.as_slice()))?);
        let columns = Columns {
            to: vec![text_block.address().as_ptr().cast(), offsets_block.address().as_ptr().cast()],
            from: vec![bytes.as_ptr().cast(), offsets.as_ptr().cast()],
            bytes: vec![len, size_of_val(offsets.as_slice())],
        };
        let driver = || -> Outcome {
            let Columns { to, from, bytes } = &columns;
            let mut pairs = to.iter().zip(from).zip(bytes);
            // SAFETY: both ends are live and as long.
            pairs.try_for_each(|((to, from), bytes)| unsafe {
                gpu.driver.copy(to.cast(), from.cast(), *bytes, gpu.raw)
            })
        };
        let mut contenders = vec![Contender::new("staged", own), Contender::new("cuMemcpyAsync", driver)];
        if let Some(peers) = &gpu.peers {
            // SAFETY: as above.
            let runtime = || unsafe { peers.copy_loop(&columns, Kind::HostToDevice, gpu.raw) };
            contenders.push(Contender::new("cudaMemcpyAsync", runtime));
        }
        let timed = clock.end_to_end(&mut contenders);
        drop(contenders);
        let moved = columns.bytes.iter().sum::<usize>() as u64;
        let mut row = Row::new(STAGING, format!("tape of {mib} MiB, 1024 texts"), 2, 2 * moved);
        report.add(&mut row, Span::EndToEnd, timed);
        report.rows.push(row);
        gpu.synchronize()?;
        gpu.free(text_block);
        gpu.free(offsets_block);
    }
    Ok(())
}

/// What a launch costs that does nothing.
pub fn launches(gpu: &Gpu, clock: &Clock<'_>, report: &mut Report) -> Outcome {
    let Some(peers) = &gpu.peers else { return Ok(()) };
    let graph = peers.graph_of_nothing(gpu.raw)?;
    let contenders = || {
        // SAFETY: the graph was just made.
        let launch = || unsafe { peers.launch_graph(graph, gpu.raw) };
        [
            Contender::new("empty launch", || peers.launch_nothing(gpu.raw)),
            Contender::new("graph of an empty launch", launch),
        ]
    };
    let mut row = Row::new(LAUNCHES, "nothing", 0, 0);
    let timed = clock.end_to_end(&mut contenders());
    report.add(&mut row, Span::EndToEnd, timed);
    let timed = clock.device(&mut contenders());
    report.add(&mut row, Span::Device, timed);
    report.rows.push(row);
    Ok(())
}
