//! NVIDIA's driver: where it is, what it has, and what it says of its own memory.

use std::path::Path;

use device_arena::backend::{Backend, Cuda, DeviceInfo};
use device_arena::{Arena, ArenaOptions, Error, Executor, MemoryKind, Placement, Result};

use crate::pointers::sample;
use crate::{driver, failed, line};

/// What decides which driver and which devices a process sees.
const VARIABLES: [&str; 4] =
    ["DEVICE_ARENA_CUDA_LIBRARY", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH"];

pub fn report() {
    for variable in VARIABLES {
        let value = std::env::var_os(variable);
        line(
            format_args!("env.{variable}"),
            value.map_or("unset".into(), |value| value.to_string_lossy().into_owned()),
        );
    }
    if let Ok(text) = std::fs::read_to_string("/proc/driver/nvidia/version") {
        line("cuda.module", text.lines().next().unwrap_or_default());
    }
    let cuda = match Cuda::load() {
        Ok(cuda) => cuda,
        Err(error) => return line("cuda.library", failed(&error)),
    };
    line("cuda.library", cuda.library());
    line("cuda.library.file", file_of(cuda.library()).unwrap_or_else(|| "unknown".into()));
    let version = cuda.version();
    line("cuda.version", format_args!("{}.{}", version / 1000, version % 1000 / 10));
    let devices = match cuda.devices() {
        Ok(devices) => devices,
        Err(error) => return line("cuda.devices", failed(&error)),
    };
    line("cuda.devices", devices.len());
    for device in &devices {
        describe(device);
        match Executor::cuda(device.ordinal) {
            Ok(executor) => use_device(&executor, device, &devices),
            Err(error) => line(format_args!("cuda.{}.executor", device.ordinal), failed(&error)),
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

fn describe(device: &DeviceInfo) {
    let name = |what| format!("cuda.{}.{what}", device.ordinal);
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

fn use_device(executor: &Executor, device: &DeviceInfo, devices: &[DeviceInfo]) {
    let name = |what: &str| format!("cuda.{}.{what}", device.ordinal);
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
    images(executor, device);
    for peer in devices.iter().filter(|peer| peer.ordinal != device.ordinal) {
        let reaches = match Executor::cuda(peer.ordinal).and_then(|peer| executor.reach(&peer)) {
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

// -------------------------------------------------------------------------------------------------- kernel images

macro_rules! images {
    ($($target:literal),+ $(,)?) => {
        [$(($target, include_bytes!(concat!("../../backends/kernels/images/arena.sm_", $target, ".cubin")))),+]
    };
}

/// The images that the crate has for a device, in the order in which it tries them: machine code for its architecture, the
/// nearest first, then text that the driver compiles.
fn images(executor: &Executor, device: &DeviceInfo) {
    const MACHINE_CODE: [(&str, &[u8]); 8] = images!["120", "100", "90", "89", "86", "80", "75", "70"];
    const TEXT: &[u8] = include_bytes!("../../backends/kernels/images/arena.ptx");
    let own: u32 = device.architecture.trim_start_matches("sm_").parse().unwrap_or(0);
    let fits =
        |target: &str| target.parse().is_ok_and(|target: u32| target / 10 == own / 10 && target <= own);
    let fitting = MACHINE_CODE.into_iter().filter(|(target, _)| fits(target));
    let fitting = fitting.map(|(target, image)| (format!("arena.sm_{target}.cubin"), image));
    let mut used = None;
    for (image, bytes) in fitting.chain([("arena.ptx".to_owned(), TEXT)]) {
        // The driver wants it aligned, and text to end with a zero byte.
        let mut words = vec![0u64; bytes.len() / 8 + 1];
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
        // SAFETY: the image is whole, and a zero byte follows.
        let loaded = unsafe { executor.load_kernels(bytemuck::cast_slice(&words), ["device_arena_rewind"]) };
        let outcome = match loaded {
            Ok([_]) => {
                used.get_or_insert_with(|| image.clone());
                "loads".into()
            }
            Err(error) => failed(&error),
        };
        line(format_args!("cuda.{}.image.{image}", device.ordinal), outcome);
    }
    let used = used.unwrap_or_else(|| "none".into());
    line(format_args!("cuda.{}.image", device.ordinal), used);
}

// -------------------------------------------------------------------------------------------------------- pointers

pub fn report_pointers() {
    let Ok(cuda) = Cuda::load() else { return };
    for device in cuda.devices().unwrap_or_default() {
        let ordinal = device.ordinal;
        // Why there is none was said above.
        let Ok(executor) = Executor::cuda(ordinal) else { continue };
        let outcomes = [
            ("arenas", arenas(&executor, ordinal)),
            ("freed", freed(cuda, ordinal)),
            ("driver", driver::report(&executor, cuda.library(), ordinal)),
        ];
        for (what, outcome) in outcomes {
            if let Err(error) = outcome {
                line(format_args!("pointer.cuda.{ordinal}.{what}"), failed(&error));
            }
        }
    }
}

/// What arenas hand out. All of a block is one output, so that its ends are the block's.
fn arenas(executor: &Executor, ordinal: u32) -> Result<()> {
    const BYTES: usize = 1 << 20;
    let arena = ArenaOptions::new().first_capacity(BYTES).build(executor)?;
    let call = executor.begin(&arena)?;
    let mut output = call.output::<u8>(BYTES)?;
    let start = output.device_ptr()?;
    let name = |what| format!("pointer.cuda.{ordinal}.block.{what}");
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
fn freed(cuda: Cuda, ordinal: u32) -> Result<()> {
    let block = cuda.allocate(ordinal, None, Placement::Device, 1 << 20)?;
    let start = block.address().as_ptr();
    // SAFETY: the block came from this backend, and nothing was queued that uses it.
    unsafe { cuda.free(None, block) }?;
    sample(&format!("pointer.cuda.{ordinal}.block.freed"), start, Some(MemoryKind::Unregistered));
    Ok(())
}
