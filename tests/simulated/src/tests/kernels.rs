//! Images, and the shipped kernels over simulated memory.

use super::*;

/// The shipped text and its last zero byte, and a kernel that nobody has.
fn text() -> Vec<u8> {
    let mut text = include_bytes!("../../../../backends/kernels/images/arena.ptx").to_vec();
    text.extend_from_slice(b"\n.visible .entry unknown_here(\n)\n{ret;}\n\0");
    text
}

const CUBIN_80: &[u8] = include_bytes!("../../../../backends/kernels/images/arena.sm_80.cubin");
const CUBIN_90: &[u8] = include_bytes!("../../../../backends/kernels/images/arena.sm_90.cubin");
const CUBIN_100: &[u8] = include_bytes!("../../../../backends/kernels/images/arena.sm_100.cubin");

/// A list that travels with a launch. A range is a destination, a source and its bytes; for a fill, the address, the bytes and
/// the value.
#[repr(C)]
#[derive(Clone, Copy)]
struct List<Number, const COUNT: usize> {
    ranges: [[u64; 3]; COUNT],
    first_tiles: [Number; COUNT],
}

type Copies = List<u32, 128>;
type Fills = List<u64, 16>;

impl<Number: Copy + Default, const COUNT: usize> Default for List<Number, COUNT> {
    fn default() -> Self {
        Self { ranges: [[0; 3]; COUNT], first_tiles: [Number::default(); COUNT] }
    }
}

const TILE: u64 = 32768;

/// The tiles before each range, by the field that has its length, and of all.
fn number_tiles(ranges: &[[u64; 3]], length: usize) -> (Vec<u64>, u64) {
    let mut tiles = 0;
    let first_tiles = ranges.iter().map(|range| {
        let first_tile = tiles;
        let (to, bytes) = (range[0], range[length]);
        tiles += if bytes == 0 { 0 } else { (bytes + to % 16).div_ceil(TILE) };
        first_tile
    });
    (first_tiles.collect(), tiles)
}

fn load(image: &[u8]) -> Handle {
    let mut module = null();
    assert_eq!(unsafe { cuModuleLoadData(&mut module, image.as_ptr().cast()) }, 0);
    module
}

fn function(module: Handle, name: &std::ffi::CStr) -> Handle {
    let mut function = null();
    assert_eq!(unsafe { cuModuleGetFunction(&mut function, module, name.as_ptr()) }, 0);
    function
}

fn launch(function: Handle, blocks: u32, stream: Handle, parameters: &mut [*mut c_void]) -> u32 {
    unsafe {
        cuLaunchKernel(function, blocks, 1, 1, 64, 1, 1, 0, stream, parameters.as_mut_ptr(), null().cast())
    }
}

#[test]
fn images_are_checked() {
    let _turn = turn();
    let mut module = null();
    let load = |module: &mut Handle, image: &[u8]| unsafe { cuModuleLoadData(module, image.as_ptr().cast()) };
    assert_eq!(load(&mut module, b"garbage\0"), 200);
    assert_eq!(load(&mut module, b"\0"), 200);
    assert_eq!(load(&mut module, b".version 9.1\n.target sm_90\n\0"), 222);
    assert_eq!(load(&mut module, b".version 9.0\n.target sm_90a\n\0"), 0);
    assert_eq!(load(&mut module, b".version 9.0\n.target sm_100\n\0"), 218);
    set("VERSION", "12000");
    assert_eq!(load(&mut module, b".version 9.0\n.target sm_90\n\0"), 222);
    let mut machine_code = [0_u8; 64];
    machine_code[..5].copy_from_slice(b"\x7fELF\x02");
    assert_eq!(load(&mut module, &machine_code), 200);
    for (capability, statuses) in
        [("8.0", [0, 209, 209]), ("8.9", [0, 209, 209]), ("9.0", [209, 0, 209]), ("10.3", [209, 209, 0])]
    {
        set("CAPABILITY", capability);
        assert_eq!(
            [CUBIN_80, CUBIN_90, CUBIN_100].map(|image| load(&mut module, image)),
            statuses,
            "{capability}"
        );
    }
    set("CAPABILITY", "9.0");
    set("CUBIN", "0");
    assert_eq!(load(&mut module, CUBIN_90), 209);
    set("CUBIN", "1");
    assert!(!function(self::load(CUBIN_90), c"device_arena_rewind").is_null());
    let module = self::load(&text());
    let mut found = null();
    unsafe {
        assert_eq!(cuModuleGetFunction(&mut found, module, c"unknown_here".as_ptr()), 500);
        assert_eq!(cuModuleGetFunction(&mut found, module, c"device_arena_cop".as_ptr()), 500);
        assert_eq!(cuModuleGetFunction(&mut found, module, c"device_arena_copy".as_ptr()), 0);
        let mut threads = 0;
        assert_eq!((cuFuncGetAttribute(&mut threads, 0, found), threads), (0, 64));
        assert_eq!(cuModuleUnload(module), 0);
        assert_eq!(cuModuleUnload(module), 400);
        assert_eq!(cuFuncGetAttribute(&mut threads, 0, found), 400);
    }
}

#[test]
fn the_copy_kernel_moves_ranges() {
    let _turn = turn();
    let module = load(&text());
    let stream = stream(1);
    let (from, to, same) = (device_memory(100_000), device_memory(100_000), device_memory(5000));
    let pattern: Vec<u8> = (0..100_000_u32).map(|index| (index * 7 % 251) as u8).collect();
    let (count, mut list) = (5_u64, Copies::default());
    unsafe {
        assert_eq!(cuMemcpyHtoDAsync_v2(from, pattern.as_ptr().cast(), pattern.len(), stream), 0);
        assert_eq!(cuMemcpyHtoDAsync_v2(same, pattern.as_ptr().cast(), 5000, stream), 0);
        assert_eq!(cuMemsetD8Async(to, 0, 100_000, stream), 0);
    }
    list.ranges[0] = [to + 3, from + 8, 70_000];
    list.ranges[1] = [to + 70_016, from + 70_016, 0];
    list.ranges[2] = [to + 70_017, from + 5, 1];
    list.ranges[3] = [to + 80_000, from + 80_000, 20_000];
    // It overlaps itself, so its threads have to meet.
    list.ranges[4] = [same + 37, same, 4900];
    let (first_tiles, mut tiles) = number_tiles(&list.ranges[..5], 2);
    assert_eq!(tiles, 3 + 1 + 1 + 1);
    for (place, first_tile) in list.first_tiles.iter_mut().zip(&first_tiles) {
        *place = u32::try_from(*first_tile).unwrap();
    }
    let (mut count, mut each) = (count, 0_u64);
    {
        let mut given = list;
        let few = function(module, c"device_arena_copy_few");
        occupy(stream);
        let mut parameters = [
            (&raw mut given).cast(),
            (&raw mut count).cast(),
            (&raw mut tiles).cast(),
            (&raw mut each).cast(),
        ];
        assert_eq!(launch(few, 3, stream, &mut parameters), 0);
        // Parameters are the launch's own from then on.
        given = Copies::default();
        std::hint::black_box(&given);
    }
    let mut expected = vec![0; 100_000];
    expected[3..70_003].copy_from_slice(&pattern[8..70_008]);
    expected[70_017] = pattern[5];
    expected[80_000..].copy_from_slice(&pattern[80_000..]);
    assert!(bytes_at(to, 100_000, stream) == expected);
    let mut shifted = pattern[..5000].to_vec();
    shifted.copy_within(0..4900, 37);
    assert!(bytes_at(same, 5000, stream) == shifted);

    // The same out of a list that is in device memory, in a graph.
    let ranges_bytes = size_of_val(&list.ranges[..5]);
    let ranges = device_memory(ranges_bytes + size_of_val(first_tiles.as_slice()));
    let many = function(module, c"device_arena_copy");
    let (mut address, mut graph, mut executable) = (ranges, null(), null());
    let mut parameters =
        [(&raw mut address).cast(), (&raw mut count).cast(), (&raw mut tiles).cast(), (&raw mut each).cast()];
    unsafe {
        assert_eq!(cuMemcpyHtoDAsync_v2(ranges, list.ranges.as_ptr().cast(), ranges_bytes, stream), 0);
        let numbers_bytes = size_of_val(first_tiles.as_slice());
        assert_eq!(
            cuMemcpyHtoDAsync_v2(
                ranges + ranges_bytes as u64,
                first_tiles.as_ptr().cast(),
                numbers_bytes,
                stream
            ),
            0
        );
        assert_eq!(cuMemsetD8Async(to, 0, 100_000, stream), 0);
        assert_eq!(cuStreamBeginCapture_v2(stream, 0), 0);
        assert_eq!(launch(many, 2, stream, &mut parameters), 0);
        assert_eq!(cuStreamEndCapture(stream, &mut graph), 0);
        assert_eq!(cuGraphInstantiateWithFlags(&mut executable, graph, 0), 0);
        assert_eq!(cuGraphLaunch(executable, stream), 0);
        assert_eq!(cuGraphLaunch(executable, stream), 0);
        assert!(bytes_at(to, 100_000, stream) == expected);
        assert_eq!(cuGraphExecDestroy(executable), 0);
        assert_eq!(cuGraphDestroy(graph), 0);
    }
}

#[test]
fn the_rewind_kernel_resets_a_room_and_fills() {
    let _turn = turn();
    let rewind = function(load(&text()), c"device_arena_rewind");
    let block = device_memory(100_000);
    let mut list = Fills::default();
    list.ranges[0] = [block + 257, 70_000, 0xAB];
    let (mut room, mut base, mut capacity, mut alignment) = (block, block + 256, 99_744_u64, 64_u64);
    let (mut generation, mut count, mut tiles) = (17_u64, 1_u64, number_tiles(&list.ranges[..1], 1).1);
    let mut parameters = [
        (&raw mut room).cast(),
        (&raw mut base).cast(),
        (&raw mut capacity).cast(),
        (&raw mut alignment).cast(),
        (&raw mut generation).cast(),
        (&raw mut list).cast(),
        (&raw mut count).cast(),
        (&raw mut tiles).cast(),
    ];
    assert_eq!(launch(rewind, 2, null(), &mut parameters), 0);
    let read = bytes_at(block, 100_000, null());
    let words: Vec<u64> =
        read[..64].chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    assert_eq!(words, [0, 99_744, block + 256, 64, 17, 0, 0, 0]);
    let whole = |bytes: &[u8], value| bytes.iter().all(|&byte| byte == value);
    assert!(whole(&read[64..257], 0xC5) && whole(&read[257..70_257], 0xAB) && whole(&read[70_257..], 0xC5));
}

#[test]
fn a_kernel_out_of_bounds_breaks_its_context() {
    let turn = turn();
    let there = open(1);
    let far = device_memory(64);
    let mut popped = null();
    unsafe { assert_eq!((cuCtxPopCurrent_v2(&mut popped), popped), (0, there)) };
    for allowed in [true, false] {
        let few = function(load(&text()), c"device_arena_copy_few");
        let near = device_memory(64);
        let (mut count, mut tiles, mut each, mut list) = (1_u64, 1_u64, 1_u64, Copies::default());
        list.ranges[0] = [far, near, 64];
        if allowed {
            unsafe {
                assert_eq!(cuCtxEnablePeerAccess(there, 0), 0);
                assert_eq!(cuCtxEnablePeerAccess(there, 0), 704);
            }
        }
        let mut parameters = [
            (&raw mut list).cast(),
            (&raw mut count).cast(),
            (&raw mut tiles).cast(),
            (&raw mut each).cast(),
        ];
        assert_eq!(launch(few, 2, null(), &mut parameters), 0);
        let status = unsafe { cuCtxSynchronize() };
        assert_eq!(status, if allowed { 0 } else { 700 });
        // A new context has no peers, and is whole.
        unsafe {
            assert_eq!(cuDevicePrimaryCtxRelease_v2(0), 0);
            assert_eq!(cuCtxPopCurrent_v2(&mut popped), 0);
            assert_eq!(popped, turn.context);
        }
        open(0);
    }
    let few = function(load(&text()), c"device_arena_copy_few");
    // The nameless stream is the current context's, and the function another's.
    open(1);
    let (mut count, mut tiles, mut each, mut list) = (0_u64, 0_u64, 0_u64, Copies::default());
    let mut parameters =
        [(&raw mut list).cast(), (&raw mut count).cast(), (&raw mut tiles).cast(), (&raw mut each).cast()];
    assert_eq!(launch(few, 1, null(), &mut parameters), 400);
}
