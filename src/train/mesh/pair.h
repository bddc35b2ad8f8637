// Pair: what two members have between them: a table of offers in each direction, two bells, and a
// sign of life of each.
//
// It lies in memory that both map where they share memory, else in memory of this process, where
// only the bell is used. Who offers takes a free slot and writes it; who looks marks it done; who
// offered frees it, or takes it for the next offer as it is. The state of a slot carries how often
// it was used, so a late "done" cannot hit what came after. All that a peer may write is read as
// numbers that may be wrong.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "train/mesh/lifeline.h"

namespace muster::train {

// Offers in one direction that the other side is not done with: the gradients of a step whose model
// has several hundred buckets, from one who is ahead. 64 KiB, in each direction of each pair.
constexpr std::size_t kPairSlots = 1024;

enum class SlotState : std::uint64_t { kFree, kOffered, kDone };
constexpr std::uint64_t SlotWord(std::uint64_t use, SlotState state) {
  return use * 4 + static_cast<std::uint64_t>(state);
}
constexpr SlotState StateOf(std::uint64_t word) { return static_cast<SlotState>(word % 4); }

struct alignas(64) Slot {
  std::atomic<std::uint64_t> word;
  std::atomic<std::uint64_t> generation;
  std::atomic<std::uint64_t> tag;
  std::atomic<std::uint64_t> offset;  // in the segment of the one who offers
  std::atomic<std::uint64_t> length;
};

// Where the threads of one member sleep while they wait for the other.
struct alignas(64) Bell {
  std::atomic<std::uint32_t> count;
  std::atomic<std::uint32_t> sleepers;

  // After what is waited for has been stored with sequential consistency.
  void Ring();
  void Sleep(std::uint32_t seen);
};

struct PairSide {
  Bell bell;                            // of this member
  Life life;                            // of this member
  std::array<Slot, kPairSlots> offers;  // by this member
};

struct Pair {
  std::array<PairSide, 2> sides;  // the one who dialed, the other
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace muster::train
