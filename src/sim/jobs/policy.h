// JobPolicy: who runs, asked whenever something has happened on the floor of a JobPlay.
//
// A policy is one small file behind this interface. It is told who came and who ended, then asked
// once for that moment; it answers by starting and stopping jobs on the floor. Any free GPUs will
// do for a job, as in the published simulators. It must decide the same for the same trace.
#pragma once

#include <cstdint>
#include <limits>

namespace muster::sim {

class JobPlay;
using JobIndex = std::uint32_t;  // place of a job in its trace
inline constexpr std::int64_t kNeverMs = std::numeric_limits<std::int64_t>::max();

class JobPolicy {
 public:
  virtual ~JobPolicy() = default;
  virtual void Submitted(const JobPlay& play, JobIndex job) = 0;
  virtual void Ended(const JobPlay& play, JobIndex job) = 0;
  virtual void Decide(JobPlay& play) = 0;
  // When it wants to be asked although nobody came or ended; later than now.
  virtual std::int64_t NextMs() const { return kNeverMs; }
};

}  // namespace muster::sim
