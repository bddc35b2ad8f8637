// TimedPlay: jobs of one queue and one priority, played from the first arrival to the last end.
//
// A job runs as long as it takes, counted from its first start and whatever its size, so that an
// estimate that is right stays right when sizes are given out. Who is told to leave has left at
// once. Elastic jobs report their speed when they have started.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/cluster.h"
#include "engine/cycle.h"

namespace muster::properties {

inline constexpr std::int64_t kMinute = 60'000;

struct TimedJob {
  int arrives_min = 0, workers = 0, gpus = 0, takes_min = 0, says_min = 0;  // 0: says nothing
  std::string type = {};                                                    // of GPUs; empty: any
  int most = 0;        // workers, of an elastic job
  double sync_s = -1;  // that a step costs more on several GPUs; below 0: it never reports

  bool Elastic() const { return most > workers; }
};

std::ostream& operator<<(std::ostream& out, const TimedJob& job);

// What stops a queue beside the GPUs that there are.
enum class Bound { kNone, kLimit, kQuota };

// What keeps a job that is not elastic from being one of those whose sizes are given out.
enum class Apart { kNot, kFixed, kNested };

struct TimedSetup {
  int nodes = 3;  // of four GPUs
  engine::Policy policy = {};
  std::vector<std::string> types = {""};
  Bound bound = Bound::kNone;
  std::int64_t gpus = 0;  // of the bound
  Apart rigid = Apart::kNot;
};

class TimedPlay {
 public:
  TimedPlay(const std::vector<TimedJob>& jobs, const TimedSetup& setup);

  // `look` is shown each plan before the next moment.
  using Look = std::function<void(const model::Plan&, std::int64_t now_ms)>;
  void Run(const Look& look);

  const std::map<std::size_t, std::int64_t>& started() const { return started_; }
  std::size_t IndexOf(engine::JobId id) const { return index_.at(id); }

 private:
  void LetEnd();
  void LetCome();
  void Start(std::size_t index);
  model::Job Spec(std::size_t index) const;
  bool Cycle(const Look& look);

  const std::vector<TimedJob>& jobs_;
  Bound bound_;
  Apart rigid_;
  std::unique_ptr<engine::Cluster> cluster_;
  std::unique_ptr<engine::Scheduler> scheduler_;
  std::set<std::int64_t> moments_;
  std::set<std::pair<std::int64_t, std::size_t>> ends_;
  std::map<std::size_t, engine::JobId> ids_;
  std::map<engine::JobId, std::size_t> index_;
  std::map<std::size_t, std::int64_t> started_;
  std::int64_t now_ms_ = 0;
};

}  // namespace muster::properties
