// Tags of a step: what is offered to a peer is named by its step, column, kind and place.
//
// Unique among all that one worker offers to another in two steps that follow each other. Those of
// a change of the gang lie above, and between them those of Collective, of which channel 1 is of
// way.h.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "train/mesh/fabric.h"

namespace muster::train {

enum class TagKind : std::uint64_t {
  kExchange,  // first: the bucket; second: which of the sources, the parameters, the state
  kNumbers,
  kActivation,  // first: the shard; second: where it goes
  kGradient,
  kSumForward,
  kSumBackward,
  kColumn,  // all parameters of one, at the end
  kAsync,   // first: the bucket; second: an AsyncTag
};

// So many workers and shards that a place does not fit would make two offers one: that is too late
// to be an error, and far from what a step can do.
inline Tag StepTag(std::int64_t step, int column, TagKind kind, std::uint64_t first = 0,
                   std::uint64_t second = 0) {
  MUSTER_CHECK(first < 1U << 16U, "a tag has room for the first of a place");
  MUSTER_CHECK(second < 1U << 23U, "a tag has room for the second of a place");
  return (static_cast<Tag>(step) & 0x3FFU) << 52U | static_cast<Tag>(column) << 42U |
         static_cast<Tag>(kind) << 39U | first << 23U | second;
}

constexpr Tag kMoveTags = Tag{1} << 63U;  // of a transfer, counted from here
constexpr Tag kMeetTags = Tag{3} << 62U;  // of those who wait for each other

}  // namespace muster::train
