//! Tables: what is read, what comes back, and what is refused.

use device_arena::plan::{Buffer, MemoryPlan, Planner, buffers_from_csv, buffers_to_csv};
use device_arena::{Error, Status};
use device_arena_model::check_table;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::{prop_assert_eq, proptest};

use crate::buffers::{all_kinds, config};

/// Text that looks like a table, with everything in it that tables go wrong by.
fn hostile() -> impl Strategy<Value = String> {
    let header = prop_oneof![
        6 => Just("id,lower,upper,size"),
        2 => Just("id,lower,upper,size,offset"),
        2 => Just("size , upper,id,alignment,lower,offset,name,alias,pinned"),
        1 => Just("buffer_id,start,end,size"),
        1 => Just("id,id,lower,upper,size"),
        1 => Just("\u{feff}id,lower,upper,size,gaps"),
        1 => Just(""),
    ];
    let field = prop_oneof![
        12 => (0..20u64).prop_map(|number| number.to_string()),
        1 => Just("18446744073709551615".to_owned()),
        1 => Just("18446744073709551616".to_owned()),
        1 => Just("-1".to_owned()),
        1 => Just("+1".to_owned()),
        1 => Just("٣".to_owned()),
        1 => Just("1e9".to_owned()),
        1 => Just("".to_owned()),
        1 => Just("\"a,\"\"b\"".to_owned()),
        1 => Just("\"".to_owned()),
        1 => Just("\"x\"y".to_owned()),
        1 => Just("\"two\nlines\"".to_owned()),
        1 => "\\PC{0,8}",
    ];
    let ending =
        prop_oneof![4 => Just("\n"), 2 => Just("\r\n"), 1 => Just("\n\n"), 1 => Just("\r"), 1 => Just("")];
    let row = (vec(field, 3..10), ending.clone()).prop_map(|(fields, ending)| fields.join(",") + ending);
    (header, ending, vec(row, 0..6))
        .prop_map(|(header, ending, rows)| format!("{header}{ending}{}", rows.concat()))
}

use proptest::prelude::Just;

proptest! {
    #![proptest_config(config(4000))]

    #[test]
    fn hostile_tables_are_read_or_refused(text in hostile()) {
        prop_assert_eq!(check_table(&text), Ok(()));
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        prop_assert_eq!(check_table(&text), Ok(()));
    }
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn buffers_and_plans_come_back_as_they_were(
        buffers in all_kinds(16),
        names in vec(weighted(0.5, "[a-z\",\n\r \\PC]{1,9}"), 16),
    ) {
        let mut named = buffers;
        named.iter_mut().zip(names).for_each(|(buffer, name)| buffer.name = name);
        prop_assert_eq!(&buffers_from_csv(&buffers_to_csv(&named)).unwrap(), &named);
        let plan = Planner::new().steps(50).plan(&named).unwrap().into_plan();
        let again = MemoryPlan::from_csv(&plan.to_csv()).unwrap();
        prop_assert_eq!(again.fingerprint(), plan.fingerprint());
        prop_assert_eq!(again, plan);
    }
}

#[test]
fn what_minimalloc_writes_is_read() {
    let problem = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\n";
    let buffers = buffers_from_csv(problem).unwrap();
    let ids: Vec<_> = buffers.iter().map(|buffer| (buffer.id, buffer.name.as_deref().unwrap())).collect();
    assert_eq!(ids, [(0, "b1"), (1, "b2"), (2, "b3")]);
    let solution = "id,lower,upper,size,alignment,gaps,offset\r\nb1,0,3,4,1,1-2@0:1,8\r\nb2,3,9,4,1,,8\r\nb3,0,9,4,4,,4\r\n";
    let plan = MemoryPlan::from_csv(solution).unwrap();
    plan.verify(&buffers).unwrap();
    assert_eq!((plan.total(), plan.alignment()), (12, 4));
    // And what is written has no column that it does not know.
    assert_eq!(buffers_to_csv(&[Buffer::new(5, 0..3, 4)]), "id,lower,upper,size\n5,0,3,4\n");
}

#[test]
fn an_end_counts_its_step_in() {
    let buffers = buffers_from_csv("buffer,begin,end,size\n1,0,3,4\n").unwrap();
    assert_eq!(buffers, [Buffer::new(1, 0..4, 4)]);
    let refused = buffers_from_csv("buffer,begin,end,size\n1,0,18446744073709551615,4\n").unwrap_err();
    assert_eq!(refused.to_string(), "line 2, column `upper`: the step after it has no number");
}

#[test]
fn columns_come_in_any_order() {
    let text = "name,pinned,alias,offset,alignment,size,upper,lower,id,more\n\
                \"a \"\"b\"\", c\",1,,64,32,100,9,0,7,x\n,0,7,,,50,5,1,8,\n";
    let expected = [
        Buffer::new(7, 0..9, 100).aligned(32).at(64).pinned().named("a \"b\", c"),
        Buffer::new(8, 1..5, 50).alias_of(7),
    ];
    assert_eq!(buffers_from_csv(text).unwrap(), expected);
}

#[test]
fn one_id_that_is_text_makes_names_of_all() {
    let buffers = buffers_from_csv("id,lower,upper,size,alias\n7,0,1,8,\nx,0,1,8,7\n").unwrap();
    assert_eq!(buffers[1], Buffer::new(1, 0..1, 8).named("x").alias_of(0));
    assert_eq!(buffers[0].name.as_deref(), Some("7"));
}

#[test]
fn refusals_name_line_and_column() {
    let cases = [
        ("", 0, "id", "the table has no header"),
        ("\n\n", 0, "id", "the table has no header"),
        ("id,lower,size\n", 1, "upper", "the column is missing"),
        ("\n\nid,lower,upper,upper,size\n", 3, "upper", "the column comes twice"),
        ("id,lower,end,upper,size\n", 1, "upper", "the column comes twice"),
        ("id,lower,upper,size\n1,2,3\n", 2, "size", "3 fields below a header of 4"),
        ("id,lower,upper,size\n1,2,3,4,5\n", 2, "", "5 fields below a header of 4"),
        ("id,lower,upper,size\n1,2,3,4\n\n1,2,3,4\n", 4, "id", "`1` comes twice"),
        ("id,lower,upper,size\n1,2,3,4\n01,2,3,4\n", 3, "id", "`01` comes twice"),
        ("id,lower,upper,size\n,2,3,4\n", 2, "id", "nothing where an id is needed"),
        ("id,lower,upper,size\n1,,3,4\n", 2, "lower", "nothing where a number is needed"),
        ("id,lower,upper,size\n1,2,0x3,4\n", 2, "upper", "`0x3` is not a whole number of 64 bits"),
        (
            "id,lower,upper,size,offset\n\"a\nb\",2,3,4,0\nc,2,3,99999999999999999999,0\n",
            4,
            "size",
            "`99999999999999999999` is not a whole number of 64 bits",
        ),
        ("id,lower,upper,size,alias\n1,2,3,4,2\n", 2, "alias", "no buffer has the id `2`"),
        ("id,lower,upper,size,pinned\n1,2,3,4,yes\n", 2, "pinned", "`yes` is neither 0 nor 1"),
        ("id,lower,upper,size\n\"1,2,3,4\n", 2, "number 1", "a quotation mark is never closed"),
        ("id,lower,upper,size\n1,2,\"3\"4,4\n", 2, "number 3", "text behind a closing quotation mark"),
    ];
    for (text, line, column, reason) in cases {
        let expected = Error::Table { line, column: column.to_owned(), reason: reason.to_owned() };
        assert_eq!(expected.status(), Status::InvalidArgument);
        assert_eq!(buffers_from_csv(text), Err(expected.clone()), "{text:?}");
        // A plan needs an offset before an alias.
        if column != "alias" {
            assert_eq!(MemoryPlan::from_csv(text), Err(expected), "{text:?}");
        }
    }
    let without = MemoryPlan::from_csv("id,lower,upper,size\n1,2,3,4\n").unwrap_err();
    assert_eq!(without.to_string(), "line 2, column `offset`: nothing where a number is needed");
    // What a table says is held against the rules of plans.
    let refused = MemoryPlan::from_csv("id,lower,upper,size,offset\n1,0,2,4,0\n2,1,3,4,3\n").unwrap_err();
    assert!(matches!(refused, Error::Plan(_)), "{refused}");
}

#[test]
fn errors_show_the_beginning_of_a_long_value() {
    let text = format!("id,lower,upper,size\n1,2,3,{}\n", "9".repeat(1 << 20));
    let refused = buffers_from_csv(&text).unwrap_err().to_string();
    assert!(refused.len() < 200, "{} bytes", refused.len());
}

#[test]
fn a_pinned_slot_of_a_table_is_live_always() {
    // The steps were taken at their word, and the plan was none of these buffers.
    let text = "id,lower,upper,size,offset,pinned\n1,2,3,4,0,1\n2,0,9,4,4,0\n";
    let plan = MemoryPlan::from_csv(text).unwrap();
    assert_eq!(plan.get(1).unwrap().lifetime, None);
    plan.verify(&buffers_from_csv(text).unwrap()).unwrap();
    let shared = MemoryPlan::from_csv("id,lower,upper,size,offset,pinned\n1,2,3,4,0,1\n2,5,9,4,0,0\n");
    assert!(shared.is_err(), "{shared:?}");
}

#[test]
fn messages_are_one_line_whatever_the_names_are() {
    let name = "a\n\r\u{1b}[31m\u{0}";
    let buffers = [Buffer::new(1, 0..2, 8).at(0).named(name), Buffer::new(2, 1..3, 8).at(4).named(name)];
    let refused = [
        Planner::new().plan(&buffers).unwrap_err().to_string(),
        buffers_from_csv("id,lower,upper,size\n1,\"\n\u{1b}\",3,4\n").unwrap_err().to_string(),
        buffers_from_csv("id,lower,upper,size,\"pinned\"\n1,2,3,4,\"\n\u{1b}\"\n").unwrap_err().to_string(),
    ];
    for message in refused {
        assert!(!message.contains(char::is_control), "{message:?}");
    }
}
