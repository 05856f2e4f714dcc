//! How programs are made: phrases that make sense in a row, single operations between them, and nothing that
//! keeps a program from shrinking to any of its parts.

use device_arena_model::{
    Align, Begin, Deferral, Ending, First, Growth, Limit, Op, Options, Place, Program, Read, Release, Room,
    Scrub, Step, Type, Write,
};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any};
use proptest::{bool, prop_oneof};

/// The operations of a program, at the most by and large.
const PHRASES: usize = 20;

fn pick() -> impl Strategy<Value = u8> {
    0..8u8
}

fn of() -> impl Strategy<Value = Type> {
    prop_oneof![
        6 => Just(Type::Byte),
        3 => Just(Type::Word),
        3 => Just(Type::Long),
        3 => Just(Type::Odd),
        2 => Just(Type::Wide),
        1 => Just(Type::Unit),
    ]
}

/// Small more often than not, and sometimes more than a block.
fn len() -> impl Strategy<Value = u16> {
    prop_oneof![1 => Just(0), 6 => 1..200u16, 3 => 200..3000u16, 1 => 3000..12_000u16]
}

fn options() -> impl Strategy<Value = Options> {
    let align = prop_oneof![6 => Just(0), 5 => 6..13u8].prop_map(Align::Power);
    let align = prop_oneof![20 => align, 1 => any::<u16>().prop_map(Align::Odd)];
    let first = prop_oneof![2 => Just(First::Default), 6 => (0..20u8).prop_map(First::Small)];
    let limit = prop_oneof![3 => Just(Limit::None), 1 => (0..40u8).prop_map(Limit::Small), 1 => (0..12u8).prop_map(Limit::Small)];
    let growth =
        prop_oneof![3 => Just(Growth::Geometric), 1 => Just(Growth::Capped), 2 => Just(Growth::Exact)];
    let scrub = prop_oneof![3 => Just(Scrub::Never), 1 => Just(Scrub::Zero), 2 => any::<u8>().prop_map(Scrub::Poison)];
    (align, first, limit, growth, scrub).prop_map(|(align, first, limit, growth, scrub)| Options {
        align,
        first,
        limit,
        growth,
        scrub,
    })
}

fn begin_how() -> impl Strategy<Value = Begin> {
    prop_oneof![
        4 => Just(Begin::Arena),
        3 => pick().prop_map(Begin::Executor),
        1 => any::<u8>().prop_map(Begin::Timeout),
        1 => pick().prop_map(Begin::ExecutorTimeout),
    ]
}

fn write_what() -> impl Strategy<Value = Write> {
    prop_oneof![
        4 => (0..60u8).prop_map(Write::Slice),
        2 => (0..60u8).prop_map(Write::Iter),
        2 => (0..40u8).prop_map(Write::Each),
        1 => (0..60u8).prop_map(Write::PanicAt),
        1 => any::<u8>().prop_map(Write::Reserve),
        1 => (0..60u8).prop_map(Write::Truncate),
        1 => Just(Write::Huge),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (of(), len()).prop_map(|(of, len)| Step::Fixed(of, len)),
        2 => any::<u8>().prop_map(Step::Writers),
        1 => any::<u8>().prop_map(Step::Tape),
        2 => len().prop_map(Step::Scratch),
        1 => Just(Step::Fixed(Type::Vast, 1)).prop_filter("rare", |_| true),
    ]
}

fn deferral() -> impl Strategy<Value = Deferral> {
    let ending = prop_oneof![4 => Just(Ending::Ok), 1 => Just(Ending::Err), 1 => Just(Ending::Panic)];
    (bool::ANY, vec(step(), 0..4), ending).prop_map(|(early, steps, ending)| Deferral {
        early,
        steps,
        ending,
    })
}

fn release_how() -> impl Strategy<Value = Release> {
    prop_oneof![
        Just(Release::Quietly),
        Just(Release::Wait),
        Just(Release::WaitTimeout),
        Just(Release::IsDone),
        Just(Release::Await),
        Just(Release::Begin),
        Just(Release::Synchronize),
    ]
}

fn elsewhere() -> impl Strategy<Value = bool> {
    bool::weighted(0.1)
}

fn new_arena() -> impl Strategy<Value = Op> {
    let place = prop_oneof![1 => Just(Place::Host), 2 => pick().prop_map(Place::Executor)];
    (options(), place).prop_map(|(options, place)| Op::NewArena { options, place })
}

fn arena_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => new_arena(),
        1 => (pick(), elsewhere()).prop_map(|(arena, elsewhere)| Op::DropArena { arena, elsewhere }),
        1 => pick().prop_map(|arena| Op::Close { arena }),
        2 => pick().prop_map(|arena| Op::Trim { arena }),
        2 => (pick(), len(), bool::weighted(0.1))
            .prop_map(|(arena, bytes, huge)| Op::Reserve { arena, bytes, huge }),
        6 => begin(),
        1 => Just(Op::NewExecutor),
        1 => pick().prop_map(|executor| Op::DropExecutor { executor }),
        2 => (pick(), vec(step(), 0..5)).prop_map(|(arena, steps)| Op::Steady { arena, steps }),
    ]
}

fn begin() -> impl Strategy<Value = Op> {
    (pick(), begin_how()).prop_map(|(arena, how)| Op::Begin { arena, how })
}

fn output() -> impl Strategy<Value = Op> {
    let room = prop_oneof![2 => Just(Room::Plain), 1 => Just(Room::FromSlice), 1 => Just(Room::FromFn)];
    (pick(), of(), len(), room).prop_map(|(call, of, len, room)| Op::Output { call, of, len, room })
}

fn finish() -> impl Strategy<Value = Op> {
    (pick(), elsewhere()).prop_map(|(call, elsewhere)| Op::Finish { call, elsewhere })
}

fn call_op() -> impl Strategy<Value = Op> {
    // Where a call can open few, as many more often than not.
    let (fewest, many): (u16, u16) = if cfg!(device_arena_small_limits) { (900, 1100) } else { (0, 20) };
    prop_oneof![
        8 => output(),
        3 => (pick(), of(), any::<u8>())
            .prop_map(|(call, of, capacity)| Op::Writer { call, of, capacity: capacity / 8 * (capacity % 2) }),
        2 => (pick(), 0..20u8, any::<u8>()).prop_map(|(call, items, bytes)| Op::Tape { call, items, bytes }),
        3 => finish(),
        1 => (pick(), elsewhere()).prop_map(|(call, elsewhere)| Op::Abandon { call, elsewhere }),
        2 => (pick(), any::<u8>(), bool::weighted(0.9))
            .prop_map(|(call, view, fits)| Op::Copy { call, view, fits }),
        1 => (pick(), bool::ANY).prop_map(|(call, overflows)| Op::HugeOutput { call, overflows }),
        1 => (pick(), fewest..many).prop_map(|(call, count)| Op::ManyOutputs { call, count }),
        1 => pick().prop_map(|call| Op::Output { call, of: Type::Vast, len: 1, room: Room::Plain }),
        3 => (pick(), 0..10u8, bool::weighted(0.2))
            .prop_map(|(call, over, panics)| Op::Scratch { call, over, panics }),
        3 => (of(), len()).prop_map(|(of, len)| Op::Take { of, len }),
    ]
}

fn open_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => write(),
        4 => publish(),
        1 => (pick(), len()).prop_map(|(open, len)| Op::PublishPrefix { open, len }),
        1 => (pick(), elsewhere()).prop_map(|(open, elsewhere)| Op::DropOpen { open, elsewhere }),
    ]
}

fn write() -> impl Strategy<Value = Op> {
    (pick(), write_what()).prop_map(|(open, what)| Op::Write { open, what })
}

fn publish() -> impl Strategy<Value = Op> {
    (pick(), elsewhere()).prop_map(|(open, elsewhere)| Op::Publish { open, elsewhere })
}

fn view_op() -> impl Strategy<Value = Op> {
    let how = prop_oneof![
        3 => Just(Read::Guard),
        1 => Just(Read::ToVec),
        1 => Just(Read::CopyTo),
        1 => Just(Read::CopyToWrongLength),
    ];
    prop_oneof![
        4 => (any::<u8>(), how).prop_map(|(view, how)| Op::Read { view, how }),
        2 => (any::<u8>(), 0..10u8).prop_map(|(view, over)| Op::Guard { view, over }),
        2 => any::<u8>().prop_map(|view| Op::Export { view }),
        2 => (pick(), any::<u8>()).prop_map(|(call, view)| Op::CallExport { call, view }),
        2 => (pick(), elsewhere()).prop_map(|(export, elsewhere)| Op::DropExport { export, elsewhere }),
        2 => (any::<u8>(), any::<u8>(), any::<u8>())
            .prop_map(|(view, start, end)| Op::Slice { view, start, end }),
        1 => any::<u8>().prop_map(|view| Op::CloneView { view }),
        1 => any::<u8>().prop_map(|view| Op::DropView { view }),
        1 => pick().prop_map(|tape| Op::ReadTape { tape }),
        1 => (pick(), 0..8u8).prop_map(|(tape, over)| Op::GuardTape { tape, over }),
        1 => pick().prop_map(|tape| Op::TapeViews { tape }),
        1 => pick().prop_map(|tape| Op::DropTape { tape }),
    ]
}

fn work_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (pick(), pick(), deferral())
            .prop_map(|(arena, executor, work)| Op::Defer { arena, executor, work }),
        2 => (pick(), pick()).prop_map(|(call, executor)| Op::DeferCall { call, executor }),
        5 => (pick(), release_how()).prop_map(|(work, how)| Op::Release { work, how }),
        1 => pick().prop_map(|work| Op::IsDone { work }),
        1 => pick().prop_map(|work| Op::WaitZero { work }),
        1 => pick().prop_map(|work| Op::Poll { work }),
        1 => pick().prop_map(|work| Op::DropDeferred { work }),
        1 => (pick(), pick()).prop_map(|(executor, work)| Op::OrderAfter { executor, work }),
    ]
}

/// A whole call: what most programs do most of the time.
fn call() -> impl Strategy<Value = Vec<Op>> {
    let body = vec(prop_oneof![3 => output(), 2 => call_op(), 4 => open_op()], 1..7);
    let export = (pick(), any::<u8>()).prop_map(|(call, view)| Op::CallExport { call, view });
    let publishes = vec(prop_oneof![8 => publish(), 1 => export], 0..5);
    (begin(), body, publishes, finish())
        .prop_map(|(begin, body, published, finish)| [vec![begin], body, published, vec![finish]].concat())
}

/// What one arena's call has made goes to another's, behind deferred work perhaps, and the first begins anew.
fn moved() -> impl Strategy<Value = Vec<Op>> {
    let deferred =
        (pick(), 0..7u8, deferral()).prop_map(|(arena, executor, work)| Op::Defer { arena, executor, work });
    let copy = (pick(), any::<u8>()).prop_map(|(call, view)| Op::Copy { call, view, fits: true });
    let held = (any::<u8>(), 0..10u8).prop_map(|(view, over)| Op::Guard { view, over });
    let filled = || {
        (pick(), of(), len()).prop_map(|(call, of, len)| Op::Output { call, of, len, room: Room::FromSlice })
    };
    let between = (vec(deferred, 0..3), vec(held, 0..2), begin(), vec(copy, 1..3), publish(), finish())
        .prop_map(|(deferred, held, begin, copies, publish, finish)| {
            [deferred, held, vec![begin], copies, vec![publish.clone(), publish, finish]].concat()
        });
    (pick(), filled(), between, vec(filled(), 1..3)).prop_map(|(arena, filled, between, again)| {
        let begin = Op::Begin { arena, how: Begin::Arena };
        let publish = Op::Publish { open: 0, elsewhere: false };
        let finish = Op::Finish { call: 0, elsewhere: false };
        let first = vec![begin.clone(), filled, publish.clone(), finish.clone()];
        [first, between, vec![begin], again, vec![publish, finish]].concat()
    })
}

/// Operations that work on what the phrase before has made, more likely than not.
fn phrase() -> impl Strategy<Value = Vec<Op>> {
    prop_oneof![
        6 => call(),
        3 => vec(view_op(), 1..4),
        3 => vec(work_op(), 1..4),
        2 => vec(open_op(), 1..4),
        2 => vec(call_op(), 1..4),
        2 => vec(arena_op(), 1..4),
        1 => (begin(), output(), pick(), pick())
            .prop_map(|(begin, output, call, executor)| vec![begin, output, Op::DeferCall { call, executor }]),
        2 => moved(),
    ]
}

/// Programs of one to some sixty operations.
pub(crate) fn program() -> impl Strategy<Value = Program> {
    let executors = vec(Just(Op::NewExecutor), 0..3);
    (executors, vec(new_arena(), 1..5), vec(phrase(), 1..PHRASES), bool::ANY).prop_map(
        |(executors, arenas, phrases, arenas_go_first)| Program {
            ops: [executors, arenas, phrases.concat()].concat(),
            arenas_go_first,
        },
    )
}
