//! Which architecture a device has, and which images of the kernels it runs.

use std::ffi::c_int;

use super::{RocmDriver, until_zero};
use crate::backends::kernels;

/// Where `gcnArchName` is in `hipDeviceProp_t`, which has had two layouts, each under a name of its own from 6.0 on.
const IN_R0600: usize = 1160;
const IN_R0000: usize = 396;

/// More than any version's structure.
#[repr(C, align(16))]
struct Properties([u8; PROPERTIES]);

const PROPERTIES: usize = 16 << 10;

/// Targets that serve several architectures, from HIP 6.4 on. 908 and 90a have none.
const GENERIC: [(&str, &[&str]); 6] = [
    ("gfx9-generic", &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"]),
    ("gfx9-4-generic", &["gfx942", "gfx950"]),
    ("gfx10-1-generic", &["gfx1010", "gfx1011", "gfx1012", "gfx1013"]),
    ("gfx10-3-generic", &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"]),
    (
        "gfx11-generic",
        &["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"],
    ),
    ("gfx12-generic", &["gfx1200", "gfx1201"]),
];

impl RocmDriver {
    /// The architecture with its features, such as `gfx90a:sramecc+:xnack-`. Empty where the runtime does not say.
    pub(super) fn architecture(&self, device: c_int) -> String {
        let layouts = [(self.own.properties_r0600, IN_R0600), (self.own.properties, IN_R0000)];
        let mut properties = Box::new(Properties([0; PROPERTIES]));
        for (function, at) in layouts {
            let Some(function) = function else { continue };
            // SAFETY: the runtime writes a structure that is shorter than this room.
            let code = unsafe { (function.call)((&raw mut *properties).cast(), device) };
            let name = properties.0.get(at..at + 256).map_or("", until_zero);
            if code == 0 && is_architecture(name) {
                return name.to_owned();
            }
        }
        String::new()
    }
}

/// Whether a text can be an architecture's name: what else may lie at its place is no number of a device to compile for.
pub(super) fn is_architecture(name: &str) -> bool {
    name.starts_with("gfx")
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b":+-".contains(&byte))
}

/// The name without its features.
fn base(architecture: &str) -> &str {
    architecture.split(':').next().unwrap_or_default()
}

/// The images for an architecture: its own first, then one that it shares with others.
pub(super) fn images(architecture: &str) -> Vec<&'static [u8]> {
    let base = base(architecture);
    let generic = GENERIC.iter().filter(|(_, members)| members.contains(&base)).map(|(target, _)| *target);
    let targets = [base].into_iter().chain(generic);
    let image = |target: &str| kernels::ROCM_CODE_OBJECTS.iter().find(|(name, _)| *name == target);
    targets.filter_map(image).map(|(_, image)| *image).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(target: &str) -> &'static [u8] {
        kernels::ROCM_CODE_OBJECTS.iter().find(|(name, _)| *name == target).unwrap().1
    }

    #[test]
    fn an_image_of_its_own_comes_before_one_that_is_shared() {
        assert_eq!(images("gfx942:sramecc+:xnack-"), [of("gfx942"), of("gfx9-4-generic")]);
        assert_eq!(images("gfx1100"), [of("gfx1100"), of("gfx11-generic")]);
    }

    #[test]
    fn an_architecture_without_an_image_of_its_own_has_the_shared_one() {
        assert_eq!(images("gfx1032"), [of("gfx10-3-generic")]);
        assert_eq!(images("gfx90c:xnack-"), [of("gfx9-generic")]);
    }

    #[test]
    fn some_architectures_share_with_no_other() {
        assert_eq!(images("gfx90a:sramecc+:xnack-"), [of("gfx90a")]);
        assert_eq!(images("gfx908"), [of("gfx908")]);
    }

    #[test]
    fn an_unknown_architecture_has_none() {
        for name in ["gfx1300", "gfx9", "", "sm_90", "gfx942x"] {
            assert!(images(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn only_names_of_architectures_are_taken_for_one() {
        assert!(is_architecture("gfx90a:sramecc+:xnack-") && is_architecture("gfx9-4-generic"));
        for name in ["", "sm_90", "AMD Instinct", "gfx90a -O3", "gfx\u{1}"] {
            assert!(!is_architecture(name), "{name}");
        }
    }
}
