#include "train/run/scribe.h"

#include <utility>

namespace muster::train {

void Scribe::Wait() {
  if (thread_.joinable()) thread_.join();
}

void Scribe::Do(std::function<void()> work) {
  Wait();
  busy_ = true;
  thread_ = std::thread([this, todo = std::move(work)] {
    todo();
    busy_ = false;
  });
}

void Scribe::Write(std::vector<CheckpointPart> parts) {
  Wait();
  unwritten_ = parts.empty() ? kNothing : parts.front().step;
  if (parts.empty()) return;
  Do([this, copies = std::move(parts), prunes = std::exchange(wants_prune_, false)] {
    for (const auto& copy : copies) {
      const auto written = folder_.Write(copy);
      if (written) continue;
      // What there is of it only takes room.
      folder_.Discard(copy.step, copy.view);
      return failed_(copy.step, written.error());
    }
    unwritten_ = kNothing;
    if (prunes) folder_.Prune(kKept);
  });
}

void Scribe::PruneIfIdle() {
  if (busy_ || !std::exchange(wants_prune_, false)) return;
  Do([this] { folder_.Prune(kKept); });
}

void Scribe::Discard(std::int64_t step, const CheckpointView& view) {
  Do([this, step, view] { folder_.Discard(step, view); });
}

}  // namespace muster::train
