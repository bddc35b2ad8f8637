// The algorithms of the collectives, over a group. n members, S bytes, a message costs a + bytes*b.
//
//   direct        n a + 2(n-1)/n S b     each sums one part over all, in the order of the group, in
//                                        place; then all fetch the parts
//   ring          2(n-1)a + 2(n-1)/n S b each talks to two; sums while it receives
//   tree          2 log2(n) (a + S b)    and a sum a level; few messages: for small S
//   hierarchical  direct on each host, a ring of one lane per local member across hosts
//
// All give every member the same bits. Nobody returns before others need what he offered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "train/collective/group.h"

namespace muster::train {

Result<void> AllReduceDirect(const Group& group, std::span<float> values);
Result<void> AllReduceRing(const Group& group, std::span<float> values);
Result<void> AllReduceTree(const Group& group, std::span<float> values);
// `hosts`: for each place of the group, a number that those on one host have in common.
Result<void> AllReduceHierarchical(const Group& group, const std::vector<int>& hosts,
                                   std::span<float> values);

// Two bytes a number on the wire. `residual`, as long as values, keeps what rounding took and gives
// it to the next call; zeros at first.
Result<void> AllReduceHalf(const Group& group, std::span<float> values, std::span<float> residual);

// The part of this member becomes the sum; the rest of the values is left as it was.
Result<void> ReduceScatter(const Group& group, std::span<float> values);
// Every part is fetched from its member.
Result<void> AllGather(const Group& group, std::span<float> values);
Result<void> Broadcast(const Group& group, std::span<std::byte> bytes, std::size_t root);
Result<void> Barrier(const Group& group);

}  // namespace muster::train
