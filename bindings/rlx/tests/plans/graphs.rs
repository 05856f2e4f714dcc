//! Graphs made with rlx's own constructors, and its planner's options.

use rlx_compile::memory::{
    ArenaWidthPolicy, MemoryPlan, MemoryPlanOptions, plan_memory, plan_memory_aligned,
    plan_memory_f32_uniform, plan_memory_f32_uniform_no_params, plan_memory_hybrid, plan_memory_native,
    plan_memory_native_in_order, plan_memory_with_options, plan_memory_with_options_policy,
    plan_memory_with_policy,
};
use rlx_ir::op::{Activation, BinaryOp};
use rlx_ir::{DType, Graph, NodeId, Op, Shape};

pub const COLUMNS: usize = 24;

pub fn f32s(rows: usize) -> Shape {
    Shape::new(&[rows, COLUMNS], DType::F32)
}

/// A chain of products with one weight: every other tensor can take the room of the one before the last.
pub fn chain(layers: usize) -> Graph {
    chain_of(40, layers)
}

/// The same, with tensors of so many rows.
pub fn chain_of(rows: usize, layers: usize) -> Graph {
    let mut graph = Graph::new("chain");
    let weight = graph.param("weight", Shape::new(&[COLUMNS, COLUMNS], DType::F32));
    let mut hidden = graph.input("hidden", f32s(rows));
    for _ in 0..layers {
        hidden = graph.matmul(hidden, weight, f32s(rows));
        hidden = graph.activation(Activation::Relu, hidden, f32s(rows));
    }
    graph.set_outputs(vec![hidden]);
    graph
}

/// A decode step: a projection is cut in three views, a row goes into each resident cache in place.
pub fn decode(layers: usize) -> Graph {
    let mut graph = Graph::new("decode");
    let row = |width| Shape::new(&[1, width], DType::F32);
    let mut hidden = graph.input("hidden", row(COLUMNS));
    let at = graph.input("position", Shape::new(&[1], DType::I32));
    let mut outputs = Vec::new();
    for layer in 0..layers {
        let weight = graph.param(format!("qkv.{layer}"), Shape::new(&[COLUMNS, 3 * COLUMNS], DType::F32));
        let keys = graph.input(format!("keys.{layer}"), f32s(16));
        let values = graph.input(format!("values.{layer}"), f32s(16));
        let all = graph.matmul(hidden, weight, row(3 * COLUMNS));
        let [query, key, value] = [0, 1, 2].map(|part| {
            let op = Op::Narrow { axis: 1, start: part * COLUMNS, len: COLUMNS };
            graph.add_node(op, vec![all], row(COLUMNS))
        });
        let keys = graph.add_node(Op::KvAppend { axis: 0, pos: 11 }, vec![keys, key], f32s(12));
        let values = graph.add_node(Op::DynamicUpdateSlice { axis: 0 }, vec![values, value, at], f32s(16));
        let turned = Shape::new(&[COLUMNS, 12], DType::F32);
        let turned = graph.add_node(Op::Transpose { perm: vec![1, 0] }, vec![keys], turned);
        let scores = graph.matmul(query, turned, row(12));
        let scores = graph.softmax(scores, -1, row(12));
        let used = graph.add_node(Op::Narrow { axis: 0, start: 0, len: 12 }, vec![values], f32s(12));
        let mixed = graph.matmul(scores, used, row(COLUMNS));
        hidden = graph.binary(BinaryOp::Add, hidden, mixed, row(COLUMNS));
        outputs.extend([keys, values]);
    }
    outputs.push(hidden);
    graph.set_outputs(outputs);
    graph
}

/// A small generator; the same numbers everywhere.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn pick(&mut self, nodes: &[NodeId]) -> NodeId {
        nodes[self.below(nodes.len())]
    }
}

/// A graph of everything: branches, views of views, views of what goes out, other widths, nodes that nobody reads.
pub fn mixed(seed: u64) -> Graph {
    let mut dice = Dice(seed);
    let mut graph = Graph::new("mixed");
    let mut nodes = Vec::new();
    for input in 0..1 + dice.below(3) {
        let rows = 2 + dice.below(60);
        nodes.push(graph.input(format!("input.{input}"), f32s(rows)));
    }
    let square = Shape::new(&[COLUMNS, COLUMNS], DType::F32);
    let weights = [0, 1].map(|weight| graph.param(format!("weight.{weight}"), square.clone()));
    let few = graph.add_node(Op::Constant { data: vec![0; 4 * COLUMNS] }, vec![], f32s(1));
    nodes.push(few);
    for _ in 0..10 + dice.below(60) {
        // Mostly of late nodes, or everything lives for ever.
        let late = nodes.len().saturating_sub(6);
        let from = if dice.below(4) == 0 { 0 } else { late };
        let node = dice.pick(&nodes[from..]);
        let rows = graph.node(node).shape.num_elements().unwrap_or(0) / COLUMNS;
        let shape = f32s(rows);
        let made = match dice.below(9) {
            0 => {
                let weight = dice.pick(&weights);
                let turned = Op::Transpose { perm: vec![1, 0] };
                let turned = graph.add_node(turned, vec![weight], square.clone());
                graph.matmul(node, turned, shape)
            }
            1 => {
                let weight = dice.pick(&weights);
                graph.matmul(node, weight, shape)
            }
            2 => graph.activation(Activation::Gelu, node, shape),
            3 => {
                let flat = rows * COLUMNS;
                let flat = graph.reshape(node, vec![flat as i64], Shape::new(&[flat], DType::F32));
                graph.reshape(flat, vec![rows as i64, COLUMNS as i64], shape)
            }
            4 => {
                let start = dice.below(rows);
                let len = 1 + dice.below(rows - start);
                graph.add_node(Op::Narrow { axis: 0, start, len }, vec![node], f32s(len))
            }
            5 if rows < 500 => {
                let other = dice.pick(&nodes);
                let more = graph.node(other).shape.num_elements().unwrap_or(0) / COLUMNS;
                graph.concat(vec![node, other], 0, f32s(rows + more))
            }
            6 => {
                let to = [DType::BF16, DType::F16, DType::Bool, DType::I64][dice.below(4)];
                let cast = graph.add_node(Op::Cast { to }, vec![node], Shape::new(&[rows, COLUMNS], to));
                graph.add_node(Op::Cast { to: DType::F32 }, vec![cast], shape)
            }
            7 => graph.add_node(Op::Cast { to: DType::F32 }, vec![node], shape), // a view: it is one already
            _ => graph.binary(BinaryOp::Add, node, node, shape),
        };
        nodes.push(made);
    }
    let mut outputs = vec![nodes[nodes.len() - 1]];
    for _ in 0..dice.below(3) {
        outputs.push(dice.pick(&nodes));
    }
    graph.set_outputs(outputs);
    graph
}

pub fn all() -> Vec<Graph> {
    let mixed = (0..30).map(mixed);
    [chain(1), chain(12), decode(1), decode(4)].into_iter().chain(mixed).collect()
}

/// A way to have a graph planned: its name, its alignment, itself.
pub type RlxPlanner = (String, u64, Box<dyn Fn(&Graph) -> MemoryPlan>);

/// All of them.
pub fn planners() -> Vec<RlxPlanner> {
    let mut planners: Vec<RlxPlanner> = Vec::new();
    planners.push(("plain".into(), 64, Box::new(plan_memory)));
    for alignment in [1, 16, 256, 4096] {
        let name = format!("aligned to {alignment}");
        planners.push((name, alignment as u64, Box::new(move |graph| plan_memory_aligned(graph, alignment))));
    }
    let base = MemoryPlanOptions::inference();
    let options = [
        ("no reuse", MemoryPlanOptions { arena_no_reuse: true, ..base }),
        ("outputs alone pinned", MemoryPlanOptions { pin_output_ancestors: false, ..base }),
        ("no parameters", MemoryPlanOptions { allocate_params: false, ..base }),
        ("no inputs", MemoryPlanOptions { allocate_inputs: false, pin_output_ancestors: false, ..base }),
        ("no constants", MemoryPlanOptions { allocate_constants: false, ..base }),
        ("backward", MemoryPlanOptions::backward_activations_only()),
        (
            "transposes absorbed",
            MemoryPlanOptions { elide_bank_transposes: true, pin_output_ancestors: false, ..base },
        ),
        ("convolutions folded", MemoryPlanOptions { fold_conv3d_epilogue: true, ..base }),
    ];
    for (name, options) in options {
        let plan = move |graph: &Graph| plan_memory_with_options(graph, 128, options);
        planners.push((name.into(), 128, Box::new(plan)));
    }
    type Named = (&'static str, fn(&Graph, usize) -> MemoryPlan);
    let named: [Named; 5] = [
        ("f32 uniform", plan_memory_f32_uniform),
        ("f32 uniform without parameters", plan_memory_f32_uniform_no_params),
        ("native", plan_memory_native),
        ("native in order", plan_memory_native_in_order),
        ("hybrid", plan_memory_hybrid),
    ];
    for (name, plan) in named {
        planners.push((name.into(), 256, Box::new(move |graph| plan(graph, 256))));
    }
    for policy in [
        ArenaWidthPolicy::F32Uniform,
        ArenaWidthPolicy::Native,
        ArenaWidthPolicy::Hybrid,
        ArenaWidthPolicy::NativeHalfWidened,
        ArenaWidthPolicy::NativeBf16Widened,
    ] {
        let options = MemoryPlanOptions { pin_output_ancestors: false, ..base };
        let plan = move |graph: &Graph| plan_memory_with_options_policy(graph, 32, options, policy);
        planners.push((format!("{policy:?}, in order"), 32, Box::new(plan)));
        let plan = move |graph: &Graph| plan_memory_with_policy(graph, 32, policy);
        planners.push((format!("{policy:?}"), 32, Box::new(plan)));
    }
    planners
}
