//! The library that was linked, where the declarations were compiled against its headers.

use std::ffi::c_int;

use device_arena_declarations::{TABLES, lacking};
use hip_sys::hiprt::{hipError_t, hipRuntimeGetVersion};

#[test]
fn the_version_is_the_same_by_link_and_by_name() {
    let (mut linked, mut found): (c_int, c_int) = (0, 0);
    // SAFETY: the library writes one number.
    assert_eq!(unsafe { hipRuntimeGetVersion(&raw mut linked) }, hipError_t::hipSuccess);
    let program = libloading::os::unix::Library::this();
    // SAFETY: the type is that of the declaration.
    let by_name =
        unsafe { program.get::<unsafe extern "C" fn(*mut c_int) -> u32>(b"hipRuntimeGetVersion\0") };
    // SAFETY: as above.
    assert_eq!(unsafe { (by_name.unwrap())(&raw mut found) }, 0);
    println!("HIP {linked}");
    assert_eq!(linked, found);
    assert!(linked >= 50_200_000, "{linked}");
}

#[test]
fn no_entry_of_a_table_is_there_twice_and_each_is_a_name_of_hips() {
    for table in TABLES {
        let mut names = table.to_vec();
        assert!(!names.is_empty() && names.iter().all(|name| name.starts_with("hip")), "{names:?}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), table.len());
    }
    let count = TABLES.concat().len();
    println!("{count} entries, of which hip-sys lacks {}: {:?}", lacking::NAMES.len(), lacking::NAMES);
    assert!(count > 40, "{count}");
}
