//! A vendor's driver: where it is, what it has, and what it says of its own memory.

use std::path::Path;

use device_arena::backend::{AnyBackend, Backend, DeviceInfo};
use device_arena::{Arena, ArenaOptions, Error, Executor, MemoryKind, Placement, Result};

use crate::pointers::sample;
use crate::vendors::Gpus;
use crate::{driver, failed, images, line};

pub fn report(gpus: &Gpus) {
    let vendor = gpus.vendor;
    for variable in gpus.variables {
        let value = std::env::var_os(variable);
        line(
            format_args!("env.{variable}"),
            value.map_or("unset".into(), |value| value.to_string_lossy().into_owned()),
        );
    }
    if let Ok(text) = std::fs::read_to_string(gpus.module) {
        line(format_args!("{vendor}.module"), text.lines().next().unwrap_or_default());
    }
    let backend = match (gpus.load)() {
        Ok(backend) => backend,
        Err(error) => return line(format_args!("{vendor}.library"), failed(&error)),
    };
    let (library, version) = (gpus.library_and_version)(&backend);
    line(format_args!("{vendor}.library"), &library);
    let file = file_of(&library).unwrap_or_else(|| "unknown".into());
    line(format_args!("{vendor}.library.file"), file);
    line(format_args!("{vendor}.version"), version);
    let devices = match backend.devices() {
        Ok(devices) => devices,
        Err(error) => return line(format_args!("{vendor}.devices"), failed(&error)),
    };
    line(format_args!("{vendor}.devices"), devices.len());
    for device in &devices {
        let name = format!("{vendor}.{}", device.ordinal);
        describe(&name, device);
        match Executor::on(backend.clone(), device.ordinal) {
            Ok(executor) => use_device(&name, &backend, &executor, device, &devices),
            Err(error) => line(format_args!("{name}.executor"), failed(&error)),
        }
    }
}

/// The file behind a loaded library's name, by what the process has mapped.
fn file_of(library: &str) -> Option<String> {
    if library.contains('/') {
        return Some(std::fs::canonicalize(library).ok()?.display().to_string());
    }
    let stem = library.split(".so").next()?;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    let is_it = |path: &&str| {
        let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.strip_prefix(stem).is_some_and(|rest| rest.starts_with(".so"))
    };
    paths.find(is_it).map(str::to_owned)
}

fn describe(of: &str, device: &DeviceInfo) {
    let name = |what| format!("{of}.{what}");
    line(name("name"), &device.name);
    line(name("architecture"), &device.architecture);
    line(name("memory"), device.total_bytes.map_or("unknown".into(), |bytes| format!("{bytes} bytes")));
    let number = |value: Option<u32>| value.map_or("unknown".into(), |value| value.to_string());
    line(name("multiprocessors"), number(device.multiprocessors));
    line(name("block.threads"), number(device.block_threads));
    let pci = |(domain, bus, device)| format!("{domain:04x}:{bus:02x}:{device:02x}");
    line(name("pci"), device.pci_address.map_or("unknown".into(), pci));
    let pageable = match (device.reaches_pageable_memory, device.shares_page_tables) {
        (_, true) => "reached, by the host's page tables",
        (true, false) => "reached, by faults",
        (false, false) => "not reached",
    };
    line(name("pageable"), pageable);
}

fn use_device(
    of: &str,
    backend: &AnyBackend,
    executor: &Executor,
    device: &DeviceInfo,
    devices: &[DeviceInfo],
) {
    let name = |what: &str| format!("{of}.{what}");
    line(name("executor"), "works");
    let free = match executor.free_bytes() {
        Ok(free) => free.map_or("unknown".into(), |bytes| format!("{bytes} bytes")),
        Err(error) => failed(&error),
    };
    line(name("memory.free"), free);
    let outcome = |result: Result<bool>| match result {
        Ok(true) => "works".into(),
        Ok(false) => "WRONG VALUES".into(),
        Err(error) => failed(&error),
    };
    line(name("copies"), outcome(copies(executor)));
    line(name("kernels"), outcome(kernels(executor)));
    images::report(of, executor, device);
    for peer in devices.iter().filter(|peer| peer.ordinal != device.ordinal) {
        let reaches = match Executor::on(backend.clone(), peer.ordinal).and_then(|peer| executor.reach(&peer))
        {
            Ok(()) => "yes".into(),
            Err(Error::Unreachable { .. }) => "no".into(),
            Err(error) => failed(&error),
        };
        line(name(&format!("reaches.{}", peer.ordinal)), reaches);
    }
}

/// Values to the device and back.
fn copies(executor: &Executor) -> Result<bool> {
    let values: Vec<u32> = (0..100_000).collect();
    let arena = Arena::new(executor);
    let call = executor.begin(&arena)?;
    let view = call.output_from_slice(&values)?.publish();
    call.finish()?;
    Ok(view.to_vec()? == values)
}

/// A room for device-sized outputs, which one of the crate's kernels makes.
fn kernels(executor: &Executor) -> Result<bool> {
    let arena = Arena::new(executor);
    let call = executor.begin(&arena)?;
    let room = call.device_room::<u64>(64)?;
    let taken = room.taken_bytes()?;
    drop(room);
    call.finish()?;
    Ok(taken == 0)
}

// ------------------------------------------------------------------------------------------------------- pointers

pub fn report_pointers(gpus: &Gpus) {
    let Ok(backend) = (gpus.load)() else { return };
    for device in backend.devices().unwrap_or_default() {
        let ordinal = device.ordinal;
        // Why there is none was said above.
        let Ok(executor) = Executor::on(backend.clone(), ordinal) else { continue };
        let of = format!("pointer.{}.{ordinal}", gpus.vendor);
        let (library, _) = (gpus.library_and_version)(&backend);
        let outcomes = [
            ("arenas", arenas(&of, &executor, ordinal)),
            ("freed", freed(&of, &backend, ordinal)),
            ("driver", driver::report(&of, &executor, &library)),
        ];
        for (what, outcome) in outcomes {
            if let Err(error) = outcome {
                line(format_args!("{of}.{what}"), failed(&error));
            }
        }
    }
}

/// What arenas hand out. All of a block is one output, so that its ends are the block's.
fn arenas(of: &str, executor: &Executor, ordinal: u32) -> Result<()> {
    const BYTES: usize = 1 << 20;
    let arena = ArenaOptions::new().first_capacity(BYTES).build(executor)?;
    let call = executor.begin(&arena)?;
    let mut output = call.output::<u8>(BYTES)?;
    let start = output.device_ptr()?;
    let name = |what| format!("{of}.block.{what}");
    let device = Some(MemoryKind::Device { ordinal });
    sample(&name("start"), start, device);
    sample(&name("interior"), start.wrapping_add(BYTES / 2 + 1), device);
    sample(&name("last"), start.wrapping_add(BYTES - 1), device);
    // Where another allocation follows, it is that one's.
    sample(&name("end"), start.wrapping_add(BYTES), None);
    drop(output);
    call.finish()?;

    let arena = ArenaOptions::new().placement(Placement::HostCoherent).build(executor)?;
    let call = executor.begin(&arena)?;
    let mut output = call.output::<u8>(BYTES)?;
    sample(&name("coherent"), output.device_ptr()?, Some(MemoryKind::PinnedHost));
    drop(output);
    call.finish()
}

/// A block that was given back.
fn freed(of: &str, backend: &AnyBackend, ordinal: u32) -> Result<()> {
    let block = backend.allocate(ordinal, None, Placement::Device, 1 << 20)?;
    let start = block.address().as_ptr();
    // SAFETY: the block came from this backend, and nothing was queued that uses it.
    unsafe { backend.free(None, block) }?;
    sample(&format!("{of}.block.freed"), start, Some(MemoryKind::Unregistered));
    Ok(())
}
