// CostModel: what a collective costs by each algorithm, and so which one to take.
//
// A message between two members costs a fixed time and a time for each byte, by whether they share
// memory; a sum costs a time for each byte. The formulas are those of algorithms.h. The numbers are
// fitted by a short probe; without one they are guesses. All members must
// have the same numbers, else they would pick differently.
#pragma once

#include <cstddef>
#include <vector>

namespace muster::train {

enum class Algorithm { kAuto, kDirect, kRing, kTree, kHierarchical };
const char* NameOf(Algorithm algorithm);

struct LinkCost {
  double message_s = 0, byte_s = 0;
};

struct CostModel {
  LinkCost near{2e-6, 1.5e-10};  // members that share memory
  LinkCost far{40e-6, 8e-10};    // 10 Gbit/s
  double sum_byte_s = 1e-10;

  // For so many bytes over members on these hosts (one number for each member).
  double Seconds(Algorithm algorithm, std::size_t bytes, const std::vector<int>& hosts) const;
  Algorithm Pick(std::size_t bytes, const std::vector<int>& hosts) const;
};

}  // namespace muster::train
