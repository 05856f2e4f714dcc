//! Plans as values of serde's data model. What comes in is checked as anything else is.

use std::ops::Range;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{MemoryPlan, Slot};

#[derive(Serialize, Deserialize)]
#[serde(rename = "MemoryPlan")]
struct PlanShape<S> {
    total: u64,
    alignment: u64,
    slots: Vec<S>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "Slot")]
struct SlotShape {
    node: u64,
    offset: u64,
    size: u64,
    alignment: u64,
    lifetime: Option<Range<u64>>,
    alias_of: Option<u64>,
    name: Option<String>,
}

impl Serialize for MemoryPlan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let slot = |slot: &Slot| SlotShape {
            node: slot.node,
            offset: slot.offset,
            size: slot.size,
            alignment: slot.alignment,
            lifetime: slot.lifetime.clone(),
            alias_of: slot.alias_of,
            name: slot.name.clone(),
        };
        let slots = self.iter().map(slot).collect();
        PlanShape { total: self.total(), alignment: self.alignment(), slots }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for MemoryPlan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PlanShape { total, alignment, slots } = PlanShape::<SlotShape>::deserialize(deserializer)?;
        let slots = slots.into_iter().map(|shape| {
            let SlotShape { node, offset, size, alignment, lifetime, alias_of, name } = shape;
            Slot { alignment, lifetime, alias_of, name, ..Slot::new(node, offset, size) }
        });
        let builder = Self::builder().total(total).alignment_of_start(alignment);
        builder.slots(slots).build().map_err(D::Error::custom)
    }
}
