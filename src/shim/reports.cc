#include "shim/reports.h"

#include <algorithm>

namespace muster::shim {
namespace {

constexpr std::int64_t kReportEveryMs = 1'000;
constexpr std::int64_t kTypedEveryMs = 5'000;
constexpr std::int64_t kSpoolAgainMs = 500;

}  // namespace

Reports::Reports(Spool& spool, Clock& clock, const std::string& launch)
    : spool_(spool), clock_(clock) {
  report_.launch = launch;
}

void Reports::Hear(const contract::Said& said) {
  if (const auto* done = std::get_if<contract::Checkpointed>(&said)) {
    const auto now_ms = clock_.WallMs();
    const auto at_ms = done->at_ms > 0 ? std::min(done->at_ms, now_ms) : now_ms;
    // Each becomes an event of the journal, which all share: of many only the latest counts.
    checkpoint_ = contract::CheckpointRecord{report_.launch, done->step, done->path, at_ms};
    WriteCheckpoint(clock_.MonotonicNs() / 1'000'000);
    return;
  }
  if (const auto* progress = std::get_if<contract::Progress>(&said)) {
    report_.step = progress->step;
    report_.epoch = progress->epoch;
    report_.samples = progress->samples;
    report_.numbers = progress->numbers;
  } else if (const auto* kept = std::get_if<contract::Kept>(&said)) {
    report_.kept_path = kept->path;
    report_.kept_hash = kept->hash;
    report_.kept_numbers = kept->numbers;
  } else if (std::holds_alternative<contract::Ready>(said)) {
    report_.ready = true;
  } else if (const auto* resized = std::get_if<contract::Resized>(&said)) {
    auto& sizes = report_.sizes;
    if (sizes.size() == contract::kSizesReported) sizes.erase(sizes.begin());
    const auto last_ms = sizes.empty() ? 0 : sizes.back().at_ms;
    sizes.push_back({std::max(clock_.WallMs(), last_ms + 1), resized->workers, resized->pause_ms,
                     resized->step.value_or(-1)});
  } else if (const auto* leaving = std::get_if<contract::Leaving>(&said)) {
    report_.leaving = leaving->reason.empty() ? "no reason given" : leaving->reason;
  } else {
    return;
  }
  report_.at_ms = clock_.WallMs();
  said_ = true;
}

void Reports::Typed() {
  report_.last_input_ms = clock_.WallMs();
  typed_ = true;
}

void Reports::Keep(std::int64_t now_ms) {
  WriteCheckpoint(now_ms);
  const auto due = due_ms();
  if (!due || now_ms < *due) return;
  if (said_ || (typed_ && now_ms >= typed_due_ms_)) {
    Conclude();
    due_ms_ = now_ms + kReportEveryMs;
    typed_due_ms_ = now_ms + kTypedEveryMs;
  } else {
    due_ms_ = now_ms + kSpoolAgainMs;
  }
  spool_.Flush();
}

std::optional<std::int64_t> Reports::due_ms() const {
  std::optional<std::int64_t> due;
  if (said_ || spool_.waiting()) due = due_ms_;
  if (typed_) due = due ? std::min(*due, typed_due_ms_) : typed_due_ms_;
  if (checkpoint_) due = due ? std::min(*due, checkpoint_due_ms_) : checkpoint_due_ms_;
  return due;
}

void Reports::WriteCheckpoint(std::int64_t now_ms) {
  if (!checkpoint_ || now_ms < checkpoint_due_ms_) return;
  spool_.Put(Spool::Kind::kCheckpoint, contract::Encode(*checkpoint_));
  checkpoint_.reset();
  checkpoint_due_ms_ = now_ms + kReportEveryMs;
  spool_.Flush();
}

void Reports::Conclude() {
  if (checkpoint_) spool_.Put(Spool::Kind::kCheckpoint, contract::Encode(*checkpoint_));
  checkpoint_.reset();
  if (said_ || typed_) spool_.Put(Spool::Kind::kReport, contract::Encode(report_));
  said_ = typed_ = false;
}

}  // namespace muster::shim
