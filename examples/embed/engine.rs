//! What the verbs are to the loop that calls them, be they the host's or a GPU's.

use device_arena::{Arena, Executor, Result, TapeView, View};

use crate::verbs::{self, Tokens};

pub trait Engine {
    type Tokens: TokenList;

    fn executor(&self) -> &Executor;
    fn tokenize(&self, texts: &TapeView, arena: &Arena) -> Result<Self::Tokens>;
    fn embed(&self, tokens: &Self::Tokens, arena: &Arena) -> Result<View<f32>>;
}

pub trait TokenList {
    /// How many there are.
    fn len(&self) -> usize;
    /// Each text's first.
    fn first(&self) -> &View<u64>;
}

/// The verbs of `verbs.rs`.
pub struct Host(pub Executor);

impl Engine for Host {
    type Tokens = Tokens;

    fn executor(&self) -> &Executor {
        &self.0
    }

    fn tokenize(&self, texts: &TapeView, arena: &Arena) -> Result<Tokens> {
        verbs::tokenize(&self.0, texts, arena)
    }

    fn embed(&self, tokens: &Tokens, arena: &Arena) -> Result<View<f32>> {
        verbs::embed(&self.0, tokens, arena)
    }
}

impl TokenList for Tokens {
    fn len(&self) -> usize {
        self.strings.len()
    }

    fn first(&self) -> &View<u64> {
        &self.first
    }
}

#[cfg(any(feature = "cuda", feature = "rocm"))]
mod device {
    use device_arena::{Arena, Executor, Result, TapeView, View};

    use super::{Engine, TokenList};
    use crate::device::{Device, DeviceTokens};

    impl Engine for Device {
        type Tokens = DeviceTokens;

        fn executor(&self) -> &Executor {
            self.executor()
        }

        fn tokenize(&self, texts: &TapeView, arena: &Arena) -> Result<DeviceTokens> {
            self.tokenize(texts, arena)
        }

        fn embed(&self, tokens: &DeviceTokens, arena: &Arena) -> Result<View<f32>> {
            self.embed(tokens, arena)
        }
    }

    impl TokenList for DeviceTokens {
        fn len(&self) -> usize {
            self.offsets.len().saturating_sub(1)
        }

        fn first(&self) -> &View<u64> {
            &self.first
        }
    }
}
