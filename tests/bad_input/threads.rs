//! Drops in every order on every thread, and what may cross threads at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use device_arena::{
    Arena, Call, Deferred, Error, Executor, Export, Output, PublishedTape, ReadGuard, Tape, TapeOutput,
    TapeView, View, Writer,
};

#[test]
fn what_is_send_and_sync() {
    fn both<T: Send + Sync + 'static>() {}
    fn send<T: Send + 'static>() {}
    fn lent<T: Send + Sync>() {}
    both::<Arena>();
    both::<Executor>();
    both::<View<f32>>();
    both::<Output<f32>>();
    both::<Writer<f32>>();
    both::<TapeOutput>();
    both::<PublishedTape>();
    both::<Export<f32>>();
    both::<Tape>();
    both::<Error>();
    both::<Deferred<u8>>();
    send::<Call>();
    lent::<ReadGuard<'_, f32>>();
    lent::<TapeView<'_>>();
    assert!(size_of::<View<f32>>() <= 32 && size_of::<Output<f32>>() <= 32 && size_of::<Call>() <= 24);
    assert!(size_of::<Error>() <= 64, "{}", size_of::<Error>());
}

#[test]
fn an_arena_dropped_while_another_thread_holds_a_guard() {
    let arena = Arena::host();
    let call = arena.begin().unwrap();
    let view = call.output_from_fn(100_000, |i| i as u32).unwrap().publish();
    call.finish().unwrap();
    let dropped = Arc::new(AtomicBool::new(false));
    let is_dropped = Arc::clone(&dropped);
    let (held, is_held) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let guard = view.read().unwrap();
        held.send(()).unwrap();
        while !is_dropped.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        assert!(guard.iter().copied().eq(0..100_000), "the guard keeps the block");
        assert!(matches!(view.read(), Err(Error::Stale { .. })), "and nobody else can take one");
    });
    is_held.recv().unwrap();
    drop(arena);
    dropped.store(true, Ordering::SeqCst);
    reader.join().unwrap();
}

#[test]
fn every_order_of_drops_on_any_thread() {
    // Arena, call, output, view, export, executor: in all 720 orders, each drop on a thread of its own.
    let mut order = [0, 1, 2, 3, 4, 5];
    let mut orders = Vec::new();
    permute(&mut order, 0, &mut orders);
    assert_eq!(orders.len(), 720);
    for order in orders {
        let executor = Executor::host().unwrap();
        let (arena, other) = (Arena::new(&executor), Arena::new(&executor));
        let call = executor.begin(&other).unwrap();
        let view = call.output_from_slice(&[1u8]).unwrap().publish();
        call.finish().unwrap();
        let export = view.export().unwrap();
        let call = executor.begin(&arena).unwrap();
        let output = call.output::<u8>(3).unwrap();
        let view = call.output_from_slice(&[2u8]).unwrap().publish();
        let mut parts: [Option<Box<dyn Send>>; 6] = [
            Some(Box::new((arena, other))),
            Some(Box::new(call)),
            Some(Box::new(output)),
            Some(Box::new(view)),
            Some(Box::new(export)),
            Some(Box::new(executor)),
        ];
        for index in order {
            let part = parts[index].take();
            if index % 2 == 0 {
                drop(part);
            } else {
                std::thread::spawn(move || drop(part)).join().unwrap();
            }
        }
    }
}

fn permute(order: &mut [usize; 6], from: usize, orders: &mut Vec<[usize; 6]>) {
    if from == order.len() {
        orders.push(*order);
    }
    for index in from..order.len() {
        order.swap(from, index);
        permute(order, from + 1, orders);
        order.swap(from, index);
    }
}

#[test]
fn writers_grow_on_several_threads_while_the_call_goes_on() {
    let arena = device_arena::ArenaOptions::new().first_capacity(1).build_host().unwrap();
    for _ in 0..3 {
        let call = arena.begin().unwrap();
        let writers: Vec<_> = (0..4).map(|_| call.writer::<u32>().unwrap()).collect();
        let mut outputs = Vec::new();
        let views: Vec<_> = std::thread::scope(|threads| {
            let fill = |(mut writer, id): (Writer<u32>, u32)| {
                (0..5000).for_each(|i| writer.push(id << 16 | i).unwrap());
                writer.publish()
            };
            let running: Vec<_> =
                writers.into_iter().zip(0..).map(|job| threads.spawn(move || fill(job))).collect();
            for i in 0..500u32 {
                outputs.push(call.output_from_slice(&[i; 20]).unwrap().publish());
            }
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        call.finish().unwrap();
        for (view, id) in views.iter().zip(0u32..) {
            assert!(view.read().unwrap().iter().copied().eq((0..5000).map(|i| id << 16 | i)));
        }
        for (view, i) in outputs.iter().zip(0..) {
            assert_eq!(*view.read().unwrap(), [i; 20]);
        }
    }
}

#[test]
fn an_export_of_the_running_call_belongs_to_that_call() {
    let (arena, other) = (Arena::host(), Arena::host());
    let call = arena.begin().unwrap();
    let earlier = call.output_from_slice(&[1u8]).unwrap().publish();
    call.finish().unwrap();
    let call = arena.begin().unwrap();
    let foreign = other.begin().unwrap().output::<u8>(1).unwrap().publish();
    assert!(matches!(call.export(&earlier), Err(Error::Stale { .. })));
    assert!(matches!(call.export(&foreign), Err(Error::Stale { .. })));
    let view = call.output_from_slice(&[7u8; 3]).unwrap().publish();
    let export = call.export(&view.slice(1..).unwrap()).unwrap();
    assert!(matches!(view.read(), Err(Error::Pending { .. })), "others wait for the end all the same");
    drop(call);
    assert!(matches!(view.read(), Err(Error::Stale { .. })), "abandoned");
    assert_eq!(*export, [7, 7], "and held by whoever holds it");
    assert!(matches!(arena.begin(), Err(Error::Contended { holder: device_arena::Holder::Readers(1), .. })));
    drop(arena);
    assert_eq!(format!("{export:?}"), "[7, 7]");
}

#[test]
fn an_arena_says_who_holds_it() {
    use device_arena::Holder;
    let arena = Arena::default();
    assert_eq!((arena.holder(), arena.generation()), (None, 0));
    let call = arena.begin().unwrap();
    assert_eq!((arena.holder(), arena.generation()), (Some(Holder::Call), call.generation()));
    let output = call.output::<u8>(1).unwrap();
    call.finish().unwrap();
    assert_eq!(arena.holder(), Some(Holder::Output));
    let view = output.publish();
    let guard = view.read().unwrap();
    assert_eq!(arena.holder(), Some(Holder::Readers(1)));
    drop(guard);
    assert_eq!(arena.holder(), None);
}
