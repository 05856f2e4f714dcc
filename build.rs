//! Holds the kernel images against their manifest and makes tables of them for `backends/kernels/mod.rs`: those of the
//! vendors that are asked for. Without the feature of a vendor that has kernels it does nothing.

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
        let mut ptx = None;
        let mut cubins = Vec::new();
        let mut code_objects = Vec::new();
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
                    let image = read(root, path)?;
                    if hash(&image) != *sha256 || image.len().to_string() != *bytes {
                        return Err(format!(
                            "{path} is not the image that {MANIFEST} names: check it out again"
                        ));
                    }
                    let number = target.strip_prefix("sm_").and_then(|text| text.parse::<u32>().ok());
                    match (*kind, number) {
                        ("ptx", Some(_)) => ptx = Some(image),
                        ("cubin", Some(number)) => cubins.push((number, image)),
                        ("hsaco", _) if target.starts_with("gfx") => code_objects.push((*target, image)),
                        _ => {
                            return Err(format!(
                                "{MANIFEST}: {target} is no target, or {kind} no kind of image"
                            ));
                        }
                    }
                }
                _ => {}
            }
        }
        let Some(ptx) = ptx.filter(|_| !cubins.is_empty() && !code_objects.is_empty()) else {
            return Err(format!("{MANIFEST} names no images"));
        };
        let mut tables = String::new();
        if cfg!(feature = "cuda") {
            tables += &cuda(out, ptx, cubins)?;
        }
        if cfg!(feature = "rocm") {
            tables += &rocm(out, code_objects)?;
        }
        write_file(&out.join("kernel_images.rs"), tables.as_bytes())
    }

    fn cuda(out: &Path, mut ptx: Vec<u8>, mut cubins: Vec<(u32, Vec<u8>)>) -> Result<String, String> {
        ptx.push(0);
        write_file(&out.join("arena.ptx"), &ptx)?;
        cubins.sort_unstable();
        let mut statics = String::new();
        let mut entries = Vec::new();
        for (number, image) in cubins {
            statics += &aligned(out, &format!("SM_{number}"), &format!("arena.sm_{number}.cubin"), &image)?;
            entries.push(format!("({number}, &SM_{number}.0)"));
        }
        Ok(format!(
            "{statics}pub(crate) const CUDA_PTX: &[u8] = include_bytes!(concat!(env!(\"OUT_DIR\"), \"/arena.ptx\"));\n\
             pub(crate) const CUDA_CUBINS: &[(u32, &[u8])] = &[{}];\n",
            entries.join(", ")
        ))
    }

    fn rocm(out: &Path, mut code_objects: Vec<(&str, Vec<u8>)>) -> Result<String, String> {
        code_objects.sort_unstable();
        let mut statics = String::new();
        let mut entries = Vec::new();
        for (target, image) in code_objects {
            let name = target.replace('-', "_").to_uppercase();
            statics += &aligned(out, &name, &format!("arena.{target}.hsaco"), &image)?;
            entries.push(format!("(\"{target}\", &{name}.0)"));
        }
        Ok(format!(
            "{statics}pub(crate) const ROCM_CODE_OBJECTS: &[(&str, &[u8])] = &[{}];\n",
            entries.join(", ")
        ))
    }

    /// A static of this name with the image in it, aligned as a driver wants it.
    fn aligned(out: &Path, name: &str, file: &str, image: &[u8]) -> Result<String, String> {
        write_file(&out.join(file), image)?;
        let length = image.len();
        Ok(format!(
            "static {name}: Aligned<[u8; {length}]> = \
             Aligned(*include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{file}\")));\n"
        ))
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
