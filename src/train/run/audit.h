// Audit: a log from which anybody can check that every sample of every epoch counted exactly once.
//
// Each worker appends what it is about to take of a step before it computes, so that one that is
// killed in between has said it all the same; and what it has completed. Which of several attempts
// at a step counts follows from the views: a step stands if the next view begins behind it. Lines:
//   view GENERATION step DONE members M columns C shards K epoch SAMPLES
//   take GENERATION STEP column C shard K samples ID,ID,...
//   done GENERATION STEP
// Several workers may share a file of one host. A worker that cannot write its log stops.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "train/members/view.h"
#include "train/mesh/socket.h"
#include "train/run/strategy.h"
#include "train/run/workload.h"

namespace muster::train {

class Audit {
 public:
  // The workload must outlive it, and say which samples it takes.
  static Result<std::unique_ptr<Audit>> Open(const std::string& path, const Workload& workload);

  void Enter(const View& view, const Grid& grid);
  // From any thread. `completed` steps are done; false: it could not be written.
  bool Take(std::int64_t completed, int column, int shard);
  void Done(std::int64_t completed);

  // What went wrong first.
  Result<void> status() const;

 private:
  Audit(std::string path, Fd fd, const Workload& workload)
      : path_(std::move(path)), fd_(std::move(fd)), workload_(workload) {}
  bool Append(const std::string& line);

  std::string path_;
  Fd fd_;
  const Workload& workload_;
  std::uint64_t generation_ = 0;
  std::atomic<int> reason_{0};  // errno
};

}  // namespace muster::train
