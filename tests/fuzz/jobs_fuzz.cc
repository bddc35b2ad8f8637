// Any text through the readers of traces of jobs: no crash, no hang, no leak; an error says
// something; and what is accepted can be played to its end.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/clock.h"
#include "sim/jobs/read_jobs.h"
#include "sim/jobs/run_jobs.h"

namespace {

namespace sim = muster::sim;

void CheckJobs(const sim::JobTrace& trace) {
  MUSTER_CHECK(!trace.jobs.empty(), "a trace without jobs is an error");
  std::int64_t before_ms = 0;
  MUSTER_CHECK(trace.jobs.front().submit_ms == before_ms, "time begins with the first job");
  for (const auto& job : trace.jobs) {
    MUSTER_CHECK(job.submit_ms >= before_ms, "jobs are in the order of their submission");
    MUSTER_CHECK(job.gpus > 0, "jobs without a GPU are left out");
    MUSTER_CHECK(job.duration_ms > 0, "every job takes its time");
    MUSTER_CHECK(!job.queue.empty(), "every job has a queue");
    before_ms = job.submit_ms;
  }
}

// Under rules that decide when something happens: those with rounds would go on for centuries.
void CheckPlay(const sim::JobTrace& trace) {
  muster::ManualClock clock;
  for (const char* policy : {"fifo", "srtf", "tiresias"}) {
    const auto run = sim::RunJobs({.workload = "fuzz", .policy = policy}, trace.jobs, clock);
    MUSTER_CHECK(run.has_value(), run.error().message);
    MUSTER_CHECK(run->jobs.size() == trace.jobs.size(), "every job has ended");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto trace = sim::ReadJobsText("fuzz", text);
  if (!trace) {
    MUSTER_CHECK(!trace.error().message.empty(), "an error says what is wrong");
    return 0;
  }
  CheckJobs(*trace);
  CheckPlay(*trace);
  return 0;
}
