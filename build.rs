//! Holds the kernel images against their manifest and makes a table of them for `backends/kernels/mod.rs`. Without the
//! feature of a vendor that has kernels it does nothing.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(any(feature = "cuda", feature = "rocm"))]
    {
        // What GPU vendors share is built for any of them.
        println!("cargo::rustc-cfg=gpu");
        images::run();
    }
}

#[cfg(any(feature = "cuda", feature = "rocm"))]
mod images {
    use std::fmt::Write;
    use std::path::Path;
    use std::{env, fs};

    use sha2::{Digest, Sha256};

    const MANIFEST: &str = "backends/kernels/manifest.txt";

    pub fn run() {
        println!("cargo::rerun-if-changed={MANIFEST}");
        if let Err(error) = table() {
            println!("cargo::error={error}");
        }
    }

    /// A line of the manifest is `source PATH SHA256` or `image PATH KIND TARGET BYTES SHA256`, with paths from the
    /// package's root. Other lines name the compilers.
    fn table() -> Result<(), String> {
        let root = env::var("CARGO_MANIFEST_DIR").map_err(|error| error.to_string())?;
        let out = env::var("OUT_DIR").map_err(|error| error.to_string())?;
        let (root, out) = (Path::new(&root), Path::new(&out));
        let manifest = String::from_utf8(read(root, MANIFEST)?).map_err(|error| error.to_string())?;
        let mut statics = String::new();
        let mut cubins = Vec::new();
        let mut code_objects: Vec<(String, String, usize)> = Vec::new();
        let mut has_ptx = false;
        for line in manifest.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            match words.as_slice() {
                ["source", path, sha256] => {
                    // A checkout may have other line ends.
                    let mut text = read(root, path)?;
                    text.retain(|&byte| byte != b'\r');
                    if hash(&text) != *sha256 {
                        return Err(format!(
                            "{path} is not what the kernel images were made from: run `ci/kernels --write`"
                        ));
                    }
                }
                ["image", path, kind, target, bytes, sha256] => {
                    let mut image = read(root, path)?;
                    if hash(&image) != *sha256 || image.len().to_string() != *bytes {
                        return Err(format!(
                            "{path} is not the image that {MANIFEST} names: check it out again"
                        ));
                    }
                    if *kind == "hsaco" {
                        if cfg!(feature = "rocm") {
                            let name = format!("arena.{target}.hsaco");
                            write_file(&out.join(&name), &image)?;
                            code_objects.push((target.to_string(), name, image.len()));
                        }
                        continue;
                    }
                    let number: Option<u32> = target.strip_prefix("sm_").and_then(|text| text.parse().ok());
                    let number = number.ok_or_else(|| format!("{MANIFEST}: {target} is no target"))?;
                    match *kind {
                        "ptx" => {
                            image.push(0);
                            write_file(&out.join("arena.ptx"), &image)?;
                            has_ptx = true;
                        }
                        "cubin" => {
                            let name = format!("arena.sm_{number}.cubin");
                            write_file(&out.join(&name), &image)?;
                            let length = image.len();
                            let _ = writeln!(
                                statics,
                                "static SM_{number}: Aligned<[u8; {length}]> = \
                                 Aligned(*include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\")));"
                            );
                            cubins.push(number);
                        }
                        _ => return Err(format!("{MANIFEST}: {kind} is no kind of image")),
                    }
                }
                _ => {}
            }
        }
        if !has_ptx || cubins.is_empty() {
            return Err(format!("{MANIFEST} names no images"));
        }
        cubins.sort_unstable();
        let entries: Vec<_> = cubins.iter().map(|number| format!("({number}, &SM_{number}.0)")).collect();
        let table = format!(
            "{statics}pub(crate) const CUDA_PTX: &[u8] = include_bytes!(concat!(env!(\"OUT_DIR\"), \"/arena.ptx\"));\n\
             pub(crate) const CUDA_CUBINS: &[(u32, &[u8])] = &[{}];\n",
            entries.join(", ")
        );
        let mut table = table;
        if cfg!(feature = "rocm") {
            code_objects.sort();
            let mut entries = Vec::new();
            for (target, name, length) in &code_objects {
                let symbol = target.to_uppercase().replace('-', "_");
                let _ = writeln!(
                    table,
                    "static {symbol}: Aligned<[u8; {length}]> = \
                     Aligned(*include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\")));"
                );
                entries.push(format!("(\"{target}\", &{symbol}.0)"));
            }
            let _ = writeln!(
                table,
                "pub(crate) const ROCM_CODE_OBJECTS: &[(&str, &[u8])] = &[{}];",
                entries.join(", ")
            );
        }
        write_file(&out.join("kernel_images.rs"), table.as_bytes())
    }

    fn read(root: &Path, path: &str) -> Result<Vec<u8>, String> {
        println!("cargo::rerun-if-changed={path}");
        fs::read(root.join(path)).map_err(|error| format!("{path}: {error}"))
    }

    fn write_file(path: &Path, content: &[u8]) -> Result<(), String> {
        fs::write(path, content).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn hash(content: &[u8]) -> String {
        Sha256::digest(content).iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}
