//! A subscriber is the user's code: it may use the crate, take its time, and panic.
#![cfg(feature = "tracing")]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use device_arena::{Arena, ArenaOptions, Call, Growth};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Runs a closure at every event of the crate, with the event's message.
struct Hook<F>(F);

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl<F: Fn(&str) + 'static> Subscriber for Hook<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "device_arena"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        (self.0)(&message.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn with_hook<R>(hook: impl Fn(&str) + Send + Sync + 'static, work: impl FnOnce() -> R) -> R {
    tracing::subscriber::with_default(Hook(hook), work)
}

fn outgrow(arena: &Arena) {
    let call = arena.begin().unwrap();
    for _ in 0..3 {
        drop(call.output::<u8>(9000).unwrap());
    }
    call.finish().unwrap();
}

#[test]
fn growth_refusals_and_replacements_are_told() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let tells = Arc::clone(&told);
    with_hook(
        move |message| tells.lock().unwrap().push(message.to_owned()),
        || {
            let options = ArenaOptions::new().first_capacity(1).growth(Growth::Exact).byte_limit(40 << 10);
            let arena = options.build_host().unwrap();
            outgrow(&arena);
            let call = arena.begin().unwrap();
            assert!(arena.begin().is_err());
            call.finish().unwrap();
        },
    );
    let told = told.lock().unwrap();
    assert_eq!(*told, ["block allocated", "block allocated", "block allocated", "chain kept", "refused"]);
}

thread_local! {
    static CALL: RefCell<Option<Rc<Call>>> = const { RefCell::new(None) };
    static INNER: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn a_subscriber_that_uses_the_call_it_is_told_of() {
    let arena = ArenaOptions::new().first_capacity(1).growth(Growth::Exact).build_host().unwrap();
    let call = Rc::new(arena.begin().unwrap());
    CALL.with(|slot| *slot.borrow_mut() = Some(Rc::clone(&call)));
    let hook = |_: &str| {
        let call = CALL.with(|slot| slot.borrow().clone());
        if let Some(call) = call
            && INNER.get() < 50
        {
            INNER.set(INNER.get() + 1);
            drop(call.output_from_slice(&[0xEEu8; 100]).unwrap());
        }
    };
    let (outputs, written) = with_hook(hook, || {
        let mut writer = call.writer::<u8>().unwrap();
        let mut outputs = Vec::new();
        for i in 0..20u8 {
            outputs.push(call.output_from_slice(&[i; 3000]).unwrap());
            writer.extend_from_slice(&[i; 1000]).unwrap();
        }
        (outputs, writer)
    });
    CALL.with(|slot| slot.borrow_mut().take());
    assert!(INNER.get() > 3, "the subscriber was told, and used the call");
    assert!(outputs.iter().zip(0..).all(|(output, i)| output.as_slice().unwrap() == [i; 3000]));
    assert!(written.as_slice().chunks(1000).zip(0..).all(|(chunk, i)| chunk == [i; 1000]));
}

#[test]
fn a_subscriber_that_panics() {
    let hook = |message: &str| panic!("on {message}");
    with_hook(hook, || {
        let options = ArenaOptions::new().first_capacity(1).growth(Growth::Exact).byte_limit(40 << 10);
        let arena = options.build_host().unwrap();
        outgrow(&arena);
        outgrow(&arena);
        let call = arena.begin().unwrap();
        assert!(arena.begin().is_err());
        call.finish().unwrap();
        let stats = arena.stats();
        assert_eq!(arena.close().unwrap() as u64, stats.bytes_reserved);
    });
}
