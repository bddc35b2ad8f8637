// Scribe: writes this worker's parts of checkpoints, beside the work.
//
// One thing at a time, on a thread of its own; who finds it busy does not begin a checkpoint. All
// workers tell each other whether they are (numbers.h), so that all write the same steps.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "base/result.h"
#include "train/run/checkpoint.h"

namespace muster::train {

class Scribe {
 public:
  static constexpr std::int64_t kNothing = -1;
  static constexpr int kKept = 2;  // checkpoints

  // `failed` is called on its thread.
  Scribe(const CheckpointFolder& folder,
         std::function<void(std::int64_t step, const Error& why)> failed)
      : folder_(folder), failed_(std::move(failed)) {}
  ~Scribe() { Wait(); }
  Scribe(const Scribe&) = delete;
  Scribe& operator=(const Scribe&) = delete;

  bool busy() const { return busy_; }
  // A step whose parts of this worker are not on the disk yet, or could not be written.
  std::int64_t unwritten() const { return unwritten_; }

  // All of one step and view; none: there is nothing to write of it here.
  void Write(std::vector<CheckpointPart> parts);
  // A checkpoint is complete, so older ones go: beside what is written next, or where nothing is,
  // when it is told to.
  void WantPrune() { wants_prune_ = true; }
  void PruneIfIdle();
  // One will never be.
  void Discard(std::int64_t step, const CheckpointView& view);
  void Wait();

 private:
  void Do(std::function<void()> work);

  const CheckpointFolder& folder_;
  std::function<void(std::int64_t step, const Error& why)> failed_;
  std::atomic<bool> busy_{false};
  std::atomic<std::int64_t> unwritten_{kNothing};
  bool wants_prune_ = false;
  std::thread thread_;
};

}  // namespace muster::train
