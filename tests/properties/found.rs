//! Programs on which the crate once left its promises, as the property found them.

use device_arena_model::{
    Align, Begin, Deferral, Ending, First, Growth, Limit, Op, Options, Place, Program, Room, Scrub, Step,
    Subject, Type, run,
};

fn arena(first: First, limit: Limit) -> Op {
    let align = Align::Power(0);
    let options = Options { align, first, limit, growth: Growth::Geometric, scrub: Scrub::Never };
    Op::NewArena { options, place: Place::Host }
}

fn begin() -> Op {
    Op::Begin { arena: 0, how: Begin::Arena }
}

fn output(of: Type, len: u16) -> Op {
    Op::Output { call: 0, of, len, room: Room::Plain }
}

fn hold(ops: Vec<Op>) {
    run(&Subject::host(), &Program { ops, arenas_go_first: false }).unwrap();
}

/// The first call fits its block because its alignment cost nothing, while the high-water mark counts what it
/// might have cost. The same outputs in another order are no more than that call took, and must find room.
#[test]
fn the_same_outputs_in_another_order_allocate_nothing() {
    let wide = output(Type::Wide, 31);
    let small = || output(Type::Byte, 64);
    let all_dropped = || vec![Op::DropOpen { open: 0, elsewhere: false }; 5];
    let finish = Op::Finish { call: 0, elsewhere: false };
    let mut ops =
        vec![arena(First::Small(0), Limit::None), begin(), wide.clone(), small(), small(), small(), small()];
    ops.extend(all_dropped());
    ops.extend([finish.clone(), begin(), small(), wide, small(), small(), small()]);
    ops.extend(all_dropped());
    ops.push(finish);
    hold(ops);
}

/// A first capacity beyond the limit must not keep the next call from the block that would have held this one.
#[test]
fn what_the_limit_refused_fits_the_next_call() {
    let finish = Op::Finish { call: 0, elsewhere: false };
    let dropped = Op::DropOpen { open: 0, elsewhere: false };
    let small = output(Type::Byte, 1);
    let large = output(Type::Byte, 9409);
    let first = [begin(), small.clone(), large.clone(), dropped.clone(), finish.clone()];
    let second = [begin(), small, large, dropped.clone(), dropped, finish];
    hold([vec![arena(First::Default, Limit::Small(6))], first.to_vec(), second.to_vec()].concat());
}

/// A chain that the limit let be replaced was, and then went all the same for what the limit had refused.
#[test]
fn a_chain_is_replaced_once_in_a_begin() {
    let options = Options {
        align: Align::Power(12),
        first: First::Default,
        limit: Limit::Small(8),
        growth: Growth::Exact,
        scrub: Scrub::Never,
    };
    let steps = vec![Step::Scratch(2), Step::Scratch(8193)];
    hold(vec![Op::NewArena { options, place: Place::Host }, Op::Steady { arena: 0, steps }]);
}

/// An output beyond the most that a call can count is refused before it has taken room.
#[test]
#[cfg(device_arena_small_limits)]
fn an_output_past_the_calls_limit_takes_no_room() {
    let many = Op::ManyOutputs { call: 0, count: 1024 };
    hold(vec![arena(First::Default, Limit::None), begin(), many, output(Type::Byte, 1)]);
}

/// A reader's copy was queued behind deferred work, and the host's scrub and writes of the next call came before it.
#[test]
fn the_next_call_of_a_copied_view_leaves_the_copy_its_values() {
    let options = |scrub| Options {
        align: Align::Power(0),
        first: First::Default,
        limit: Limit::None,
        growth: Growth::Geometric,
        scrub,
    };
    let place = Place::Executor(0);
    let begin = |arena| Op::Begin { arena, how: Begin::Arena };
    let filled = |len| Op::Output { call: 0, of: Type::Byte, len, room: Room::FromSlice };
    let publish = Op::Publish { open: 0, elsewhere: false };
    let finish = Op::Finish { call: 0, elsewhere: false };
    let work = Deferral { early: false, steps: Vec::new(), ending: Ending::Err };
    for subject in crate::programs::subjects() {
        let _turn = crate::programs::turn(&subject);
        for scrub in [Scrub::Never, Scrub::Zero] {
            let ops = vec![
                Op::NewArena { options: options(Scrub::Never), place },
                Op::NewArena { options: options(scrub), place },
                begin(1),
                filled(64),
                publish.clone(),
                finish.clone(),
                Op::Defer { arena: 0, executor: 0, work: work.clone() },
                begin(0),
                Op::Copy { call: 0, view: 1, fits: true },
                publish.clone(),
                finish.clone(),
                begin(1),
                filled(64),
                filled(64),
            ];
            run(&subject, &Program { ops, arenas_go_first: false }).unwrap();
        }
    }
}
