// What `muster snapshot past` saved. A job is as large as it was at its end, where a part of a GPU
// counts as a whole one, and takes as long as it ran: of one that changed its size that is the time
// and not the work. What never ended, or had no GPU, is left out.
#include <algorithm>

#include "base/units.h"
#include "sim/jobs/formats.h"
#include "sim/past/past_file.h"

namespace muster::sim {
namespace {

constexpr std::int64_t kMostGpuMilli = 1'000'000 * kMilli;
constexpr std::int64_t kMostMs = 100'000'000'000'000;  // as of all that a past holds

}  // namespace

bool IsPast(std::string_view bytes) { return bytes.starts_with("muster past "); }

Result<JobTrace> ReadPast(const std::string& path, std::string_view bytes) {
  const auto file = DecodePast(bytes);
  if (!file) return Fail(file.error().code, path + ": " + file.error().message, file.error().hint);
  JobTrace trace;
  trace.format = "past";
  trace.gpus = GpusOf(file->past);
  for (const auto& job : file->past.jobs) {
    const auto& truth = job.truth;
    if (truth.gpu_milli < 0 || truth.gpu_milli > kMostGpuMilli || truth.ran_ms < 0 ||
        truth.ran_ms > kMostMs) {
      return Fail(ErrorCode::kInvalid, path + " holds what no past can hold",
                  "it was not saved by `muster snapshot past`");
    }
    if (truth.ended_ms == 0 || truth.gpu_milli == 0) {
      ++trace.left_out;
      continue;
    }
    trace.jobs.push_back({.name = job.spec->name,
                          .user = job.user,
                          .queue = job.spec->queue,
                          .submit_ms = job.submitted_ms,
                          .gpus = (truth.gpu_milli + kMilli - 1) / kMilli,
                          .duration_ms = std::max<std::int64_t>(1, truth.ran_ms)});
  }
  return trace;
}

}  // namespace muster::sim
