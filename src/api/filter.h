// Filter: the conditions of a list, as people write them: "phase=running,gpus>=4".
//
// Taken apart here for every list; what the keys are, and what can stand beside them, each list
// knows itself. Whatever is not understood is refused, because an empty page would look like an
// answer. At most 16 conditions, so a filter costs little whatever it says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::api {

struct Comparison {
  enum class Op : std::uint8_t { kIs, kIsNot, kContains, kAtLeast, kAtMost, kAbove, kBelow };
  std::string text;  // as it was written
  std::string key;
  Op op = Op::kIs;
  std::string value;

  bool IsEquality() const { return op == Op::kIs || op == Op::kIsNot; }
  // Whether it holds for something that is `order` (negative: less) to the value.
  bool Meets(int order) const;
};

Result<std::vector<Comparison>> SplitFilter(std::string_view text);

tl::unexpected<Error> WrongFilter(const Comparison& comparison, const std::string& why,
                                  const std::string& hint);

}  // namespace muster::api
