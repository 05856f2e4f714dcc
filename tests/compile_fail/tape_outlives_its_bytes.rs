use device_arena::TapeView;

fn main() -> device_arena::Result<()> {
    let tape = {
        let bytes = vec![1u8, 2];
        TapeView::of(&bytes, &[0u32, 2])?
    };
    tape.bytes().map(drop)
}
