//! The images of the crate's kernels that are for a device: whether its driver takes them.

use device_arena::Executor;
use device_arena::backend::{DeviceInfo, Vendor};

use crate::{failed, line};

type Image = (&'static str, &'static [u8]);

macro_rules! images {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_bytes!(concat!("../../backends/kernels/images/", $name)))),+]
    };
}

/// The images that the crate has for a device, in the order in which it tries them.
pub fn report(of: &str, executor: &Executor, device: &DeviceInfo) {
    let fitting = match executor.vendor() {
        #[cfg(feature = "cuda")]
        Vendor::Cuda => of_nvidia(device),
        #[cfg(feature = "rocm")]
        Vendor::Rocm => of_amd(device),
        _ => Vec::new(),
    };
    let mut used = None;
    for (image, bytes) in fitting {
        // Drivers want it aligned, and text to end with a zero byte.
        let mut words = vec![0u64; bytes.len() / 8 + 1];
        bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
        // SAFETY: the image is whole, and a zero byte follows.
        let loaded = unsafe { executor.load_kernels(bytemuck::cast_slice(&words), ["device_arena_rewind"]) };
        let outcome = match loaded {
            Ok([_]) => {
                used.get_or_insert(image);
                "loads".into()
            }
            Err(error) => failed(&error),
        };
        line(format_args!("{of}.image.{image}"), outcome);
    }
    line(format_args!("{of}.image"), used.unwrap_or("none"));
}

/// Machine code for the device's architecture, the nearest first, then text that the driver compiles.
#[cfg(feature = "cuda")]
fn of_nvidia(device: &DeviceInfo) -> Vec<Image> {
    const CODE: [Image; 8] = images![
        "arena.sm_120.cubin",
        "arena.sm_100.cubin",
        "arena.sm_90.cubin",
        "arena.sm_89.cubin",
        "arena.sm_86.cubin",
        "arena.sm_80.cubin",
        "arena.sm_75.cubin",
        "arena.sm_70.cubin",
    ];
    const TEXT: [Image; 1] = images!["arena.ptx"];
    let own: u32 = device.architecture.trim_start_matches("sm_").parse().unwrap_or(0);
    let fits = |(name, _): &Image| {
        let target = name.trim_start_matches("arena.sm_").trim_end_matches(".cubin").parse();
        target.is_ok_and(|target: u32| target / 10 == own / 10 && target <= own)
    };
    CODE.into_iter().filter(fits).chain(TEXT).collect()
}

/// Machine code for the device's architecture, then for its family.
#[cfg(feature = "rocm")]
fn of_amd(device: &DeviceInfo) -> Vec<Image> {
    const CODE: [Image; 19] = images![
        "arena.gfx900.hsaco",
        "arena.gfx906.hsaco",
        "arena.gfx908.hsaco",
        "arena.gfx90a.hsaco",
        "arena.gfx942.hsaco",
        "arena.gfx950.hsaco",
        "arena.gfx1010.hsaco",
        "arena.gfx1030.hsaco",
        "arena.gfx1100.hsaco",
        "arena.gfx1101.hsaco",
        "arena.gfx1151.hsaco",
        "arena.gfx1200.hsaco",
        "arena.gfx1201.hsaco",
        "arena.gfx9-generic.hsaco",
        "arena.gfx9-4-generic.hsaco",
        "arena.gfx10-1-generic.hsaco",
        "arena.gfx10-3-generic.hsaco",
        "arena.gfx11-generic.hsaco",
        "arena.gfx12-generic.hsaco",
    ];
    // Settings of the device follow the name.
    let own = device.architecture.split(':').next().unwrap_or_default();
    let family = match own.trim_start_matches("gfx") {
        // These two are in no family.
        "908" | "90a" => "none",
        number if number.starts_with("90") => "gfx9-generic",
        number if number.starts_with("94") || number.starts_with("95") => "gfx9-4-generic",
        number if number.starts_with("101") => "gfx10-1-generic",
        number if number.starts_with("103") => "gfx10-3-generic",
        number if number.starts_with("11") => "gfx11-generic",
        number if number.starts_with("12") => "gfx12-generic",
        _ => "none",
    };
    let is_for = |(name, _): &Image, target: &str| *name == format!("arena.{target}.hsaco");
    CODE.into_iter().filter(|image| is_for(image, own) || is_for(image, family)).collect()
}
