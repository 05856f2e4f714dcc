//! Code objects: ELF files of AMD's, as they are read, and as the simulated compiler writes them.

use super::settings::Version;
use super::targets::{Mode, Target};
use crate::core::status::{Result, Status};

const EM_AMDGPU: u16 = 224;
const OSABI_HSA: u8 = 64;
const HEADER: usize = 64;
const SECTION: usize = 64;
const SYMBOL: usize = 24;
const DYNAMIC_SYMBOLS: u32 = 11;

/// Code object version 6, as the ABI's version has it. Version 4 is 2.
const VERSION_6: u8 = 4;

/// In the padding of the identification: the simulated compiler wrote it.
const COMPILED: (usize, u8) = (15, b'R');

#[derive(Clone, Debug)]
pub(crate) struct CodeObject {
    machine: u8,
    sramecc: Mode,
    xnack: Mode,
    abi: u8,
    /// Whether the simulated compiler made it.
    pub compiled: bool,
    pub kernels: Vec<String>,
    /// Of the file, in all.
    pub bytes: usize,
}

fn number<const N: usize>(file: &[u8], at: usize) -> Result<[u8; N]> {
    let bytes = at.checked_add(N).and_then(|end| file.get(at..end)).ok_or(Status::INVALID_IMAGE)?;
    Ok(bytes.try_into().expect("so many bytes"))
}

fn short(file: &[u8], at: usize) -> Result<usize> {
    Ok(u16::from_le_bytes(number(file, at)?).into())
}

fn word(file: &[u8], at: usize) -> Result<u32> {
    Ok(u32::from_le_bytes(number(file, at)?))
}

fn long(file: &[u8], at: usize) -> Result<usize> {
    usize::try_from(u64::from_le_bytes(number(file, at)?)).map_err(|_| Status::INVALID_IMAGE)
}

impl CodeObject {
    /// Reads a file of which only the start is known.
    ///
    /// # Safety
    ///
    /// `image` is a whole ELF file.
    pub(crate) unsafe fn at(image: *const u8) -> Result<CodeObject> {
        // SAFETY: an ELF file has a header of 64 bytes.
        let header = unsafe { std::slice::from_raw_parts(image, HEADER) };
        check_header(header)?;
        // Linkers put the table of sections last.
        let sections = long(header, 40)?.checked_add(short(header, 58)? * short(header, 60)?);
        let bytes = sections.filter(|&end| (HEADER..1 << 30).contains(&end)).ok_or(Status::INVALID_IMAGE)?;
        // SAFETY: the header says that the file goes on to there.
        CodeObject::read(unsafe { std::slice::from_raw_parts(image, bytes) })
    }

    pub(crate) fn read(file: &[u8]) -> Result<CodeObject> {
        check_header(file)?;
        let flags = word(file, 48)?;
        let (table, size, count) = (long(file, 40)?, short(file, 58)?, short(file, 60)?);
        let section = |index: usize| {
            let at = table.checked_add(index * size).ok_or(Status::INVALID_IMAGE)?;
            Ok((
                word(file, at + 4)?,
                long(file, at + 24)?,
                long(file, at + 32)?,
                word(file, at + 40)? as usize,
            ))
        };
        let mut kernels = Vec::new();
        for index in 0..count {
            let (kind, start, bytes, names) = section(index)?;
            if kind != DYNAMIC_SYMBOLS {
                continue;
            }
            let (_, texts, texts_bytes, _) = section(names)?;
            let end = texts.checked_add(texts_bytes).ok_or(Status::INVALID_IMAGE)?;
            let texts = file.get(texts..end).ok_or(Status::INVALID_IMAGE)?;
            for symbol in 0..bytes / SYMBOL {
                let at = start.checked_add(symbol * SYMBOL).ok_or(Status::INVALID_IMAGE)?;
                let name = texts.get(word(file, at)? as usize..).ok_or(Status::INVALID_IMAGE)?;
                let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
                // A kernel's descriptor is named after it.
                if let Some(kernel) = std::str::from_utf8(name).ok().and_then(|name| name.strip_suffix(".kd"))
                {
                    kernels.push(kernel.to_owned());
                }
            }
        }
        Ok(CodeObject {
            machine: (flags & 0xff) as u8,
            xnack: Mode::from_bits(flags >> 8),
            sramecc: Mode::from_bits(flags >> 10),
            abi: file[8],
            compiled: file[COMPILED.0] == COMPILED.1,
            kernels,
            bytes: file.len(),
        })
    }

    /// Whether a runtime of that version runs it on such a device.
    pub(crate) fn runs_on(&self, target: &Target, xnack: bool, version: Version) -> bool {
        if self.abi >= VERSION_6 && !version.is_at_least(6, 4) {
            return false;
        }
        let of_target = self.machine == target.machine;
        let of_generic = Target::named(target.generic).is_some_and(|generic| generic.machine == self.machine);
        let (sramecc, retries) = target.modes(xnack);
        (of_target || of_generic) && self.sramecc.runs_on(sramecc) && self.xnack.runs_on(retries)
    }

    pub(crate) fn is_of_known_machine(&self) -> bool {
        Target::of_machine(self.machine).is_some()
    }
}

fn check_header(file: &[u8]) -> Result<()> {
    let is_elf = file.len() >= HEADER && file.starts_with(b"\x7fELF") && file[4] == 2;
    if is_elf && short(file, 18)? == usize::from(EM_AMDGPU) && file[7] == OSABI_HSA {
        Ok(())
    } else {
        Err(Status::INVALID_IMAGE)
    }
}

/// A file for a target that has these kernels, and no code.
pub(crate) fn write(target: &Target, modes: (Mode, Mode), kernels: &[String]) -> Vec<u8> {
    let mut texts = vec![0_u8];
    let mut symbols = vec![0_u8; SYMBOL];
    for kernel in kernels {
        let mut symbol = [0_u8; SYMBOL];
        symbol[..4].copy_from_slice(&(texts.len() as u32).to_le_bytes());
        // A global object of some section.
        symbol[4] = 0x11;
        symbol[6] = 1;
        symbols.extend(symbol);
        texts.extend(format!("{kernel}.kd\0").bytes());
    }
    texts.resize(texts.len().next_multiple_of(8), 0);
    let (symbols_at, texts_at) = (HEADER, HEADER + symbols.len());
    let table_at = texts_at + texts.len();

    let (sramecc, xnack) = modes;
    let flags = u32::from(target.machine)
        | (xnack as u32) << 8
        | (sramecc as u32) << 10
        | u32::from(target.is_generic()) << 24;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(HEADER, 0);
    file[7] = OSABI_HSA;
    file[8] = if target.is_generic() { VERSION_6 } else { 2 };
    file[COMPILED.0] = COMPILED.1;
    file[16] = 3;
    file[18..20].copy_from_slice(&EM_AMDGPU.to_le_bytes());
    file[20] = 1;
    file[40..48].copy_from_slice(&(table_at as u64).to_le_bytes());
    file[48..52].copy_from_slice(&flags.to_le_bytes());
    file[52] = HEADER as u8;
    file[58] = SECTION as u8;
    file[60] = 3;
    file.extend_from_slice(&symbols);
    file.extend_from_slice(&texts);
    const TEXTS: u32 = 3;
    for (kind, start, bytes, names, size) in [
        (0, 0, 0, 0_u32, 0),
        (DYNAMIC_SYMBOLS, symbols_at, symbols.len(), 2, SYMBOL),
        (TEXTS, texts_at, texts.len(), 0, 0),
    ] {
        let mut section = [0_u8; SECTION];
        section[4..8].copy_from_slice(&kind.to_le_bytes());
        section[24..32].copy_from_slice(&(start as u64).to_le_bytes());
        section[32..40].copy_from_slice(&(bytes as u64).to_le_bytes());
        section[40..44].copy_from_slice(&names.to_le_bytes());
        section[56..64].copy_from_slice(&(size as u64).to_le_bytes());
        file.extend(section);
    }
    file
}
