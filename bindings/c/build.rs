//! Keeps the shared library in the process that has loaded it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A worker that ends by itself, and a tensor that is lent, run the library's code after its user's last call: whoever
    // closes it then must not take that code away.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
