//! Architectures: their numbers in code objects, and which code runs on which.

/// What an architecture can have on or off: retried accesses to memory, and corrected errors of on-chip memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// There is no such choice.
    Unsupported,
    /// Code that runs either way.
    Any,
    Off,
    On,
}

impl Mode {
    /// As two bits of an ELF file's flags say it.
    pub(crate) fn from_bits(bits: u32) -> Mode {
        [Mode::Unsupported, Mode::Any, Mode::Off, Mode::On][bits as usize & 3]
    }

    /// Whether code of this mode runs on a device of that one.
    pub(crate) fn runs_on(self, device: Mode) -> bool {
        matches!(self, Mode::Any | Mode::Unsupported) || self == device
    }
}

#[derive(Debug)]
pub(crate) struct Target {
    pub name: &'static str,
    /// The lowest byte of an ELF file's flags.
    pub machine: u8,
    pub has_sramecc: bool,
    pub has_xnack: bool,
    /// The first HIP version whose compiler knows it, major and minor.
    pub known_from: (i32, i32),
    /// The generic target whose code it runs as well, or none.
    pub generic: &'static str,
}

const fn target(
    name: &'static str,
    machine: u8,
    features: (bool, bool),
    known_from: (i32, i32),
    generic: &'static str,
) -> Target {
    Target { name, machine, has_sramecc: features.0, has_xnack: features.1, known_from, generic }
}

const NEITHER: (bool, bool) = (false, false);
const XNACK: (bool, bool) = (false, true);
const BOTH: (bool, bool) = (true, true);

/// The numbers are those that clang gives.
static TARGETS: [Target; 37] = [
    target("gfx900", 0x2c, XNACK, (5, 2), "gfx9-generic"),
    target("gfx902", 0x2d, XNACK, (5, 2), "gfx9-generic"),
    target("gfx904", 0x2e, XNACK, (5, 2), "gfx9-generic"),
    target("gfx906", 0x2f, BOTH, (5, 2), "gfx9-generic"),
    target("gfx908", 0x30, BOTH, (5, 2), ""),
    target("gfx909", 0x31, XNACK, (5, 2), "gfx9-generic"),
    target("gfx90a", 0x3f, BOTH, (5, 2), ""),
    target("gfx90c", 0x32, XNACK, (5, 2), "gfx9-generic"),
    target("gfx942", 0x4c, BOTH, (6, 0), "gfx9-4-generic"),
    target("gfx950", 0x4f, BOTH, (6, 4), "gfx9-4-generic"),
    target("gfx1010", 0x33, XNACK, (5, 2), "gfx10-1-generic"),
    target("gfx1011", 0x34, XNACK, (5, 2), "gfx10-1-generic"),
    target("gfx1012", 0x35, XNACK, (5, 2), "gfx10-1-generic"),
    target("gfx1013", 0x42, XNACK, (5, 2), "gfx10-1-generic"),
    target("gfx1030", 0x36, NEITHER, (5, 2), "gfx10-3-generic"),
    target("gfx1031", 0x37, NEITHER, (5, 2), "gfx10-3-generic"),
    target("gfx1032", 0x38, NEITHER, (5, 2), "gfx10-3-generic"),
    target("gfx1033", 0x39, NEITHER, (5, 2), "gfx10-3-generic"),
    target("gfx1034", 0x3e, NEITHER, (5, 2), "gfx10-3-generic"),
    target("gfx1035", 0x3d, NEITHER, (5, 2), "gfx10-3-generic"),
    target("gfx1036", 0x45, NEITHER, (5, 5), "gfx10-3-generic"),
    target("gfx1100", 0x41, NEITHER, (5, 5), "gfx11-generic"),
    target("gfx1101", 0x46, NEITHER, (5, 5), "gfx11-generic"),
    target("gfx1102", 0x47, NEITHER, (5, 5), "gfx11-generic"),
    target("gfx1103", 0x44, NEITHER, (5, 5), "gfx11-generic"),
    target("gfx1150", 0x43, NEITHER, (6, 2), "gfx11-generic"),
    target("gfx1151", 0x4a, NEITHER, (6, 2), "gfx11-generic"),
    target("gfx1152", 0x55, NEITHER, (6, 4), "gfx11-generic"),
    target("gfx1153", 0x58, NEITHER, (6, 4), "gfx11-generic"),
    target("gfx1200", 0x48, NEITHER, (6, 4), "gfx12-generic"),
    target("gfx1201", 0x4e, NEITHER, (6, 4), "gfx12-generic"),
    target("gfx9-generic", 0x51, XNACK, (6, 4), ""),
    target("gfx9-4-generic", 0x5f, BOTH, (6, 4), ""),
    target("gfx10-1-generic", 0x52, XNACK, (6, 4), ""),
    target("gfx10-3-generic", 0x53, NEITHER, (6, 4), ""),
    target("gfx11-generic", 0x54, NEITHER, (6, 4), ""),
    target("gfx12-generic", 0x59, NEITHER, (6, 4), ""),
];

impl Target {
    pub(crate) fn named(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// A target's name with what it says of sramecc and xnack.
    pub(crate) fn parse(id: &str) -> Option<(&'static Target, (Mode, Mode))> {
        let mut parts = id.split(':');
        let target = Target::named(parts.next()?)?;
        let any = |has| if has { Mode::Any } else { Mode::Unsupported };
        let mut modes = (any(target.has_sramecc), any(target.has_xnack));
        for part in parts {
            let mode = match part.as_bytes().last()? {
                b'+' => Mode::On,
                b'-' => Mode::Off,
                _ => return None,
            };
            let place = match &part[..part.len() - 1] {
                "sramecc" => &mut modes.0,
                "xnack" => &mut modes.1,
                _ => return None,
            };
            if *place == Mode::Unsupported {
                return None;
            }
            *place = mode;
        }
        Some((target, modes))
    }

    pub(crate) fn of_machine(machine: u8) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.machine == machine)
    }

    pub(crate) fn is_generic(&self) -> bool {
        self.name.ends_with("-generic")
    }

    /// The lanes of a wavefront, as kernels are compiled unless they say otherwise.
    pub(crate) fn wavefront(&self) -> i32 {
        if self.name.starts_with("gfx9") { 64 } else { 32 }
    }

    /// Major and minor, as attributes have them.
    pub(crate) fn capability(&self) -> (i32, i32) {
        // The name's digits: all but two are the major version.
        let digits = &self.name[3..];
        let (major, minor) = digits.split_at(digits.len() - 2);
        (major.parse().unwrap_or(0), i32::from(minor.as_bytes()[0] - b'0'))
    }

    /// What a device has on: sramecc, then xnack.
    pub(crate) fn modes(&self, xnack: bool) -> (Mode, Mode) {
        let mode = |has, on| match (has, on) {
            (false, _) => Mode::Unsupported,
            (true, false) => Mode::Off,
            (true, true) => Mode::On,
        };
        (mode(self.has_sramecc, true), mode(self.has_xnack, xnack))
    }

    /// The name with what is on, as `gcnArchName` has it.
    pub(crate) fn full_name(&self, xnack: bool) -> String {
        let mut name = self.name.to_owned();
        let (sramecc, retries) = self.modes(xnack);
        for (feature, mode) in [("sramecc", sramecc), ("xnack", retries)] {
            match mode {
                Mode::On => name += &format!(":{feature}+"),
                Mode::Off => name += &format!(":{feature}-"),
                Mode::Any | Mode::Unsupported => {}
            }
        }
        name
    }
}
