use device_arena::{Result, View};

fn values(view: &View<u8>) -> Result<&[u8]> {
    let guard = view.read()?;
    Ok(&guard)
}

fn main() {
    let _ = values;
}
