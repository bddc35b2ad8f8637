// PolluxGavel: Gavel's rounds (jobs/gavel.h), with the GPUs that jobs asked for.
//
// A round is six intervals. At its beginning those run that are furthest behind their share of the
// time since they came, as many as fit; who comes inside of it waits for the next one. Makespan is
// an oracle: it knows the true times and how many steps are left.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "sim/pollux/policy.h"

namespace muster::sim {

class PolluxGavel : public AllocationPolicy {
 public:
  enum class Aim : std::uint8_t { kMaxMin, kMakespan };
  static constexpr std::int64_t kRoundSeconds = 360;

  explicit PolluxGavel(Aim aim) : aim_(aim) {}
  bool adaptive() const override { return false; }
  Allocation Decide(const Scene& scene) override;

 private:
  struct Record {
    std::int64_t ran_s = 0;
    std::int64_t checked_s = 0;
  };
  Allocation Round(const Scene& scene);

  Aim aim_;
  std::unordered_map<const TrainJob*, Record> records_;
  std::int64_t next_round_s_ = 0;
};

}  // namespace muster::sim
